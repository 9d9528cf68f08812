"""Rank-one updates of one model: compiled helpers shared by all linear kernels.

Numba's cache on disk does not notice a change of a helper that is imported from another file: after
editing this file, touch those that import it."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import FloatArray, IntArray

# updates of a model after which its inverse is computed afresh from A
REFRESH = 4096
# x' A^-1 x above which an inverse is computed from A: by the Sherman-Morrison formula the variance,
# then below 1, would be wrong by 1e-16 of it
HUGE = 1e8
# floating-point liberties that let the compiler use vector instructions
FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
def direction(
    values: FloatArray, columns: IntArray, inverse: FloatArray, u: FloatArray, rows: IntArray
) -> tuple[float, int]:
    """Compute u = A^-1 x; return x' A^-1 x and the number of nonzero entries of u (indices in
    ``rows``).
    """
    D, N = inverse.shape[0], values.shape[0]
    used = 0
    for i in range(D):
        total = 0.0
        for n in range(N):
            total += inverse[i, columns[n]] * values[n]
        u[i] = total
        if total != 0.0:
            rows[used] = i
            used += 1
    quadratic = 0.0
    for n in range(N):
        quadratic += values[n] * u[columns[n]]
    return quadratic, used


@njit(cache=True, nogil=True)
def shrink(inverse: FloatArray, u: FloatArray, rows: IntArray, used: int, gain: float) -> None:
    """Subtract u u' gain from A^-1 (Sherman-Morrison formula), symmetric to the bit."""
    for a in range(used):
        i = rows[a]
        for b in range(used):
            j = rows[b]
            inverse[i, j] -= (u[i] * u[j]) * gain


@njit(cache=True, nogil=True)
def accumulate(
    x: FloatArray, col: IntArray, reward: float, sign: float, A: FloatArray, b: FloatArray
) -> None:
    """Add sign x x' to A and sign reward x to b; ``sign`` 1 adds an observation, -1 removes it."""
    N = x.shape[0]
    for i in range(N):
        b[col[i]] += sign * (reward * x[i])
        for j in range(N):
            A[col[i], col[j]] += sign * (x[i] * x[j])


@njit(cache=True, nogil=True, fastmath=FAST)
def cholesky(A: FloatArray, factor: FloatArray) -> bool:
    """Factorise A = L L' into the lower half of ``factor``.

    False if A is not finite and positive definite.
    """
    D = A.shape[0]
    for i in range(D):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = total / factor[j, j]
            elif total > 0.0:
                factor[i, i] = np.sqrt(total)
            else:
                return False
    return bool(np.isfinite(factor[D - 1, D - 1]))


@njit(cache=True, nogil=True, fastmath=FAST)
def invert(factor: FloatArray, inverse: FloatArray) -> None:
    """Compute ``inverse`` = (L L')^-1, symmetric to the bit."""
    D = factor.shape[0]
    # (L^-1)': its rows are the columns of L^-1
    M = np.zeros((D, D))
    for j in range(D):
        M[j, j] = 1.0 / factor[j, j]
        for i in range(j + 1, D):
            total = 0.0
            for k in range(j, i):
                total += factor[i, k] * M[j, k]
            M[j, i] = -total / factor[i, i]
    for i in range(D):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, D):
                total += M[i, k] * M[j, k]
            inverse[i, j] = total
            inverse[j, i] = total


@njit(cache=True, nogil=True)
def refresh(A: FloatArray, inverse: FloatArray, b: FloatArray, theta: FloatArray) -> None:
    """Compute A^-1 and theta = A^-1 b afresh by the Cholesky factor of A, which rounds alike in all
    units of the features; this removes the rounding of many rank-one updates.

    NaN, which stops the row, where A is singular to double precision.
    """
    D = A.shape[0]
    factor = np.empty((D, D))
    definite = cholesky(A, factor)
    if definite:
        invert(factor, inverse)
    # entry by entry: for arrays, the compiler would add the text of an error, which takes seconds
    for i in range(D):
        total = 0.0
        for j in range(D):
            if not definite:
                inverse[i, j] = np.nan
            total += inverse[i, j] * b[j]
        theta[i] = total


@njit(cache=True, nogil=True)
def cholesky_update(factor: FloatArray, x: FloatArray) -> None:
    """Replace L by the lower Cholesky factor of L L' + x x'; destroys ``x``.

    Zeros of x cost nothing.
    """
    D = x.shape[0]
    for k in range(D):
        if x[k] == 0.0:
            continue
        radius = np.sqrt(factor[k, k] * factor[k, k] + x[k] * x[k])
        cosine, sine = radius / factor[k, k], x[k] / factor[k, k]
        factor[k, k] = radius
        for i in range(k + 1, D):
            if factor[i, k] != 0.0 or x[i] != 0.0:
                factor[i, k] = (factor[i, k] + sine * x[i]) / cosine
                x[i] = cosine * x[i] - sine * factor[i, k]
