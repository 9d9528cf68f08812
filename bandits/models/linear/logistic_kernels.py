"""Compiled loops of logistic models: one call serves all rows of a step (see `ridge_kernels` for
the features).

A precision and its inverse are stored as (P, D): P = D is the whole matrix, P = 1 its diagonal
alone (for D = 1 both are the same)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray

from .logistic_fit import (
    NEWTON_STEPS,
    History,
    copy_lower,
    derivatives,
    find_entry,
    newton,
    sigmoid,
)
from .rank_one import REFRESH, cholesky, cholesky_update, direction, invert, shrink


class Posterior(NamedTuple):
    """Gaussian posteriors N(theta, H^-1), and the priors of the present history.

    Attributes
    ----------
    theta, center : float64 (R, M, D)
        Posterior and prior mean.
    H, inverse, anchor : float64 (R, M, P, D)
        Posterior precision, its inverse, prior precision.
    factor : float64 (R, M, D, D)
        Lower Cholesky factor of H, or (R, M, 0, 0) if theta is never drawn as a vector.
    seen : int64 (R, M)
        Observations.
    """

    theta: FloatArray
    H: FloatArray
    inverse: FloatArray
    factor: FloatArray
    seen: IntArray
    center: FloatArray
    anchor: FloatArray


@njit(cache=True, nogil=True)
def shift(logit: float, quadratic: float, reward: float, shows: float = 1.0) -> float:
    """Solve s = reward - shows sigmoid(logit + s quadratic): how far the MAP moves along H^-1 x.

    The difference of both sides increases in s with slope at least 1, and s lies between reward -
    shows and reward: Newton's method, or bisection where a Newton step would leave the interval or
    converges slowly."""
    low, high = reward - shows, reward
    s, step = min(max(0.0, low), high), 1.0
    for _ in range(NEWTON_STEPS):
        p = sigmoid(logit + s * quadratic)
        surplus = s - reward + shows * p
        if surplus > 0.0:
            high = s
        else:
            low = s
        new = s - surplus / (1.0 + quadratic * shows * p * (1.0 - p))
        if not low <= new <= high or abs(new - s) > 0.5 * abs(step):
            new = 0.5 * (low + high)
        step = new - s
        s = new
        if abs(step) < 1e-15:
            break
    return float(s)


@njit(cache=True, nogil=True)
def fit_exactly(posterior: Posterior, history: History, r: int, m: int) -> None:
    """Compute the exact MAP of one model given prior and history, and the Laplace posterior
    there.
    """
    theta, H, inverse = posterior.theta[r, m], posterior.H[r, m], posterior.inverse[r, m]
    D, whole = theta.shape[0], H.shape[0] > 1
    hessian, factor = np.empty((D, D)), np.empty((D, D))
    if not newton(
        history, r, m, posterior.center[r, m], posterior.anchor[r, m], theta, hessian, factor
    ):
        return
    if whole:
        for i in range(D):
            for j in range(i + 1):
                H[i, j] = hessian[i, j]
                H[j, i] = hessian[i, j]
        invert(factor, inverse)
        copy_lower(factor, posterior.factor[r, m])
    else:
        for i in range(D):
            H[0, i] = hessian[i, i]
            inverse[0, i] = 1.0 / hessian[i, i]


@njit(cache=True, nogil=True)
def fit_each(
    history: History,
    ridge: float,
    theta: FloatArray,
    H: FloatArray,
    inverse: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fit one model to each of G histories: the MAP under the prior N(0, I / ridge), and its
    curvature.

    Writes ``theta (G, D)``, ``H``, ``inverse (G, D, D)``, and ``gradient (G,)``: the largest entry
    of the gradient at theta, relative to the largest sum of the absolute terms of an entry. NaN
    where numbers leave the finite range."""
    G, D = theta.shape
    nothing, prior, slope, factor = (
        np.zeros(D),
        np.full((1, D), ridge),
        np.empty(D),
        np.empty((D, D)),
    )
    for g in range(G):
        entries = np.arange(history.used[g])
        theta[g] = 0.0
        if not newton(history, g, 0, nothing, prior, theta[g], H[g], factor):
            gradient[g] = np.nan
            continue
        derivatives(history, g, entries, len(entries), theta[g], nothing, prior, slope, H[g])
        if not cholesky(H[g], factor):
            gradient[g] = np.nan
            continue
        invert(factor, inverse[g])
        terms = ridge * np.abs(theta[g])
        for entry in entries:
            for i in range(history.values.shape[2]):
                terms[history.columns[g, entry, i]] += history.shows[g, entry] * abs(
                    history.values[g, entry, i]
                )
        largest = terms.max()
        # no features: theta is 0
        gradient[g] = np.abs(slope).max() / largest if largest > 0 else 0.0
        for i in range(D):
            for j in range(i):
                H[g, j, i] = H[g, i, j]


