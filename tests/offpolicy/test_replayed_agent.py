"""A learning agent that is replayed on a uniformly random log earns what it earns live."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bandits import UserError
from bandits.agents.linear.epsilon_greedy import EpsilonGreedy
from bandits.base.randomness import Streams
from bandits.base.selection import top_k
from bandits.base.types import FloatArray, Round
from bandits.experiments.lockstep import make_lane
from bandits.offpolicy import DecisionLog, record, replay_learner
from benchmarks.reproduction.offpolicy import AGENTS, replays
from tests.support import experiment, often, thinned

SHOP = {"kind": "petshop", "n_products": 10}
LINUCB = {"kind": "linucb", "alpha": 0.4}


def uniform_log(seed: int = 0, steps: int = 400, replications: int = 3) -> DecisionLog:
    """Log uniformly random choice in the pet shop."""
    return record(
        experiment("random", simulator=SHOP, steps=steps, replications=replications, seed=seed)
    )


@pytest.mark.parametrize(
    "name", thinned([(name,) for name in AGENTS], lambda _: False, lambda number: number == 0)
)
def test_a_replayed_agent_earns_what_it_earns_live(name: str) -> None:
    """The difference to a live run of the same length is inside its 95 % interval in at least 95 %
    of 40 repetitions, less two standard errors: in 36, and in 372 of 400.

    A coverage of 85 % would be seen with probability .74, one of 80 % with .92; with 400
    repetitions one of 90 % with .98. `replays` says why the two are not paired. The mean difference
    shows a bias of 0.7 standard errors."""
    n = often(40, 400)
    found = replays(AGENTS[name], n)
    assert found.inside >= 0.95 * n - 2 * (0.95 * 0.05 * n) ** 0.5
    assert abs(found.z.mean()) < 4 * found.z.std(ddof=1) / n**0.5
    assert abs(found.accepted - 0.1) < 4 * (0.1 * 0.9 / found.events) ** 0.5


def test_the_replay_of_an_agent_is_a_plain_loop() -> None:
    """Of one replication: choose, compare, learn; time is the number of accepted events."""
    log = uniform_log(replications=1)
    found = replay_learner(log, LINUCB, generator=np.random.default_rng(5))
    seed = int(np.random.default_rng(5).integers(2**31))
    ties, every = Streams(seed, (0,)).ties, np.ones((1, 10), np.bool_)
    shop = make_lane(experiment("random", simulator=SHOP, replications=1, seed=0), 0).simulator
    A, b, rewards = (
        np.tile(np.eye(shop.spec.n_features), (10, 1, 1)),
        np.zeros((10, shop.spec.n_features)),
        [],
    )
    for step in range(400):
        x = shop.round_at(step).features[0]
        inverse = np.linalg.inv(A)
        width = np.sqrt(np.einsum("kd,kde,ke->k", x, inverse, x))
        scores = np.einsum("kd,kde,ke->k", x, inverse, b) + 0.4 * width
        k = int(top_k(scores[None], every, np.ones(1, np.bool_), 1, ties, len(rewards))[0, 0])
        if k == log.actions[step]:
            rewards.append(log.rewards[step])
            A[k] += np.outer(x[k], x[k])
            b[k] += log.rewards[step] * x[k]
    assert found.accepted == len(rewards)
    assert found.steps == (len(rewards),)
    assert found.value == pytest.approx(np.mean(rewards))
    assert found.high - found.value == pytest.approx(
        1.959964 * np.std(rewards, ddof=1) / len(rewards) ** 0.5
    )


@pytest.mark.slow
def test_agents_of_every_kind_are_replayed_and_json_is_read() -> None:
    """A network keeps what it computed for a step.

    Events that are passed over have the same step of the agent.
    """
    log = uniform_log(steps=100)
    agents = [
        {"kind": "neural_greedy"},
        {"kind": "lints"},
        {"kind": "ucb1"},
        {"kind": "linucb", "guards": [{"kind": "floor", "epsilon": 0.5}]},
    ]
    for agent in agents:
        found = replay_learner(log, json.dumps(agent), generator=np.random.default_rng(1))
        assert found == replay_learner(log, agent, generator=np.random.default_rng(1))
        assert sum(found.steps) == found.accepted
        assert abs(found.accepted - 30) < 4 * (300 * 0.09) ** 0.5
        assert found.low < found.value < found.high


def test_the_choice_does_not_depend_on_the_numbers_that_chose_what_was_logged() -> None:
    """Random choice with the seed of the log would accept every event."""
    found = replay_learner(uniform_log(), {"kind": "random"}, generator=np.random.default_rng(2))
    assert abs(found.accepted - 120) < 4 * (1200 * 0.09) ** 0.5


def test_without_an_accepted_event_there_is_no_value() -> None:
    log = uniform_log(steps=2, replications=1)
    found = [
        replay_learner(log, LINUCB, generator=np.random.default_rng(seed)) for seed in range(5)
    ]
    empty = [each for each in found if not each.accepted]
    assert empty
    assert all(np.isnan(each[:4]).all() and each.steps == (0,) for each in empty)


def test_what_cannot_be_replayed_is_refused() -> None:
    g = np.random.default_rng(0)
    explored = record(
        experiment({"kind": "epsilon_greedy"}, simulator=SHOP, steps=50, replications=2)
    )
    log = uniform_log(steps=50)
    shock = {**SHOP, "changes": [{"kind": "shock", "at": 20}]}
    changing = record(experiment("random", simulator=shock, steps=50, replications=2))
    refused = (
        (
            explored,
            LINUCB,
            r"uniformly random log; row \d+ has the propensity 0\.\d+ with 10 actions",
        ),
        (
            replace(log, propensities=None, distributions=None),
            LINUCB,
            "this one has no propensities",
        ),
        (changing, LINUCB, "the log of a run that changes"),
        (
            DecisionLog(actions=log.actions, rewards=log.rewards, names=log.names),
            LINUCB,
            "not one of a simulated run",
        ),
        (log, "{", "is not JSON"),
        (log, {"kind": "linucb", "alpha": -1}, "alpha"),
    )
    for each, agent, words in refused:
        with pytest.raises(UserError, match=words):
            replay_learner(each, agent, generator=g)
    with pytest.raises(UserError, match="level must be between 0 and 1"):
        replay_learner(log, LINUCB, generator=g, level=1)


def test_the_interval_compares_replications_by_the_error_of_a_ratio() -> None:
    """The standard error of sums over counts by the textbook's formula, from the replays of each
    replication alone.
    """
    log = uniform_log(steps=300, replications=4)
    alone = [log.select(np.asarray(log.rows) == row) for row in range(4)]
    found = replay_learner(log, LINUCB, generator=np.random.default_rng(3))
    each = [replay_learner(one, LINUCB, generator=np.random.default_rng(3)) for one in alone]
    n, sums = np.array([e.accepted for e in each]), np.array([e.value * e.accepted for e in each])
    assert tuple(n) == found.steps
    ratio = sums.sum() / n.sum()
    variance = ((sums - ratio * n) ** 2).sum() / 3 / 4 / n.mean() ** 2
    assert found.value == pytest.approx(ratio)
    assert found.standard_error == pytest.approx(variance**0.5)
    assert found.high - found.value == pytest.approx(3.182446 * variance**0.5)


def test_time_passes_for_the_agent_with_the_events_that_it_accepts() -> None:
    """What depends on the step, as a decaying rate of exploration does, sees the number of accepted
    events.
    """
    log, decaying = (
        uniform_log(steps=3000, replications=1),
        {"kind": "epsilon_greedy", "epsilon": 1.0, "decay": 1.0},
    )
    rounds, g = [], np.random.default_rng(4)
    original = EpsilonGreedy.scores

    def seen(self: EpsilonGreedy, round: Round) -> FloatArray:
        rounds.append(round.step)
        return original(self, round)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpsilonGreedy, "scores", seen)
        found = replay_learner(log, decaying, generator=g)
    assert max(rounds) in (found.accepted - 1, found.accepted)
    assert rounds == sorted(rounds)


PICTURES = {
    "kind": "artwork",
    "n_titles": 25,
    "n_pictures": [2, 12],
    "n_users": 200,
    "n_retrieved": 4,
}


def test_events_with_few_actions_are_not_accepted_more_often() -> None:
    """Of N events about N / max K, whatever their numbers of actions: here from 2 to 12
    pictures.
    """
    log = record(experiment("random", simulator=PICTURES, steps=600, replications=2, seed=1))
    assert log.available is not None
    K = log.available.sum(axis=1)
    assert len(np.unique(K)) > 3
    found = replay_learner(log, {"kind": "default"}, generator=np.random.default_rng(3))
    assert abs(found.accepted - len(log) / K.max()) < 4 * (len(log) / K.max()) ** 0.5
    # those without this rule
    assert (1 / K).sum() - found.accepted > 4 * (1 / K).sum() ** 0.5


@pytest.mark.slow
def test_the_replay_of_an_artwork_log_agrees_with_the_live_take_fraction() -> None:
    """Other visitors of the same titles: the two means differ by less than four standard errors of
    both samples.
    """
    log = record(
        experiment(
            "random", simulator={**PICTURES, "intercept": 1.0}, steps=6000, replications=8, seed=1
        )
    )
    found = replay_learner(
        log,
        {"kind": "linucb", "sharing": "shared", "alpha": 0.3},
        generator=np.random.default_rng(3),
    )
    steps = found.accepted // 8
    live = experiment(
        {"kind": "linucb", "sharing": "shared", "alpha": 0.3},
        simulator={**PICTURES, "intercept": 1.0},
        steps=steps,
        replications=100,
        seed=1,
    )
    takes = make_lane(live, 0, rows=range(20, 84)).advance(steps).rewards.mean(axis=0)
    error = np.hypot(found.standard_error, takes.std(ddof=1) / len(takes) ** 0.5)
    assert abs(found.value - takes.mean()) < 4 * error
    assert error < 0.02
