"""Posterior standard deviation of a linear function of networks' last hidden layers."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import Float32Array, FloatArray


@njit(cache=True, nogil=True)
def last_layer_width(phi: Float32Array, root: FloatArray) -> FloatArray:
    """Compute sqrt(phi' W W' phi) of every candidate in double precision, float64 (R, K).

    Parameters
    ----------
    phi : float32 (R, K, m)
    root : float64 (R, m, m)
        W, whose product W W' is the covariance.
    """
    R, K, m = phi.shape
    out = np.empty((R, K))
    double = np.empty((m, K))
    for r in range(R):
        for k in range(K):
            for i in range(m):
                double[i, k] = phi[r, k, i]
        turned = np.dot(np.ascontiguousarray(root[r].T), double)
        variance = out[r]
        variance[:] = 0.0
        for i in range(m):  # candidates innermost: several in one instruction
            for k in range(K):
                variance[k] += turned[i, k] * turned[i, k]
        for k in range(K):
            variance[k] = np.sqrt(variance[k])
    return out
