"""Compute the probability that each of several independent variables is the largest.

p_a = integral of f_a(x) prod_{j != a} F_j(x) dx, by Gauss-Legendre quadrature on panels [1]_. The
length of a panel is a multiple of the smallest scale among the variables that still vary there, so
that variables of very different scales are resolved with few panels; it is shorter where many vary,
because their maximum rises steeply. F_j follows from f_j by integrating its interpolation
polynomial of each panel [2]_.

A Beta variable is integrated as its log-odds, whose density has no singularity and is log-concave,
as a normal one's.

References
----------
.. [1] Abramowitz, Stegun (1964), Handbook of mathematical functions, 25.4.29.
.. [2] Greengard (1991), Spectral integration and two-point boundary value problems.
"""

from __future__ import annotations

from math import erfc, sqrt
from typing import Any

import numpy as np
from numba import njit

from bandits.base.selection import shares_of_largest
from bandits.base.types import BoolArray, FloatArray

NODES = 10  # of a panel
# length of a panel in scales: of one normal variable, less by log(n) of n
PANEL, SHORTER, SHORTEST = 1.5, 0.11, 0.5
# of log-odds, which are skewed
LOG_ODDS_PANEL = 0.5
# log-density below its maximum from which a tail is left out: about 1e-14 of the mass
DROP = 30.0
# probability that all are smaller, below which the integral does not begin
NEGLIGIBLE = 1e-15
# a deviation below this share of the mean leaves draws of one value
ATOM = 2.0**-50


