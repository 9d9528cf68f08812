"""A confidence sequence: an interval of the value that holds at all sample sizes at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

from bandits.base.errors import UserError
from bandits.base.types import FloatArray

from .intervals import Interval, check_level, standard_error

# of the gamma prior that mixes over bets
RHO = 1.0


def anytime(
    weights: FloatArray,
    rewards: FloatArray,
    *,
    low: float = 0.0,
    high: float = 1.0,
    level: float = 0.95,
) -> Interval:
    """Compute the last interval of the confidence sequence; the estimate is IPS.

    Parameters
    ----------
    weights, rewards : float64 (n,)
        In the order of the log.
    low, high : float
        Bounds of a reward, known before the log is seen.
    level : float
        Confidence level, between 0 and 1.

    Raises
    ------
    UserError
        The level is not between 0 and 1, a reward is outside the bounds, or the bounds are not in
        order.
    """
    (bounds,) = confidence_sequence(weights, rewards, low=low, high=high, level=level)
    contributions = weights * rewards
    return Interval(
        float(contributions.mean()), bounds[0], bounds[1], standard_error(contributions)
    )


def confidence_sequence(
    weights: FloatArray,
    rewards: FloatArray,
    *,
    looks: Sequence[int] | None = None,
    low: float = 0.0,
    high: float = 1.0,
    level: float = 0.95,
) -> FloatArray:
    """Compute intervals of E[w r] that hold at all looks at once, whatever the size of the weights.

    The lower bound is that of X = w (r - low) / (high - low), the upper one mirrors it; both are
    sub-exponential mixtures with a predictable centre, which need no bound on the weights.

    Parameters
    ----------
    weights, rewards : float64 (n,)
        In the order of the log.
    looks : sequence of int, optional
        Sample sizes; by default n alone.
    low, high : float
        Bounds of a reward, known before the log is seen.
    level : float
        Confidence level, between 0 and 1.

    Returns
    -------
    float64 (looks, 2)
        Lower and upper bounds.

    Raises
    ------
    UserError
        The level is not between 0 and 1, a reward is outside the bounds, or the bounds are not in
        order.

    References
    ----------
    Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro (2022), Anytime-valid off-policy inference for
    contextual bandits, section 2. Howard, Ramdas, McAuliffe, Sekhon (2021), Time-uniform,
    nonparametric, nonasymptotic confidence sequences, proposition 9 (the gamma-exponential
    mixture)."""
    check_level(level)
    if not low < high:
        raise UserError(f"the bounds of the reward must be in order; got {low} and {high}")
    if rewards.min() < low or rewards.max() > high:
        raise UserError(
            f"rewards must be between {low} and {high}; got {rewards.min()} to {rewards.max()}"
        )
    span, at = high - low, np.asarray([len(rewards)] if looks is None else looks) - 1
    threshold = float(np.log(2 / (1 - level)))
    rising = _running(weights * ((rewards - low) / span))
    falling = _running(weights * ((high - rewards) / span))
    lower = [_lower(rising[0][t], rising[1][t], t + 1, threshold) for t in at.tolist()]
    upper = [1 - _lower(falling[0][t], falling[1][t], t + 1, threshold) for t in at.tolist()]
    return low + span * np.column_stack([lower, upper])


def log_wealth(deviation: FloatArray, variance: FloatArray) -> FloatArray:
    """Compute the logarithm of the gamma-exponential mixture with scale 1.

    Parameters
    ----------
    deviation : float64 (...)
        Sum of X_i - mu, at least 0 for accurate values.
    variance : float64 (...)
        Sum of squared distances of X_i from its predictable centre.
    """
    a = variance + RHO
    x = deviation + a
    normaliser = np.log(gammainc(RHO, RHO)) + gammaln(RHO)
    mixture = np.log(gammainc(a, x)) + gammaln(a)
    wealth: FloatArray = (
        deviation + variance + RHO * np.log(RHO) - a * np.log(x) + mixture - normaliser
    )
    return wealth


def _running(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return running sums of X and of its squared distances from a predictable centre within 0 and
    1.

    The centre before observation i is the mean of the earlier ones and of 1/2, at most 1: the
    inequality of Fan et al. needs a distance of at least -1."""
    sums = np.cumsum(x)
    before = np.concatenate([[0.0], sums[:-1]])
    centre = np.minimum((before + 0.5) / np.arange(1, len(x) + 1), 1.0)
    return sums, np.cumsum(np.square(x - centre))


def _lower(total: float, variance: float, t: int, threshold: float) -> float:
    """Return the smallest mean in [0, 1] that the wealth does not refute."""

    def excess(mean: float) -> float:
        return float(log_wealth(np.float64(total - t * mean), np.float64(variance))) - threshold  # type: ignore[arg-type]

    top = min(1.0, total / t)
    if excess(0.0) <= 0:
        return 0.0
    if excess(top) >= 0:
        return top
    return float(brentq(excess, 0.0, top, xtol=1e-12))
