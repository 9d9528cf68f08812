"""Base classes of monitors: on every step, and on windows of steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandits.base.formatting import number
from bandits.base.params import Params, param
from bandits.base.types import BoolArray, FloatArray
from bandits.models.detectors import Detections

from .alarm import Alarm, Need, Setting, Steps, join

MEAN = "The mean reward"
# with this begins the sentence of a detector that found a fall
FELL = f"{MEAN} fell"


class MonitorParams(Params):
    """Parameters of a monitor."""

    kind: str


def window_param(default: int) -> Any:
    """Declare the length of the windows of a monitor."""
    return param(
        default,
        title="Window",
        unit="steps",
        ge=10,
        le=1_000_000,
        help=(
            "Steps that are judged together. Larger values detect smaller changes later; usually "
            "500 to 5,000."
        ),
    )


def level_param(where: str, least: str) -> Any:
    """Declare the level of a test; ``least`` is the smallest usual one."""
    return param(
        1e-4,
        title="Level",
        gt=0,
        le=1,
        log=True,
        help=(
            f"Probability of a false alarm for {where}. Larger values detect more; usually "
            f"{least} to 0.01."
        ),
    )


class Monitor(ABC):
    """A rule on what a system in production sees, over R rows.

    Its rows do not depend on each other.
    """

    Params: ClassVar[type[MonitorParams]]
    title: ClassVar[str]
    needs: ClassVar[frozenset[Need]] = frozenset()

    def __init__(self, params: Any, setting: Setting) -> None:
        self.params, self.setting = params, setting
        self.rows = len(setting.rows)

    @property
    def kind(self) -> str:
        """Name of the monitor in tables and on the command line."""
        return str(self.params.kind)

    @abstractmethod
    def feed(self, steps: Steps) -> list[Alarm]:
        """Process the next steps; the size of the chunks in which a run is fed changes no alarm."""

    def alarm(
        self, step: int, row: int, statistic: float, threshold: float, sentence: str
    ) -> Alarm:
        """Report an alarm in one of the rows, 0 to R - 1."""
        label, number = self.setting.label, self.setting.rows[row]
        return Alarm(
            self.kind, int(step), number, label, float(statistic), float(threshold), sentence
        )

    def detected(self, start: int, found: Detections, sentence: str) -> list[Alarm]:
        """Report what a change detector of the mean reward found in the steps after ``start``."""
        alarms = []
        for t, r in np.argwhere(found.there):
            statistic, bound = float(found.statistic[t, r]), float(found.threshold[t, r])
            words = sentence.format(
                rose="rose" if statistic > 0 else "fell", by=number(abs(statistic))
            )
            text = f"{MEAN} {words}, more than {number(bound)}."
            alarms.append(self.alarm(start + t + 1, r, abs(statistic), bound, text))
        return alarms


def total(values: FloatArray) -> FloatArray:
    """Sum ``values (T, R, ...)`` over steps in their order: the same bits with and without other
    rows.
    """
    return np.asarray(np.add.accumulate(values, axis=0)[-1])


def average(values: FloatArray) -> FloatArray:
    """Average ``values (T, R, ...)`` over steps; see `total`."""
    return total(values) / len(values)


class Judgement(NamedTuple):
    """The verdict on one window.

    Attributes
    ----------
    bad : bool (R,)
    statistic, threshold : float64 (R,)
    sentence : callable
        Describes what was observed in a row.
    """

    bad: BoolArray
    statistic: FloatArray
    threshold: FloatArray | float
    sentence: Callable[[int], str]


class WindowMonitor(Monitor):
    """A rule on windows of ``params.window`` steps: an alarm where a window breaks it and the one
    before did not.

    Rows that have stopped raise no alarm.
    """

    def __init__(self, params: Any, setting: Setting) -> None:
        super().__init__(params, setting)
        self._parts: list[Steps] = []
        self._bad = np.zeros(self.rows, np.bool_)

    @abstractmethod
    def judge(self, window: Steps) -> Judgement | None:
        """Judge one whole window; None where it is too early or too few values are known."""

    def feed(self, steps: Steps) -> list[Alarm]:
        found: list[Alarm] = []
        begin, size = 0, self.params.window
        while begin < len(steps.rewards):
            left = size - (steps.start + begin) % size
            end = min(begin + left, len(steps.rewards))
            self._parts.append(steps.part(begin, end))
            if end - begin == left:
                found += self._close(join(self._parts))
                self._parts = []
            begin = end
        return found

    def _close(self, window: Steps) -> list[Alarm]:
        judged = self.judge(window)
        if judged is None:
            return []
        bad = judged.bad & ~np.isnan(window.rewards[-1])
        new, self._bad = bad & ~self._bad, bad
        step = window.start + len(window.rewards)
        threshold = np.broadcast_to(judged.threshold, bad.shape)
        return [
            self.alarm(step, r, judged.statistic[r], threshold[r], judged.sentence(int(r)))
            for r in np.flatnonzero(new).tolist()
        ]
