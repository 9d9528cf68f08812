"""When agents find items that were launched: their share of the decisions against the share of an optimal choice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray
from bandits.experiments.history import History

from .demand import Cohort, Demand
from .metrics import Estimate, estimate

WINDOW = 1000  # steps
NEAR = 0.2  # relative distance from the fair share


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
        Steps from the launch until the share of the following 1,000 steps, of all replications together, stays within
        20 % of the fair one; None: never in this run.
    """

    step: int
    items: int
    share: Estimate
    fair_share: float
    steps_to_fair_share: int | None


def launches(history: History, demand: Demand) -> list[Launched]:
    """Measure every launch that the run has passed; nothing where items are not counted one by one."""
    if history.bucket_size != 1 or not history.alive.any():
        return []
    return [found for cohort in demand.cohorts if (found := _launched(history, demand, cohort)) is not None]


def cohort_shares(history: History, cohort: Cohort) -> tuple[FloatArray, FloatArray]:
    """Return stored steps from the launch on, (H,), and the decisions for the cohort until then, (H, R)."""
    grid = history.count_grid[: history.count_size]
    first = int(np.searchsorted(grid, cohort.step))
    shown = np.where(cohort.items, history.counts[first : history.count_size], 0).sum(axis=2)
    return grid[first:].astype(np.float64), shown[:, history.alive].astype(np.float64)


def _launched(history: History, demand: Demand, cohort: Cohort) -> Launched | None:
    grid, shown = cohort_shares(history, cohort)
    if len(grid) < 2:
        return None
    share = (shown[-1] - shown[0]) / (grid[-1] - grid[0])
    ends = np.arange(len(grid))
    starts = np.searchsorted(grid, grid - WINDOW, side="right") - 1
    ends, starts = ends[starts >= 0], starts[starts >= 0]
    reached = None
    if len(ends):
        mean = shown.mean(axis=1)
        got = (mean[ends] - mean[starts]) / (grid[ends] - grid[starts])
        fair = np.array([_fair(demand, cohort, grid[a], grid[b]) for a, b in zip(starts, ends, strict=True)])
        near = np.abs(got - fair) <= NEAR * fair
        after = len(near) - int(np.argmin(near[::-1])) if not near.all() else 0  # the first of the last run of True
        reached = int(grid[starts[after]]) - cohort.step if after < len(near) else None
    fair_share = _fair(demand, cohort, grid[0], grid[-1])
    items = int(cohort.items[0].sum())
    return Launched(cohort.step, items, estimate(share), fair_share, None if reached is None else max(reached, 0))


def _fair(demand: Demand, cohort: Cohort, first: float, last: float) -> float:
    """Average the deserved share between two steps: at least at the nearest one that was looked at."""
    low, high = np.searchsorted(demand.steps, [first, last])
    low = min(int(low), len(demand.steps) - 1)
    values = cohort.deserved[low : max(int(high), low + 1)]
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
