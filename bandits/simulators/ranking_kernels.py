"""Slates that a user looks down: compiled loops of the ranking world. One call serves all rows of a step."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray


@njit(cache=True, nogil=True)
def distinct(uniforms: FloatArray, pool: IntArray) -> IntArray:
    """K different items out of n for every row, int64 (R, K), all samples being equally likely.

    Parameters
    ----------
    uniforms : float64 (R, K)
    pool : int64 (n,)
        0 to n - 1 in order; so it is left.
    """
    R, K = uniforms.shape
    n = len(pool)
    out = np.empty((R, K), np.int64)
    swapped = np.empty(K, np.int64)
    for r in range(R):
        for k in range(K):  # the first K steps of a Fisher-Yates shuffle
            j = k + min(int(uniforms[r, k] * (n - k)), n - k - 1)
            swapped[k] = j
            pool[k], pool[j] = pool[j], pool[k]
            out[r, k] = pool[k]
        for k in range(K - 1, -1, -1):
            j = swapped[k]
            pool[k], pool[j] = pool[j], pool[k]
    return out


@njit(cache=True, nogil=True)
def nearest(
    users: FloatArray, items: FloatArray, layouts: IntArray, who: IntArray, among: IntArray, K: int
) -> IntArray:
    """The K items of the largest u . v among those found, int64 (R, K); the lower index of equal ones.

    They come in ascending order, so that their place tells an agent nothing.

    Parameters
    ----------
    users, items, layouts, who
        As in `pairs`.
    among : int64 (R, M)
        Different items, at least K in every row; -1 is none.
    K : int
    """
    R = len(among)
    out = np.empty((R, K), np.int64)
    for r in range(R):
        found = np.sort(among[r])
        found = found[np.searchsorted(found, 0) :]
        u = users[layouts[r], who[r]]
        worth = np.empty(len(found))
        for m in range(len(found)):
            v, total = items[layouts[r], found[m]], 0.0
            for i in range(len(u)):
                total += u[i] * v[i]
            worth[m] = total
        least = np.partition(worth, len(found) - K)[len(found) - K]
        equal = K - np.sum(worth > least)  # of those on the brink, so many
        k = 0
        for m in range(len(found)):
            if worth[m] > least or (worth[m] == least and equal > 0):
                equal -= worth[m] == least
                out[r, k] = found[m]
                k += 1
    return out


@njit(cache=True, nogil=True)
def pairs(
    users: FloatArray,
    items: FloatArray,
    layouts: IntArray,
    who: IntArray,
    which: IntArray,
    concatenated: bool,
    product: bool,
    one: bool,
) -> FloatArray:
    """Features of user and item: their vectors one after the other, their elementwise product, a 1; (R, K, D).

    Parameters
    ----------
    users, items : float64 (L, n, d)
        The vectors of each layout.
    layouts : int64 (R,)
        The layout that each row lives in.
    who, which : int64 (R,), (R, K)
    concatenated, product, one : bool
        Which of them; D = 2 d, d and 1 together.
    """
    R, K = which.shape
    d = users.shape[2]
    out = np.empty((R, K, 2 * d * concatenated + d * product + one))
    for r in range(R):
        layout = layouts[r]
        u = users[layout, who[r]]
        for k in range(K):
            v, x, at = items[layout, which[r, k]], out[r, k], 0
            if concatenated:
                for i in range(d):
                    x[i] = u[i]
                    x[d + i] = v[i]
                at = 2 * d
            if product:
                for i in range(d):
                    x[at + i] = u[i] * v[i]
                at += d
            if one:
                x[at] = 1.0
    return out


@njit(cache=True, nogil=True)
def utilities(
    users: FloatArray, items: FloatArray, layouts: IntArray, who: IntArray, which: IntArray, temperature: float
) -> FloatArray:
    """u . v / temperature of every row's user and candidates, float64 (R, K); shapes as in `pairs`."""
    R, K = which.shape
    out = np.empty((R, K))
    for r in range(R):
        layout = layouts[r]
        u = users[layout, who[r]]
        for k in range(K):
            v, total = items[layout, which[r, k]], 0.0
            for i in range(len(u)):
                total += u[i] * v[i]
            out[r, k] = total / temperature
    return out


@njit(cache=True, nogil=True)
def random_value(p: FloatArray, bias: FloatArray) -> FloatArray:
    """Chance of a click on a uniformly random slate, float64 (R,): 1 - E prod_k (1 - b_k p_k).

    With q = 1 - p the product is prod ((1 - b_k) + b_k q_k). So its mean is sum_m c_m e_m(q) / C(K, m), where c_m is
    the chance that m of S coins with the probabilities b come up, and e_m are the elementary symmetric polynomials,
    whose means over all products of m follow from a recurrence over the candidates. No term is negative.

    Parameters
    ----------
    p : float64 (R, K)
        Of every candidate, if it is looked at in a slot without bias.
    bias : float64 (S,)
        From 0 to 1.
    """
    R, K = p.shape
    S = len(bias)
    coins = np.zeros(S + 1)
    coins[0] = 1.0
    for k in range(S):
        for m in range(k + 1, 0, -1):
            coins[m] = coins[m] * (1.0 - bias[k]) + coins[m - 1] * bias[k]
        coins[0] *= 1.0 - bias[k]
    out = np.empty(R)
    means = np.empty(S + 1)
    for r in range(R):
        means[:] = 0.0
        means[0] = 1.0
        for k in range(K):
            n = k + 1
            for m in range(min(S, n), 0, -1):
                means[m] = ((n - m) * means[m] + m * (1.0 - p[r, k]) * means[m - 1]) / n
        survived = 0.0
        for m in range(S + 1):
            survived += coins[m] * means[m]
        out[r] = 1.0 - survived
    return out


def looked_down(p: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Clicks and what was looked at, two of (R, S): the user stops at the first click.

    Parameters
    ----------
    p : float64 (R, S)
        Chance of a click on each slot once it is looked at.
    uniforms : float64 (R, S)
    """
    would = uniforms < p
    examined: BoolArray = np.cumsum(would, axis=1) - would == 0
    return (would & examined).astype(np.float64), examined
