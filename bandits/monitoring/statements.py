"""Monitors of what an agent states and decides: its means, its probabilities, how much it explores
and falls back.
"""

from __future__ import annotations

from itertools import pairwise
from math import log
from typing import Literal, Self

import numpy as np
from pydantic import model_validator
from scipy.special import gammainccinv, rel_entr

from bandits.base.formatting import number, percent
from bandits.base.params import param

from .alarm import Steps
from .base import Judgement, MonitorParams, WindowMonitor, average, level_param, total, window_param

GROUPS = 10
MIN_SAMPLES = 100


class Calibration(WindowMonitor):
    """Compare predicted and observed rewards of what was shown in tenths by predicted mean
    (Hosmer-Lemeshow [1]_).

    The statistic is the sum of n KL(observed, predicted) over `GROUPS` groups of n sampled steps
    each, the predicted mean between .001 and .999. Where predictions are right, one of them exceeds
    x with a probability of at most 2 exp(-x), for any n and any mean (Chernoff) [2]_, so that their
    sum is at most log(2) `GROUPS` plus a gamma variable. What maximises an estimate is
    overestimated, so that agents raise this alarm at the beginning of a run.

    References
    ----------
    .. [1] Hosmer, Lemeshow (1980), Goodness of fit tests for the multiple logistic regression
           model: the groups.
    .. [2] Hoeffding (1963), Probability inequalities for sums of bounded random variables,
           theorem 1.
    """

    class Params(MonitorParams):
        kind: Literal["calibration"] = "calibration"
        window: int = window_param(5000)
        level: float = level_param("one window", "0.00001")

    title = "Calibration by deciles"
    needs = frozenset({"means", "single", "binary"})

    def judge(self, window: Steps) -> Judgement | None:
        samples = window.samples
        if samples is None or samples.means is None or len(samples.steps) < MIN_SAMPLES:
            return None
        N = len(samples.steps)
        order = np.argsort(samples.means, axis=0, kind="stable")
        means, rewards = (
            np.take_along_axis(each, order, axis=0) for each in (samples.means, samples.rewards)
        )
        ends = np.linspace(0, N, GROUPS + 1).astype(np.int64)
        sizes = np.diff(ends)[:, None]
        predicted, observed = (
            np.stack([average(each[a:b]) for a, b in pairwise(ends)]) for each in (means, rewards)
        )  # (GROUPS, R)
        p = np.clip(predicted, 0.001, 0.999)
        divergence = rel_entr(observed, p) + rel_entr(1 - observed, 1 - p)
        statistic = total(sizes * divergence)
        error = total(sizes * np.abs(observed - predicted)) / N
        bound = GROUPS * log(2) + float(gammainccinv(GROUPS, self.params.level))

        def sentence(r: int) -> str:
            return (
                f"Predicted and observed rewards differ by {number(error[r])} on average over "
                f"deciles: n KL {number(statistic[r])} in all, more than {number(bound)}."
            )

        return Judgement(statistic > bound, statistic, bound, sentence)


LEAST_WEIGHTS = 50
# of sums of weights that are all as expected
ROUNDING = 1e-9


