"""Exact fit of a logistic model to its history: the maximum a posteriori (MAP) by Newton's method,
compiled.

Numba's cache on disk does not notice a change of imported helpers: after editing this file, touch
those that import it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from bandits.base.types import FloatArray, IntArray

from .rank_one import cholesky

# at most; a handful is usual, and more happens only to numbers that are not finite
NEWTON_STEPS = 60


class History(NamedTuple):
    """Exposures (``shows``) and clicks of at most L distinct pairs of model and feature vector.

    Attributes
    ----------
    values, columns : float64, int64 (R, L, N)
    model : int64 (R, L)
    shows, clicks : float64 (R, L)
    used : int64 (R,)
        Entries in use.
    slots : int64 (R, Z)
        Hash table: the entry at each slot, -1 for none. Z is a power of two, at least 2 L.
    """

    values: FloatArray
    columns: IntArray
    model: IntArray
    shows: FloatArray
    clicks: FloatArray
    used: IntArray
    slots: IntArray


@njit(cache=True, nogil=True)
def sigmoid(z: float) -> float:
    """Compute 1 / (1 + exp(-z)) without overflow."""
    if z >= 0.0:
        return float(1.0 / (1.0 + np.exp(-z)))
    e = np.exp(z)
    return float(e / (1.0 + e))


@njit(cache=True, nogil=True)
def softplus(z: float) -> float:
    """Compute log(1 + exp(z)) without overflow: the log loss of logit z without a click."""
    return float(max(z, 0.0) + np.log1p(np.exp(-abs(z))))


@njit(cache=True, nogil=True)
def find_entry(
    history: History, r: int, m: int, x: FloatArray, bits: IntArray, col: IntArray
) -> int:
    """Find the entry of a model and vector, or create it; ``bits (N,)`` are ``x`` as integers."""
    N, mask = len(x), history.slots.shape[1] - 1
    key = m
    for i in range(N):
        key = (key ^ (bits[i] + 31 * col[i])) * 1099511628211
        key ^= key >> 29
    slot = key & mask
    while True:
        entry = history.slots[r, slot]
        if entry < 0:
            break
        same = history.model[r, entry] == m
        for i in range(N):
            if not same:
                break
            same = history.values[r, entry, i] == x[i] and history.columns[r, entry, i] == col[i]
        if same:
            return int(entry)
        slot = (slot + 1) & mask
    entry = history.used[r]
    history.used[r] += 1
    history.slots[r, slot] = entry
    history.model[r, entry] = m
    for i in range(N):
        history.values[r, entry, i] = x[i]
        history.columns[r, entry, i] = col[i]
    history.shows[r, entry] = 0.0
    history.clicks[r, entry] = 0.0
    return int(entry)


@njit(cache=True, nogil=True)
def _logit(history: History, r: int, entry: int, theta: FloatArray) -> float:
    total = 0.0
    for i in range(history.values.shape[2]):
        total += history.values[r, entry, i] * theta[history.columns[r, entry, i]]
    return total


@njit(cache=True, nogil=True)
def _loss(
    history: History,
    r: int,
    entries: IntArray,
    n: int,
    theta: FloatArray,
    center: FloatArray,
    anchor: FloatArray,
) -> float:
    """Compute 1/2 (theta - center)' anchor (theta - center) + the log loss of the first ``n``
    entries.
    """
    D, whole = theta.shape[0], anchor.shape[0] > 1
    total = 0.0
    for i in range(D):
        pull = 0.0
        if whole:
            for j in range(D):
                pull += anchor[i, j] * (theta[j] - center[j])
        else:
            pull = anchor[0, i] * (theta[i] - center[i])
        total += 0.5 * pull * (theta[i] - center[i])
    for e in range(n):
        entry = entries[e]
        z = _logit(history, r, entry, theta)
        total += history.shows[r, entry] * softplus(z) - history.clicks[r, entry] * z
    return total


@njit(cache=True, nogil=True)
def derivatives(
    history: History,
    r: int,
    entries: IntArray,
    n: int,
    theta: FloatArray,
    center: FloatArray,
    anchor: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> None:
    """Compute gradient and (lower half of the) Hessian of `_loss`."""
    D, N, whole = theta.shape[0], history.values.shape[2], anchor.shape[0] > 1
    hessian[:] = 0.0
    for i in range(D):
        pull = 0.0
        if whole:
            for j in range(D):
                pull += anchor[i, j] * (theta[j] - center[j])
            for j in range(i + 1):
                hessian[i, j] = anchor[i, j]
        else:
            pull = anchor[0, i] * (theta[i] - center[i])
            hessian[i, i] = anchor[0, i]
        gradient[i] = pull
    for e in range(n):
        entry = entries[e]
        p, shows = sigmoid(_logit(history, r, entry, theta)), history.shows[r, entry]
        error, weight = shows * p - history.clicks[r, entry], shows * p * (1.0 - p)
        # dense vectors: plain loops, which the compiler vectorises
        if N == D:
            x = history.values[r, entry]
            for i in range(D):
                gradient[i] += error * x[i]
                scaled = weight * x[i]
                for j in range(i + 1):
                    hessian[i, j] += scaled * x[j]
        else:
            for i in range(N):
                a, x_i = history.columns[r, entry, i], history.values[r, entry, i]
                gradient[a] += error * x_i
                for j in range(i + 1):  # columns ascend
                    hessian[a, history.columns[r, entry, j]] += (
                        weight * x_i * history.values[r, entry, j]
                    )


@njit(cache=True, nogil=True)
def solve(factor: FloatArray, b: FloatArray) -> None:
    """Replace ``b`` by (L L')^-1 b."""
    D = b.shape[0]
    for i in range(D):
        total = b[i]
        for j in range(i):
            total -= factor[i, j] * b[j]
        b[i] = total / factor[i, i]
    for i in range(D - 1, -1, -1):
        total = b[i] / factor[i, i]
        b[i] = total
        for j in range(i):
            b[j] -= factor[i, j] * total


@njit(cache=True, nogil=True)
def newton(
    history: History,
    r: int,
    m: int,
    center: FloatArray,
    anchor: FloatArray,
    theta: FloatArray,
    hessian: FloatArray,
    factor: FloatArray,
) -> bool:
    """Minimise `_loss` over the entries of model ``m``, starting at ``theta``.

    Newton steps, halved while they overshoot. On return ``hessian`` (lower half) and its
    ``factor``, both (D, D), are those at theta. Returns False, with theta NaN, if numbers leave the
    finite range."""
    D = theta.shape[0]
    entries, n = np.empty(history.used[r], np.int64), 0
    for entry in range(history.used[r]):
        if history.model[r, entry] == m:
            entries[n] = entry
            n += 1
    gradient, step, before = np.zeros(D), np.zeros(D), np.zeros(D)
    least, halved = np.inf, 0
    for _ in range(NEWTON_STEPS):
        loss = _loss(history, r, entries, n, theta, center, anchor)
        if loss > least + 1e-9 * (1.0 + abs(least)) and halved < 30:
            halved += 1
            for i in range(D):
                step[i] *= 0.5
                theta[i] = before[i] + step[i]
            continue
        least, halved = loss, 0
        derivatives(history, r, entries, n, theta, center, anchor, gradient, hessian)
        if not cholesky(hessian, factor):
            theta[:] = np.nan
            return False
        for i in range(D):
            step[i] = -gradient[i]
        solve(factor, step)
        decrement = 0.0
        for i in range(D):
            decrement -= step[i] * gradient[i]
        # squared length of the step in units of the posterior's width
        if decrement < 1e-22:
            break
        for i in range(D):
            before[i] = theta[i]
            theta[i] += step[i]
    return True


@njit(cache=True, nogil=True)
def copy_lower(factor: FloatArray, kept: FloatArray) -> None:
    for i in range(kept.shape[0]):
        for j in range(i + 1):
            kept[i, j] = factor[i, j]
