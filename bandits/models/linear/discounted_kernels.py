"""Compiled loops of discounted ridge models [1]_, whose observations lose the factor gamma at every step.

References
----------
.. [1] Russac, Vernade, Cappé (2019), Weighted linear bandits for non-stationary environments, Algorithm 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray


@njit(cache=True, nogil=True)
def discount_predict(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    step: int,
    gamma: FloatArray,
    ridge: FloatArray,
    stamp: IntArray,
    vectors: FloatArray,
    eigenvalues: FloatArray,
    turned: FloatArray,
    target: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute mean and variance of every candidate, two of float64 (R, K).

    In eigenvector coordinates of the discounted Gram matrix: y = (age g + ridge)^-1 Q'x; mean = age y . Q'b,
    variance = y' (age^2 Q' G~ Q + ridge I) y, with age = gamma^(step - stamp).
    """
    R, K = model.shape
    N, D = values.shape[2], target.shape[2]
    mean, variance = np.empty((R, K)), np.empty((R, K))
    y = np.empty(D)
    for r in range(R):
        c = context[r]
        for k in range(K):
            m = model[r, k]
            age = gamma[r] ** (step - stamp[r, m])
            total = 0.0
            for j in range(D):
                inner = 0.0
                for n in range(N):
                    inner += vectors[r, m, columns[c, k, n], j] * values[c, k, n]
                y[j] = inner / (age * eigenvalues[r, m, j] + ridge[r])
                total += age * y[j] * target[r, m, j]
            quadratic = 0.0
            for i in range(D):
                inner = 0.0
                for j in range(D):
                    inner += turned[r, m, i, j] * y[j]
                quadratic += y[i] * (age * age * inner + ridge[r] * y[i])
            mean[r, k] = total
            variance[r, k] = max(quadratic, 0.0)
    return mean, variance


@njit(cache=True, nogil=True)
def discount_update(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    slate: IntArray,
    rewards: FloatArray,
    examined: BoolArray,
    step: int,
    gamma: FloatArray,
    gram: FloatArray,
    gram2: FloatArray,
    b: FloatArray,
    stamp: IntArray,
    vectors: FloatArray,
    eigenvalues: FloatArray,
    turned: FloatArray,
    target: FloatArray,
) -> None:
    """Discount the models of the examined slots to the end of this step, add the observations, decompose afresh."""
    R, S = slate.shape
    N = values.shape[2]
    for r in range(R):
        c = context[r]
        for s in range(S):
            if not examined[r, s]:
                continue
            k = slate[r, s]
            m = model[r, k]
            age = gamma[r] ** (step + 1 - stamp[r, m])
            gram[r, m] *= age
            gram2[r, m] *= age * age
            b[r, m] *= age
            stamp[r, m] = step + 1
            for i in range(N):
                a = columns[c, k, i]
                b[r, m, a] += rewards[r, s] * values[c, k, i]
                for j in range(N):
                    product = values[c, k, i] * values[c, k, j]
                    gram[r, m, a, columns[c, k, j]] += product
                    gram2[r, m, a, columns[c, k, j]] += product
            values_found, basis = np.linalg.eigh(gram[r, m])
            basis = np.ascontiguousarray(basis)
            transposed = np.ascontiguousarray(basis.T)
            vectors[r, m] = basis
            eigenvalues[r, m] = np.maximum(values_found, 0.0)
            turned[r, m] = transposed @ gram2[r, m] @ basis
            target[r, m] = transposed @ b[r, m]