class ImportanceWeight(WindowMonitor):
    """Report a mean weight, uniform probability over stated probability, that is not as expected.

    If the probabilities are those by which the agent chooses, a weight has an expected value: the
    share of the candidates with a probability above 0, which is 1 where all can be shown. Its
    variance and its largest value are known too. The statistic is the distance of the mean from its
    expected value, from every n-th step; the bound is that of Freedman's inequality [1]_, which
    holds for few steps and rare large weights. Candidates with probability 0 are not judged.

    Agents that draw their scores soon give most candidates a probability near 0, and many are
    estimated from redraws, which takes longer: name the monitor to have it.

    References
    ----------
    .. [1] Freedman (1975), On tail probabilities for martingales, theorem 1.6.
    """

    class Params(MonitorParams):
        kind: Literal["importance_weight"] = "importance_weight"
        window: int = window_param(5000)
        level: float = level_param("one window", "0.00001")

    title = "Importance weight"
    needs = frozenset({"probabilities"})

    def judge(self, window: Steps) -> Judgement | None:
        samples = window.samples
        if samples is None or samples.weights is None or len(samples.steps) < LEAST_WEIGHTS:
            return None
        assert samples.weight_law is not None
        expected, variance, largest = np.moveaxis(samples.weight_law, 2, 0)
        gap, mean = average(samples.weights - expected), average(expected)
        # a weight is at least 0
        beyond = np.where(gap > 0, (largest - expected).max(axis=0), expected.max(axis=0))
        n, level = len(samples.steps), log(2 / self.params.level)
        part = beyond * level / 3
        bound = (part + np.sqrt(part**2 + 2 * total(variance) * level)) / n

        def sentence(r: int) -> str:
            side = "above" if gap[r] > 0 else "below"
            return (
                f"The mean importance weight is {number(mean[r] + gap[r])}, {number(abs(gap[r]))} "
                f"{side} its expected value {number(mean[r])} (bound {number(bound[r])})."
            )

        return Judgement(np.abs(gap) > bound + ROUNDING, np.abs(gap), bound, sentence)


class Exploration(WindowMonitor):
    """Report that the share of exploring decisions leaves a range: no exploration, or little else.

    A decision explores where the item shown has a smaller estimated mean than the best candidate;
    for slates it is the share of such items. Taken from every n-th step."""

    class Params(MonitorParams):
        kind: Literal["exploration"] = "exploration"
        window: int = window_param(5000)
        lowest: float = param(
            0.005,
            title="Smallest share",
            ge=0,
            le=1,
            help=(
                "Share of exploring decisions below which an alarm is raised. Larger values "
                "require more exploration; usually 0 to 0.05."
            ),
        )
        highest: float = param(
            0.5,
            title="Largest share",
            ge=0,
            le=1,
            help=(
                "Share of exploring decisions above which an alarm is raised. Larger values "
                "tolerate more; usually 0.2 to 0.8."
            ),
        )

        @model_validator(mode="after")
        def _in_order(self) -> Self:
            if self.lowest >= self.highest:
                raise ValueError(
                    f"lowest is {self.lowest:g} and highest is {self.highest:g}; it must be below "
                    "it"
                )
            return self

    title = "Exploration rate"
    needs = frozenset({"means"})

    def judge(self, window: Steps) -> Judgement | None:
        if (
            window.samples is None
            or window.samples.explored is None
            or not len(window.samples.steps)
        ):
            return None
        share, low, high = average(window.samples.explored), self.params.lowest, self.params.highest
        bound = np.where(share < low, low, high)

        def sentence(r: int) -> str:
            side = "less" if share[r] < low else "more"
            return (
                f"{percent(share[r], 1)} of the decisions explore, {side} than "
                f"{percent(bound[r], 1)}."
            )

        return Judgement((share < low) | (share > high), share, bound, sentence)


class Fallbacks(WindowMonitor):
    """Report that a fallback takes a large share of the decisions of a window.

    It reads `Trace.fell_back`. Agents without a fallback are not monitored.
    """

    class Params(MonitorParams):
        kind: Literal["fallbacks"] = "fallbacks"
        window: int = window_param(500)
        share: float = param(
            0.05,
            title="Share of decisions",
            ge=0,
            le=1,
            help=(
                "Share of fallback decisions that raises an alarm. Larger values tolerate more; "
                "usually 0.01 to 0.1."
            ),
        )

    title = "Fallback decisions"
    needs = frozenset({"fallbacks"})

    def judge(self, window: Steps) -> Judgement | None:
        if window.fell_back is None:
            return None
        share, bound = window.fell_back.mean(axis=0), self.params.share
        text = "A fallback took {} of the decisions, more than {}."
        return Judgement(
            share > bound,
            share,
            bound,
            lambda r: text.format(percent(share[r], 1), percent(bound, 1)),
        )
