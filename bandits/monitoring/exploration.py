"""Shares of decisions that are not the agent's own best estimate: those that explore, and those of a fallback."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.base.formatting import percent
from bandits.base.params import param

from .alarm import Steps
from .base import Judgement, MonitorParams, WindowMonitor, average, window_param


class Exploration(WindowMonitor):
    """Report that the share of exploring decisions leaves a range: no exploration, or little else.

    A decision explores where the item shown has a smaller estimated mean than the best candidate; for slates it is the
    share of such items. Taken from every n-th step.
    """

    class Params(MonitorParams):
        kind: Literal["exploration"] = "exploration"
        window: int = window_param(5000)
        lowest: float = param(
            0.005, title="Smallest share", ge=0, le=1,
            help="Share of exploring decisions below which an alarm is raised. Larger values require more exploration; "
            "usually 0 to 0.05.",
        )  # fmt: skip
        highest: float = param(
            0.5, title="Largest share", ge=0, le=1,
            help="Share of exploring decisions above which an alarm is raised. Larger values tolerate more; usually "
            "0.2 to 0.8.",
        )  # fmt: skip

        @model_validator(mode="after")
        def _in_order(self) -> Self:
            if self.lowest >= self.highest:
                raise ValueError(f"lowest is {self.lowest:g} and highest is {self.highest:g}; it must be below it")
            return self

    title = "Exploration rate"
    needs = frozenset({"means"})

    def judge(self, window: Steps) -> Judgement | None:
        if window.samples is None or window.samples.explored is None or not len(window.samples.steps):
            return None
        share, low, high = average(window.samples.explored), self.params.lowest, self.params.highest
        bound = np.where(share < low, low, high)

        def sentence(r: int) -> str:
            side = "less" if share[r] < low else "more"
            return f"{percent(share[r], 1)} of the decisions explore, {side} than {percent(bound[r], 1)}."

        return Judgement((share < low) | (share > high), share, bound, sentence)


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
