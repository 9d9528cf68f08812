"""Confidence intervals of a mean of contributions; each is a function.

Contributions of the same group (the positions of one event) are added up first, because they are
not independent."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from bandits.base.errors import UserError
from bandits.base.types import FloatArray, IntArray

REPETITIONS = 1000
# of bounds, relative
ROUNDING = 1e-9


class Interval(NamedTuple):
    """An estimate with its confidence interval.

    Attributes
    ----------
    value, low, high : float
    standard_error : float
        NaN with fewer than two groups.
    """

    value: float
    low: float
    high: float
    standard_error: float

    def around(self, low: float, high: float) -> Interval:
        """Return the estimate with other bounds, extended to it where they leave it out."""
        return self._replace(low=min(low, self.value), high=max(high, self.value))


def normal(
    contributions: FloatArray, *, level: float = 0.95, groups: IntArray | None = None
) -> Interval:
    """Compute the normal interval: mean plus and minus z standard errors.

    Parameters
    ----------
    contributions : float64 (n,)
    level : float
        Confidence level, between 0 and 1.
    groups : int64 (n,), optional
        Index of the group of each contribution; by default each is its own. The standard error is
        cluster-robust.

    Raises
    ------
    UserError
        The level is not between 0 and 1.
    """
    check_level(level)
    value, error = float(contributions.mean()), standard_error(contributions, groups)
    half = float(ndtri((1 + level) / 2)) * error
    return Interval(value, value - half, value + half, error)


def bootstrap(
    contributions: FloatArray,
    generator: np.random.Generator,
    *,
    level: float = 0.95,
    groups: IntArray | None = None,
    repetitions: int = REPETITIONS,
) -> Interval:
    """Compute the percentile interval of means of groups drawn with replacement.

    Parameters
    ----------
    contributions : float64 (n,)
    generator : numpy.random.Generator
    level : float
        Confidence level, between 0 and 1.
    groups : int64 (n,), optional
        As in `normal`; whole groups are drawn.
    repetitions : int

    Raises
    ------
    UserError
        The level is not between 0 and 1.

    References
    ----------
    Efron, Tibshirani (1993), An introduction to the bootstrap, chapter 13.
    """
    check_level(level)
    sums, sizes = _sums(contributions, groups)
    n, means = len(sums), np.empty(repetitions)
    for i in range(repetitions):
        drawn = generator.integers(0, n, n)
        means[i] = sums[drawn].sum() / (n if sizes is None else sizes[drawn].sum())
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    error = standard_error(contributions, groups)
    return Interval(float(contributions.mean()), float(low), float(high), error)


def empirical_bernstein(
    contributions: FloatArray,
    low: float,
    high: float,
    *,
    level: float = 0.95,
    groups: IntArray | None = None,
) -> Interval:
    """Compute the interval of the empirical Bernstein inequality, valid for every n.

    mean ± sqrt(2 v L / n) + 7 R L / (3 (n - 1)), L = ln(4 / (1 - level)), v the variance, R the
    range.

    Parameters
    ----------
    contributions : float64 (n,)
    low, high : float
        Bounds of a contribution, known before the log is seen.
    level : float
        Confidence level, between 0 and 1.
    groups : int64 (n,), optional
        As in `normal`; the range is multiplied by the size of the largest group.

    Raises
    ------
    UserError
        The level is not between 0 and 1, or a contribution is outside the bounds.

    References
    ----------
    Maurer, Pontil (2009), Empirical Bernstein bounds and sample variance penalization, Theorem 4.
    """
    check_level(level)
    contributions = within(contributions, low, high, "contributions")
    value, error = float(contributions.mean()), standard_error(contributions, groups)
    sums, sizes = _sums(contributions, groups)
    n = len(sums)
    if n < 2:
        return Interval(value, low, high, error)
    scale = 1.0 if sizes is None else float(sizes.max()) * n / len(contributions)
    log_term = float(np.log(4 / (1 - level)))
    half = np.sqrt(2 * log_term) * error + 7 * (high - low) * scale * log_term / (3 * (n - 1))
    return Interval(value, float(max(value - half, low)), float(min(value + half, high)), error)


def within(values: FloatArray, low: float, high: float, what: str) -> FloatArray:
    """Return values that lie between bounds, but for rounding.

    Raises
    ------
    UserError
        One does not.
    """
    slack = ROUNDING * max(abs(low), abs(high), high - low)
    if values.min() < low - slack or values.max() > high + slack:
        raise UserError(
            f"{what} must be between {low:g} and {high:g}; got {values.min():g} to {values.max():g}"
        )
    return np.clip(values, low, high)


def truncated_bernstein(
    weights: FloatArray,
    rewards: FloatArray,
    low: float,
    high: float,
    *,
    level: float = 0.95,
    groups: IntArray | None = None,
    less: float = 0.0,
) -> tuple[float, float]:
    """Compute bounds of E[(w - b) r] that hold for every n, whatever the size of the weights.

    The least mean of (min(w, c) - b) (r - low) by the empirical Bernstein inequality bounds that of
    (w - b) (r - low) from below, because truncation makes no product larger; the upper bound
    mirrors it. The thresholds c are powers of 2 that depend on n alone and share the error, so that
    the best of them can be taken. As E[w] = 1, nothing else of the weights must be known.

    Parameters
    ----------
    weights, rewards : float64 (n,)
    low, high : float
        Bounds of a reward, known before the log is seen.
    level : float
        Confidence level, between 0 and 1.
    groups : int64 (n,), optional
        As in `empirical_bernstein`.
    less : float
        b: 0 for the value of the target, 1 for its difference from the logging policy.

    Returns
    -------
    low, high : float

    Raises
    ------
    UserError
        The level is not between 0 and 1, or a reward is outside the bounds.

    References
    ----------
    Thomas, Theocharous, Ghavamzadeh (2015), High-confidence off-policy evaluation, section 4
    (truncation). Maurer, Pontil (2009), Theorem 4.
    """
    check_level(level)
    rewards, span = within(rewards, low, high, "rewards"), high - low
    thresholds = 2.0 ** np.arange(1 + max(int(np.log2(len(weights) / 10)), 0))
    each = 1 - (1 - level) / len(thresholds)

    def least(gains: FloatArray) -> float:
        return max(
            empirical_bernstein(
                (np.minimum(weights, c) - less) * gains,
                -less * span,
                (c - less) * span,
                level=each,
                groups=groups,
            ).low
            for c in thresholds.tolist()
        )

    return low * (1 - less) + least(rewards - low), high * (1 - less) - least(high - rewards)


def standard_error(contributions: FloatArray, groups: IntArray | None = None) -> float:
    """Compute the standard error of the mean, cluster-robust where there are groups.

    NaN with fewer than two.
    """
    n = len(contributions)
    sums, sizes = _sums(contributions - contributions.mean(), groups)
    m = len(sums)
    if m < 2:
        return float("nan")
    if sizes is None:
        return float(np.sqrt(np.square(sums).sum() / (n - 1) / n))
    return float(np.sqrt(np.square(sums).sum() * m / (m - 1)) / n)


def check_level(level: float) -> None:
    """Check a confidence level.

    Raises
    ------
    UserError
        It is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise UserError(f"level must be between 0 and 1; got {level}")


