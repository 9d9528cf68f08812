"""ADWIN on the reward."""

from __future__ import annotations

from typing import Any, Literal

from bandits.base.formatting import number
from bandits.base.params import param
from bandits.models.detectors import Adwin

from .alarm import Alarm, Setting, Steps
from .base import Monitor, MonitorParams


class AdwinMonitor(Monitor):
    """Report a change of the mean reward by adaptive windowing; see `bandits.models.detectors.Adwin`."""

    class Params(MonitorParams):
        kind: Literal["adwin"] = "adwin"
        delta: float = param(
            0.002, title="Confidence parameter", symbol=r"\delta", gt=0, le=1, log=True,
            help="Bounds the probability of a false alarm at each test. Larger values detect earlier and give more "
            "false alarms; usually 0.0001 to 0.05.",
        )  # fmt: skip

    title = "Adaptive windowing (ADWIN)"

    def __init__(self, params: Any, setting: Setting) -> None:
        super().__init__(params, setting)
        self.detector = Adwin(self.rows, params.delta)

    def feed(self, steps: Steps) -> list[Alarm]:
        return self.detected(steps.start, self.detector.detect(steps.rewards), _sentence)


def _sentence(statistic: float, threshold: float) -> str:
    rose = "rose" if statistic > 0 else "fell"
    return f"The mean reward {rose} by {number(abs(statistic))} within the window, more than {number(threshold)}."
