"""ADWIN: a window of recent values that ends where two of its parts have different means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray

from .base import Detections, Detector, prepared

# level l holds buckets of 2^l values: far more than any run has
LEVELS = 40
MAX_BUCKETS = 5  # of each size
# values between two tests
CLOCK = 32
# values on each side of a cut
MIN_WINDOW = 5
# a window with no more values is not tested
GRACE = 10


class Adwin(Detector):
    """Adaptive windowing [1]_: compare the means on both sides of every cut of the window.

    The window is kept in buckets of 1, 2, 4, ... values, at most `MAX_BUCKETS` of each size; a cut
    lies between two buckets. With n0 values before the cut, n1 after it, n = n0 + n1, and the
    variance v of the window, a change is reported where the means differ by more than

        sqrt(2 m v d) + 2/3 m d,    d = log(2 log(n) / delta),    m = 1/(n0 - 4) + 1/(n1 - 4)

    (ADWIN2, section 4 of [1]_). The paper then drops the older part of the window; this starts with
    an empty window, like ``river.drift.ADWIN`` (river 0.26.1), whose events these equal. Buckets
    need no variances of their own then.

    Parameters
    ----------
    rows : int
        R.
    delta : float
        Confidence parameter: smaller values detect later and give fewer false alarms.

    References
    ----------
    .. [1] Bifet, Gavaldà (2007), Learning from time-changing data with adaptive windowing.
    """

    state = ("totals", "buckets", "ticks", "width", "total", "variance")

    def __init__(self, rows: int, delta: float = 0.002) -> None:
        super().__init__(rows)
        self.delta = delta
        # the oldest of a level first
        self.totals = np.zeros((rows, LEVELS, MAX_BUCKETS + 1))
        self.buckets = np.zeros((rows, LEVELS), np.int64)
        self.ticks = np.zeros(rows, np.int64)
        # variance: sum of squared deviations
        self.width, self.total, self.variance = np.zeros((3, rows))

    def detect(self, values: FloatArray, there: BoolArray | None = None) -> Detections:
        return Detections(*self._run(*prepared(values, there)))

    def _run(self, values: FloatArray, there: BoolArray) -> tuple[Any, ...]:
        window = self.totals, self.buckets, self.ticks, self.width, self.total, self.variance
        found: tuple[Any, ...] = _detect(values, there, *window, self.delta)
        return found

    def reset(self, rows: BoolArray) -> None:
        for name in self.state:
            getattr(self, name)[rows] = 0

    @classmethod
    def memory(cls) -> int:
        return 8 * (LEVELS * (MAX_BUCKETS + 2) + 4)


@njit(cache=True, nogil=True)
def _detect(
    values: FloatArray,
    there: BoolArray,
    totals: FloatArray,
    buckets: IntArray,
    ticks: IntArray,
    width: FloatArray,
    total: FloatArray,
    variance: FloatArray,
    delta: float,
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Process T steps; return where the means differ, their difference (newer minus older), and its
    bound.
    """
    (T, R), masked = values.shape, there.size > 0
    found = np.zeros((T, R), np.bool_)
    differences, bounds = np.full((T, R), np.nan), np.full((T, R), np.nan)
    for r in range(R):
        own, filled = totals[r], buckets[r]
        tick, n, sum_, squares = ticks[r], width[r], total[r], variance[r]
        for t in range(T):
            value = values[t, r]
            if np.isnan(value) or (masked and not there[t, r]):
                continue
            n += 1.0
            if n > 1.0:
                deviation = value - sum_ / (n - 1.0)
                squares += (n - 1.0) * deviation * deviation / n
            sum_ += value
            tick += 1
            _insert(own, filled, value)
            if tick % CLOCK == 0 and n > GRACE:
                difference, bound = _cut(own, filled, n, sum_, squares, delta)
                if bound >= 0.0:
                    found[t, r], differences[t, r], bounds[t, r] = True, difference, bound
                    filled[:] = 0
                    tick = 0
                    n = sum_ = squares = 0.0
        ticks[r], width[r], total[r], variance[r] = tick, n, sum_, squares
    return found, differences, bounds


@njit(cache=True, nogil=True)
def _insert(totals: FloatArray, buckets: IntArray, value: float) -> None:
    """Add a bucket of one value.

    Where a level is full, merge its two oldest buckets into one of the next level.
    """
    new_total = value
    for level in range(LEVELS):
        n = buckets[level]
        totals[level, n] = new_total
        buckets[level] = n + 1
        if n < MAX_BUCKETS:
            return
        new_total = totals[level, 0] + totals[level, 1]
        for i in range(2, MAX_BUCKETS + 1):
            totals[level, i - 2] = totals[level, i]
        buckets[level] = n - 1


@njit(cache=True, nogil=True)
def _cut(
    totals: FloatArray, buckets: IntArray, width: float, total: float, variance: float, delta: float
) -> tuple[float, float]:
    """Find the oldest cut at which the means differ: the difference and its bound.

    The bound is -1 without one.

    Most cuts are passed over without a division: their squared difference, times (n0 n1)^2, is
    below the sum of the two squared terms of the bound, with 1/n0 + 1/n1 in place of m."""
    confidence = math.log(2.0 * math.log(width) / delta)
    mean_square = variance / width
    by_variance, by_range = (
        1.999999 * mean_square * confidence * width,
        (0.666666 * confidence * width) ** 2,
    )
    older, older_total = 0.0, 0.0
    newer, newer_total = width, total
    for level in range(LEVELS - 1, -1, -1):
        size = 2.0**level
        for i in range(buckets[level]):
            older += size
            newer -= size
            older_total += totals[level, i]
            newer_total -= totals[level, i]
            if newer < MIN_WINDOW:
                return 0.0, -1.0
            if older < MIN_WINDOW:
                continue
            if (
                newer_total * older - older_total * newer
            ) ** 2 < by_variance * older * newer + by_range:
                continue
            scale = 1.0 / (older - MIN_WINDOW + 1.0) + 1.0 / (newer - MIN_WINDOW + 1.0)
            bound = (
                math.sqrt(2.0 * scale * mean_square * confidence) + 2.0 / 3.0 * confidence * scale
            )
            difference = newer_total / newer - older_total / older
            if abs(difference) > bound:
                return difference, bound
    return 0.0, -1.0