@njit(cache=True, nogil=True)
def _fold(posterior: Posterior, history: History, r: int) -> None:
    """Make the posterior of a row its prior, and empty its history."""
    _, M, P, D = posterior.H.shape
    for m in range(M):
        for i in range(D):
            posterior.center[r, m, i] = posterior.theta[r, m, i]
            for j in range(P):
                posterior.anchor[r, m, j, i] = posterior.H[r, m, j, i]
    history.used[r] = 0
    for slot in range(history.slots.shape[1]):
        history.slots[r, slot] = -1


@njit(cache=True, nogil=True)
def _refresh(posterior: Posterior, r: int, m: int) -> None:
    """Compute the inverse afresh from H, which removes the rounding of many rank-one updates."""
    P, D = posterior.H.shape[2], posterior.H.shape[3]
    factor = np.empty((D, D))
    if P > 1 and cholesky(posterior.H[r, m], factor):
        invert(factor, posterior.inverse[r, m])
        copy_lower(factor, posterior.factor[r, m])


@njit(cache=True, nogil=True)
def _observe(
    x: FloatArray,
    col: IntArray,
    reward: float,
    shows: float,
    theta: FloatArray,
    H: FloatArray,
    inverse: FloatArray,
    factor: FloatArray,
    u: FloatArray,
    rows: IntArray,
) -> None:
    """Update one model with one observation, the posterior so far as prior.

    ``u, rows (D,)`` are scratch.
    """
    N, whole = x.shape[0], H.shape[0] > 1
    logit, quadratic, used = 0.0, 0.0, 0
    for i in range(N):
        logit += x[i] * theta[col[i]]
    if whole:
        quadratic, used = direction(x, col, inverse, u, rows)
    else:
        for i in range(N):
            quadratic += x[i] * x[i] * inverse[0, col[i]]
    s = shift(logit, quadratic, reward, shows)
    p = sigmoid(logit + s * quadratic)
    weight = shows * p * (1.0 - p)
    # the scores become NaN, which stops the row; H stays finite for its spectrum
    if not np.isfinite(weight):
        theta[:] = np.nan
        return
    if not whole:
        for i in range(N):
            a = col[i]
            theta[a] += s * inverse[0, a] * x[i]
            H[0, a] += weight * x[i] * x[i]
            inverse[0, a] = 1.0 / H[0, a]
        return
    for k in range(used):
        theta[rows[k]] += s * u[rows[k]]
    shrink(inverse, u, rows, used, weight / (1.0 + weight * quadratic))
    for i in range(N):
        for j in range(N):
            H[col[i], col[j]] += weight * (x[i] * x[j])
    if factor.shape[0] > 0:
        root = np.sqrt(weight)
        u[:] = 0.0
        for i in range(N):
            u[col[i]] = root * x[i]
        cholesky_update(factor, u)


@njit(cache=True, nogil=True)
def update(
    values: FloatArray,
    bits: IntArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    slate: IntArray,
    rewards: FloatArray,
    shows: FloatArray,
    posterior: Posterior,
    history: History,
    refit: int,
) -> None:
    """Update with one observation per slot.

    Refit a model exactly every ``refit`` observations (0: never).

    ``bits`` is ``values`` viewed as integers, for hashing.
    """
    R, S = slate.shape
    _, M, D = posterior.theta.shape
    L = history.model.shape[1]
    u, rows = np.empty(D), np.empty(D, np.int64)
    for r in range(R):
        c = context[r]
        for s in range(S):
            if shows[r, s] == 0.0:
                continue
            k = slate[r, s]
            m = model[r, k]
            x, col = values[c, k], columns[c, k]
            _observe(
                x,
                col,
                rewards[r, s],
                shows[r, s],
                posterior.theta[r, m],
                posterior.H[r, m],
                posterior.inverse[r, m],
                posterior.factor[r, m],
                u,
                rows,
            )
            posterior.seen[r, m] += 1
            full, stale = False, posterior.seen[r, m] % REFRESH == 0
            if refit > 0:
                entry = find_entry(history, r, m, x, bits[c, k], col)
                history.shows[r, entry] += shows[r, s]
                history.clicks[r, entry] += rewards[r, s]
                full = history.used[r] == L
                due = posterior.seen[r, m] % refit == 0
                stale = stale and not due
                first, last = (0, M) if full else (m, m + int(due))
                for a in range(first, last):
                    fit_exactly(posterior, history, r, a)
            if full:
                _fold(posterior, history, r)
            elif stale:
                _refresh(posterior, r, m)


