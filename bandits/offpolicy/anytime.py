"""A confidence sequence: an interval of the value that holds at all sample sizes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import gammainc, gammaln

from bandits.base.errors import UserError
from bandits.base.types import FloatArray, IntArray

from .intervals import Interval, check_level, group_sums, standard_error, within

# of the gamma prior that mixes over bets
RHO = 1.0


def anytime(
    weights: FloatArray,
    rewards: FloatArray,
    *,
    low: float = 0.0,
    high: float = 1.0,
    level: float = 0.95,
    groups: IntArray | None = None,
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
    groups : int64 (n,), optional
        Index of the event of each row, as in `confidence_sequence`.

    Raises
    ------
    UserError
        The level is not between 0 and 1, a reward is outside the bounds, or the bounds are not in
        order.
    """
    (bounds,) = confidence_sequence(
        weights, rewards, low=low, high=high, level=level, groups=groups
    )
    contributions = weights * rewards
    error = standard_error(contributions, groups)
    return Interval(float(contributions.mean()), float(bounds[0]), float(bounds[1]), error)


def confidence_sequence(
    weights: FloatArray,
    rewards: FloatArray,
    *,
    looks: Sequence[int] | None = None,
    low: float = 0.0,
    high: float = 1.0,
    level: float = 0.95,
    groups: IntArray | None = None,
) -> FloatArray:
    """Compute intervals of E[w r] that hold at all looks at once, whatever the size of the weights.

    The lower bound is that of X = w (r - low) / (high - low), the upper one mirrors it; both are
    sub-exponential mixtures with a predictable centre, which need no bound on the weights.

    Parameters
    ----------
    weights, rewards : float64 (n,)
        In the order of the log.
    looks : sequence of int, optional
        Sample sizes, in events; by default all.
    low, high : float
        Bounds of a reward, known before the log is seen.
    level : float
        Confidence level, between 0 and 1.
    groups : int64 (n,), optional
        Index of the event of each row, in the order of events; by default each row is its own. The
        rows of an event may depend on each other: its products X are averaged. An event with fewer
        rows than the largest, whose size is that of the slate, counts in proportion.

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
    rewards, span = within(rewards, low, high, "rewards"), high - low
    sizes = group_sums(np.ones(len(rewards)), groups)
    most, threshold = float(sizes.max()), float(np.log(2 / (1 - level)))
    ends = [len(sizes)] if looks is None else list(looks)
    rising, falling = (
        _bounds(group_sums(weights * gains, groups) / most, sizes / most, ends, threshold)
        for gains in ((rewards - low) / span, (high - rewards) / span)
    )
    return low + span * np.column_stack([rising, [1 - bound for bound in falling]])


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


def _bounds(x: FloatArray, parts: FloatArray, ends: Sequence[int], threshold: float) -> list[float]:
    """Return the lower bounds of the mean v of X after some numbers of events.

    An event that is a part a of a whole one has the mean a v. Whatever is tried as v is added for
    what is missing, X + (1 - a) v, so that all events have the mean v."""
    if (parts == 1).all():
        sums, variances = _running(x)
        return [_lower(sums[t - 1], variances[t - 1], t, threshold) for t in ends]
    return [_lower_of_parts(x[:t], parts[:t], threshold) for t in ends]


def _lower_of_parts(x: FloatArray, parts: FloatArray, threshold: float) -> float:
    """Return the smallest mean in [0, 1] that the wealth does not refute, events being parts."""

    def excess(mean: float) -> float:
        sums, variances = _running(x + (1 - parts) * mean)
        wealth = log_wealth(sums[-1] - len(x) * mean, variances[-1])
        return float(wealth) - threshold

    return _root(excess, min(1.0, float(x.sum() / parts.sum())))


def _lower(total: float, variance: float, t: int, threshold: float) -> float:
    """Return the smallest mean in [0, 1] that the wealth does not refute."""

    def excess(mean: float) -> float:
        return float(log_wealth(np.float64(total - t * mean), np.float64(variance))) - threshold  # type: ignore[arg-type]

    return _root(excess, min(1.0, total / t))


def _root(excess: Callable[[float], float], top: float) -> float:
    """Return the smallest mean up to ``top`` that is not refuted."""
    # with it, each process that reads a log would start later
    from scipy.optimize import brentq

    if excess(0.0) <= 0:
        return 0.0
    if excess(top) >= 0:
        return top
    return float(brentq(excess, 0.0, top, xtol=1e-12))
