"""Exploration checks: choices against the agent's own best estimates, and how they are stored."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import run
from bandits.experiments import checks
from bandits.experiments.history import History
from bandits.experiments.lockstep import make_lane
from bandits.experiments.snapshots import ExplorationCheck, snapshot_steps
from tests.support import experiment


def check(kind: str, steps: int = 60, **changes: object) -> ExplorationCheck:
    lane = make_lane(experiment({"kind": kind, **changes}), 0)
    lane.advance(steps)
    return ExplorationCheck(
        steps, checks.compare_exploration(lane, checks.probe_rounds(lane), 1)[0]
    )


def test_a_check_compares_the_choice_with_the_highest_mean() -> None:
    lane = make_lane(experiment({"kind": "linucb", "alpha": 1.0}), 0)
    lane.advance(60)
    rounds = checks.probe_rounds(lane)
    actual = ExplorationCheck(60, checks.compare_exploration(lane, rounds, 1)[0])
    rows = np.arange(lane.rows)
    expected = []
    for round, explanation, truth in rounds:
        assert explanation.mean is not None
        chosen, greedy = explanation.score.argmax(axis=1), explanation.mean.argmax(axis=1)
        values = truth[rows, chosen], truth[rows, greedy], truth.max(axis=1), truth.mean(axis=1)
        expected.append([chosen != greedy, *values])
        assert round.available.all()
    np.testing.assert_allclose(actual.values, np.mean(expected, axis=0).T)
    assert (actual.explored > 0).any()
    assert (actual.best >= actual.greedy).all()


def test_agents_without_means_are_compared_with_their_most_probable_choice() -> None:
    oracle, random = check("oracle"), check("random")
    np.testing.assert_array_equal(oracle.explored, 0)
    np.testing.assert_array_equal(oracle.chosen, oracle.best)
    # nine of ten arms are not the first
    assert (random.explored > 0.7).all()
    greedy = check("linucb", alpha=0.0)
    np.testing.assert_array_equal(greedy.explored, 0)
    np.testing.assert_array_equal(greedy.chosen, greedy.greedy)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_rate_of_epsilon_greedy_is_epsilon_times_the_share_of_other_arms(
    epsilon: float,
) -> None:
    e = experiment({"kind": "epsilon_greedy", "epsilon": epsilon}, steps=200, replications=40)
    (history,) = run(e).histories.values()
    rates = np.concatenate([c.explored for c in history.exploration_checks])
    expected, n = 0.9 * epsilon, len(rates) * 20
    assert abs(rates.mean() - expected) <= 4 * (expected * (1 - expected) / n) ** 0.5


def test_checks_are_taken_at_every_snapshot_and_stored() -> None:
    e = experiment("linucb", "random", steps=400)
    for history in run(e).histories.values():
        assert [c.step for c in history.exploration_checks] == snapshot_steps(400)
        state = history.state_dict()
        restored = e.empty_history()
        restored.load_state_dict(state)
        for one, other in zip(history.exploration_checks, restored.exploration_checks, strict=True):
            np.testing.assert_array_equal(one.values, other.values)
        old = {name: value for name, value in state.items() if not name.startswith("exploration.")}
        without: History = e.empty_history()
        without.load_state_dict(old)
        assert without.exploration_checks == []
        assert without.step == 400


def test_slates_count_the_items_that_the_greedy_slate_does_not_hold() -> None:
    world = {
        "kind": "ranking",
        "n_users": 50,
        "n_items": 100,
        "n_candidates": 20,
        "slate": 3,
        "embedding": 4,
    }
    lane = make_lane(
        experiment({"kind": "linucb", "sharing": "shared", "alpha": 5.0}, simulator=world), 0
    )
    lane.advance(30)
    actual = ExplorationCheck(30, checks.compare_exploration(lane, checks.probe_rounds(lane), 1)[0])
    assert ((actual.explored > 0) & (actual.explored < 1)).all()
    assert (actual.best >= actual.chosen).all()
    assert (actual.best > actual.random).all()
