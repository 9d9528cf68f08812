"""Calibration of the agent's own predictions, by deciles."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.special import chdtri

from bandits.base.formatting import number
from bandits.base.params import param

from .alarm import Steps
from .base import Judgement, MonitorParams, WindowMonitor, average, total, window_param

GROUPS = 10
MIN_SAMPLES = 100


class Calibration(WindowMonitor):
    """Compare predicted and observed rewards of what was shown in tenths by predicted mean (Hosmer-Lemeshow [1]_).

    The statistic is the sum of n (observed - predicted)^2 / (p (1 - p)) over `GROUPS` groups of n sampled steps each,
    p the predicted mean between .01 and .99. Without a change it is about chi-square with `GROUPS` degrees of freedom.
    What maximises an estimate is overestimated, so that agents raise this alarm at the beginning of a run.

    References
    ----------
    .. [1] Hosmer, Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model.
    """

    class Params(MonitorParams):
        kind: Literal["calibration"] = "calibration"
        window: int = window_param(5000)
        level: float = param(
            1e-4, title="Level", gt=0, le=1, log=True,
            help="Probability of a false alarm in one window. Larger values detect more; usually 0.00001 to 0.01.",
        )  # fmt: skip

    title = "Calibration by deciles"
    needs = frozenset({"means", "single", "binary"})

    def judge(self, window: Steps) -> Judgement | None:
        samples = window.samples
        if samples is None or samples.means is None or len(samples.steps) < MIN_SAMPLES:
            return None
        N = len(samples.steps)
        order = np.argsort(samples.means, axis=0, kind="stable")
        means, rewards = (np.take_along_axis(each, order, axis=0) for each in (samples.means, samples.rewards))
        ends = np.linspace(0, N, GROUPS + 1).astype(np.int64)
        sizes = np.diff(ends)[:, None]
        predicted, observed = (
            np.stack([average(each[a:b]) for a, b in pairwise(ends)]) for each in (means, rewards)
        )  # (GROUPS, R)
        p = np.clip(predicted, 0.01, 0.99)
        statistic = total(sizes * np.square(observed - predicted) / (p * (1 - p)))
        error = total(sizes * np.abs(observed - predicted)) / N
        bound = float(chdtri(GROUPS, self.params.level))

        def sentence(r: int) -> str:
            return (
                f"Predicted and observed rewards differ by {number(error[r])} on average over deciles: chi-square "
                f"{number(statistic[r])}, more than {number(bound)}."
            )

        return Judgement(statistic > bound, statistic, bound, sentence)
