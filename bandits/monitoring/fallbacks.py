"""The share of decisions that a fallback takes."""

from __future__ import annotations

from typing import Literal

from bandits.base.formatting import percent
from bandits.base.params import param

from .alarm import Steps
from .base import Judgement, MonitorParams, WindowMonitor, window_param


class Fallbacks(WindowMonitor):
    """Report that a fallback takes a large share of the decisions of a window.

    It reads `Trace.fell_back`. Agents without a fallback are not monitored.
    """

    class Params(MonitorParams):
        kind: Literal["fallbacks"] = "fallbacks"
        window: int = window_param(500)
        share: float = param(
            0.05, title="Share of decisions", ge=0, le=1,
            help="Share of fallback decisions that raises an alarm. Larger values tolerate more; usually 0.01 to 0.1.",
        )  # fmt: skip

    title = "Fallback decisions"
    needs = frozenset({"fallbacks"})

    def judge(self, window: Steps) -> Judgement | None:
        if window.fell_back is None:
            return None
        share, bound = window.fell_back.mean(axis=0), self.params.share
        text = "A fallback took {} of the decisions, more than {}."
        return Judgement(share > bound, share, bound, lambda r: text.format(percent(share[r], 1), percent(bound, 1)))
