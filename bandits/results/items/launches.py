"""When agents find items that were launched: their share of the decisions against the share of an
optimal choice.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.results.metrics import Estimate, estimate, whole_windows

from .demand import Cohort, Demand

WINDOW = 1000  # steps
# relative distance from the fair share
NEAR = 0.2
# distance that counts as near even where the fair share is 0: a few shows are no unfairness
LEAST = 0.01


class Launched(NamedTuple):
    """What the items of one launch got.

    Attributes
    ----------
    step : int
        At which they were launched.
    items : int
        Their number.
    share : Estimate
        Of the decisions since then.
    fair_share : float
        That of an optimal choice, since then.
    steps_to_fair_share : int or None
        Steps from the launch until the share of the following 1,000 steps stays near the fair one:
        the median of the replications (of an even number, the lower of the middle two); None: more
        than half of them never reach it in this run, or it is not known. Near is within 20 % of it,
        or within three standard deviations of 1,000 draws with that share, or within 0.01, where
        these are more.
    low, high : int or None
        95 % interval of the median, by order statistics [1]_; None: beyond the run, or fewer than
        six replications.
    reached : float
        Share of the replications that reached it; NaN where too few steps follow to tell: less than
        1,000.
    side : {"below", "above"} or None
        Where ``steps_to_fair_share`` is None: whether most of the replications that never reach it
        show the items too little or too much, in all of the last fifth of their windows that are
        not near. None: neither, or not known.

    References
    ----------
    .. [1] Conover (1999), Practical nonparametric statistics, section 3.2: a confidence interval
           for a quantile.
    """

    step: int
    items: int
    share: Estimate
    fair_share: float
    steps_to_fair_share: int | None
    low: int | None
    high: int | None
    reached: float
    side: Literal["below", "above"] | None = None


def launches(history: History, demand: Demand) -> list[Launched]:
    """Measure every launch that the run has passed.

    Nothing where items are not counted one by one.
    """
    if history.bucket_size != 1 or not history.alive.any():
        return []
    return [
        found
        for cohort in demand.cohorts
        if (found := _launched(history, demand, cohort)) is not None
    ]


def cohort_shares(history: History, cohort: Cohort) -> tuple[FloatArray, FloatArray]:
    """Return stored steps from the launch on, (H,), and the decisions for the cohort until then,
    (H, R).

    A slate counts by the share of its slots.
    """
    grid = history.count_grid[: history.count_size]
    first = int(np.searchsorted(grid, cohort.step))
    shown = np.where(cohort.items, history.counts[first : history.count_size], 0).sum(axis=2)
    return grid[first:].astype(np.float64), shown[:, history.alive] / cohort.slate


def _launched(history: History, demand: Demand, cohort: Cohort) -> Launched | None:
    grid, shown = cohort_shares(history, cohort)
    if len(grid) < 2:
        return None
    share = (shown[-1] - shown[0]) / (grid[-1] - grid[0])
    fair = fair_share(demand, cohort, grid[0], grid[-1])
    first, sides = _steps(grid, shown, [fair_share(demand, cohort, a, a + WINDOW) for a in grid])
    steps = first - cohort.step
    middle, low, high = (None if not math.isfinite(s) else max(int(s), 0) for s in median(steps))
    reached = float("nan") if np.isnan(steps).any() else float(np.isfinite(steps).mean())
    items = int(cohort.items[0].sum())
    side = _majority(sides[np.isinf(steps)]) if middle is None else None
    return Launched(cohort.step, items, estimate(share), fair, middle, low, high, reached, side)


def _majority(sides: FloatArray) -> Literal["below", "above"] | None:
    """Name the side of more than half of the replications, -1 or 1 each; 0: neither."""
    if 2 * (sides < 0).sum() > len(sides):
        return "below"
    return "above" if 2 * (sides > 0).sum() > len(sides) else None


def _steps(
    grid: FloatArray, shown: FloatArray, deserved: list[float]
) -> tuple[FloatArray, FloatArray]:
    """Return the first step of each replication from which on every window is near the fair share;
    inf: none.

    Then the side of the fair share on which all windows of the last fifth are that are not near it:
    -1 below, 1 above, 0 on both or none."""
    ends, starts = whole_windows(grid, WINDOW)
    out, sides = np.full(shown.shape[1], np.inf if len(ends) else np.nan), np.zeros(shown.shape[1])
    if len(ends):
        got = (shown[ends] - shown[starts]) / (grid[ends] - grid[starts])[:, None]
        fair = np.array(deserved)[starts, None]
        apart = np.abs(got - fair) > np.maximum(
            np.maximum(NEAR * fair, LEAST), 3 * np.sqrt(fair * (1 - fair) / WINDOW)
        )
        # the window after the last that is not near
        far = len(ends) - np.argmax(apart[::-1], axis=0)
        after = np.where(apart.any(axis=0), far, 0)
        inside = after < len(ends)
        out[inside] = grid[starts[after[inside]]]
        late = slice(-max(1, len(ends) // 5), None)
        above, below = ((apart & beyond)[late].any(axis=0) for beyond in (got > fair, got < fair))
        sides = above.astype(np.float64) - below
    return out, sides


def median(values: FloatArray) -> tuple[float, float, float]:
    """Return the median of ``values (n,)``, the lower of two, and its 95 % interval by order
    statistics; inf counts.
    """
    from scipy.special import bdtr

    ordered, n = np.sort(values), len(values)
    # P(at most k of n lie below the median)
    below = [k for k in range(n // 2) if bdtr(k, n, 0.5) <= 0.025]
    low, high = (ordered[below[-1]], ordered[n - 1 - below[-1]]) if below else (np.inf, np.inf)
    return float(ordered[(n - 1) // 2]), float(low), float(high)


def fair_share(demand: Demand, cohort: Cohort, first: float, last: float) -> float:
    """Average the deserved share between two steps: at least at the nearest one that was
    looked at.
    """
    low, high = np.searchsorted(demand.steps, [first, last])
    low = min(int(low), len(demand.steps) - 1)
    values = cohort.deserved[low : max(int(high), low + 1)]
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
