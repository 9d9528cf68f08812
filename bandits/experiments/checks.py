"""Checks at snapshots: intervals against the true expected rewards, and exploration against greedy
choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.agents.base import Agent
from bandits.base.explanation import Explanation
from bandits.base.selection import explored_share, shares_of_largest, top_k
from bandits.base.types import FloatArray, Round

from .lane import Lane
from .snapshots import BINS, LEVELS

# candidates per row, and the rounds that they are taken from
CANDIDATES, ROUNDS, MIN_ROUNDS = 200, 32, 4


class Probe(NamedTuple):
    """Measurements of one snapshot; None where the agent does not state what is needed.

    Attributes
    ----------
    inside : float64 (R, levels), optional
        Share of candidates whose expected reward lies in the agent's interval of each level of
        `LEVELS`; NaN in a row without any candidate to compare.
    values : float64 (R, 3 + BINS), optional
        The columns of `snapshots.BeliefCheck`.
    """

    inside: FloatArray | None
    values: FloatArray | None


class _RoundProbe(NamedTuple):
    """The candidates of one round, float64 (R, K); NaN where there is nothing to compare."""

    # (truth - mean) / standard deviation
    z: FloatArray | None
    # (R,), standard deviation of the candidate with the highest score
    uncertainty: FloatArray
    expected: FloatArray
    truth: FloatArray


class ProbedRound(NamedTuple):
    """A coming round, the agent's scores in it taken apart, and the true expected rewards, float64
    (R, K).
    """

    round: Round
    explanation: Explanation
    truth: FloatArray


def probe_rounds(lane: Lane) -> list[ProbedRound]:
    """Look at the next rounds with the current estimates of the agent.

    The state of simulator and agent does not change: no round is answered and nothing is learned.
    """
    n_rounds = max(MIN_ROUNDS, min(ROUNDS, CANDIDATES // lane.simulator.spec.n_candidates))
    # the rounds after it depend on what is shown
    if lane.simulator.state:
        n_rounds = 1
    probabilities = lane.simulator.access().probabilities
    rounds = (lane.simulator.round_at(step) for step in range(lane.step, lane.step + n_rounds))
    return [ProbedRound(round, lane.agent.explain(round), probabilities(round)) for round in rounds]


def compare(rounds: list[ProbedRound]) -> Probe:
    """Compare the estimates of an agent with the truth, over all candidates of some rounds.

    The interval is mean +- z sd, where sd is what the agent explores with: the standard deviation
    of its samples, or alpha times the confidence width. Agents that model log-odds are compared on
    that scale, without the candidates whose true probability is 0 or 1. A candidate without any
    observation has an infinite interval."""
    from scipy.special import ndtri

    probed = []
    for round, explanation, truth in rounds:
        # nothing to compare with
        if explanation.mean is None or np.isnan(truth).all():
            return Probe(None, None)
        probed.append(_probe_round(round, explanation, explanation.mean, truth))
    expected = np.concatenate([p.expected for p in probed], axis=1)
    true = np.concatenate([p.truth for p in probed], axis=1)
    uncertainty = _mean(np.stack([p.uncertainty for p in probed], axis=1))
    error = _mean((expected - true) ** 2)
    variance = _mean(
        np.concatenate([(p.truth - _mean(p.truth)[:, None]) ** 2 for p in probed], axis=1)
    )
    if any(p.z is None for p in probed):
        return Probe(
            None,
            np.column_stack(
                [uncertainty, error, variance, np.full((len(uncertainty), BINS), np.nan)]
            ),
        )
    z = np.concatenate([p.z for p in probed if p.z is not None], axis=1)
    values = np.column_stack([uncertainty, error, variance, _pit_histogram(z)])
    if np.isnan(z).all() and np.isfinite(true).any() and explanation.logit:
        return Probe(None, values)
    # in standard deviations
    half_widths = ndtri(0.5 + np.array(LEVELS) / 2)
    # NaN for a row without any value, as one that has stopped
    with np.errstate(invalid="ignore"):
        count = (~np.isnan(z)).sum(axis=1)
        return Probe(
            np.stack([(np.abs(z) <= half).sum(axis=1) / count for half in half_widths], axis=1),
            values,
        )


def _probe_round(
    round: Round, explanation: Explanation, mean: FloatArray, truth: FloatArray
) -> _RoundProbe:
    from scipy.special import expit, logit

    expected = np.where(round.available, expit(mean) if explanation.logit else mean, np.nan)
    shown = np.where(round.available, truth, np.nan)
    if explanation.width is None or explanation.how not in ("bonus", "sample"):
        return _RoundProbe(None, np.full(len(mean), np.nan), expected, shown)
    # widths may be 0, infinite or smaller than any gap
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        deviation = np.where(
            np.isinf(explanation.width), np.inf, explanation.scale * explanation.width
        )
        gap = (logit(truth) if explanation.logit else truth) - mean
        z = np.where(np.isinf(deviation), 0.0, np.where(gap == 0, 0.0, gap / deviation))
        first = shares_of_largest(np.where(round.available, explanation.score, -np.inf))
        uncertainty = np.where(first > 0, first * deviation, 0.0).sum(axis=1)
    possible = round.available & (np.isfinite(logit(truth)) if explanation.logit else True)
    uncertainty = np.where(np.isinf(uncertainty), np.nan, uncertainty)
    return _RoundProbe(np.where(possible, z, np.nan), uncertainty, expected, shown)


def _mean(values: FloatArray) -> FloatArray:
    """Mean of the finite entries of each row of ``values (R, n)``; NaN where there are none."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0).sum(axis=1) / known.sum(axis=1))


