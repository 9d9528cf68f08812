"""Change detectors on the reward: the Page-Hinkley test and ADWIN."""

from __future__ import annotations

from typing import Any, Literal

from bandits.base.params import param
from bandits.models.detectors import Adwin, PageHinkley

from .alarm import Alarm, Setting, Steps
from .base import Monitor, MonitorParams


class PageHinkleyMonitor(Monitor):
    """Report a change of the mean reward by the Page-Hinkley test.

    See `bandits.models.detectors.PageHinkley`.

    ``delta`` and ``threshold`` are in units of the reward: the defaults suit rewards of 0 or 1.
    """

    class Params(MonitorParams):
        kind: Literal["page_hinkley"] = "page_hinkley"
        delta: float = param(
            0.005,
            title="Tolerance",
            symbol=r"\delta",
            ge=0,
            le=1000,
            help=(
                "Deviation of a reward from the mean that is tolerated. Larger values ignore "
                "slow changes; usually 0.001 to 0.05."
            ),
        )
        threshold: float = param(
            50.0,
            title="Threshold",
            symbol=r"\lambda",
            gt=0,
            le=1_000_000,
            help=(
                "Sum of deviations that raises an alarm. Larger values detect later and give "
                "fewer false alarms; usually 10 to 100."
            ),
        )
        min_steps: int = param(
            30,
            title="First steps",
            unit="steps",
            ge=1,
            le=1_000_000,
            help=(
                "Steps before the first alarm. Larger values wait for a better mean; usually 30 "
                "to 500."
            ),
        )

    title = "Page-Hinkley test"

    def __init__(self, params: Any, setting: Setting) -> None:
        super().__init__(params, setting)
        self.detector = PageHinkley(self.rows, params.delta, params.threshold, params.min_steps)

    def feed(self, steps: Steps) -> list[Alarm]:
        return self.detected(
            steps.start, self.detector.detect(steps.rewards), "{rose}: deviations add up to {by}"
        )


class AdwinMonitor(Monitor):
    """Report a change of the mean reward by adaptive windowing.

    See `bandits.models.detectors.Adwin`.
    """

    class Params(MonitorParams):
        kind: Literal["adwin"] = "adwin"
        delta: float = param(
            0.002,
            title="Confidence parameter",
            symbol=r"\delta",
            gt=0,
            le=1,
            log=True,
            help=(
                "Bounds the probability of a false alarm at each test. Larger values detect "
                "earlier and give more false alarms; usually 0.0001 to 0.05."
            ),
        )

    title = "Adaptive windowing (ADWIN)"

    def __init__(self, params: Any, setting: Setting) -> None:
        super().__init__(params, setting)
        self.detector = Adwin(self.rows, params.delta)

    def feed(self, steps: Steps) -> list[Alarm]:
        return self.detected(
            steps.start, self.detector.detect(steps.rewards), "{rose} by {by} within the window"
        )
