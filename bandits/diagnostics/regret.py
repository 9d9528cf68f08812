"""Regret as a share of what could be gained, and what it is due to: exploring, or not knowing
better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.metrics import Estimate

# snapshots that a split of the regret requires
MIN_CHECKS = 4
# of the traffic, by which replications differ, on average over pairs
DIFFERENT = 0.25
# impressions per item over the last third
MIN_SHOWN = 10
# an item is rarely shown below a tenth of an even share; many: this share of the items
RARE, MANY = 0.1, 0.3


class RegretShares(NamedTuple):
    """Regret relative to the gain of the oracle over random choice, by replication: float64 (n,)
    each.

    0 is as good as the oracle, 1 as good as random choice. All are divided by the mean gain over
    replications.

    Attributes
    ----------
    total, middle, late : float64 (n,)
        Of the whole run, and of its second and last thirds.
    """

    total: FloatArray
    middle: FloatArray
    late: FloatArray


class RegretSources(NamedTuple):
    """The two parts of the regret, from the exploration checks of a run: shares like those of
    `RegretShares`.

    Attributes
    ----------
    exploring : float64 (n,)
        Reward lost because the agent did not choose what it estimated to be best.
    estimating : float64 (n,)
        Reward lost because what it estimated to be best (the greedy choice) was not the optimum.
    trend : float64 (n,)
        ``estimating`` of the last third of the run minus that of the second third.
    rate, late_rate : float64 (n,)
        Exploration rate: share of the choices that were not the greedy choice, over the run and
        over its last third.
    """

    exploring: FloatArray
    estimating: FloatArray
    trend: FloatArray
    rate: FloatArray
    late_rate: FloatArray


def regret_shares(history: History) -> RegretShares | None:
    """Compute the regret relative to what could be gained.

    None where nothing can be, or no replication is left.
    """
    grid, alive = history.grid[: history.size], history.alive
    if len(grid) < 4 or not alive.any():
        return None
    sums = {
        name: history.sums[name][: history.size][:, alive]
        for name in ("value", "best_value", "random_value")
    }
    regret, gain = (
        sums["best_value"] - sums["value"],
        (sums["best_value"] - sums["random_value"]).mean(axis=1),
    )
    first, second = (int(np.searchsorted(grid, grid[-1] * third / 3)) for third in (1, 2))
    bounds = ((0, -1), (first, second), (second, -1))
    gains = [float(gain[end] - gain[start]) for start, end in bounds]
    if min(gains) <= 1e-9 * max(1.0, float(np.abs(sums["best_value"][-1]).max())):
        return None
    return RegretShares(
        *((regret[end] - regret[start]) / g for (start, end), g in zip(bounds, gains, strict=True))
    )


def regret_sources(history: History) -> RegretSources | None:
    """Split the regret by its source.

    None without enough exploration checks, or where nothing can be gained.

    The checks are a sample of the decisions, the regret is exact. So the part with the smaller
    sampling error is estimated from the checks, and the other is the rest of the regret."""
    checks, alive, shares = history.exploration_checks, history.alive, regret_shares(history)
    thirds = [[c for c in checks if low < 3 * c.step / history.step <= low + 1] for low in (1, 2)]
    if shares is None or len(checks) < MIN_CHECKS or not all(thirds):
        return None
    values = np.stack([check.values[alive] for check in checks])
    gain = float((values[:, :, 3] - values[:, :, 4]).mean())
    if not gain > 0:
        return None
    exploring = (values[:, :, 2] - values[:, :, 1]).mean(axis=0) / gain
    estimating = (values[:, :, 3] - values[:, :, 2]).mean(axis=0) / gain
    if exploring.std() < estimating.std():
        estimating = shares.total - exploring
    else:
        exploring = shares.total - estimating
    middle, late = (np.mean([c.values[alive] for c in some], axis=0) for some in thirds)
    trend = ((late[:, 3] - late[:, 2]) - (middle[:, 3] - middle[:, 2])) / gain
    return RegretSources(exploring, estimating, trend, values[:, :, 0].mean(axis=0), late[:, 0])


def is_locked_in(history: History) -> bool | None:
    """Whether replications show different items in the last third, or many items were hardly ever
    shown.

    Both are what chance decides where an agent stops exploring early; a model that cannot express
    the rewards errs in the same way in every replication. None where selections are not counted, or
    too few for so many items."""
    size = history.count_size
    if size < 3 or not history.alive.any():
        return None
    counts = history.counts[:size][:, history.alive].astype(np.float64)
    start = int(np.searchsorted(history.count_grid[:size], history.count_grid[size - 1] * 2 / 3))
    late = counts[-1] - counts[min(start, size - 2)]
    if late.sum() < MIN_SHOWN * late.size:
        return None
    share = late / np.maximum(late.sum(axis=1, keepdims=True), 1)
    n = len(share)
    # the sum of min(a, b) over all pairs: of n values in order, the i-th is the smaller one of n -
    # 1 - i pairs
    common = (np.sort(share, axis=0) * np.arange(n)[::-1, None]).sum()
    total = counts[-1]
    rare = (total < RARE * total.sum(axis=1, keepdims=True) / total.shape[1]).mean()
    return bool((n > 1 and 1 - common / (n * (n - 1) / 2) >= DIFFERENT) or rare >= MANY)


# an agent with a regret of √t closes this share of its distance over the last third of a run
MAX_CLOSED = 0.2
# stored sums over the last third, without which there is no slope
MIN_POINTS = 3
# replications: one has no interval
MIN_ROWS = 2


class Plateau(NamedTuple):
    """Slope of the reward per step over the last third of a run, and its distance to the oracle,
    with 95 % intervals.

    Attributes
    ----------
    slope : Estimate
        Expected reward per step relative to the oracle's on the same users: change per step (least
        squares).
    distance : Estimate
        Expected reward per step by which the agent stays below the oracle, without the cost of
        exploring.
    reached : bool
        Whether the distance is above 0 and the slope is not: even the upper end of its interval
        closes less than `MAX_CLOSED` of the distance.
    """

    slope: Estimate
    distance: Estimate
    reached: bool


def plateau(history: History) -> Plateau | None:
    """Test whether the reward per step has stopped rising below the oracle's.

    "Not above 0" requires evidence: with few replications the interval of the slope is wide, and no
    plateau is stated. An agent whose regret grows like √t, or more slowly, is called a plateau in
    at most 2.5 % of runs (one side of a 95 % interval). What exploring costs is subtracted from the
    distance where the run recorded it.

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
    exploring = (
        np.mean([check.greedy[alive] - check.chosen[alive] for check in late], axis=0)
        if late
        else 0.0
    )
    distance = (regret[-1] - regret[0]) / steps - exploring
    below, excess = (
        metrics.estimate(distance),
        metrics.estimate(slope * steps - MAX_CLOSED * distance),
    )
    return Plateau(metrics.estimate(slope), below, bool(below.low > 0 and excess.high < 0))
