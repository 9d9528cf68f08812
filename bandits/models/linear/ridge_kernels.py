"""Compiled loops of ridge models: one call serves all rows of a step.

Features come as stored entries (see `bandits.base.types.Contexts`), so that a one-hot vector costs
its two non-zeros. Each row is computed alone: its bits never depend on its neighbours. Compiled
once, cached on disk (see `rank_one`).

``model (R, K)`` is the ridge model that each candidate uses. Arrays are C-contiguous float64 unless
stated."""

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


@njit(cache=True, nogil=True)
def ridge_mean(
    values: FloatArray, columns: IntArray, context: IntArray, model: IntArray, theta: FloatArray
) -> FloatArray:
    """Compute theta_m . x of every candidate, float64 (R, K), for ``theta (R, M, D)``."""
    R, K = model.shape
    N = values.shape[2]
    mean = np.empty((R, K))
    for r in range(R):
        c = context[r]
        for k in range(K):
            m = model[r, k]
            total = 0.0
            for i in range(N):
                total += values[c, k, i] * theta[r, m, columns[c, k, i]]
            mean[r, k] = total
    return mean


@njit(cache=True, nogil=True, fastmath=FAST)
def dense_predict(x: FloatArray, theta: FloatArray, inverse: FloatArray) -> tuple[float, float]:
    """Compute theta . x and x' A^-1 x in plain loops, which the compiler vectorises."""
    total, quadratic = 0.0, 0.0
    for i in range(x.shape[0]):
        total += x[i] * theta[i]
        inner = 0.0
        for j in range(x.shape[0]):
            inner += inverse[i, j] * x[j]
        quadratic += x[i] * inner
    return total, quadratic


