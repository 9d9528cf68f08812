"""The value of an agent that learns, by replaying a uniformly random log."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from threadpoolctl import threadpool_limits

from bandits.agents.guards.base import unguarded
from bandits.agents.guards.stack import build
from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.randomness import Streams
from bandits.base.selection import top_k
from bandits.base.types import Feedback, FloatArray, IntArray
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.lockstep import make_lane

from .intervals import check_level, normal
from .log import DecisionLog
from .simulated import check_single, experiment_of

# of uniform propensities
TOLERANCE = 1e-9
MAX_SEED = 2**31


class ReplayedAgent(NamedTuple):
    """Value of a learning agent with its confidence interval.

    Attributes
    ----------
    value, low, high : float
        Mean reward of the accepted events; NaN where none is.
    standard_error : float
    accepted : int
        Events from which the agent learned: the steps of a live run that this is worth.
    steps : tuple of int (R,)
        The same by replication of the log.
    """

    value: float
    low: float
    high: float
    standard_error: float
    accepted: int
    steps: tuple[int, ...]


def replay_learner(
    log: DecisionLog,
    agent: str | dict[str, Any],
    *,
    generator: np.random.Generator,
    level: float = 0.95,
) -> ReplayedAgent:
    """Estimate what an agent would have earned while it learned, from events in which it chooses
    what was shown.

    At each event the agent chooses; where its choice is what the log shows, it learns the reward
    and takes its next step, otherwise the event is passed over. The log is uniformly random, so
    that the accepted events are distributed as those of a live run of the agent, as long as the
    events are independent draws from one distribution [1]_. About n / K of n events with K actions
    are accepted. Where K differs between events, those with few actions would be accepted too
    often: each is looked at with probability K / max K only, so that all are accepted equally
    often.

    Each replication of the log is replayed by an agent of its own. These runs are independent, the
    rewards within one are not: what the agent learns early decides what it earns later. The
    interval therefore compares replications, by Student's t with the linearised standard error of a
    ratio of sums [2]_. A log of one replication does not show how much agents differ in what they
    learn; its interval is that of the mean reward, given the choices.

    Parameters
    ----------
    log : DecisionLog
        Uniformly random, of a simulated run without changes.
    agent : str or dict
        Parameters of the agent, with its ``kind``; as JSON where it is a str.
    generator : numpy.random.Generator
        Draws the seed of the agent: choices must not depend on the numbers that chose what was
        logged.
    level : float
        Confidence level, between 0 and 1.

    Raises
    ------
    UserError
        The log is not uniformly random, not one of a simulated run, or of one that changes; the
        agent is not possible there, or the level is not between 0 and 1.

    References
    ----------
    .. [1] Li, Chu, Langford, Wang (2011), Unbiased offline evaluation of contextual-bandit-based
       news article recommendation algorithms, Algorithm 2 and Theorem 1.
    .. [2] Cochran (1977), Sampling techniques, section 6.3.
    """
    check_level(level)
    logged = experiment_of(log)
    check_single(logged)
    K = _check_uniform(log)
    if logged.simulator.all_changes:
        raise UserError(
            "a learning agent cannot be replayed on the log of a run that changes: events that "
            "are passed over would move the changes to other steps of the agent"
        )
    experiment = read(
        {
            **logged.model_dump(mode="json", by_alias=True),
            "agents": [_params(agent)],
            "seed": int(generator.integers(MAX_SEED)),
        }
    )
    replications, order = (
        np.unique(np.asarray(log.rows)),
        np.argsort(np.asarray(log.steps), kind="stable"),
    )
    if K.min() < K.max():
        order = order[(generator.random(len(K)) < K / K.max())[order]]
    with threadpool_limits(1):
        rewards = [
            _replay(log, order[np.asarray(log.rows)[order] == row], logged, experiment, int(row))
            for row in replications
        ]
    return _summary(rewards, level)


def _params(agent: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(agent, dict):
        return agent
    try:
        found: dict[str, Any] = json.loads(agent)
    except ValueError as error:
        raise UserError(f"agent: {short(agent)} is not JSON ({error})") from error
    return found


def _check_uniform(log: DecisionLog) -> IntArray:
    """Return how many actions each event has, int64 (N,).

    UserError unless one was chosen uniformly at random.
    """
    if log.propensities is None:
        raise UserError(
            "a learning agent is replayed on a uniformly random log; this one has no propensities"
        )
    if log.available is None:
        K = np.full(len(log), log.n_actions, np.int64)
    else:
        K = np.asarray(log.available.sum(axis=1), np.int64)
    wrong = np.abs(log.propensities - 1 / K) > TOLERANCE
    if wrong.any():
        i = int(wrong.argmax())
        raise UserError(
            f"a learning agent is replayed on a uniformly random log; {log.places[i]} has the "
            f"propensity {log.propensities[i]:.3g} with {K[i]} actions"
        )
    return K


def _replay(
    log: DecisionLog, index: IntArray, logged: Experiment, experiment: Experiment, row: int
) -> FloatArray:
    """Replay the events of one replication in their order.

    Return the rewards of those that the agent accepts.
    """
    simulator = make_lane(logged, 0, [row]).simulator
    # its random numbers are not those that chose what was logged
    streams = Streams(experiment.seed, (row,))
    agent = build(
        experiment.agent_class(0), experiment.agents, simulator.spec, streams, simulator.access()
    )
    agent.prepare()
    rewards: list[float] = []
    alive, forget = np.ones(1, np.bool_), getattr(unguarded(agent), "clear_cache", None)
    for step, action, reward in zip(
        np.asarray(log.steps)[index].tolist(),
        log.actions[index].tolist(),
        log.rewards[index].tolist(),
        strict=True,
    ):
        # the agent's own time
        round = simulator.round_at(step)._replace(step=len(rewards))
        slate = top_k(agent.scores(round), round.available, alive, 1, streams.ties, round.step)
        if not alive[0]:
            break
        if round.items[0, slate[0, 0]] == action:
            rewards.append(reward)
            agent.learn(round, slate, Feedback(np.array([[reward]]), np.ones((1, 1), np.bool_)))
        elif forget is not None:
            # networks keep the round of a step, and the next event is the same step
            forget()
    return np.array(rewards)


def _summary(rewards: list[FloatArray], level: float) -> ReplayedAgent:
    """Return the mean of the rewards of all replications, each float64 (accepted events,), with its
    interval.
    """
    steps = tuple(len(each) for each in rewards)
    R, total = len(rewards), sum(steps)
    if not total:
        nothing = float("nan")
        return ReplayedAgent(nothing, nothing, nothing, nothing, 0, steps)
    if R == 1:
        value, low, high, error = normal(rewards[0], level=level)
        return ReplayedAgent(value, low, high, error, total, steps)
    value = sum(float(each.sum()) for each in rewards) / total
    distances = np.array([float(each.sum()) - value * len(each) for each in rewards])
    error = float(np.sqrt(np.square(distances).sum() * R / (R - 1))) / total
    half = float(stdtrit(R - 1, (1 + level) / 2)) * error
    return ReplayedAgent(value, value - half, value + half, error, total, steps)
