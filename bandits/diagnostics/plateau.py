"""Plateau of the reward below the oracle's: a sign that a model cannot express the rewards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.metrics import Estimate

MAX_CLOSED = 0.2  # an agent with a regret of √t closes this share of its distance over the last third of a run
MIN_POINTS = 3  # stored sums over the last third, without which there is no slope
MIN_ROWS = 2  # replications: one has no interval


class Plateau(NamedTuple):
    """Slope of the reward per step over the last third of a run, and its distance to the oracle, with 95 % intervals.

    Attributes
    ----------
    slope : Estimate
        Expected reward per step relative to the oracle's on the same users: change per step (least squares).
    distance : Estimate
        Expected reward per step by which the agent stays below the oracle, without the cost of exploring.
    reached : bool
        Whether the distance is above 0 and the slope is not: even the upper end of its interval closes less than
        `MAX_CLOSED` of the distance.
    """

    slope: Estimate
    distance: Estimate
    reached: bool


def plateau(history: History) -> Plateau | None:
    """Test whether the reward per step has stopped rising below the oracle's.

    "Not above 0" requires evidence: with few replications the interval of the slope is wide, and no plateau is
    stated. An agent whose regret grows like √t, or more slowly, is called a plateau in at most 2.5 % of runs (one
    side of a 95 % interval). What exploring costs is subtracted from the distance where the run recorded it.

    Returns
    -------
    Plateau or None
        None without two replications, or with too few points.
    """
    grid, alive = history.grid[: history.size], history.alive
    first = int(np.searchsorted(grid, grid[-1] * 2 / 3))
    if alive.sum() < MIN_ROWS or len(grid) - first <= MIN_POINTS:
        return None
    regret = (history.sums["best_value"] - history.sums["value"])[first : history.size, alive]
    ends = grid[first:].astype(np.float64)
    width, middle = np.diff(ends), (ends[1:] + ends[:-1]) / 2
    steps = ends[-1] - ends[0]
    moment = width * (middle - (width * middle).sum() / steps)
    slope = -(moment / width) @ np.diff(regret, axis=0) / (moment @ middle)
    late = [check for check in history.exploration_checks if check.step > ends[0]]
    exploring = np.mean([check.greedy[alive] - check.chosen[alive] for check in late], axis=0) if late else 0.0
    distance = (regret[-1] - regret[0]) / steps - exploring
    below, excess = metrics.estimate(distance), metrics.estimate(slope * steps - MAX_CLOSED * distance)
    return Plateau(metrics.estimate(slope), below, bool(below.low > 0 and excess.high < 0))
