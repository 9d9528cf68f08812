"""The Page-Hinkley test for a change of the mean, in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray

from .base import Detections, Detector, prepared


class PageHinkley(Detector):
    """Page-Hinkley test [1]_ [2]_: a cumulative sum of deviations from the running mean leaves its
    extreme.

    With the deviation d_t = x_t - mean_t, two sums run with the forgetting factor alpha:

        rise_t = alpha rise_{t-1} + d_t - delta        an increase if rise_t - min rise > threshold
        fall_t = alpha fall_{t-1} + d_t + delta        a decrease if max fall - fall_t > threshold

    Its events equal those of ``river.drift.PageHinkley`` (river 0.26.1) with the same parameters.

    Parameters
    ----------
    rows : int
        R.
    delta : float
        Deviation that is tolerated at each step, in units of the values.
    threshold : float
        Sum of deviations above which a change is reported, in units of the values.
    min_steps : int
        Values that are needed before a change can be reported.
    forgetting : float
        Factor alpha of the sums at each step.

    References
    ----------
    .. [1] Page (1954), Continuous inspection schemes. Biometrika 41.
    .. [2] Gama, Sebastião, Rodrigues (2013), On evaluating stream learning algorithms, section 3.3:
       the test with forgetting.
    """

    state = ("count", "mean", "rise", "fall", "lowest", "highest")

    def __init__(
        self,
        rows: int,
        delta: float = 0.005,
        threshold: float = 50.0,
        min_steps: int = 30,
        forgetting: float = 0.9999,
    ) -> None:
        super().__init__(rows)
        self.delta, self.threshold, self.min_steps, self.forgetting = (
            delta,
            threshold,
            min_steps,
            forgetting,
        )
        self.count, self.mean, self.rise, self.fall = np.zeros((4, rows))
        self.lowest, self.highest = np.full(rows, np.inf), np.full(rows, -np.inf)

    def detect(self, values: FloatArray, there: BoolArray | None = None) -> Detections:
        found, statistic = self._run(*prepared(values, there))
        threshold = np.full(statistic.shape, np.nan)
        threshold[found] = self.threshold
        return Detections(found, statistic, threshold)

    def _run(self, values: FloatArray, there: BoolArray) -> tuple[Any, ...]:
        arrays = self.count, self.mean, self.rise, self.fall, self.lowest, self.highest
        settings = self.delta, self.threshold, self.min_steps, self.forgetting
        found: tuple[Any, ...] = _detect(values, there, *arrays, *settings)
        return found

    def reset(self, rows: BoolArray) -> None:
        for name in ("count", "mean", "rise", "fall"):
            getattr(self, name)[rows] = 0.0
        self.lowest[rows], self.highest[rows] = np.inf, -np.inf

    @classmethod
    def memory(cls) -> int:
        return 8 * len(cls.state)


@njit(cache=True, nogil=True)
def _detect(
    values: FloatArray,
    there: BoolArray,
    count: FloatArray,
    mean: FloatArray,
    rise: FloatArray,
    fall: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    delta: float,
    threshold: float,
    min_steps: int,
    forgetting: float,
) -> tuple[BoolArray, FloatArray]:
    """Process T steps; return where a change is detected, and the statistic, two of (T, R)."""
    (T, R), masked = values.shape, there.size > 0
    found, statistic = np.zeros((T, R), np.bool_), np.full((T, R), np.nan)
    for r in range(R):
        n, level, up, down, low, high = count[r], mean[r], rise[r], fall[r], lowest[r], highest[r]
        for t in range(T):
            value = values[t, r]
            if np.isnan(value) or (masked and not there[t, r]):
                continue
            # the sums follow the deviation from the running mean
            n += 1.0
            level += 1.0 / n * (value - level)
            deviation = value - level
            up = forgetting * up + deviation - delta
            down = forgetting * down + deviation + delta
            low, high = min(low, up), max(high, down)
            # test
            if n >= min_steps and (up - low > threshold or high - down > threshold):
                found[t, r], statistic[t, r] = (
                    True,
                    up - low if up - low > threshold else down - high,
                )
                n = level = up = down = 0.0
                low, high = np.inf, -np.inf
        count[r], mean[r], rise[r], fall[r], lowest[r], highest[r] = n, level, up, down, low, high
    return found, statistic
