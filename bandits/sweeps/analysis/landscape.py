"""What a sweep has found: the mean of every point with its interval, the best region, and which parameter matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from bandits.base.files import Arrays
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.metrics import Estimate
from bandits.results.result import plain
from bandits.sweeps.blocks import block_history, point_history
from bandits.sweeps.sweep import Axis, Sweep, Value

from . import importance

if TYPE_CHECKING:
    import pandas as pd

LATE = 0.2  # the last part of a run
LEVEL = 0.05


class Metric(NamedTuple):
    """A number per run.

    Attributes
    ----------
    title, unit : str
    sign : int
        1 where more is better, -1 where less is.
    of : callable
        From a history, float64 (R,).
    """

    title: str
    unit: str
    sign: int
    of: Callable[[History], FloatArray]


def late_start(grid: IntArray) -> int:
    """Where on a grid the last part of a run begins."""
    return min(int(np.searchsorted(grid, grid[-1] * (1 - LATE))), len(grid) - 2)


def _late(history: History) -> FloatArray:
    grid, clicks = history.grid, history.sums["clicks"]
    at = late_start(grid)
    return np.asarray((clicks[-1] - clicks[at]) / (grid[-1] - grid[at]))


METRICS: dict[str, Metric] = {
    "click_rate": Metric("Click rate", "clicks per step", 1, metrics.click_rate),
    "late_click_rate": Metric("Click rate at the end", "clicks per step, last fifth of the run", 1, _late),
    "pseudo_regret": Metric(
        "Regret", "expected clicks missed", -1, lambda h: metrics.total(h, "best_value") - metrics.total(h, "value")
    ),
    "learned": Metric("Way to the oracle", "0 as random to 1 as the oracle", 1, metrics.oracle_share),
}


class PointResult(NamedTuple):
    """One point in numbers.

    Attributes
    ----------
    point : int
    values : tuple
        Of each axis.
    estimate : Estimate
        Mean over runs and its 95 % interval (`Landscape.adjusted`). The best of many is best partly by luck: on
        average its own is too high.
    runs : int
        It rests on; those that diverged are left out.
    diverged : int
    gap : Estimate
        Of its runs to the same runs of the best point: below 0 is worse.
    best : bool
        Not shown to be worse than the best.
    dropped : bool
        The search has given it up before all of its runs.
    """

    point: int
    values: tuple[Value, ...]
    estimate: Estimate
    runs: int
    diverged: int
    gap: Estimate
    best: bool
    dropped: bool


class Importance(NamedTuple):
    """What one parameter does.

    Attributes
    ----------
    path : str
    best : Value
        Where it is best, the others being at their best.
    good : tuple
        All of its values that the best region reaches.
    worst : Value
        Where it is worst, the others being at their best.
    cost : Estimate
        Of that wrong choice, in clicks per 1,000 steps, paired by run.
    share : float
        Of the variance between points that it explains by itself: its first-order Sobol index on the grid, less what
        chance makes of it; NaN where it is the only one.
    matters : bool
        It has a value with which no point is as good as the best. Else there is nothing to choose, and the cost is
        chance.
    """

    path: str
    best: Value
    good: tuple[Value, ...]
    worst: Value
    cost: Estimate
    share: float
    matters: bool


class Explained(NamedTuple):
    """What one parameter does, as far as scattered points tell.

    Attributes
    ----------
    path : str
    best : Value
        Of the best point.
    good : tuple
        Smallest and largest of a range, or all of a list, that the best region holds.
    share : float
        Of the differences between points that it explains by itself (`forest.shares`).
    """

    path: str
    best: Value
    good: tuple[Value, ...]
    share: float


class Landscape:
    """The runs of a sweep as far as they are known.

    Parameters
    ----------
    sweep : Sweep

    Attributes
    ----------
    known : bool (P, R)
        Runs that are done.
    alive : bool (P, R)
        Those of them that did not diverge.
    dropped : bool (P,)
        Points that the search has given up.
    seconds : float
        Wall time of the blocks so far.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        shape = (sweep.size, sweep.experiment.replications)
        self.completed, self.alive = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self.dropped = np.zeros(sweep.size, np.bool_)
        self.seconds = 0.0
        self._values = {name: np.full(shape, np.nan) for name in METRICS}
        self._parts: list[tuple[set[int], Callable[[], Arrays | None]]] = []
        self._explained: dict[str, list[Explained]] = {}

    def add_points(self, points: Sequence[tuple[Value, ...]]) -> list[int]:
        """Take in proposals; the numbers of those that are new and possible."""
        known = set(self.sweep.proposed)
        new = [values for values in dict.fromkeys(points) if values not in known and _possible(self.sweep, values)]
        first = len(self.sweep.proposed)
        self.sweep = self.sweep.with_proposals([*self.sweep.proposed, *new])
        return list(range(first, first + len(new)))

    def means(self, points: Sequence[tuple[Value, ...]], metric: str) -> list[float]:
        """Of one metric over all runs of each of these; NaN if there is no such point, or any run of it diverged."""
        at = {values: p for p, values in enumerate(self.sweep.proposed)}
        means = self.numbers(metric).mean(axis=1)
        return [float(means[at[values]]) if values in at else float("nan") for values in points]

    def close(self) -> None:
        """No more points will be proposed: there was no need for as many as might have been."""
        self.dropped[len(self.sweep.proposed) :] = True

    def add(self, arrays: Arrays, again: Callable[[], Arrays | None] | None = None) -> None:
        """Take in a computed block.

        Parameters
        ----------
        arrays : dict of arrays
        again : callable, optional
            Where its curves can be had again; otherwise they are kept here.
        """
        history = block_history(self.sweep, arrays)
        points, runs = arrays["rows"].T
        self.completed[points, runs], self.alive[points, runs] = True, history.alive
        for name, metric in METRICS.items():
            self._values[name][points, runs] = np.where(history.alive, metric.of(history), np.nan)
        self.seconds += history.seconds
        self._parts.append((set(points.tolist()), again or (lambda: arrays)))

    def curves(self, point: int) -> History:
        """The history of a point's runs so far (their curves, not their arms), as far as it can be had."""
        found = [again() for points, again in self._parts if point in points]
        return point_history(self.sweep, [arrays for arrays in found if arrays is not None], point)

    def numbers(self, metric: str) -> FloatArray:
        """One metric of every run, float64 (P, R); NaN where it is unknown or diverged."""
        return self._values[metric]

    def estimate_at(self, point: int, metric: str = "click_rate") -> tuple[Estimate, int] | None:
        """A point's own estimate, and how many runs it rests on; None without any."""
        known = self.numbers(metric)[point][self.alive[point]]
        return (metrics.estimate(known), len(known)) if len(known) else None

    @property
    def progress(self) -> float:
        """Share of the runs that are done or given up, 0 to 1."""
        return float((self.completed | self.dropped[:, None]).mean())

    @property
    def saved_share(self) -> float:
        """Share of all runs that the search did not need."""
        return float((~self.completed & self.dropped[:, None]).mean())

    def eligible(self, metric: str) -> BoolArray:
        """Points that can be the best, bool (P,): they have runs, are not dropped, and no more of them diverged than
        of others."""
        numbers = np.isfinite(self.numbers(metric))
        lost = self.completed.sum(axis=1) - numbers.sum(axis=1)
        found = numbers.any(axis=1) & ~self.dropped
        if not found.any():
            return np.asarray(found)
        return np.asarray(found & (lost == lost[found].min()))

    def leader(self, metric: str) -> int | None:
        """The point of the best mean among those that have the most runs; None before anything is known."""
        able = self.eligible(metric)
        if not able.any():
            return None
        runs = np.isfinite(self.numbers(metric)).sum(axis=1)
        able &= runs == runs[able].max()
        means = METRICS[metric].sign * _mean(self.numbers(metric))
        return int(np.argmax(np.where(able, means, -np.inf)))

    def adjusted(self, metric: str) -> FloatArray:
        """`numbers`, each point's shifted by how lucky its runs were for the leader, float64 (P, R).

        Points that have been dropped, or are not yet run to the end, rest on fewer runs than the leader: common luck
        cancels in the gap to it, and only there. Where all have all runs, these are the numbers.
        """
        leader, numbers = self.leader(metric), self.numbers(metric)
        if leader is None:
            return numbers
        shared = np.where(np.isfinite(numbers), numbers[leader], np.nan)
        shift = _mean(numbers[leader][None]) - _mean(shared)
        return numbers + np.where(np.isfinite(shift), shift, 0.0)[:, None]

    def gaps(self, metric: str) -> FloatArray:
        """Every run's distance to the same run of the leader, float64 (P, R): below 0 is worse."""
        leader = self.leader(metric)
        numbers = METRICS[metric].sign * self.numbers(metric)
        return numbers - numbers[leader] if leader is not None else np.full_like(numbers, np.nan)

    def best_region(self, metric: str) -> BoolArray:
        """Points that are not shown to be worse than the best, bool (P,): paired t tests, with Holm's correction."""
        leader = self.leader(metric)
        if leader is None:
            return np.zeros(self.sweep.size, np.bool_)
        gaps, able = self.gaps(metric), self.eligible(metric)
        p = _worse(gaps)
        others = [i for i in np.flatnonzero(able) if i != leader]
        found = np.zeros(len(able), np.bool_)
        found[leader] = True
        for i, corrected in zip(others, metrics.holm([float(p[i]) for i in others]), strict=True):
            found[i] = corrected >= LEVEL
        return found

    def results(self, metric: str = "click_rate") -> list[PointResult]:
        """Every point that has a run, in order."""
        numbers, gaps, region = self.adjusted(metric), self.gaps(metric), self.best_region(metric)
        return [
            PointResult(
                p, self.sweep.values_at(p), metrics.estimate(numbers[p]), int(np.isfinite(numbers[p]).sum()),
                int((self.completed[p] & ~self.alive[p]).sum()), metrics.estimate(gaps[p]), bool(region[p]),
                bool(self.dropped[p]),
            )
            for p in np.flatnonzero(self.completed.any(axis=1)).tolist()
        ]  # fmt: skip

    def best(self, metric: str = "click_rate") -> PointResult | None:
        """The leader's cell; None while nothing is known, or where every run diverged."""
        leader = self.leader(metric)
        return next((cell for cell in self.results(metric) if cell.point == leader), None)

    def importance(self, metric: str = "click_rate") -> list[Importance]:
        """What each parameter does, the one that costs most first; empty before the whole grid is known.

        Where there is no grid, see `explained`.
        """
        numbers = METRICS[metric].sign * self.adjusted(metric)
        means, leader = _mean(numbers), self.leader(metric)
        if leader is None or not np.isfinite(means).all() or not self.sweep.is_grid:
            return []
        grid, region = means.reshape(self.sweep.shape), self.best_region(metric).reshape(self.sweep.shape)
        clicks = 1000 * self.adjusted("click_rate")
        found = []
        for i, (axis, values) in enumerate(zip(self.sweep.axes, self.sweep.values, strict=True)):
            others = tuple(j for j in range(grid.ndim) if j != i)
            reached = np.atleast_1d(region.any(axis=others)).tolist()
            good = tuple(v for v, some in zip(values, reached, strict=True) if some)
            low = int(np.argmin(grid.max(axis=others)))
            # the best there is with this value, against the best there is
            at = np.where(np.arange(len(values))[_along(i, grid.ndim)] == low, grid, -np.inf)
            cost = metrics.estimate(clicks[leader] - clicks[int(np.argmax(at))])
            best = values[int(np.unravel_index(leader, grid.shape)[i])]
            share = _share(grid, others, _noise(numbers)) if others else float("nan")
            found.append(Importance(axis.path, best, good, values[low], cost, share, len(good) < len(values)))
        return sorted(found, key=lambda each: (not each.matters, -each.cost.mean))

    def explained(self, metric: str = "click_rate") -> list[Explained]:
        """What each parameter explains where there is no grid, most first; empty before the end."""
        leader, sweep = self.leader(metric), self.sweep
        if leader is None or sweep.is_grid or self.progress < 1:
            return []
        if metric not in self._explained:
            good = np.flatnonzero(self.best_region(metric)).tolist()
            shares = importance.shares(sweep, _mean(self.numbers(metric)))
            found = [
                Explained(
                    axis.path, sweep.values_at(leader)[i], _reached(axis, [sweep.values_at(p)[i] for p in good]), share
                )
                for i, (axis, share) in enumerate(zip(sweep.axes, shares, strict=True))
            ]
            self._explained[metric] = sorted(found, key=lambda each: -each.share)
        return self._explained[metric]

    def pairing(self, metric: str = "click_rate") -> float:
        """How many times narrower common luck makes the interval of a difference to the best; median over points.

        sqrt(var(a) + var(b)) / sd(a - b); NaN before two points have two runs.
        """
        leader = self.leader(metric)
        if leader is None:
            return float("nan")
        numbers = self.numbers(metric)
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.sqrt(_var(numbers) + _var(numbers[leader][None]))
            together = np.sqrt(_var(self.gaps(metric)))
            ratio = np.delete(apart / together, leader)
        return float(np.median(ratio[np.isfinite(ratio)])) if np.isfinite(ratio).any() else float("nan")

    def summary(self, metric: str = "click_rate") -> dict[str, Any]:
        """Best point, best region and sensitivity as plain data; equal sweeps give equal bytes."""
        paths = [axis.path for axis in self.sweep.axes]
        best = self.best(metric)
        found: dict[str, Any] = plain({
            "hash": self.sweep.hash,
            "metric": metric,
            "best": best
            and dict(zip(paths, best.values, strict=True)) | best.estimate._asdict() | {"replications": best.runs},
            "best_region": [dict(zip(paths, c.values, strict=True)) for c in self.results(metric) if c.best],
            "sensitivity": [
                {**i._asdict(), "cost": i.cost._asdict(), "good": list(i.good)} for i in self.importance(metric)
            ] or [{**i._asdict(), "by": "random forest"} for i in self.explained(metric)],
            "pairing": self.pairing(metric),
            "saved": self.saved_share,
        })  # fmt: skip
        return found

    def table(self, metric: str = "click_rate") -> pd.DataFrame:
        """One line a point: parameters, mean, interval, runs, its gap to the best, and whether it may be as good."""
        import pandas as pd

        lines = [
            {
                **{axis.path: v for axis, v in zip(self.sweep.axes, c.values, strict=True)},
                "metric": metric, "mean": c.estimate.mean, "low": c.estimate.low, "high": c.estimate.high,
                "replications": c.runs, "diverged": c.diverged, "gap": c.gap.mean, "gap_low": c.gap.low,
                "gap_high": c.gap.high, "best_region": c.best, "dropped": c.dropped,
            }
            for c in self.results(metric)
        ]  # fmt: skip
        return pd.DataFrame(lines)


