"""Confidence intervals of a mean of contributions; each is a function.

Contributions of the same group (the positions of one event) are added up first, because they are not independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bandits.base.errors import UserError
from bandits.base.types import FloatArray, IntArray

REPETITIONS = 1000


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


def normal(contributions: FloatArray, *, level: float = 0.95, groups: IntArray | None = None) -> Interval:
    """Compute the normal interval: mean plus and minus z standard errors.

    Parameters
    ----------
    contributions : float64 (n,)
    level : float
        Confidence level, between 0 and 1.
    groups : int64 (n,), optional
        Index of the group of each contribution; by default each is its own. The standard error is cluster-robust.

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

    mean ± sqrt(2 v L / n) + 7 R L / (3 (n - 1)), L = ln(4 / (1 - level)), v the variance, R the range.

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
    if contributions.min() < low or contributions.max() > high:
        raise UserError(f"contributions must be between {low} and {high}; got {contributions.min()} to "
                        f"{contributions.max()}")  # fmt: skip
    value, error = float(contributions.mean()), standard_error(contributions, groups)
    sums, sizes = _sums(contributions, groups)
    n = len(sums)
    if n < 2:
        return Interval(value, low, high, error)
    scale = 1.0 if sizes is None else float(sizes.max()) * n / len(contributions)
    log_term = float(np.log(4 / (1 - level)))
    half = np.sqrt(2 * log_term) * error + 7 * (high - low) * scale * log_term / (3 * (n - 1))
    return Interval(value, float(max(value - half, low)), float(min(value + half, high)), error)


def standard_error(contributions: FloatArray, groups: IntArray | None = None) -> float:
    """Compute the standard error of the mean, cluster-robust where there are groups; NaN with fewer than two."""
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
    """Add up the values of each group; also return their sizes, or None where each value is its own group."""
    if groups is None:
        return values, None
    sums: FloatArray = np.bincount(groups, weights=values).astype(np.float64)
    return sums, np.bincount(groups).astype(np.float64)


def group_sums(values: FloatArray, groups: IntArray | None) -> FloatArray:
    """Add up the values of each group; without groups each value is its own."""
    return _sums(values, groups)[0]