def _sums(values: FloatArray, groups: IntArray | None) -> tuple[FloatArray, FloatArray | None]:
    """Add up the values of each group.

    Also return their sizes, or None where each value is its own group.
    """
    if groups is None:
        return values, None
    sums: FloatArray = np.bincount(groups, weights=values).astype(np.float64)
    return sums, np.bincount(groups).astype(np.float64)


def group_sums(values: FloatArray, groups: IntArray | None) -> FloatArray:
    """Add up the values of each group; without groups each value is its own."""
    return _sums(values, groups)[0]


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
    """Give a biased estimate the interval of the unbiased one, extended where it leaves the
    estimate out.

    The spread of a biased estimator states nothing about its bias: its own interval would add width
    and no coverage.

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
        Whether the level of the unbiased interval is adjusted (`adjusted_level`): for large
        samples, and contributions that depend on nothing fitted to the same rewards.
    """
    if unbiased is None:
        return found
    other = compute(
        unbiased,
        level=adjusted_level(contributions, unbiased, level, groups) if adjusted else level,
    )
    if isnan(other.low) or isnan(found.value):
        return found
    return found._replace(low=min(found.value, other.low), high=max(found.value, other.high))


def adjusted_level(
    contributions: FloatArray, unbiased: FloatArray, level: float, groups: IntArray | None = None
) -> float:
    """Compute the level of an unbiased interval that, extended to a biased estimate, holds the
    value with ``level``.

    The extended interval misses the value v only where both estimates are on one side of it. Let
    both be normal with correlation rho, the biased one with any bias. At half width z the
    probability is largest without bias for rho > 0: 2 P(Z > z, W > 0) for standard normal Z and W,
    the tail of a skew normal distribution; otherwise it approaches P(Z > z) as the bias grows. z is
    where the larger one equals 1 - ``level``: between the one-sided quantile (rho <= 0) and the
    two-sided one (rho = 1).

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
    Azzalini (1985), A class of distributions which includes the normal ones, equation 2 and section
    2.2."""
    x, y = (group_sums(values - values.mean(), groups) for values in (contributions, unbiased))
    scale = float(np.sqrt((x @ x) * (y @ y)))
    rho = min(max(float(x @ y) / scale, 0.0), 1.0) if scale else 0.0
    slope = rho / np.sqrt(max(1 - rho**2, 1e-12))
    low, high = float(ndtri(level)), float(ndtri((1 + level) / 2))
    for _ in range(BISECTIONS):
        z = (low + high) / 2
        low, high = (z, high) if ndtr(z) - 2 * owens_t(z, slope) < level else (low, z)
    return float(2 * ndtr(high) - 1)
