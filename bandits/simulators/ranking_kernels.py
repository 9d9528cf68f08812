"""Compiled loops of the ranking simulator: retrieval, features, utilities and cascade clicks, for
all rows at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bandits.base.selection import top_k
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
        # the first K steps of a Fisher-Yates shuffle
        for k in range(K):
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
    users: FloatArray,
    items: FloatArray,
    layouts: IntArray,
    user_ids: IntArray,
    among: IntArray,
    K: int,
) -> IntArray:
    """Select the K items with the largest u .

    v among candidates, int64 (R, K); ties go to the lower index.

    They are returned in ascending order, so that their position carries no information.

    Parameters
    ----------
    users, items, layouts, user_ids
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
        u = users[layouts[r], user_ids[r]]
        utility = np.empty(len(candidates))
        for m in range(len(candidates)):
            v, total = items[layouts[r], candidates[m]], 0.0
            for i in range(len(u)):
                total += u[i] * v[i]
            utility[m] = total
        least = np.partition(utility, len(candidates) - K)[len(candidates) - K]
        # number of items to take among those tied with the last one
        equal = K - np.sum(utility > least)
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
    user_ids: IntArray,
    item_ids: IntArray,
    concatenated: bool,
    product: bool,
    one: bool,
    out: Any,
) -> None:
    """Compute features of user and item: both vectors, their elementwise product, a constant 1.

    Parameters
    ----------
    users, items : float64 (L, n, d)
        The vectors of each layout.
    layouts : int64 (R,)
        The layout of each row.
    user_ids, item_ids : int64 (R,), (R, K)
        Users and items.
    concatenated, product, one : bool
        Parts to include, of 2 d, d and 1 features.
    out : float64 or float32 (R, K, D or more)
        The first D columns are overwritten by the features, computed in double precision.
    """
    R, K = item_ids.shape
    d = users.shape[2]
    for r in range(R):
        layout, user = layouts[r], user_ids[r]
        for k in range(K):
            item, at = item_ids[r, k], 0
            if concatenated:
                for i in range(d):
                    out[r, k, i] = users[layout, user, i]
                for i in range(d):
                    out[r, k, d + i] = items[layout, item, i]
                at = 2 * d
            if product:
                for i in range(d):
                    out[r, k, at + i] = users[layout, user, i] * items[layout, item, i]
                at += d
            if one:
                out[r, k, at] = 1.0


@njit(cache=True, nogil=True)
def utilities(
    users: FloatArray,
    items: FloatArray,
    layouts: IntArray,
    user_ids: IntArray,
    item_ids: IntArray,
    temperature: float,
) -> FloatArray:
    """Compute u . v / temperature of each row's user and candidates, float64 (R, K).

    Parameters as in `pairs`.
    """
    R, K = item_ids.shape
    d = users.shape[2]
    out = np.empty((R, K))
    for r in range(R):
        layout = layouts[r]
        u = users[layout, user_ids[r]]
        # four sums at once: each addition of one sum would wait for the last
        for k in range(0, K - K % 4, 4):
            a, b = items[layout, item_ids[r, k]], items[layout, item_ids[r, k + 1]]
            c, e = items[layout, item_ids[r, k + 2]], items[layout, item_ids[r, k + 3]]
            first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
            for i in range(d):
                first += u[i] * a[i]
                second += u[i] * b[i]
                third += u[i] * c[i]
                fourth += u[i] * e[i]
            out[r, k], out[r, k + 1] = first / temperature, second / temperature
            out[r, k + 2], out[r, k + 3] = third / temperature, fourth / temperature
        for k in range(K - K % 4, K):
            v, total = items[layout, item_ids[r, k]], 0.0
            for i in range(d):
                total += u[i] * v[i]
            out[r, k] = total / temperature
    return out


@njit(cache=True, nogil=True)
def random_value(p: FloatArray, bias: FloatArray) -> FloatArray:
    """Compute the click probability of a uniformly random slate, float64 (R,): 1 - E prod_k (1 -
    b_k p_k).

    With q = 1 - p the product is prod ((1 - b_k) + b_k q_k). Its mean is sum_m c_m e_m(q) / C(K,
    m), where c_m is the probability of m successes in S independent trials with probabilities b
    (Poisson binomial), and e_m are the elementary symmetric polynomials, whose means over all
    products of m follow from a recurrence over the candidates. No term is negative.

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
    means, q = np.zeros((S + 1, R)), np.empty(R)
    means[0] = 1.0
    for k in range(K):
        n = k + 1
        for r in range(R):
            q[r] = 1.0 - p[r, k]
        for m in range(min(S, n), 0, -1):
            # innermost, since rows are independent: several in one instruction
            for r in range(R):
                means[m, r] = ((n - m) * means[m, r] + m * q[r] * means[m - 1, r]) / n
    out = np.empty(R)
    for r in range(R):
        survived = 0.0
        for m in range(S + 1):
            survived += successes[m] * means[m, r]
        out[r] = 1.0 - survived
    return out


@njit(cache=True, nogil=True)
def cascade_clicks(p: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Draw clicks and examined slots under the cascade model, two of (R, S): the user stops at the
    first click.

    Parameters
    ----------
    p : float64 (R, S)
        Click probability of each slot once examined.
    uniforms : float64 (R, S)
    """
    R, S = p.shape
    rewards, examined = np.zeros((R, S)), np.zeros((R, S), np.bool_)
    for r in range(R):
        for k in range(S):
            examined[r, k] = True
            if uniforms[r, k] < p[r, k]:
                rewards[r, k] = 1.0
                break
    return rewards, examined


@njit(cache=True, nogil=True)
def optimum(p: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find the optimal slate.

    Parameters
    ----------
    p : float64 (R, K)
        Click probability of every candidate, once examined in a slot without bias.
    bias : float64 (S,)

    Returns
    -------
    tuple
        Click probability of its slots once examined, (R, S); its value, and that of a random slate,
        (R,).
    """
    R = len(p)
    # a slate of other items with the same probabilities is worth the same
    ties = np.zeros(R, np.uint64)
    best = top_k(p, np.ones(p.shape, np.bool_), np.ones(R, np.bool_), len(bias), ties, 0)
    chances, value = slate_value(p, bias, best)
    return chances, value, random_value(p, bias)


@njit(cache=True, nogil=True)
def slate_value(p: FloatArray, bias: FloatArray, slate: IntArray) -> tuple[FloatArray, FloatArray]:
    """Compute the click probability of each slot of ``slate (R, S)`` once examined, (R, S), and the
    value, (R,).
    """
    R, S = slate.shape
    chances, value = np.empty((R, S)), np.empty(R)
    for r in range(R):
        missed = 1.0
        for k in range(S):
            chances[r, k] = p[r, slate[r, k]] * bias[k]
            missed *= 1.0 - chances[r, k]
        value[r] = 1.0 - missed
    return chances, value
