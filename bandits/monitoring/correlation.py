"""Correlation of the features shown with the reward."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bandits.base.formatting import number
from bandits.base.params import param

from .alarm import Steps
from .base import Judgement, MonitorParams, WindowMonitor, average, total, window_param

MIN_SAMPLES = 100


class Correlation(WindowMonitor):
    """Report that no feature of the item shown is correlated with the reward.

    The statistic is the largest absolute Pearson correlation over the features, from every n-th step. It informs only:
    a good agent that shows each user what is best removes the correlation too, and with few samples and many features
    chance alone exceeds the bound. No fallback should follow from it.
    """

    class Params(MonitorParams):
        kind: Literal["correlation"] = "correlation"
        window: int = window_param(5000)
        lowest: float = param(
            0.1, title="Smallest correlation", ge=0, le=1,
            help="Largest correlation of a feature with the reward below which an alarm is raised. Larger values raise "
            "more alarms; usually 0.05 to 0.2.",
        )  # fmt: skip

    title = "Feature-reward correlation"
    needs = frozenset({"features", "single"})

    def judge(self, window: Steps) -> Judgement | None:
        samples, lowest = window.samples, self.params.lowest
        if samples is None or samples.features is None or len(samples.steps) < MIN_SAMPLES:
            return None
        x = samples.features - average(samples.features)
        y = (samples.rewards - average(samples.rewards))[:, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = total(x * y) / np.sqrt(total(np.square(x)) * total(np.square(y)))
        largest = np.nan_to_num(np.abs(correlation)).max(axis=1)
        text = "The largest correlation of a feature with the reward is {}, below {}."
        return Judgement(largest < lowest, largest, lowest, lambda r: text.format(number(largest[r]), number(lowest)))
