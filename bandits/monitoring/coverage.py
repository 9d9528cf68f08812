"""Coverage: the share of the arms that are hardly shown."""

from __future__ import annotations

from typing import Literal

from bandits.base.formatting import percent
from bandits.base.params import param

from .alarm import Steps
from .base import Judgement, MonitorParams, WindowMonitor, window_param
from .entropy import counts


class Coverage(WindowMonitor):
    """Report that many arms get less than min(1 %, half of 1/K) of the shows of the last window.

    Large catalogues are counted in buckets of neighbouring items.
    """

    class Params(MonitorParams):
        kind: Literal["coverage"] = "coverage"
        window: int = window_param(1000)
        share: float = param(
            0.5, title="Share of arms", ge=0, le=1,
            help="Share of the arms that may be shown less than this. Larger values tolerate more; usually 0.1 to 0.8.",
        )  # fmt: skip

    title = "Coverage of arms"

    def judge(self, window: Steps) -> Judgement:
        shown = counts(window, self.setting)[:, 0]
        bound = min(0.01, 0.5 / self.setting.n_counted)
        rare, share = (shown < bound * shown.sum(axis=1, keepdims=True)).mean(axis=1), self.params.share
        text = "{} of the arms got less than {} of the shows each."
        return Judgement(rare > share, rare, share, lambda r: text.format(percent(rare[r]), percent(bound, 2)))
