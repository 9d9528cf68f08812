"""Compiled loops of the ranking simulator: retrieval, features, utilities and cascade clicks, for all rows at once."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray


@njit(cache=True, nogil=True)
def distinct(uniforms: FloatArray, pool: IntArray) -> IntArray:
    """Sample K different items out of n for every row, int64 (R, K), uniformly.

    Parameters
    ----------
    uniforms : float64 (R, K)
    pool : int64 (n,)
        0 to n - 1 in order; unchanged on return.
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
    """Select the K items with the largest u . v among candidates, int64 (R, K); ties go to the lower index.

    They are returned in ascending order, so that their position carries no information.

    Parameters
    ----------
    users, items, layouts, who
        As in `pairs`.
    among : int64 (R, M)
        Different items, at least K in every row; padded with -1.
    K : int
    """
    R = len(among)
    out = np.empty((R, K), np.int64)
    for r in range(R):
        candidates = np.sort(among[r])
        candidates = candidates[np.searchsorted(candidates, 0) :]
        u = users[layouts[r], who[r]]
        utility = np.empty(len(candidates))
        for m in range(len(candidates)):
            v, total = items[layouts[r], candidates[m]], 0.0
            for i in range(len(u)):
                total += u[i] * v[i]
            utility[m] = total
        least = np.partition(utility, len(candidates) - K)[len(candidates) - K]
        equal = K - np.sum(utility > least)  # number of items to take among those tied with the last one
        k = 0
        for m in range(len(candidates)):
            if utility[m] > least or (utility[m] == least and equal > 0):
                equal -= utility[m] == least
                out[r, k] = candidates[m]
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
    """Compute features of user and item, float64 (R, K, D): both vectors, their elementwise product, a constant 1.

    Parameters
    ----------
    users, items : float64 (L, n, d)
        The vectors of each layout.
    layouts : int64 (R,)
        The layout of each row.
    who, which : int64 (R,), (R, K)
        Users and items.
    concatenated, product, one : bool
        Parts to include, of 2 d, d and 1 features.
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
    """Compute u . v / temperature of each row's user and candidates, float64 (R, K); parameters as in `pairs`."""
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
    """Compute the click probability of a uniformly random slate, float64 (R,): 1 - E prod_k (1 - b_k p_k).

    With q = 1 - p the product is prod ((1 - b_k) + b_k q_k). Its mean is sum_m c_m e_m(q) / C(K, m), where c_m is the
    probability of m successes in S independent trials with probabilities b (Poisson binomial), and e_m are the
    elementary symmetric polynomials, whose means over all products of m follow from a recurrence over the candidates.
    No term is negative.

    Parameters
    ----------
    p : float64 (R, K)
        Click probability of every candidate, once examined in a slot without bias.
    bias : float64 (S,)
        From 0 to 1.
    """
    R, K = p.shape
    S = len(bias)
    successes = np.zeros(S + 1)
    successes[0] = 1.0
    for k in range(S):
        for m in range(k + 1, 0, -1):
            successes[m] = successes[m] * (1.0 - bias[k]) + successes[m - 1] * bias[k]
        successes[0] *= 1.0 - bias[k]
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
            survived += successes[m] * means[m]
        out[r] = 1.0 - survived
    return out


def cascade_clicks(p: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Draw clicks and examined slots under the cascade model, two of (R, S): the user stops at the first click.

    Parameters
    ----------
    p : float64 (R, S)
        Click probability of each slot once examined.
    uniforms : float64 (R, S)
    """
    clicked = uniforms < p  # if examined
    examined: BoolArray = np.cumsum(clicked, axis=1) - clicked == 0
    return (clicked & examined).astype(np.float64), examined
