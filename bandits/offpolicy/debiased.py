"""Intervals of biased estimators: that of an unbiased one, extended to the biased estimate."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from bandits.base.types import FloatArray, IntArray

from .intervals import Interval, group_sums

BISECTIONS = 50


def debiased(
    found: Interval,
    contributions: FloatArray,
    unbiased: FloatArray | None,
    compute: Callable[..., Interval],
    *,
    level: float,
    groups: IntArray | None,
    adjusted: bool,
) -> Interval:
    """Give a biased estimate the interval of the unbiased one, extended where it leaves the estimate out.

    The spread of a biased estimator states nothing about its bias: its own interval would add width and no coverage.

    Parameters
    ----------
    found : Interval
        Of the biased estimator alone.
    contributions : float64 (n,)
        To the biased estimate.
    unbiased : float64 (n,), optional
        To the unbiased estimate; without them nothing changes.
    compute : callable
        From contributions and ``level`` to an interval.
    level : float
        Confidence level.
    groups : int64 (n,), optional
        Of contributions that are not independent.
    adjusted : bool
        Whether the level of the unbiased interval is adjusted (`adjusted_level`): for large samples, and contributions
        that depend on nothing fitted to the same rewards.
    """
    if unbiased is None:
        return found
    other = compute(unbiased, level=adjusted_level(contributions, unbiased, level, groups) if adjusted else level)
    if isnan(other.low) or isnan(found.value):
        return found
    return found._replace(low=min(found.value, other.low), high=max(found.value, other.high))


def adjusted_level(
    contributions: FloatArray, unbiased: FloatArray, level: float, groups: IntArray | None = None
) -> float:
    """Compute the level of an unbiased interval that, extended to a biased estimate, holds the value with ``level``.

    The extended interval misses the value v only where both estimates are on one side of it. Let both be normal with
    correlation rho, the biased one with any bias. At half width z the probability is largest without bias for rho > 0:
    2 P(Z > z, W > 0) for standard normal Z and W, the tail of a skew normal distribution; otherwise it approaches
    P(Z > z) as the bias grows. z is where the larger one equals 1 - ``level``: between the one-sided quantile
    (rho <= 0) and the two-sided one (rho = 1).

    Parameters
    ----------
    contributions, unbiased : float64 (n,)
    level : float
        Between 0 and 1.
    groups : int64 (n,), optional

    Returns
    -------
    float
        At most ``level``.

    References
    ----------
    Azzalini (1985), A class of distributions which includes the normal ones, equation 2 and section 2.2.
    """
    x, y = (group_sums(values - values.mean(), groups) for values in (contributions, unbiased))
    scale = float(np.sqrt((x @ x) * (y @ y)))
    rho = min(max(float(x @ y) / scale, 0.0), 1.0) if scale else 0.0
    slope = rho / np.sqrt(max(1 - rho**2, 1e-12))
    low, high = float(ndtri(level)), float(ndtri((1 + level) / 2))
    for _ in range(BISECTIONS):
        z = (low + high) / 2
        low, high = (z, high) if ndtr(z) - 2 * owens_t(z, slope) < level else (low, z)
    return float(2 * ndtr(high) - 1)
