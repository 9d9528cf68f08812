"""Summarise the rows of a sweep: means with intervals, the best region, and the importance of each
parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from bandits.base.files import Arrays
from bandits.base.types import BoolArray, FloatArray
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.caveats import FEW_REWARDS
from bandits.results.metric_registry import OBJECTIVES
from bandits.results.metrics import Estimate
from bandits.results.result import plain
from bandits.sweeps.axis import Axis, Value
from bandits.sweeps.blocks import block_history, point_history
from bandits.sweeps.sweep import Sweep, owner_of

from . import importance
from .best_region import Compared, compare_with_leader
from .records import Explained, Importance, PointResult, State
from .statistics import noise_variance, row_mean, row_variance, sobol_index

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05
# of the reward: a point that loses less for sure is as good as the best
EQUIVALENT = 0.05


class Landscape:
    """The results of a sweep, complete or partial.

    Parameters
    ----------
    sweep : Sweep

    Attributes
    ----------
    completed : bool (P, R)
        Rows that are computed.
    alive : bool (P, R)
        Computed rows that did not diverge.
    dropped : bool (P,)
        Points that the search has eliminated.
    seconds : float
        Computing time of all blocks so far.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        shape = (sweep.size, sweep.experiment.replications)
        self.completed, self.alive = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self.dropped = np.zeros(sweep.size, np.bool_)
        self.seconds = 0.0
        self._row_seconds = np.full(shape, np.nan)
        self._values = {name: np.full(shape, np.nan) for name in OBJECTIVES}
        self._blocks: list[tuple[set[int], Callable[[], Arrays | None]]] = []
        self._explained: dict[str, list[Explained]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of all rows."""
        rows = [self.completed, self.alive, self.dropped, self._row_seconds]
        return sum(array.nbytes for array in (*rows, *self._values.values()))

    # -- data
    # ------------------------------------------------------------------------------------------------------  # noqa: E501

    def add_points(self, points: Sequence[tuple[Value, ...]]) -> list[int]:
        """Add proposed points; returns the numbers of those that are new and valid."""
        known = set(self.sweep.proposed)
        new = [
            values
            for values in dict.fromkeys(points)
            if values not in known and _is_valid(self.sweep, values)
        ]
        first = len(self.sweep.proposed)
        self.sweep = self.sweep.with_proposals([*self.sweep.proposed, *new])
        return list(range(first, first + len(new)))

    def close(self) -> None:
        """Declare the search complete, with fewer points than the maximum if proposals were
        repeated or invalid.
        """
        self.dropped[len(self.sweep.proposed) :] = True

    def add(self, arrays: Arrays, reload: Callable[[], Arrays | None] | None = None) -> None:
        """Add a computed block.

        Parameters
        ----------
        arrays : dict of arrays
        reload : callable, optional
            Reads the block again when its curves are needed; without it, the arrays are kept in
            memory.
        """
        history = block_history(self.sweep, arrays)
        points, replications = arrays["rows"].T
        self.completed[points, replications], self.alive[points, replications] = True, history.alive
        for name, metric in OBJECTIVES.items():
            self._values[name][points, replications] = np.where(
                history.alive, metric.rows(history), np.nan
            )
        self.seconds += history.seconds
        self._row_seconds[points, replications] = history.seconds / len(points)
        self._blocks.append((set(points.tolist()), reload or (lambda: arrays)))

    def curves(self, point: int) -> History:
        """Collect the history of a point's computed rows, without item counts."""
        blocks = [reload() for points, reload in self._blocks if point in points]
        return point_history(self.sweep, [arrays for arrays in blocks if arrays is not None], point)

    def numbers(self, metric: str) -> FloatArray:
        """One metric of every row, float64 (P, R); NaN if not computed or diverged."""
        return self._values[metric]

    def means(self, points: Sequence[tuple[Value, ...]], metric: str) -> list[float]:
        """Mean of a metric over all rows of each of these points.

        NaN if one is unknown or has a diverged row.
        """
        at = {values: p for p, values in enumerate(self.sweep.proposed)}
        means = self.numbers(metric).mean(axis=1)
        return [float(means[at[values]]) if values in at else float("nan") for values in points]

    def estimate_at(self, point: int, metric: str | None = None) -> tuple[Estimate, int] | None:
        """Estimate of a point and its number of replications; None without any."""
        metric = metric or self.sweep.metric
        known = self.numbers(metric)[point][self.alive[point]]
        return (metrics.estimate(known), len(known)) if len(known) else None

    def points_with_few_clicks(self) -> int:
        """Count the points that earned fewer than `caveats.FEW_REWARDS` clicks together.

        0 if not counts.
        """
        clicks = self.numbers("ctr") * self.sweep.experiment.steps
        counts = np.round(clicks)
        if not np.isclose(clicks, counts, atol=1e-6, equal_nan=True).all() or (counts < 0).any():
            return 0
        return int(
            (np.isfinite(counts).any(axis=1) & (np.nansum(counts, axis=1) < FEW_REWARDS)).sum()
        )

    @property
    def progress(self) -> float:
        """Share of the rows that are computed or no longer needed, 0 to 1."""
        return float((self.completed | self.dropped[:, None]).mean())

    def row_costs(self) -> FloatArray | None:
        """Predict the computing time of a row of each point in seconds, float64 (P,).

        None until that can be done.

        It is the mean over the computed rows of the points with the same simulator, and the mean of
        these means for simulators without computed rows, if two have some: a grid begins with its
        ends."""
        groups = self._by_simulator()
        known = {}
        for i, points in enumerate(groups):
            seconds = self._row_seconds[points]
            if (seconds := seconds[np.isfinite(seconds)]).size:
                known[i] = float(seconds.mean())
        if len(known) < max(1, min(2, len(groups))):
            return None
        costs = np.full(self.sweep.size, np.mean(list(known.values())))
        for i, cost in known.items():
            costs[groups[i]] = cost
        return costs

    def _by_simulator(self) -> list[list[int]]:
        """Group the points that are known by the values of the simulator's parameters."""
        known = range(self.sweep.size if self.sweep.is_grid else len(self.sweep.proposed))
        swept = [i for i, axis in enumerate(self.sweep.axes) if axis.path.startswith("simulator.")]
        groups: dict[tuple[Value, ...], list[int]] = {}
        for point in known:
            values = self.sweep.values_at(point)
            groups.setdefault(tuple(values[i] for i in swept), []).append(point)
        return list(groups.values())

    @property
    def level(self) -> float:
        """Significance level of the last look, `level_of_look`."""
        return level_of_look(self.sweep)

    @property
    def saved_share(self) -> float:
        """Share of all rows that the search did not need, 0 to 1."""
        return float((~self.completed & self.dropped[:, None]).mean())

    # -- the best point and its region
    # -----------------------------------------------------------------------------

    def eligible(self, metric: str) -> BoolArray:
        """Points that can be the best, bool (P,).

        They have computed rows, are not eliminated, and have no more diverged rows than others.
        """
        finite = np.isfinite(self.numbers(metric))
        lost = self.completed.sum(axis=1) - finite.sum(axis=1)
        found = finite.any(axis=1) & ~self.dropped
        if not found.any():
            return np.asarray(found)
        return np.asarray(found & (lost == lost[found].min()))

    def candidates(self, metric: str) -> BoolArray:
        """Eligible points with the most replications, of which the leader is the best, bool
        (P,).
        """
        eligible = self.eligible(metric)
        n = np.isfinite(self.numbers(metric)).sum(axis=1)
        return np.asarray(eligible & (n == n[eligible].max(initial=0)))

    def leader(self, metric: str) -> int | None:
        """The candidate with the best mean; None before anything is computed."""
        eligible = self.candidates(metric)
        if not eligible.any():
            return None
        means = OBJECTIVES[metric].better * row_mean(self.numbers(metric))
        return int(np.argmax(np.where(eligible, means, -np.inf)))

    def adjusted(self, metric: str) -> FloatArray:
        """`numbers`, adjusted for the replications that each point has, float64 (P, R).

        Points that were eliminated or are not complete have fewer replications than the leader.
        Their numbers are shifted by the leader's mean over all its replications minus its mean over
        the shared ones: the random numbers are common, so the difference to the leader is
        unchanged. With all replications, these are the numbers."""
        leader, numbers = self.leader(metric), self.numbers(metric)
        if leader is None:
            return numbers
        shared = np.where(np.isfinite(numbers), numbers[leader], np.nan)
        shift = row_mean(numbers[leader][None]) - row_mean(shared)
        return numbers + np.where(np.isfinite(shift), shift, 0.0)[:, None]

    def gaps(self, metric: str) -> FloatArray:
        """Difference of every row to the same row of the leader, float64 (P, R).

        Negative values are worse.
        """
        leader = self.leader(metric)
        numbers = OBJECTIVES[metric].better * self.numbers(metric)
        return numbers - numbers[leader] if leader is not None else np.full_like(numbers, np.nan)

    def best_region(self, metric: str) -> BoolArray:
        """Points that are not significantly worse than the best, bool (P,).

        `compare_with_leader` at `level`.
        """
        compared = self._compared(metric, self.leader(metric))
        return np.zeros(self.sweep.size, np.bool_) if compared is None else compared.region

    def _compared(self, metric: str, leader: int | None) -> Compared | None:
        if leader is None:
            return None
        return compare_with_leader(self.gaps(metric), leader, self.eligible(metric), self.level)

    def results(self, metric: str | None = None) -> list[PointResult]:
        """Results of all points with at least one computed row, in order."""
        metric = metric or self.sweep.metric
        numbers, gaps = self.adjusted(metric), row_mean(self.gaps(metric))
        compared = self._compared(metric, self.leader(metric)) or Compared(
            np.zeros(self.sweep.size, np.bool_), np.full(self.sweep.size, np.nan)
        )
        states = self.states(metric)
        return [
            PointResult(
                p,
                self.sweep.values_at(p),
                metrics.estimate(numbers[p]),
                int(np.isfinite(numbers[p]).sum()),
                int((self.completed[p] & ~self.alive[p]).sum()),
                _within(gaps[p], compared.half[p]),
                bool(compared.region[p]),
                states[p],
            )
            for p in np.flatnonzero(self.completed.any(axis=1)).tolist()
        ]

    def states(self, metric: str | None = None) -> list[State]:
        """How each point compares with the best (`PointResult.state`), P of them."""
        metric = metric or self.sweep.metric
        compared, gaps = self._compared(metric, self.leader(metric)), row_mean(self.gaps(metric))
        if compared is None:
            return ["unclear"] * self.sweep.size
        with np.errstate(invalid="ignore"):
            equivalent = compared.half - gaps <= self.tolerance(metric)
        state = np.where(compared.region, np.where(equivalent, "tied", "unclear"), "worse")
        return np.where(self.dropped, "dropped", state).tolist()  # type: ignore[no-any-return]

    def tolerance(self, metric: str | None = None) -> float:
        """Return the loss that counts as none: `EQUIVALENT` of the largest mean reward."""
        metric = metric or self.sweep.metric
        regret = OBJECTIVES[metric].better < 0
        means = np.abs(row_mean(self.numbers("ctr" if regret else metric)))
        largest = float(np.nanmax(means)) if np.isfinite(means).any() else 0.0
        return EQUIVALENT * largest * (self.sweep.experiment.steps if regret else 1)

    def recommended(self, metric: str | None = None) -> PointResult | None:
        """The point to choose: what the agent has, if it is tied with the best; else the middle of
        the tied points around the best one.

        Of a grid, the tied points that are reached from the best one through neighbours that are
        tied; choices are as at the best point. Of scattered points the best one. None before
        anything is computed."""
        metric = metric or self.sweep.metric
        best, own = self.best(metric), self.unchanged(metric)
        if best is not None and own is not None and own.state == "tied":
            return own
        if best is None or not self.sweep.is_grid:
            return best
        from scipy.ndimage import label

        shape = self.sweep.shape
        tied = np.array([state == "tied" for state in self.states(metric)]).reshape(shape)
        at = np.unravel_index(best.point, shape)
        for axis, values in enumerate(self.sweep.values):
            if any(isinstance(v, (str, bool)) or v is None for v in values):
                index = np.arange(shape[axis])[_broadcast(axis, len(shape))]
                tied = tied & (index == at[axis])
        islands, _ = label(tied)
        near = np.argwhere((islands == islands[at]) & tied)
        off = np.abs(near - near.mean(axis=0)).sum(axis=1)
        middle = int(np.ravel_multi_index(tuple(near[np.argmin(off)]), shape))
        return next(result for result in self.results(metric) if result.point == middle)

    def unchanged(self, metric: str | None = None) -> PointResult | None:
        """The result of the values that the sweep's experiment has; None if they were not tried."""
        sweep = self.sweep
        owners = [owner_of(sweep.experiment, axis) for axis in sweep.axes]
        for result in self.results(metric):
            assigned = (
                (owner, axis.assigned(value))
                for owner, axis, value in zip(owners, sweep.axes, result.values, strict=True)
            )
            if all(getattr(owner, n) == v for owner, given in assigned for n, v in given.items()):
                return result
        return None

    def best(self, metric: str | None = None) -> PointResult | None:
        """The leader's result; None before anything is computed, or if every row diverged."""
        metric = metric or self.sweep.metric
        leader = self.leader(metric)
        return next((result for result in self.results(metric) if result.point == leader), None)

    def pairing(self, metric: str | None = None) -> float:
        """Factor by which common random numbers narrow the interval of a difference to the best.

        Median over points.

        sqrt(var(a) + var(b)) / sd(a - b); NaN before two points have two replications.
        """
        metric = metric or self.sweep.metric
        leader = self.leader(metric)
        if leader is None:
            return float("nan")
        numbers = self.numbers(metric)
        with np.errstate(invalid="ignore", divide="ignore"):
            unpaired = np.sqrt(row_variance(numbers) + row_variance(numbers[leader][None]))
            paired = np.sqrt(row_variance(self.gaps(metric)))
            ratio = np.delete(unpaired / paired, leader)
        return (
            float(np.median(ratio[np.isfinite(ratio)]))
            if np.isfinite(ratio).any()
            else float("nan")
        )

    # -- importance of parameters
    # ----------------------------------------------------------------------------------

    def importance(self, metric: str | None = None) -> list[Importance]:
        """Importance of each parameter, the most sensitive first.

        Empty before the whole grid is computed.

        For scattered points, see `explained`.
        """
        metric = metric or self.sweep.metric
        numbers = OBJECTIVES[metric].better * self.adjusted(metric)
        means, leader = row_mean(numbers), self.leader(metric)
        if leader is None or not np.isfinite(means).all() or not self.sweep.is_grid:
            return []
        grid, region, tied = (
            means.reshape(self.sweep.shape),
            self.best_region(metric).reshape(self.sweep.shape),
            np.array([s == "tied" for s in self.states(metric)]).reshape(self.sweep.shape),
        )
        clicks = self.numbers("ctr")
        losses = 1000 * (clicks[leader] - clicks)
        half = compare_with_leader(-losses, leader, self.eligible(metric), self.level).half
        found = []
        for i, (axis, values) in enumerate(zip(self.sweep.axes, self.sweep.values, strict=True)):
            others = tuple(j for j in range(grid.ndim) if j != i)
            is_tied = np.atleast_1d(tied.any(axis=others)).tolist()
            good = tuple(v for v, inside in zip(values, is_tied, strict=True) if inside)
            matters = not np.atleast_1d(region.any(axis=others)).all()
            worst = int(np.argmin(grid.max(axis=others)))
            # the best point with the worst value, against the best point of all
            at_worst = np.where(
                np.arange(len(values))[_broadcast(i, grid.ndim)] == worst, grid, -np.inf
            )
            at = int(np.argmax(at_worst))
            cost = _within(row_mean(losses[at][None])[0], half[at])
            best = values[int(np.unravel_index(leader, grid.shape)[i])]
            share = sobol_index(grid, others, noise_variance(numbers)) if others else float("nan")
            found.append(Importance(axis.path, best, good, values[worst], cost, share, matters))
        return sorted(found, key=lambda each: (not each.matters, -each.cost.mean))

    def explained(self, metric: str | None = None) -> list[Explained]:
        """Importance of each parameter among scattered points, the largest first.

        Empty before the end.
        """
        metric = metric or self.sweep.metric
        leader, sweep = self.leader(metric), self.sweep
        if leader is None or sweep.is_grid or self.progress < 1:
            return []
        if metric not in self._explained:
            tied = [sweep.values_at(p) for p, s in enumerate(self.states(metric)) if s == "tied"]
            shares = importance.explained_shares(sweep, row_mean(self.numbers(metric)))
            found = [
                Explained(
                    axis.path,
                    sweep.values_at(leader)[i],
                    _extent(axis, [at[i] for at in tied]),
                    share,
                )
                for i, (axis, share) in enumerate(zip(sweep.axes, shares, strict=True))
            ]
            self._explained[metric] = sorted(found, key=lambda each: -each.share)
        return self._explained[metric]

    # -- export
    # ----------------------------------------------------------------------------------------------------  # noqa: E501

    def summary(self, metric: str | None = None) -> dict[str, Any]:
        """Best point, best region and sensitivity as plain data; equal sweeps give equal bytes."""
        metric = metric or self.sweep.metric
        paths = [axis.path for axis in self.sweep.axes]
        best = self.best(metric)
        found: dict[str, Any] = plain(
            {
                "hash": self.sweep.hash,
                "metric": metric,
                "best": best
                and dict(zip(paths, best.values, strict=True))
                | best.estimate._asdict()
                | {"replications": best.runs},
                "best_region": [
                    dict(zip(paths, r.values, strict=True)) for r in self.results(metric) if r.best
                ],
                "recommended": (middle := self.recommended(metric))
                and dict(zip(paths, middle.values, strict=True)),
                "sensitivity": [
                    {**i._asdict(), "cost": i.cost._asdict(), "good": list(i.good)}
                    for i in self.importance(metric)
                ]
                or [{**i._asdict(), "by": "random forest"} for i in self.explained(metric)],
                "pairing": self.pairing(metric),
                "saved": self.saved_share,
            }
        )
        return (
            found
            if self.sweep.looks == 1
            else {**found, "looks": self.sweep.looks, "level": self.level}
        )

    def table(self, metric: str | None = None) -> pd.DataFrame:
        """One line per point: parameters, mean, interval, replications, difference to the best,
        best region, state.
        """
        metric = metric or self.sweep.metric
        import pandas as pd

        lines = [
            {
                **{axis.path: v for axis, v in zip(self.sweep.axes, r.values, strict=True)},
                "metric": metric,
                "mean": r.estimate.mean,
                "low": r.estimate.low,
                "high": r.estimate.high,
                "replications": r.runs,
                "diverged": r.diverged,
                "gap": r.gap.mean,
                "gap_low": r.gap.low,
                "gap_high": r.gap.high,
                "best_region": r.best,
                "state": r.state,
            }
            for r in self.results(metric)
        ]
        return pd.DataFrame(lines)


def level_of_look(sweep: Sweep) -> float:
    """Return the significance level of the last look at a sweep: .05 / 2^k at look k of a grid.

    All looks together err in at most .05 (1/2 + 1/4 + ...) = .05, however often the grid is
    refined. The first look at a search by successive halving keeps .05, because stored blocks and
    best regions follow from it, and refinements add at most .025. Optuna's points are looked at
    once."""
    return LEVEL if sweep.looks == 1 and sweep.search != "grid" else LEVEL / 2**sweep.looks


def _within(mean: float, half: float) -> Estimate:
    return Estimate(float(mean), float(mean - half), float(mean + half))


def _is_valid(sweep: Sweep, values: tuple[Value, ...]) -> bool:
    """Whether values that are valid alone are valid together."""
    try:
        sweep.with_values(values)
    except ValidationError:
        return False
    return True


def _extent(axis: Axis, values: list[Any]) -> tuple[Value, ...]:
    """Smallest and largest of these values for a range.

    For a list, its values that are among them.
    """
    if axis.values is None:
        return min(values), max(values)
    return tuple(value for value in axis.values if value in values)


def _broadcast(axis: int, dimensions: int) -> tuple[slice | None, ...]:
    return tuple(slice(None) if i == axis else None for i in range(dimensions))
