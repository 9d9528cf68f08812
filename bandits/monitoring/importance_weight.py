"""The mean importance weight of the stated probabilities against uniform choice."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import ndtri

from bandits.base.formatting import number
from bandits.base.params import param

from .alarm import Steps
from .base import Judgement, MonitorParams, WindowMonitor, average, total, window_param

MIN_SAMPLES = 50


class ImportanceWeight(WindowMonitor):
    """Report a mean weight, uniform probability over stated probability, that is not 1.

    If the probabilities are those by which the agent chooses, and all candidates have one above 0, the weights have
    mean 1 (importance sampling). A wrong logged probability or a candidate that is never chosen moves it. The
    statistic is the distance from 1 in standard errors, from every n-th step.

    Agents that draw their scores soon give most candidates a probability near 0, and many are estimated from redraws,
    which takes longer: name the monitor to have it.
    """

    class Params(MonitorParams):
        kind: Literal["importance_weight"] = "importance_weight"
        window: int = window_param(5000)
        level: float = param(
            1e-4, title="Level", gt=0, le=1, log=True,
            help="Probability of a false alarm in one window. Larger values detect more; usually 0.00001 to 0.01.",
        )  # fmt: skip

    title = "Importance weight"
    needs = frozenset({"probabilities"})

    def judge(self, window: Steps) -> Judgement | None:
        if window.samples is None or window.samples.weights is None or len(window.samples.steps) < MIN_SAMPLES:
            return None
        weights = window.samples.weights
        mean = average(weights)
        error = np.sqrt(total(np.square(weights - mean)) / (len(weights) - 1) / len(weights))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(np.isclose(mean, 1.0), 0.0, np.abs(mean - 1) / error)
        bound = float(-ndtri(self.params.level / 2))
        text = "The mean importance weight is {}, {} standard errors from 1 (bound {})."
        return Judgement(z > bound, z, bound, lambda r: text.format(number(mean[r]), number(z[r]), number(bound)))
