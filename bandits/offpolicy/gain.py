"""The value of a target minus that of the logging policy, paired by decision."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from scipy.special import ndtri

from bandits.base.types import FloatArray

from .anytime import anytime
from .estimators import Rounds
from .intervals import Interval, bootstrap, debiased, empirical_bernstein, normal
from .log import DecisionLog


def reward_bounds(log: DecisionLog) -> tuple[float, float]:
    """Return bounds of a reward: 0 and 1, or the range of the log where rewards leave it."""
    return min(0.0, float(log.rewards.min())), max(1.0, float(log.rewards.max()))


def gain(
    contributions: FloatArray,
    unbiased: FloatArray | None,
    rounds: Rounds,
    log: DecisionLog,
    *,
    kind: str,
    level: float,
    largest: float,
    adjusted: bool,
    generator: np.random.Generator,
) -> Interval:
    """Compute the mean of contributions minus rewards with an interval of the kind of the
    estimates.

    Parameters
    ----------
    contributions : float64 (n,)
        To the estimate of the target's value; NaN where it is not defined.
    unbiased : float64 (n,), optional
        Those of the unbiased estimator that gives a biased one its interval.
    rounds : Rounds
    log : DecisionLog
    kind : {"normal", "bootstrap", "bernstein", "anytime"}
        The anytime interval joins those of both policies at half the error each.
    level : float
        Confidence level.
    largest : float
        Bound of a weight, for the Bernstein interval.
    adjusted : bool
        See `debiased`.
    generator : numpy.random.Generator
    """
    if np.isnan(contributions).any():
        return Interval(*[float("nan")] * 4)
    low, high = reward_bounds(log)
    if kind == "anytime":
        sequence = partial(anytime, low=low, high=high, level=(1 + level) / 2)
        target, logged = (
            sequence(rounds.weights, log.rewards),
            sequence(np.ones(len(log)), log.rewards),
        )
        paired = normal(contributions - log.rewards, level=level, groups=log.groups)
        return paired._replace(low=target.low - logged.high, high=target.high - logged.low)
    if kind == "bernstein":
        ends = [(w - 1) * r for w, r in product((0.0, largest), (low, high))]
        return empirical_bernstein(
            contributions - log.rewards, min(ends), max(ends), level=level, groups=log.groups
        )
    compute = partial(bootstrap, generator=generator) if kind == "bootstrap" else normal
    found = compute(contributions - log.rewards, level=level, groups=log.groups)
    more = None if unbiased is None else unbiased - log.rewards
    return debiased(
        found,
        contributions - log.rewards,
        more,
        partial(compute, groups=log.groups),
        level=level,
        groups=log.groups,
        adjusted=adjusted,
    )


def half_width_in_errors(found: Interval, level: float) -> float:
    """Return the standard error of a normal interval that is as wide as this one."""
    return (found.high - found.low) / 2 / float(ndtri((1 + level) / 2))
