"""Compare every point with a leader that the same data chose: Tukey's correction for all pairs of
points.

References
----------
Tukey (1953), The problem of multiple comparisons. Tusher, Tibshirani & Chu (2001), Significance
analysis of microarrays: small standard errors are raised."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bandits.base.types import BoolArray, FloatArray

from .statistics import row_mean, row_variance

# replications; with fewer, standard errors are not raised enough to count twice
FEW = 6
# of the quadrature over standard deviations
NODES = 128
# of the quadrature over the smallest mean
GRID = np.linspace(-8, 8, 161)


class Compared(NamedTuple):
    """The points compared with the leader.

    Attributes
    ----------
    region : bool (P,)
        Points that are not significantly worse than the leader, with the leader.
    half : float64 (P,)
        Half-width of the interval of each difference; it excludes zero if the point is
        significantly worse or better. NaN with fewer than two shared replications.
    """

    region: BoolArray
    half: FloatArray


def compare_with_leader(
    gaps: FloatArray, leader: int, eligible: BoolArray, level: float
) -> Compared:
    """Test whether points are worse than the leader, at a familywise level over all pairs of
    points.

    Every standard deviation is raised to at least the median over the points, because a few of many
    are too small by chance. The test is repeated among the points that are left until none is
    excluded (step-down).

    Parameters
    ----------
    gaps : float64 (P, R)
        Differences to the leader, paired by replication; negative values are worse, NaN are
        missing.
    leader : int
    eligible : bool (P,)
        Points that can be in the region. Others only get an interval.
    level : float
    """
    n, mean, spread = np.isfinite(gaps).sum(axis=1), row_mean(gaps), np.sqrt(row_variance(gaps))
    left = eligible.copy()
    left[leader] = False
    known = spread[left & (n > 1)]
    error = np.maximum(spread, np.median(known) if len(known) else 0.0) / np.sqrt(np.maximum(n, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where((n > 1) & (error > 0), -mean / error, 0.0)
    critical = _critical_values(int((n > 0).sum()), n, level)
    worse = left
    while worse.any():
        critical[left] = _critical_values(int(left.sum()) + 1, n[left], level)
        worse = left & (t > critical)
        left = left & ~worse
    left[leader] = True
    half = np.where(n > 1, critical * error, np.nan)
    half[leader] = 0.0
    return Compared(left, half)


def _critical_values(points: int, replications: np.ndarray, level: float) -> FloatArray:
    return np.array([critical_value(points, int(n), level) for n in replications], dtype=np.float64)


@lru_cache(maxsize=4096)
def critical_value(points: int, replications: int, level: float) -> float:
    """Return the paired t statistic that the largest of all pairs exceeds with probability
    ``level``.

    The studentised range for ``points`` equal means, over sqrt(2), but at least the two-sided
    Student t quantile. A standard deviation raised to the median counts as that of two samples, 2
    (n - 1) degrees of freedom; with fewer than `FEW` replications as that of one. Infinite below
    two replications."""
    from scipy.special import stdtrit

    if replications < 2:
        return float("inf")
    low = float(-stdtrit(replications - 1, level / 2))
    if points <= 2:
        return low
    freedom = (replications - 1) * (2 if replications >= FEW else 1)
    if range_tail(low, points, freedom) <= level:
        return low
    high = 2 * low
    while range_tail(high, points, freedom) > level:
        high *= 2
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if range_tail(middle, points, freedom) > level else (low, middle)
    return high


def range_tail(t: float, points: int, freedom: int) -> float:
    """Compute the probability that the studentised range of ``points`` normal means exceeds sqrt(2)
    ``t``.

    Equals ``scipy.stats.studentized_range.sf``, in a hundredth of its time.
    """
    from scipy.special import ndtr

    deviations, weights = _deviations(freedom)
    beyond = ndtr(GRID) - ndtr(GRID - t * 2**0.5 * deviations[:, None])
    inside = points * np.exp(-(GRID**2) / 2) / np.sqrt(2 * np.pi) * beyond ** (points - 1)
    return 1 - float(weights @ (inside.sum(axis=1) * (GRID[1] - GRID[0])))


@lru_cache(maxsize=256)
def _deviations(freedom: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for the distribution of a standard deviation with these degrees of
    freedom.
    """
    from scipy.special import chdtri, gammaln

    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low, high = (np.log(float(chdtri(freedom, p)) / freedom) / 2 for p in (1 - 1e-9, 1e-12))
    log = low + (nodes + 1) * (high - low) / 2
    squares = freedom * np.exp(2 * log)
    density = np.exp(freedom / 2 * np.log(squares / 2) - squares / 2 - gammaln(freedom / 2)) * 2
    mass = weights * density
    return np.exp(log), mass / mass.sum()
