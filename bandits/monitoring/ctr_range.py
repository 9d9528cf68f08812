"""The range of the click-through rate against a reference period."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from bandits.base.formatting import number, percent
from bandits.base.params import param
from bandits.base.types import FloatArray

from .alarm import Setting, Steps
from .base import Judgement, MonitorParams, WindowMonitor, average, window_param


class CtrRange(WindowMonitor):
    """Compare the 5th and the 95th percentile of the CTR of windows with those of a reference
    period.

    The reference are the first ``windows`` windows after ``warm_up`` windows, in which the agent
    learns; the present are the last ``windows`` windows, as soon as they lie after the reference.
    An alarm follows where one of the two percentiles differs from its reference by more than
    ``change``, relative to it. A percentile of 0 is not compared.

    On single clicks this rule is void: their 5th percentile is 0 and their 95th is 0 or 1, whatever
    the CTR is. It needs windows of at least some hundred steps."""

    class Params(MonitorParams):
        kind: Literal["ctr_range"] = "ctr_range"
        window: int = window_param(500)
        warm_up: int = param(
            4,
            title="Warm-up",
            unit="windows",
            ge=0,
            le=1000,
            help=(
                "Windows before the reference. Larger values let the agent learn first; usually "
                "2 to 20."
            ),
        )
        windows: int = param(
            7,
            title="Reference",
            unit="windows",
            ge=2,
            le=1000,
            help=(
                "Windows of the reference and of the present. Larger values detect later; "
                "usually 7, the days of a week."
            ),
        )
        change: float = param(
            0.2,
            title="Relative change",
            gt=0,
            le=100,
            help=(
                "Relative change of a percentile that raises an alarm. Larger values tolerate "
                "more; usually 0.1 to 0.5."
            ),
        )

    title = "Range of the CTR"

    def __init__(self, params: Any, setting: Setting) -> None:
        super().__init__(params, setting)
        self._rates: list[FloatArray] = []
        self._reference = np.empty((2, self.rows))
        self._seen = 0

    def judge(self, window: Steps) -> Judgement | None:
        p = self.params
        self._seen += 1
        if self._seen <= p.warm_up:
            return None
        self._rates = [*self._rates, average(window.rewards)][-p.windows :]
        passed = self._seen - p.warm_up
        if passed == p.windows:
            self._reference = self._percentiles()
        if passed < 2 * p.windows:
            return None
        now, before = self._percentiles(), self._reference
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(before > 0, np.abs(now / before - 1), 0.0)  # (2, R)
        largest = relative.max(axis=0)

        def sentence(r: int) -> str:
            which = int(relative[:, r].argmax())
            name = ("5th", "95th")[which]
            return (
                f"The {name} percentile of the CTR is {number(now[which, r])}, against "
                f"{number(before[which, r])} in the reference: a change of {percent(largest[r])}."
            )

        return Judgement(largest > p.change, largest, p.change, sentence)

    def _percentiles(self) -> FloatArray:
        """The 5th and the 95th percentile of the kept windows, float64 (2, R)."""
        ordered = np.sort(np.stack(self._rates), axis=0)
        last = len(ordered) - 1
        # 5 % lies between the places below and above, 95 % as far from the other end
        place = int(0.05 * last)
        part = 0.05 * last - place
        low = ordered[place] + part * (ordered[place + 1] - ordered[place])
        high = ordered[last - place] - part * (ordered[last - place] - ordered[last - place - 1])
        return np.stack([low, high])
