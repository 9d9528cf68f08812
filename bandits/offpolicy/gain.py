"""The value of a target minus that of the logging policy, paired by decision."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import ndtri

from bandits.base.types import FloatArray

from .anytime import anytime
from .estimators import Rounds
from .intervals import Interval, bootstrap, debiased, normal, truncated_bernstein
from .log import DecisionLog


def gain(
    contributions: FloatArray,
    unbiased: FloatArray | None,
    rounds: Rounds,
    log: DecisionLog,
    *,
    kind: str,
    level: float,
    reward_range: tuple[float, float],
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
    reward_range : (float, float)
        Bounds of a reward, for ``bernstein`` and ``anytime``.
    adjusted : bool
        See `debiased`.
    generator : numpy.random.Generator
    """
    if np.isnan(contributions).any():
        return Interval(*[float("nan")] * 4)
    low, high = reward_range
    difference = contributions - rounds.logged
    paired = normal(difference, level=level, groups=log.groups)
    if kind == "anytime":
        sequence = partial(anytime, low=low, high=high, level=(1 + level) / 2, groups=log.groups)
        target, logged = (
            sequence(rounds.weights, log.rewards),
            sequence(np.ones(len(log)), log.rewards),
        )
        return paired._replace(low=target.low - logged.high, high=target.high - logged.low)
    if kind == "bernstein":
        ends = truncated_bernstein(
            rounds.weights, log.rewards, low, high, level=level, groups=log.groups, less=1.0
        )
        return paired.around(*ends)
    compute = partial(bootstrap, generator=generator) if kind == "bootstrap" else normal
    found = compute(difference, level=level, groups=log.groups)
    more = None if unbiased is None else unbiased - rounds.logged
    return debiased(
        found,
        difference,
        more,
        partial(compute, groups=log.groups),
        level=level,
        groups=log.groups,
        adjusted=adjusted,
    )


def half_width_in_errors(found: Interval, level: float) -> float:
    """Return the standard error of a normal interval that is as wide as this one."""
    return (found.high - found.low) / 2 / float(ndtri((1 + level) / 2))
