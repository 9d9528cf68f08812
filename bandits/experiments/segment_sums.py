"""What happened to each user segment, and to each launch: items shown, visits, clicks and expected
rewards.

All are cumulative, on a grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

from bandits.base.types import FloatArray, IntArray

from .lane import Trace
from .snapshots import SNAPSHOTS, grid_points, nice_spacing

# largest segments x items that are counted
SEGMENT_CELLS = 100_000


@njit(cache=True, nogil=True)
def _add(
    segments: IntArray,
    rewards: FloatArray,
    value: FloatArray,
    best_value: FloatArray,
    now: FloatArray,
) -> None:
    """Add steps to ``now (R, G, 4)`` one by one, so that rounding does not depend on chunks."""
    T, R = segments.shape
    for t in range(T):
        for r in range(R):
            if np.isnan(rewards[t, r]):  # a stopped row
                continue
            own = now[r, segments[t, r]]
            own[0] += 1.0
            own[1] += rewards[t, r]
            own[2] += value[t, r]
            own[3] += best_value[t, r]


class _OnGrid:
    """What is known at the points of a grid."""

    grid: IntArray

    def reached(self, step: int) -> int:
        """Return the number of grid points up to a step."""
        return int(np.searchsorted(self.grid, step, side="right"))

    def parts(self, trace: Trace) -> Iterator[tuple[slice, int | None]]:
        """Split steps at the grid: those up to each point with its index, then those after the last
        point.
        """
        begin = 0
        for point in range(
            self.reached(trace.start), self.reached(trace.start + len(trace.rewards))
        ):
            stop = int(self.grid[point]) - trace.start
            yield slice(begin, stop), point
            begin = stop
        yield slice(begin, None), None


class SegmentCounts(_OnGrid):
    """Counts of how often each item was shown to each user segment, at the snapshots.

    Attributes
    ----------
    grid : int64 (P,)
        Fewer points than there are snapshots where the catalogue is large.
    counts : int64 (P, R, G, n_items)
        Times each item was shown to each of the G segments since the start.
    """

    def __init__(self, steps: int, rows: int, n_segments: int, n_items: int) -> None:
        self.n_segments, self.n_items = n_segments, n_items
        self.grid = grid_points(steps, nice_spacing(steps, self.points(n_segments, n_items)))
        self.counts = np.zeros((len(self.grid), rows, n_segments, n_items), np.int64)
        self.now = np.zeros((rows, n_segments, n_items), np.int64)

    @staticmethod
    def points(n_segments: int, n_items: int) -> int:
        """Return the number of stored points; 0 with a single segment or too many cells."""
        cells = n_segments * n_items
        return (
            0
            if n_segments < 2 or cells > SEGMENT_CELLS
            else min(SNAPSHOTS, 4 * SEGMENT_CELLS // cells)
        )

    def extend(self, trace: Trace) -> None:
        """Add the next steps."""
        group = np.arange(len(self.now)) * self.n_segments + trace.segments
        cells = group[:, :, None] * self.n_items + trace.items
        # a stopped row shows nothing
        if not trace.alive.all():
            cells[np.isnan(trace.rewards)] = -1
        for part, point in self.parts(trace):
            shown = cells[part]
            self.now += np.bincount(shown[shown >= 0], minlength=self.now.size).reshape(
                self.now.shape
            )
            if point is not None:
                self.counts[point] = self.now


class SegmentSums(_OnGrid):
    """Sums of each user segment, or each other group of decisions, since the start, at the
    snapshots.

    Parameters
    ----------
    name : str
        Under which they are stored.

    Attributes
    ----------
    grid : int64 (P,)
    sums : float64 (P, R, G, 4)
        Visits, clicks, expected rewards of what was shown and of the optimum: `NAMES`.
    """

    NAMES = ("visits", "clicks", "value", "best_value")

    def __init__(self, steps: int, rows: int, n_segments: int, name: str = "segment_sums") -> None:
        self.name = name
        self.grid = grid_points(steps, nice_spacing(steps, SNAPSHOTS))
        self.sums = np.zeros((len(self.grid), rows, n_segments, len(self.NAMES)))
        self.now = np.zeros(self.sums.shape[1:])

    @staticmethod
    def memory(n_segments: int) -> int:
        """Compute the bytes per row."""
        return 8 * (SNAPSHOTS + 3) * n_segments * len(SegmentSums.NAMES)

    def extend(self, trace: Trace, groups: IntArray) -> None:
        """Add the next steps, whose decisions belong to ``groups (T, R)``."""
        columns = trace.rewards, trace.value, trace.best_value
        for part, point in self.parts(trace):
            rewards, value, best_value = (np.ascontiguousarray(column[part]) for column in columns)
            _add(np.ascontiguousarray(groups[part]), rewards, value, best_value, self.now)
            if point is not None:
                self.sums[point] = self.now

    def total(self, name: str, step: int) -> FloatArray:
        """Return a sum of each segment at the last stored point up to a step, float64 (R, G)."""
        return self.sums[self.reached(step) - 1, :, :, self.NAMES.index(name)]

    def since(self, step: int, last: int) -> dict[str, Any]:
        """Return what was added after a step (0: everything), for `merge` in another process."""
        first = self.reached(step) if step else 0
        return {
            f"{self.name}.from": np.array(first),
            f"{self.name}.sums": self.sums[first : self.reached(last)],
        }

    def merge(self, added: dict[str, Any]) -> None:
        """Add what `since` returned."""
        first, new = int(added[f"{self.name}.from"]), added[f"{self.name}.sums"]
        self.sums[first : first + len(new)] = new
