"""Compare what an agent chooses with what it estimates to be best: how much it explores, and at what cost."""

from __future__ import annotations

import numpy as np

from bandits.agents.base import Agent
from bandits.base.selection import top_k
from bandits.base.types import FloatArray, IntArray

from .calibration import ProbedRound
from .lane import Lane


def checks(lane: Lane, rounds: list[ProbedRound], n_segments: int) -> tuple[FloatArray, FloatArray]:
    """Compare an agent's choices with its greedy choices, the optimum and random choice.

    Returns
    -------
    float64 (R, 5)
        The columns of `snapshots.ExplorationCheck`, means over the rounds; NaN in rows that have stopped.
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
    return _mean(values, lane), by_segment


def each_round(lane: Lane, rounds: list[ProbedRound]) -> FloatArray:
    """Return the columns of `snapshots.ExplorationCheck` for each round, float64 (n, R, 5)."""
    simulator = lane.simulator
    S, alive = simulator.spec.slate, lane.alive
    values = np.empty((len(rounds), len(alive), 5))
    for i, probed in enumerate(rounds):
        round, explanation, _ = probed
        chosen = top_k(explanation.score, round.available, alive.copy(), S)
        greedy = top_k(_estimates(lane.agent, probed), round.available, alive.copy(), S)
        half = np.full(chosen.shape, 0.5)  # of the responses, only the expected values are used
        truth = simulator.respond(round, chosen, half)[1]
        greedy_value = simulator.respond(round, greedy, half)[1].value
        explored = 1 - _in_common(chosen, greedy)
        values[i] = np.stack([explored, truth.value, greedy_value, truth.best_value, truth.random_value], axis=1)
    return values


def _mean(values: FloatArray, lane: Lane) -> FloatArray:
    mean = values.mean(axis=0)
    mean[~lane.alive] = np.nan
    return np.asarray(mean)


def _estimates(agent: Agent, probed: ProbedRound) -> FloatArray:
    """Return what the agent would maximise without exploring, float64 (R, K).

    That is its estimated mean; for an agent without means, the probability of choosing each candidate.
    """
    mean = probed.explanation.mean
    if mean is None:
        return agent.probabilities(probed.round)
    return np.asarray(np.where(np.isnan(mean), -np.inf, mean))  # without observations


def _in_common(chosen: IntArray, greedy: IntArray) -> FloatArray:
    """Compute the share of the items of each slate (R, S) that are in the other slate too, float64 (R,)."""
    return np.asarray((chosen[:, :, None] == greedy[:, None, :]).any(axis=2).mean(axis=1))
