"""Compiled loops of the hybrid ridge model [1]_: a linear model per arm and one shared by all arms,
with z = x.

References
----------
.. [1] Li, Chu, Langford, Schapire (2010), A contextual-bandit approach to personalized news article
   recommendation, Algorithm 2.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray

from .rank_one import (
    FAST,
    HUGE,
    REFRESH,
    accumulate,
    cholesky_update,
    direction,
    refresh,
    shrink,
)


@njit(cache=True, nogil=True, fastmath=FAST)
def hybrid_predict(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    ridge: FloatArray,
    theta: FloatArray,
    inverse: FloatArray,
    beta: FloatArray,
    shared: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute mean, variance and the per-arm part of the variance of every candidate, three of (R,
    K).

    With y = A_a^-1 x: mean = theta_a . x + ridge beta . y and
    variance = x . y + ridge^2 y' A_0^-1 y (Algorithm 2, simplified for z = x).
    """
    R, K = model.shape
    N, D = values.shape[2], theta.shape[2]
    mean, variance, own = np.empty((R, K)), np.empty((R, K)), np.empty((R, K))
    y = np.empty(D)
    for r in range(R):
        c = context[r]
        for k in range(K):
            m = model[r, k]
            total = 0.0
            for i in range(D):
                inner = 0.0
                for n in range(N):
                    inner += inverse[r, m, i, columns[c, k, n]] * values[c, k, n]
                y[i] = inner
                total += ridge[r] * inner * beta[r, i]
            quadratic = 0.0
            for n in range(N):
                total += values[c, k, n] * theta[r, m, columns[c, k, n]]
                quadratic += values[c, k, n] * y[columns[c, k, n]]
            joint = 0.0
            for i in range(D):
                inner = 0.0
                for j in range(D):
                    inner += shared[r, i, j] * y[j]
                joint += y[i] * inner
            mean[r, k] = total
            own[r, k] = max(quadratic, 0.0)
            variance[r, k] = own[r, k] + max(ridge[r] * ridge[r] * joint, 0.0)
    return mean, variance, own


@njit(cache=True, nogil=True)
def hybrid_update(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    slate: IntArray,
    rewards: FloatArray,
    examined: BoolArray,
    ridge: FloatArray,
    A: FloatArray,
    inverse: FloatArray,
    b: FloatArray,
    theta: FloatArray,
    count: IntArray,
    A0: FloatArray,
    shared: FloatArray,
    b0: FloatArray,
    beta: FloatArray,
    factor: FloatArray,
) -> None:
    """Update the hybrid model with one observation per examined slot.

    For z = x the cross terms are B_a = A_a - ridge I, so the shared part receives only A_0 +=
    ridge^2 u u' / (1 + x'u) and b_0 += ridge (change of theta_a), with u = A_a^-1 x: rank one
    again. ``theta`` here is A_a^-1 b_a. ``A0, shared (R, D, D)``: the shared matrix and its
    inverse; ``factor`` its Cholesky factor, or (R, 0, 0)."""
    R, S = slate.shape
    D, N = b.shape[2], values.shape[2]
    u, rows = np.empty(D), np.empty(D, np.int64)
    v, w, every = np.empty(D), np.empty(D), np.arange(D)
    for r in range(R):
        c = context[r]
        for s in range(S):
            if not examined[r, s]:
                continue
            k = slate[r, s]
            m = model[r, k]
            x, col = values[c, k], columns[c, k]
            quadratic, used = direction(x, col, inverse[r, m], u, rows)
            gain = 1.0 / (1.0 + quadratic)
            error = rewards[r, s]
            for i in range(N):
                error -= x[i] * theta[r, m, col[i]]
            shrink(inverse[r, m], u, rows, used, gain)
            v[:] = 0.0
            for a in range(used):
                i = rows[a]
                theta[r, m, i] += u[i] * (gain * error)
                b0[r, i] += ridge[r] * u[i] * (gain * error)
                v[i] = ridge[r] * u[i] * np.sqrt(gain)
            accumulate(x, col, rewards[r, s], 1.0, A[r, m], b[r, m])
            if quadratic > HUGE:
                refresh(A[r, m], inverse[r, m], b[r, m], theta[r, m])
            # the shared matrix grows by v v'
            quadratic = 0.0
            for i in range(D):
                total = 0.0
                for j in range(D):
                    total += shared[r, i, j] * v[j]
                    A0[r, i, j] += v[i] * v[j]
                w[i] = total
                quadratic += v[i] * total
            shrink(shared[r], w, every, D, 1.0 / (1.0 + quadratic))
            count[r, m] += 1
            if count[r, m] % REFRESH == 0:
                refresh(A[r, m], inverse[r, m], b[r, m], theta[r, m])
                shared[r] = np.linalg.inv(A0[r])
            for i in range(D):
                total = 0.0
                for j in range(D):
                    total += shared[r, i, j] * b0[r, j]
                beta[r, i] = total
            if factor.shape[1] > 0:
                cholesky_update(factor[r], v)