def _pit_histogram(z: FloatArray) -> FloatArray:
    """Shares of the probability integral transforms Phi(z) in each of `BINS` equal bins, float64
    (R, BINS).
    """
    from scipy.special import ndtr

    bins = np.minimum(np.floor(BINS * ndtr(z)), BINS - 1)
    counts = np.stack([(bins == b).sum(axis=1) for b in range(BINS)], axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def compare_exploration(
    lane: Lane, rounds: list[ProbedRound], n_segments: int
) -> tuple[FloatArray, FloatArray]:
    """Compare an agent's choices with its greedy choices, the optimum and random choice.

    Returns
    -------
    float64 (R, 5)
        The columns of `snapshots.ExplorationCheck`, means over the rounds; NaN in rows that have
        stopped.
    float64 (R, G, 2)
        The sums by user segment (`snapshots.SegmentCheck`).
    """
    values = each_round(lane, rounds)
    by_segment = np.zeros((values.shape[1], n_segments, 2))
    if n_segments > 1:
        for probed, explored in zip(rounds, values[:, :, 0], strict=True):
            rows = np.flatnonzero(lane.alive & np.isfinite(explored))
            by_segment[rows, probed.round.segments[rows], 0] += explored[rows]
            by_segment[rows, probed.round.segments[rows], 1] += 1
    return _mean_of_rounds(values, lane), by_segment


def each_round(lane: Lane, rounds: list[ProbedRound]) -> FloatArray:
    """Return the columns of `snapshots.ExplorationCheck` for each round, float64 (n, R, 5)."""
    simulator = lane.simulator
    S, alive, ties = simulator.spec.slate, lane.alive, simulator.streams.ties
    values = np.empty((len(rounds), len(alive), 5))
    for i, probed in enumerate(rounds):
        round, explanation, _ = probed
        estimates = _estimates(lane.agent, probed)
        chosen, greedy = (
            top_k(scores, round.available, alive.copy(), S, ties, round.step)
            for scores in (explanation.score, estimates)
        )
        # of the responses, only the expected values are used
        half = np.full(chosen.shape, 0.5)
        truth = simulator.respond(round, chosen, half)[1]
        greedy_value = simulator.respond(round, greedy, half)[1].value
        if explanation.mean is None:
            explored = 1 - (chosen[:, :, None] == greedy[:, None, :]).any(axis=2).mean(axis=1)
        else:
            explored = explored_share(estimates, round.available, chosen)
        values[i] = np.stack(
            [explored, truth.value, greedy_value, truth.best_value, truth.random_value], axis=1
        )
    return values


def _mean_of_rounds(values: FloatArray, lane: Lane) -> FloatArray:
    mean = values.mean(axis=0)
    mean[~lane.alive] = np.nan
    return np.asarray(mean)


def _estimates(agent: Agent, probed: ProbedRound) -> FloatArray:
    """Return what the agent would maximise without exploring, float64 (R, K).

    That is its estimated mean; for an agent without means, the probability of choosing each
    candidate."""
    mean = probed.explanation.mean
    if mean is None:
        return agent.probabilities(probed.round)
    # without observations
    return np.asarray(np.where(np.isnan(mean), -np.inf, mean))
