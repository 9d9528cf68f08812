"""Monitors of features: their drift against a reference period, and their correlation with the
reward.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import chdtri

from bandits.base.formatting import number
from bandits.base.params import param
from bandits.base.types import FloatArray, IntArray

from .alarm import Setting, Steps
from .base import Judgement, MonitorParams, WindowMonitor, average, level_param, total, window_param

EDGES = 9  # deciles
# between two edges, and equal to one: distinct values have bins of their own
BINS = 2 * EDGES + 1
MIN_SAMPLES = 20
# in a bin, for the chi-square distribution to hold
LEAST_COUNT = 10


class FeatureDrift(WindowMonitor):
    """Report that a feature has another distribution than in the reference period.

    Each feature is the mean over the available candidates, so that it does not depend on what the
    agent chooses, at every n-th step. Its values fall into bins by the deciles of the reference,
    the first ``reference`` windows; a value equal to a decile has a bin of its own, so that
    distinct values are kept apart. Bins with fewer than `LEAST_COUNT` values in both periods are
    joined, and left out if these are still fewer. With counts smoothed by half a count each, the
    statistic is 2 n KL(now, reference), about chi-square with one degree of freedom less than bins
    in use, the likelihood-ratio test [1]_: simulated false alarms are 0.05 to 3 times the level.
    Both are samples of n1 and n2 values, so n = n1 n2 / (n1 + n2).

    References
    ----------
    .. [1] Cover, Thomas (2006), Elements of information theory, section 11.8; Wilks (1938).
    """

    class Params(MonitorParams):
        kind: Literal["feature_drift"] = "feature_drift"
        window: int = window_param(1000)
        reference: int = param(
            2,
            title="Reference",
            unit="windows",
            ge=1,
            le=1000,
            help="Windows of the reference. Larger values estimate it better; usually 1 to 10.",
        )
        level: float = level_param("one feature in one window (about)", "0.000001")

    title = "Feature drift"
    needs = frozenset({"features"})

    def __init__(self, params: Any, setting: Setting) -> None:
        super().__init__(params, setting)
        self._first: list[FloatArray] = []
        self._edges: FloatArray | None = None
        self._before: IntArray = np.zeros(0, np.int64)

    def judge(self, window: Steps) -> Judgement | None:
        samples = window.samples
        if samples is None or samples.context is None or len(samples.steps) < MIN_SAMPLES:
            return None
        if self._edges is None:
            self._first.append(samples.context)
            if len(self._first) == self.params.reference:
                values = np.concatenate(self._first)
                quantiles = np.arange(1, EDGES + 1) / (EDGES + 1)
                self._edges = np.moveaxis(
                    np.quantile(values, quantiles, axis=0), 0, -1
                )  # (R, D, EDGES)
                self._before = binned(values, self._edges)
                self._first = []
            return None
        kl, statistic, bound = divergence(
            binned(samples.context, self._edges), self._before, self.params.level
        )
        rows, feature = np.arange(len(kl)), (statistic / np.maximum(bound, 1e-9)).argmax(axis=1)
        kl, statistic, bound = kl[rows, feature], statistic[rows, feature], bound[rows, feature]

        def sentence(r: int) -> str:
            return (
                f"Feature {feature[r]} has another distribution than in the reference: KL "
                f"{number(kl[r])}, 2 n KL {number(statistic[r])}, more than {number(bound[r])}."
            )

        return Judgement(statistic > bound, statistic, bound, sentence)


def binned(values: FloatArray, edges: FloatArray) -> IntArray:
    """Count ``values (N, R, D)`` in the bins of ``edges (R, D, EDGES)``, int64 (R, D, BINS).

    Bin 2 i lies between the edges i - 1 and i; bin 2 i + 1 holds values equal to edge i (the last
    of equal ones)."""
    index = np.zeros(values.shape, np.int8)
    for i in range(edges.shape[-1]):
        index += values > edges[..., i]
        index += values >= edges[..., i]
    return np.stack([(index == b).sum(axis=0) for b in range(BINS)], axis=-1)


def divergence(
    now: IntArray, before: IntArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute KL(now, before), 2 n KL and its bound, three of float64 (R, D), from counts (R, D,
    bins).
    """
    rare = (now + before) < LEAST_COUNT
    now, before = (
        np.concatenate(
            [np.where(rare, 0, counts), (counts * rare).sum(axis=-1, keepdims=True)], axis=-1
        )
        for counts in (now, before)
    )
    used = (now + before) >= LEAST_COUNT
    shares = []
    for counts in (now, before):
        smoothed = np.where(used, counts + 0.5, 0.0)
        shares.append(smoothed / smoothed.sum(axis=-1, keepdims=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(used, shares[0] * np.log(shares[0] / shares[1]), 0.0)
    kl = np.maximum(terms.sum(axis=-1), 0.0)
    n1, n2 = (now * used).sum(axis=-1), (before * used).sum(axis=-1)
    bound = chdtri(np.maximum(used.sum(axis=-1) - 1, 1), level)
    return kl, 2 * n1 * n2 / np.maximum(n1 + n2, 1) * kl, np.asarray(bound)


LEAST_SAMPLES = 100


class Correlation(WindowMonitor):
    """Report that no feature of the item shown is correlated with the reward.

    The statistic is the largest absolute Pearson correlation over the features, from every n-th
    step. It informs only: a good agent that shows each user what is best removes the correlation
    too, and with few samples and many features chance alone exceeds the bound. No fallback should
    follow from it."""

    class Params(MonitorParams):
        kind: Literal["correlation"] = "correlation"
        window: int = window_param(5000)
        lowest: float = param(
            0.1,
            title="Smallest correlation",
            ge=0,
            le=1,
            help=(
                "Largest correlation of a feature with the reward below which an alarm is "
                "raised. Larger values raise more alarms; usually 0.05 to 0.2."
            ),
        )

    title = "Feature-reward correlation"
    needs = frozenset({"features", "single"})

    def judge(self, window: Steps) -> Judgement | None:
        samples, lowest = window.samples, self.params.lowest
        if samples is None or samples.features is None or len(samples.steps) < LEAST_SAMPLES:
            return None
        x = samples.features - average(samples.features)
        y = (samples.rewards - average(samples.rewards))[:, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = total(x * y) / np.sqrt(total(np.square(x)) * total(np.square(y)))
        largest = np.nan_to_num(np.abs(correlation)).max(axis=1)
        text = "The largest correlation of a feature with the reward is {}, below {}."
        return Judgement(
            largest < lowest,
            largest,
            lowest,
            lambda r: text.format(number(largest[r]), number(lowest)),
        )