@njit(cache=True, nogil=True)
def diagonal_predict(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    theta: FloatArray,
    inverse: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute theta_m . x and x' H_m^-1 x for diagonal H, two of (R, K).

    ``inverse (R, M, 1, D)``.
    """
    R, K = model.shape
    N = values.shape[2]
    mean, variance = np.empty((R, K)), np.empty((R, K))
    for r in range(R):
        c = context[r]
        for k in range(K):
            m = model[r, k]
            total, quadratic = 0.0, 0.0
            for i in range(N):
                x, a = values[c, k, i], columns[c, k, i]
                total += x * theta[r, m, a]
                quadratic += x * x * inverse[r, m, 0, a]
            mean[r, k], variance[r, k] = total, quadratic
    return mean, variance


@njit(cache=True, nogil=True)
def sgd_observe(
    values: FloatArray,
    bits: IntArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    slate: IntArray,
    rewards: FloatArray,
    shows: FloatArray,
    iterate: FloatArray,
    gradient: FloatArray,
    history: History,
    starting: BoolArray,
) -> None:
    """Add the slots to the history in the rows that are ``starting``, elsewhere to the
    ``gradient`` at ``iterate``.
    """
    R, S = slate.shape
    N = values.shape[2]
    for r in range(R):
        c = context[r]
        for s in range(S):
            if shows[r, s] == 0.0:
                continue
            k = slate[r, s]
            m = model[r, k]
            x, col = values[c, k], columns[c, k]
            if starting[r]:
                entry = find_entry(history, r, m, x, bits[c, k], col)
                history.shows[r, entry] += shows[r, s]
                history.clicks[r, entry] += rewards[r, s]
                continue
            z = 0.0
            for i in range(N):
                z += x[i] * iterate[r, m, col[i]]
            error = shows[r, s] * sigmoid(z) - rewards[r, s]
            for i in range(N):
                gradient[r, m, col[i]] += error * x[i]


@njit(cache=True, nogil=True)
def sgd_start(
    rows: IntArray, history: History, ridge: FloatArray, center: FloatArray, iterate: FloatArray
) -> None:
    """Set ``center`` and ``iterate`` of these rows to the MAP of each model given the history."""
    M, D = center.shape[1:]
    nothing, prior = np.zeros(D), np.empty((1, D))
    hessian, factor = np.empty((D, D)), np.empty((D, D))
    for r in rows:
        for i in range(D):
            prior[0, i] = ridge[r]
        for m in range(M):
            newton(history, r, m, nothing, prior, iterate[r, m], hessian, factor)
            for i in range(D):
                center[r, m, i] = iterate[r, m, i]


@njit(cache=True, nogil=True)
def sgd_step(
    rows: IntArray,
    batches: FloatArray,
    rate: FloatArray,
    radius: FloatArray,
    center: FloatArray,
    iterate: FloatArray,
    mean: FloatArray,
    gradient: FloatArray,
) -> None:
    """End a batch of these rows: take one projected step and average the iterates.

    ``center, iterate, mean, gradient (R, M, D)``; ``batches (R,)``, the number of batches with this
    one, divides the step and is what the average is over. The ball is that of a row's M models
    together."""
    M, D = center.shape[1:]
    for r in rows:
        square = 0.0
        for m in range(M):
            for d in range(D):
                iterate[r, m, d] -= rate[r] / batches[r] * gradient[r, m, d]
                away = iterate[r, m, d] - center[r, m, d]
                square += away * away
        keep = min(1.0, radius[r] / np.sqrt(square)) if square > 0.0 else 1.0
        for m in range(M):
            for d in range(D):
                if keep < 1.0:
                    iterate[r, m, d] = center[r, m, d] + keep * (iterate[r, m, d] - center[r, m, d])
                mean[r, m, d] += (iterate[r, m, d] - mean[r, m, d]) / batches[r]
                gradient[r, m, d] = 0.0