def _possible(sweep: Sweep, values: tuple[Value, ...]) -> bool:
    """Values that are possible alone may not be so together."""
    try:
        sweep.with_values(values)
    except ValidationError:
        return False
    return True


def _reached(axis: Axis, values: list[Any]) -> tuple[Value, ...]:
    """The ends of what these values of a range reach; those of a list that are among them."""
    if axis.values is None:
        return min(values), max(values)
    return tuple(value for value in axis.values if value in values)


def _noise(numbers: FloatArray) -> float:
    """Variance of a point's mean that is chance: of what is left of its runs without the run's common luck."""
    luck = np.nanmean(numbers, axis=0, keepdims=True) if np.isfinite(numbers).any() else 0.0
    var, n = _var(numbers - luck), np.isfinite(numbers).sum(axis=1)
    each = (var / np.maximum(n, 1))[np.isfinite(var)]
    return float(each.mean()) if len(each) else 0.0


def _share(grid: FloatArray, others: tuple[int, ...], noise: float) -> float:
    profile = grid.mean(axis=others)
    whole = float(grid.var()) - noise * (1 - 1 / grid.size)
    part = float(profile.var()) - noise * len(profile) / grid.size * (1 - 1 / len(profile))
    return min(max(part, 0.0) / whole, 1.0) if whole > 0 else 0.0


def _along(axis: int, dimensions: int) -> tuple[slice | None, ...]:
    return tuple(slice(None) if i == axis else None for i in range(dimensions))


def _mean(values: FloatArray) -> FloatArray:
    """Over the runs that are known, (P,); NaN without any."""
    n = np.isfinite(values).sum(axis=1)
    return np.where(n > 0, np.nansum(values, axis=1) / np.maximum(n, 1), np.nan)


def _var(values: FloatArray) -> FloatArray:
    """Sample variance over the runs that are known, (P,); NaN with fewer than two."""
    n = np.isfinite(values).sum(axis=1)
    squares = np.nansum((values - _mean(values)[:, None]) ** 2, axis=1)
    return np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan)


def _worse(gaps: FloatArray) -> FloatArray:
    """Two-sided p-value of no gap, (P,): 1 where the runs cannot tell, as when all gaps are the very same."""
    from scipy import stats

    n, mean, var = np.isfinite(gaps).sum(axis=1), _mean(gaps), _var(gaps)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = mean / np.sqrt(var / n)
        p = 2 * stats.t.sf(np.abs(t), np.maximum(n - 1, 1))
    return np.where(np.isfinite(p) & (var > 0), p, 1.0)