@njit(cache=True, nogil=True)
def ridge_predict(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    theta: FloatArray,
    inverse: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute theta_m . x and x' A_m^-1 x of every candidate, two of (R, K), for ``inverse (R, M,
    D, D)``.
    """
    R, K = model.shape
    N = values.shape[2]
    mean, variance = np.empty((R, K)), np.empty((R, K))
    for r in range(R):
        c = context[r]
        for k in range(K):
            m = model[r, k]
            total, quadratic = 0.0, 0.0
            if theta.shape[2] == N:
                total, quadratic = dense_predict(values[c, k], theta[r, m], inverse[r, m])
            else:
                for i in range(N):
                    x, a = values[c, k, i], columns[c, k, i]
                    total += x * theta[r, m, a]
                    inner = 0.0
                    for j in range(N):
                        inner += inverse[r, m, a, columns[c, k, j]] * values[c, k, j]
                    quadratic += x * inner
            mean[r, k] = total
            variance[r, k] = max(quadratic, 0.0)
    return mean, variance


@njit(cache=True, nogil=True)
def learn_one(
    x: FloatArray,
    col: IntArray,
    reward: float,
    A: FloatArray,
    inverse: FloatArray,
    b: FloatArray,
    theta: FloatArray,
    factor: FloatArray,
    u: FloatArray,
    rows: IntArray,
) -> None:
    """Update one model with one observation; ``u, rows (D,)`` are scratch."""
    N = x.shape[0]
    quadratic, used = direction(x, col, inverse, u, rows)
    accumulate(x, col, reward, 1.0, A, b)
    if quadratic > HUGE:
        refresh(A, inverse, b, theta)
    else:
        gain = 1.0 / (1.0 + quadratic)
        error = reward
        for i in range(N):
            error -= x[i] * theta[col[i]]
        shrink(inverse, u, rows, used, gain)
        for a in range(used):
            theta[rows[a]] += u[rows[a]] * (gain * error)
    if factor.shape[0] > 0:
        u[:] = 0.0
        for i in range(N):
            u[col[i]] = x[i]
        cholesky_update(factor, u)


@njit(cache=True, nogil=True)
def ridge_update(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    slate: IntArray,
    rewards: FloatArray,
    examined: BoolArray,
    A: FloatArray,
    inverse: FloatArray,
    b: FloatArray,
    theta: FloatArray,
    count: IntArray,
    factor: FloatArray,
) -> None:
    """Update the models with one observation per examined slot: A += x x', b += r x, and A^-1,
    theta.

    ``A, inverse (R, M, D, D)``, ``b, theta (R, M, D)``, ``count (R, M)``; ``factor`` is the lower
    Cholesky factor of A, shape (R, M, D, D), or (R, M, 0, 0) if the agent does not draw from the
    joint posterior."""
    R, S = slate.shape
    u, rows = np.empty(b.shape[2]), np.empty(b.shape[2], np.int64)
    for r in range(R):
        c = context[r]
        for s in range(S):
            if not examined[r, s]:
                continue
            k = slate[r, s]
            m = model[r, k]
            learn_one(
                values[c, k],
                columns[c, k],
                rewards[r, s],
                A[r, m],
                inverse[r, m],
                b[r, m],
                theta[r, m],
                factor[r, m],
                u,
                rows,
            )
            count[r, m] += 1
            if count[r, m] % REFRESH == 0:
                refresh(A[r, m], inverse[r, m], b[r, m], theta[r, m])


@njit(cache=True, nogil=True)
def ridge_forget(
    values: FloatArray,
    columns: IntArray,
    model: IntArray,
    rewards: FloatArray,
    seen: BoolArray,
    A: FloatArray,
    inverse: FloatArray,
    b: FloatArray,
    theta: FloatArray,
    count: IntArray,
) -> None:
    """Remove one old observation per slot from its model: the downdate that undoes `ridge_update`.

    ``values, columns (R, S, N)``, ``model, rewards, seen (R, S)``.
    """
    R, S = model.shape
    D, N = b.shape[2], values.shape[2]
    u, rows = np.empty(D), np.empty(D, np.int64)
    for r in range(R):
        for s in range(S):
            if not seen[r, s]:
                continue
            m, x, col = model[r, s], values[r, s], columns[r, s]
            quadratic, used = direction(x, col, inverse[r, m], u, rows)
            # the remainder is a difference of large numbers: compute it afresh
            if 1.0 - quadratic < 1e-2:
                accumulate(x, col, rewards[r, s], -1.0, A[r, m], b[r, m])
                refresh(A[r, m], inverse[r, m], b[r, m], theta[r, m])
                count[r, m] += 1
                continue
            gain = -1.0 / (1.0 - quadratic)
            error = rewards[r, s]
            for i in range(N):
                error -= x[i] * theta[r, m, col[i]]
            shrink(inverse[r, m], u, rows, used, gain)
            for a in range(used):
                theta[r, m, rows[a]] += u[rows[a]] * (gain * error)
            accumulate(x, col, rewards[r, s], -1.0, A[r, m], b[r, m])
            # changes, not observations: they decide when to refresh the inverse
            count[r, m] += 1
            if count[r, m] % REFRESH == 0:
                refresh(A[r, m], inverse[r, m], b[r, m], theta[r, m])


@njit(cache=True, nogil=True)
def ridge_sample(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    theta: FloatArray,
    factor: FloatArray,
    sigma: FloatArray,
    normals: FloatArray,
) -> FloatArray:
    """Compute theta~_m . x of every candidate, float64 (R, K), with ONE draw theta~_m per model.

    theta~_m = theta_m + sigma L_m'^-1 z, z being ``normals (R, K, D)`` of the first candidate with
    that model."""
    R, K = model.shape
    N, D = values.shape[2], theta.shape[2]
    out, drawn, first = np.empty((R, K)), np.empty((K, D)), np.empty(K, np.int64)
    for r in range(R):
        c = context[r]
        for k in range(K):
            m = model[r, k]
            first[k] = k
            for j in range(k):
                if model[r, j] == m:
                    first[k] = first[j]
                    break
            if first[k] == k:
                drawn[k] = posterior_noise(factor[r, m : m + 1], normals[r, k : k + 1])[0]
                for i in range(D):
                    drawn[k, i] = theta[r, m, i] + sigma[r] * drawn[k, i]
            total = 0.0
            for i in range(N):
                total += values[c, k, i] * drawn[first[k], columns[c, k, i]]
            out[r, k] = total
    return out


@njit(cache=True, nogil=True)
def posterior_noise(factor: FloatArray, normals: FloatArray) -> FloatArray:
    """Compute L'^-1 z, with covariance A^-1 = (L L')^-1: (R, D) from ``factor (R, D, D)``,
    ``normals (R, D)``.
    """
    R, D = normals.shape
    out = normals.copy()
    for r in range(R):
        for i in range(D - 1, -1, -1):
            total = out[r, i] / factor[r, i, i]
            out[r, i] = total
            if total != 0.0:
                for j in range(i):
                    out[r, j] -= factor[r, i, j] * total
    return out