def _rule(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nodes and weights on [0, 1], (n,) each, and the weights of the integral from 0 to each
    node, (n, n).
    """
    x, w = np.polynomial.legendre.leggauss(n)
    # of each interpolation polynomial
    coefficients = np.linalg.inv(np.polynomial.legendre.legvander(x, n - 1))
    integrals = np.polynomial.legendre.legint(coefficients, lbnd=-1)
    return (
        (x + 1) / 2,
        w / 2,
        np.ascontiguousarray(np.polynomial.legendre.legval(x, integrals).T / 2),
    )


_X, _W, _UP_TO = _rule(NODES)


def normal_largest(
    mean: FloatArray, deviation: FloatArray, available: BoolArray, *, normalised: bool = True
) -> FloatArray:
    """Compute the probability that each of independent normal variables is the largest.

    Parameters
    ----------
    mean, deviation : float64 (R, K)
        A deviation of 0 is allowed; equal constants share what the largest of them has.
    available : bool (R, K)
        The variables that take part, at least one in each row; the others have probability 0.
    normalised : bool
        Divide by the sum, which quadrature leaves within 1e-9 of 1.

    Returns
    -------
    float64 (R, K)
        NaN in rows whose parameters are not numbers.
    """
    from scipy.special import ndtr

    sound = np.asarray(~((np.isnan(mean) | ~np.isfinite(deviation)) & available).any(axis=1))
    mean = np.where(available & sound[:, None], mean, 0.0)
    deviation = np.where(available & sound[:, None], deviation, 0.0)
    varies = available & (deviation > ATOM * np.abs(mean)) & np.isfinite(mean)
    constant = np.where(available & ~varies, mean, -np.inf)
    best = constant.max(axis=1)
    reach = np.sqrt(2 * DROP) * deviation
    low = np.where(varies, mean - reach, -np.inf)
    rows = np.arange(len(mean))
    centre = np.where(varies.any(axis=1), mean[rows, low.argmax(axis=1)], 0.0)
    # exact near the centre, where scales may be small
    place = np.where(varies, mean - centre[:, None], 0.0)
    scale = np.where(varies, deviation, 1.0)
    start = np.maximum(np.where(varies, place - reach, -np.inf).max(axis=1), best - centre)
    begin = np.where(np.isfinite(start), start, 0.0)
    begin = np.where(np.isfinite(start), np.asarray(_lifted(begin, place, scale, varies)), begin)
    start = np.where(np.isfinite(start), begin, start)
    below = np.where(start[:, None] == np.inf, 1.0, ndtr((begin[:, None] - place) / scale))
    varies &= np.asarray(place + reach > start[:, None])
    out = _integrate(
        False, begin, place, scale, place + reach, below, varies, scale, -np.log(scale)
    )
    wins = (best - centre >= start) & (available & (constant == best[:, None])).any(axis=1)
    mass = np.where(varies, below, 1.0).prod(axis=1)
    out += (
        shares_of_largest(np.where(available & (constant == best[:, None]), 1.0, 0.0))
        * (wins * mass)[:, None]
    )
    return _finished(out, sound, normalised)


def beta_largest(
    a: FloatArray, b: FloatArray, available: BoolArray, *, normalised: bool = True
) -> FloatArray:
    """Compute the probability that each of independent Beta variables is the largest.

    Parameters
    ----------
    a, b : float64 (R, K)
        Positive. Draws in double precision follow this continuous distribution where b >= 0.5 and a
        >= 0.1; with smaller ones they tie at exactly 1, or 0.
    available : bool (R, K)
        The variables that take part, at least one in each row; the others have probability 0.
    normalised : bool
        Divide by the sum, which quadrature leaves within 1e-8 of 1 (1e-7 for a + b of a million).

    Returns
    -------
    float64 (R, K)
        NaN in rows whose parameters are not positive numbers.
    """
    from scipy.special import betainc, betaln, expit

    bad = ~(np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0)) & available
    sound = np.asarray(~bad.any(axis=1))
    taken = available & sound[:, None]
    a, b = np.where(taken, a, 1.0), np.where(taken, b, 1.0)
    # of the log-odds; -1 / scale^2 is the second derivative
    mode, scale = np.log(a / b), np.sqrt(1 / a + 1 / b)
    # the log-density at the mode
    top = a * np.log(a / (a + b)) + b * np.log(b / (a + b)) - betaln(a, b)
    low, high = _reaches(a, b, scale)
    start = np.where(taken, mode - low, -np.inf).max(axis=1)
    start = np.where(sound, start, 0.0)
    at = np.broadcast_to(start[:, None], a.shape)
    below = np.where(at <= 0, betainc(a, b, expit(at)), 1 - betainc(b, a, expit(-at)))
    taken &= np.asarray(mode + high > at)
    return _finished(
        _integrate(True, start, mode, scale, mode + high, below, taken, a, top, b),
        sound,
        normalised,
    )


def _finished(out: FloatArray, sound: BoolArray, normalised: bool) -> FloatArray:
    """Put NaN where parameters are not numbers, and divide each row by its sum if
    ``normalised``.
    """
    out[~sound] = np.nan
    return out / out.sum(axis=1, keepdims=True) if normalised else out


def _integrate(
    beta: bool,
    start: FloatArray,
    place: FloatArray,
    scale: FloatArray,
    end: FloatArray,
    below: FloatArray,
    taken: BoolArray,
    first: FloatArray,
    top: FloatArray,
    second: FloatArray | None = None,
) -> FloatArray:
    """Integrate from ``start (R,)``, where the distribution functions are ``below``, to the largest
    ``end``.
    """
    arrays = (
        start,
        place,
        scale,
        end,
        below,
        taken,
        first,
        first if second is None else second,
        top,
    )
    kernel: Any = _quadrature
    return np.asarray(kernel(beta, *map(np.ascontiguousarray, arrays), _X, _W, _UP_TO))


@njit(cache=True, nogil=True)
def _lifted(
    begin: FloatArray, place: FloatArray, scale: FloatArray, varies: BoolArray
) -> FloatArray:
    """Move where the integral begins, (R,), up as long as all normal variables are smaller with
    negligible chance.
    """
    out = begin.copy()
    for r in range(len(begin)):
        taken = np.flatnonzero(varies[r])
        high = place[r, taken].max() if len(taken) else -np.inf
        for _ in range(6):  # bisection
            middle, below = 0.5 * (out[r] + high), 1.0
            for k in taken:
                below *= 0.5 * erfc((place[r, k] - middle) / (sqrt(2.0) * scale[r, k]))
            if below < NEGLIGIBLE and middle > out[r]:
                out[r] = middle
            else:
                high = middle
    return out


@njit(inline="always")
def _log_odds_density(a: float, b: float, d: float) -> float:
    """Return the log-density of the log-odds at the distance d from its mode, relative to
    the mode.
    """
    share = a / (a + b)
    # the larger of the two terms is taken out, so that nothing overflows
    if d > 0:
        return float(-b * d - (a + b) * np.log1p((1 - share) * np.expm1(-d)))
    return float(a * d - (a + b) * np.log1p(share * np.expm1(d)))


@njit(cache=True, nogil=True)
def _reaches(a: FloatArray, b: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distances below and above the mode from which the log-density is lower by `DROP`,
    two of (R, K).
    """
    low, high = 2 * scale, 2 * scale
    for r in range(a.shape[0]):
        for k in range(a.shape[1]):
            while _log_odds_density(a[r, k], b[r, k], -low[r, k]) > -DROP:
                low[r, k] *= 1.2
            while _log_odds_density(a[r, k], b[r, k], high[r, k]) > -DROP:
                high[r, k] *= 1.2
    return low, high


@njit(cache=True, nogil=True)
def _quadrature(
    beta: bool,
    start: FloatArray,
    place: FloatArray,
    scale: FloatArray,
    end: FloatArray,
    below: FloatArray,
    taken: BoolArray,
    first: FloatArray,
    second: FloatArray,
    top: FloatArray,
    node: FloatArray,
    weight: FloatArray,
    up_to: FloatArray,
) -> FloatArray:
    R, K = place.shape
    n = len(node)
    out = np.zeros((R, K))
    density, distribution = np.empty((K, n)), np.empty((K, n))
    others = np.empty(n)
    for r in range(R):
        active = np.flatnonzero(taken[r])
        # the distribution functions at the left end of the panel
        reached = below[r].copy()
        x = start[r]
        while len(active):
            panel = LOG_ODDS_PANEL if beta else max(PANEL - SHORTER * np.log(len(active)), SHORTEST)
            # x always advances
            length = max(panel * scale[r, active].min(), 1e-15 * abs(x))
            for k in active:
                for i in range(n):
                    d = x + length * node[i] - place[r, k]
                    if beta:
                        log = _log_odds_density(first[r, k], second[r, k], d)
                    else:
                        z = d / first[r, k]
                        log = -0.5 * z * z - 0.9189385332046727
                    density[k, i] = length * np.exp(log + top[r, k])
                for i in range(n):
                    part = 0.0
                    for j in range(n):
                        part += up_to[i, j] * density[k, j]
                    distribution[k, i] = min(max(reached[k] + part, 0.0), 1.0)
                for i in range(n):
                    reached[k] += weight[i] * density[k, i]
            # density of a times the product of the others: those before it, then those after it
            others[:] = weight
            for k in active:
                for i in range(n):
                    density[k, i] *= others[i]
                    others[i] *= distribution[k, i]
            others[:] = 1.0
            for k in active[::-1]:
                for i in range(n):
                    out[r, k] += density[k, i] * others[i]
                    others[i] *= distribution[k, i]
            x += length
            active = active[end[r, active] > x]
    return out
