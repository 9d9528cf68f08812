"""Cumulative sums and counts of a run on a grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandits.base.selection import TIE
from bandits.base.types import FloatArray, IntArray, OfflineTraining

from .lane import Trace
from .segment_sums import SegmentCounts as SegmentCounts
from .segment_sums import SegmentSums
from .snapshots import (
    BeliefCheck,
    Calibration,
    ExplorationCheck,
    SegmentCheck,
    Spectrum,
    grid_points,
    nice_spacing,
    read_training,
    snapshot_steps,
    training_arrays,
)

# of a stored curve
MAX_POINTS = 2000
# of stored counts per arm
MAX_COUNTS = 200
# counts per arm, of some points of their grid, that are added in one pass
CELLS_AT_ONCE = 2**20
# of the arrays of a history, that of version 1.0
FORMAT = 1


def count_spacing(steps: int, n_counted: int) -> int:
    """Return the steps between stored counts: a few hundred points, fewer for many counted
    items.
    """
    points = max(2, min(MAX_COUNTS, 400_000 // max(n_counted, 1)))
    return nice_spacing(steps, points)


class History:
    """Cumulative sums on a grid of at most 2,000 points, from which every curve and window is
    computed.

    Memory depends on the grid, not on the number of steps. Sums run step by step, so that results
    do not depend on how traces are chunked.

    Parameters
    ----------
    steps, rows, n_items : int
        With ``n_items=0`` nothing is counted by item.
    points : int
        Of the grid, at most.

    Attributes
    ----------
    grid : int64 (G,)
        Steps at which sums are stored; ``grid[:size]`` have been reached.
    sums : dict of float64 (G, R)
        ``clicks, best_clicks, value, best_value, random_value`` since the start; with a fallback
        also ``fallbacks`` (decisions that it made) and ``fallback_value`` (expected reward of
        these); where a log is replayed also ``counted`` (decisions whose reward is known); with
        truth also ``optimal`` (decisions whose expected reward is that of the best choice), which
        runs that version 1.0 stored do not have; where choices move the state also ``visits``
        (ended) and ``lost`` (expected reward of the visits that the choices lost).
    count_grid : int64 (H,)
    counts : int64 (H, R, n_counted)
        Times each item was shown since the start; in a large catalogue, each bucket of neighbouring
        items.
    bucket_size, n_counted : int
        Items per bucket (1: each item is counted), and the number of buckets.
    spectra : list of Spectrum
    calibrations : list of Calibration
    belief_checks : list of BeliefCheck
    exploration_checks : list of ExplorationCheck
    segment_checks : list of SegmentCheck
        Empty without user segments.
    segments : SegmentCounts, optional
        None without user segments, or with too many cells.
    segment_sums : SegmentSums, optional
        None without user segments.
    launch_sums : SegmentSums, optional
        The same sums of the decisions that showed items of each launch; group 0 are all other
        decisions. None without launches, and for slates.
    format : int
        Version of the stored format: see `FORMAT`.
    seconds, processor_seconds : float
        Wall time of simulator, agent and recording; processor time of all threads, with snapshots.
        Both without training before the run and compilation. Processor time is 0 in sweeps.
    note : str
        Method that the agent chose, where it has several implementations.
    training : OfflineTraining, optional
        Training on a log before the first step; None without one.
    """

    SUMS = ("clicks", "best_clicks", "value", "best_value", "random_value")
    FALLBACK_SUMS = ("fallbacks", "fallback_value")
    REPLAY_SUMS = ("counted",)
    TRUTH_SUMS = ("optimal",)
    VISIT_SUMS = ("visits", "lost")
    # those that only some runs have
    MORE_SUMS = (*FALLBACK_SUMS, *REPLAY_SUMS, *TRUTH_SUMS, *VISIT_SUMS)

    def __init__(
        self,
        steps: int,
        rows: int,
        n_items: int,
        n_segments: int = 0,
        *,
        n_launches: int = 0,
        bucket_size: int = 1,
        points: int = MAX_POINTS,
    ) -> None:
        self.steps, self.rows, self.n_items, self.n_segments = steps, rows, n_items, n_segments
        self.n_launches = n_launches
        self.bucket_size, self.n_counted = bucket_size, -(-n_items // bucket_size)
        self.grid = grid_points(steps, nice_spacing(steps, points))
        self.count_grid = grid_points(steps, count_spacing(steps, self.n_counted))
        self.sums = {name: np.full((len(self.grid), rows), np.nan) for name in self.SUMS}
        self.counts: NDArray[np.int64] = np.zeros(
            (len(self.count_grid), rows, self.n_counted), np.int64
        )
        self.spectra: list[Spectrum] = []
        self.calibrations: list[Calibration] = []
        self.belief_checks: list[BeliefCheck] = []
        self.exploration_checks: list[ExplorationCheck] = []
        self.segment_checks: list[SegmentCheck] = []
        self.segment_sums = SegmentSums(steps, rows, n_segments) if n_segments > 1 else None
        self.launch_sums = (
            SegmentSums(steps, rows, 1 + n_launches, "launch_sums") if n_launches else None
        )
        # (R, n_items): the launch of each item, from 1; 0: of none
        self._cohorts: NDArray[np.int8] | None = None
        counted = SegmentCounts.points(n_segments, n_items) > 0
        self.segments = SegmentCounts(steps, rows, n_segments, n_items) if counted else None
        self.format = FORMAT
        self.note = ""
        self.training: OfflineTraining | None = None
        self.alive = np.ones(rows, np.bool_)
        self.step = 0
        self.seconds = self.processor_seconds = 0.0
        self._sum_now = {name: np.zeros(rows) for name in self.SUMS}
        self._count_now = np.zeros((rows, self.n_counted), np.int64)
        for sums in self.sums.values():
            sums[0] = 0.0

    @property
    def counted(self) -> str:
        """Noun for what is counted: arms, or buckets of items."""
        return (
            "arms"
            if self.bucket_size == 1
            else f"buckets of {self.bucket_size:,} neighbouring items"
        )

    @staticmethod
    def memory(
        steps: int,
        rows: int,
        n_items: int,
        n_segments: int = 0,
        *,
        n_launches: int = 0,
        bucket_size: int = 1,
    ) -> int:
        """Compute the bytes of a history."""
        points, counted = min(steps, MAX_POINTS) + 1, -(-n_items // bucket_size)
        kept = SegmentCounts.points(n_segments, n_items)
        by_segment = n_items * n_segments * (steps // nice_spacing(steps, kept) + 3) if kept else 0
        sums = SegmentSums.memory(n_segments) if n_segments > 1 else 0
        sums += SegmentSums.memory(1 + n_launches) + n_items if n_launches else 0
        return rows * (
            8 * (6 * points + counted * (steps // count_spacing(steps, counted) + 3) + by_segment)
            + sums
        )

    @property
    def nbytes(self) -> int:
        """Bytes of this history, as `memory` computes them before it exists."""
        sizes = self.steps, self.rows, self.n_items, self.n_segments
        return self.memory(*sizes, n_launches=self.n_launches, bucket_size=self.bucket_size)

    @property
    def size(self) -> int:
        """Points of ``grid`` reached."""
        return int(np.searchsorted(self.grid, self.step, side="right"))

    @property
    def count_size(self) -> int:
        """Points of ``count_grid`` reached."""
        return int(np.searchsorted(self.count_grid, self.step, side="right"))

    def watch(self, launched: Mapping[int, Sequence[IntArray]]) -> None:
        """State which items each launch adds, those of each row: their decisions are summed
        (`launch_sums`).
        """
        if self.launch_sums is None:
            return
        self._cohorts = np.zeros((self.rows, self.n_items), np.int8)
        for place, i in enumerate(sorted(launched)):
            for row, items in enumerate(launched[i]):
                self._cohorts[row, items] = 1 + place

    def extend(self, trace: Trace) -> None:
        """Add the next steps."""
        if trace.start != self.step:
            raise ValueError(
                f"the trace starts at step {trace.start}, the history ends at {self.step}"
            )
        end = trace.start + len(trace.rewards)
        values = (
            trace.rewards,
            trace.best_rewards,
            trace.value,
            trace.best_value,
            trace.random_value,
        )
        columns = dict(zip(self.SUMS, values, strict=True))
        if trace.fell_back is not None:
            instead = trace.fell_back.astype(np.float64)
            columns |= dict(zip(self.FALLBACK_SUMS, (instead, instead * trace.value), strict=True))
            self._open(self.FALLBACK_SUMS)
        if trace.counted is not None:
            columns |= {"counted": np.where(np.isnan(trace.rewards), np.nan, trace.counted)}
            self._open(self.REPLAY_SUMS)
        # a run that was stored without these decisions continues without them
        if self.step == 0 and np.isfinite(trace.best_value).any():
            self._open(self.TRUTH_SUMS)
        if "optimal" in self.sums:
            columns |= {"optimal": optimal_choices(trace)}
        if trace.ended is not None and trace.lost is not None:
            running = np.where(np.isnan(trace.rewards), np.nan, 1.0)
            visits = running * trace.ended, running * trace.lost
            columns |= dict(zip(self.VISIT_SUMS, visits, strict=True))
            self._open(self.VISIT_SUMS)
        low, high = np.searchsorted(self.grid, [trace.start, end], side="right")
        for name, column in columns.items():
            running = np.cumsum(np.concatenate([self._sum_now[name][None], column]), axis=0)
            self.sums[name][low:high] = running[self.grid[low:high] - trace.start]
            self._sum_now[name] = running[-1]
        self._count(trace, end)
        if self.segments is not None:
            self.segments.extend(trace)
        if self.segment_sums is not None:
            self.segment_sums.extend(trace, trace.segments)
        if self._cohorts is None:
            self.launch_sums = None
        if self.launch_sums is not None and self._cohorts is not None:
            groups = self._cohorts[np.arange(self.rows), trace.items[:, :, 0]]
            self.launch_sums.extend(trace, groups.astype(np.int64))
        self.alive = trace.alive.copy()
        self.step = end

    def _open(self, names: Iterable[str]) -> None:
        """Add sums that only some agents have."""
        for name in [name for name in names if name not in self.sums]:
            self.sums[name] = np.full((len(self.grid), self.rows), np.nan)
            self.sums[name][0] = 0.0
            self._sum_now[name] = np.zeros(self.rows)

    def _count(self, trace: Trace, end: int) -> None:
        if not self.n_items:
            return
        low, high = np.searchsorted(self.count_grid, [trace.start, end], side="right")
        stops = self.count_grid[low:high] - trace.start
        cells = (
            np.arange(self.rows)[None, :, None] * self.n_counted + trace.items // self.bucket_size
        )
        # a stopped row shows nothing
        if not trace.alive.all():
            cells[np.isnan(trace.rewards)] = -1
        # points of the grid
        at_once = max(1, CELLS_AT_ONCE // (self.rows * self.n_counted))
        begin = 0
        for first in range(0, len(stops), at_once):
            some = stops[first : first + at_once]
            point, end_of_part = low + first, int(some[-1])
            totals = self._totals(cells[begin:end_of_part], some - begin)
            self.counts[point : point + len(some)] = totals
            self._count_now = totals[-1].copy()
            begin = end_of_part
        if begin < len(cells):
            self._count_now = self._totals(cells[begin:], np.array([len(cells) - begin]))[0]

    def _totals(self, cells: IntArray, stops: IntArray) -> IntArray:
        """Count cells (t, R, S) on top of what was counted before, up to each of the stops (P,):
        int64 (P, R, n).
        """
        size = self.rows * self.n_counted
        parts = np.repeat(np.arange(len(stops)), np.diff(stops, prepend=0))  # (t,)
        shown = cells >= 0
        added = np.bincount(
            (cells + size * parts[:, None, None])[shown], minlength=len(stops) * size
        )
        totals = added.reshape(len(stops), self.rows, self.n_counted)
        totals[0] += self._count_now
        return np.cumsum(totals, axis=0, out=totals)

    def since(self, step: int) -> dict[str, Any]:
        """Return what was added after a step (0: everything) as arrays, for `merge` in another
        process.
        """
        size = int(np.searchsorted(self.grid, step, side="right")) if step else 0
        count_size = int(np.searchsorted(self.count_grid, step, side="right")) if step else 0
        by_segment = {}
        if (segments := self.segments) is not None:
            first = segments.reached(step) if step else 0
            new = segments.counts[first : segments.reached(self.step)].astype(np.int32)
            by_segment = {"segments.from": np.array(first), "segments.counts": new}
        if self.segment_sums is not None:
            by_segment |= self.segment_sums.since(step, self.step)
        if self.launch_sums is not None:
            by_segment |= self.launch_sums.since(step, self.step)
        return {
            "format": np.array(self.format),
            "from": np.array([size, count_size]),
            **by_segment,
            **{f"sum.{name}": sums[size : self.size] for name, sums in self.sums.items()},
            "counts": self.counts[count_size : self.count_size].astype(np.int32),
            "alive": self.alive,
            "step": np.array(self.step),
            "seconds": np.array(self.seconds),
            "note": np.array(self.note),
            **(
                {"processor_seconds": np.array(self.processor_seconds)}
                if self.processor_seconds
                else {}
            ),
            **({} if self.training is None else training_arrays(self.training)),
            **{f"spectrum.{s.step}": s.eigenvalues for s in self.spectra if s.step > step},
            **{f"calibration.{c.step}": c.inside for c in self.calibrations if c.step > step},
            **{f"checkup.{c.step}": c.values for c in self.belief_checks if c.step > step},
            **{f"exploration.{c.step}": c.values for c in self.exploration_checks if c.step > step},
            **{
                f"segment_exploration.{c.step}": c.values
                for c in self.segment_checks
                if c.step > step
            },
        }

    def merge(self, added: dict[str, Any]) -> None:
        """Add what `since` returned; such a copy is for reading, not for `extend`."""
        low, count_low = int(added["from"][0]), int(added["from"][1])
        self._open(name for name in self.MORE_SUMS if f"sum.{name}" in added)
        for name, sums in self.sums.items():
            # one that begins anew in another worker has not opened the further sums yet
            if name in self.MORE_SUMS and f"sum.{name}" not in added:
                continue
            new = added[f"sum.{name}"]
            sums[low : low + len(new)] = new
        self.counts[count_low : count_low + len(added["counts"])] = added["counts"]
        self.alive, self.step = added["alive"], int(added["step"])
        self.seconds = float(added["seconds"])
        self.processor_seconds = float(added.get("processor_seconds", 0.0))
        self.note = str(added.get("note", ""))
        self.training = read_training(added)
        self.format = int(added["format"])
        if self.segments is not None:
            first, new = int(added["segments.from"]), added["segments.counts"]
            self.segments.counts[first : first + len(new)] = new
        if self.segment_sums is not None:
            self.segment_sums.merge(added)
        if "launch_sums.sums" not in added:
            self.launch_sums = None
        if self.launch_sums is not None:
            self.launch_sums.merge(added)
        self.spectra += [Spectrum(*new) for new in _snapshots(added, "spectrum.", self.spectra)]
        self.calibrations += [
            Calibration(*new) for new in _snapshots(added, "calibration.", self.calibrations)
        ]
        self.belief_checks += [
            BeliefCheck(*new) for new in _snapshots(added, "checkup.", self.belief_checks)
        ]
        known = self.exploration_checks
        self.exploration_checks += [
            ExplorationCheck(*new) for new in _snapshots(added, "exploration.", known)
        ]
        split = self.segment_checks
        self.segment_checks += [
            SegmentCheck(*new) for new in _snapshots(added, "segment_exploration.", split)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return the state as arrays and plain values, from which a run continues
        bit-identically.
        """
        everything = self.since(0)
        now = {f"now.{name}": value.copy() for name, value in self._sum_now.items()}
        plain = {"steps": self.steps, "now.counts": self._count_now}
        if self.segments is not None:
            plain["now.segments"] = self.segments.now
        if self.segment_sums is not None:
            plain["now.segment_sums"] = self.segment_sums.now
        if self.launch_sums is not None:
            plain["now.launch_sums"] = self.launch_sums.now
        # copied already, or never changed
        kept = "counts", "segments.counts", "spectrum."
        return {
            k: v if k.startswith(kept) else np.array(v)
            for k, v in {**everything, **now, **plain}.items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved history into a new one with the same rows and items, and at least as many
        steps.

        A longer run has a coarser grid; all of its points up to the saved step are restored.
        """
        steps = int(state["steps"])
        sizes = steps, self.rows, self.n_items, self.n_segments
        old = History(*sizes, n_launches=self.n_launches, bucket_size=self.bucket_size)
        old.merge(state)
        self._open(old.sums)
        _copy_common(old.grid, self.grid, old.step, old.sums, self.sums)
        _copy_common(old.count_grid, self.count_grid, old.step, {"": old.counts}, {"": self.counts})
        if self.segments is not None and (saved := old.segments) is not None:
            counts, longer = {"": saved.counts}, {"": self.segments.counts}
            _copy_common(saved.grid, self.segments.grid, old.step, counts, longer)
            self.segments.now = state["now.segments"].copy()
        else:
            self.segments = None
        self.segment_sums = _restored(self.segment_sums, old.segment_sums, old.step, state)
        self.launch_sums = _restored(self.launch_sums, old.launch_sums, old.step, state)
        self.format = old.format
        wanted = set(snapshot_steps(self.steps))
        self.spectra = [s for s in old.spectra if s.step in wanted]
        self.calibrations = [c for c in old.calibrations if c.step in wanted]
        self.belief_checks = [c for c in old.belief_checks if c.step in wanted]
        self.exploration_checks = [c for c in old.exploration_checks if c.step in wanted]
        self.segment_checks = [c for c in old.segment_checks if c.step in wanted]
        self.note, self.training = old.note, old.training
        self.alive, self.step = old.alive, old.step
        self.seconds, self.processor_seconds = old.seconds, old.processor_seconds
        self._sum_now = {name: state[f"now.{name}"].copy() for name in self.sums}
        self._count_now = state["now.counts"].copy()


def optimal_choices(trace: Trace) -> FloatArray:
    """Return 1 where what was shown is worth as much as the best choice, up to rounding, float64
    (T, R).

    Several candidates can be the best. NaN in stopped rows.
    """
    best = trace.best_value
    with np.errstate(invalid="ignore"):
        optimal = trace.value >= best - TIE * np.abs(best)
    return np.where(np.isnan(trace.value), np.nan, optimal.astype(np.float64))


def _restored(
    new: SegmentSums | None, old: SegmentSums | None, step: int, state: dict[str, Any]
) -> SegmentSums | None:
    """Fill the sums of a new history with saved ones up to a step; None where either has none."""
    if new is None or old is None:
        return None
    _copy_common(old.grid, new.grid, step, {"": old.sums}, {"": new.sums})
    new.now = state[f"now.{new.name}"].copy()
    return new


def _snapshots(
    added: dict[str, Any],
    prefix: str,
    known: Sequence[Spectrum | Calibration | BeliefCheck | ExplorationCheck | SegmentCheck],
) -> list[tuple[int, FloatArray]]:
    """Return the new snapshots of one type by step, without those repeated after a restart."""
    last = known[-1].step if known else 0
    found = (
        (int(name.removeprefix(prefix)), value)
        for name, value in added.items()
        if name.startswith(prefix)
    )
    return sorted((new for new in found if new[0] > last), key=lambda new: new[0])


def _copy_common(
    old: IntArray, new: IntArray, step: int, source: dict[str, Any], target: dict[str, Any]
) -> None:
    """Copy the points that two grids share, as far as ``step``."""
    reached = new[new <= step]
    at = np.searchsorted(old, reached)
    for name, values in source.items():
        target[name][: len(reached)] = values[at]
