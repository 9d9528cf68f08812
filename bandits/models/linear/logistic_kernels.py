"""The compiled loops of logistic models: one call serves all rows of a step (see `kernels` for the manner).

A precision and its inverse are stored as (P, D): P = D is the whole matrix, P = 1 its diagonal alone (for D = 1 both
are the same). Numba's cache on disk does not notice a change of the helpers that come from `kernels`: touch this file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from bandits.base.types import FloatArray, IntArray

from .rank_one import FAST, REFRESH, cholesky_update, direction, shrink

NEWTON = 60  # steps at most; a handful is usual, and more happens only to numbers that are not finite


class Posterior(NamedTuple):
    """Gaussian posteriors N(theta, H^-1), and the priors that the history is to be joined with.

    Attributes
    ----------
    theta, center : float64 (R, M, D)
        Posterior and prior mean.
    H, inverse, anchor : float64 (R, M, P, D)
        Posterior precision, its inverse, prior precision.
    factor : float64 (R, M, D, D)
        Lower Cholesky factor of H, or (R, M, 0, 0) where nobody draws the whole theta.
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


class History(NamedTuple):
    """What was observed, as shows and clicks of each distinct pair of model and feature vector, at most L of them.

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
    """1 / (1 + exp(-z)), without overflow."""
    if z >= 0.0:
        return float(1.0 / (1.0 + np.exp(-z)))
    e = np.exp(z)
    return float(e / (1.0 + e))


@njit(cache=True, nogil=True)
def softplus(z: float) -> float:
    """log(1 + exp(z)), without overflow: the log loss of a logit z that was not clicked."""
    return float(max(z, 0.0) + np.log1p(np.exp(-abs(z))))


@njit(cache=True, nogil=True)
def shift(logit: float, quadratic: float, reward: float, shows: float = 1.0) -> float:
    """How far along H^-1 x one observation moves the MAP: the s with s = reward - shows sigmoid(logit + s quadratic).

    The difference of both sides increases in s with slope at least 1, and s lies between reward - shows and reward:
    Newton, or half that interval where Newton would leave it or is not yet fast.
    """
    low, high = reward - shows, reward
    s, step = min(max(0.0, low), high), 1.0
    for _ in range(NEWTON):
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
def _find(history: History, r: int, m: int, x: FloatArray, bits: IntArray, col: IntArray) -> int:
    """The entry of a vector and model, made if it is new. ``bits (N,)`` are those of ``x``."""
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
    history: History, r: int, entries: IntArray, n: int, theta: FloatArray, center: FloatArray, anchor: FloatArray
) -> float:
    """1/2 (theta - center)' anchor (theta - center) + the log loss of the first ``n`` entries of a list."""
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
def _derivatives(
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
    """Gradient and (lower half of the) Hessian of `_loss`."""
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
        if N == D:  # stored whole: straight loops, which the compiler turns into vector instructions
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
                    hessian[a, history.columns[r, entry, j]] += weight * x_i * history.values[r, entry, j]


@njit(cache=True, nogil=True, fastmath=FAST)
def cholesky(A: FloatArray, factor: FloatArray) -> bool:
    """Lower half of ``factor`` <- that of L, A = L L', from that of A; False if A is not (finite and) positive."""
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
    """``inverse`` <- (L L')^-1, symmetric to the bit."""
    D = factor.shape[0]
    M = np.zeros((D, D))  # (L^-1)': its rows are the columns of L^-1
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
def _solve(factor: FloatArray, b: FloatArray) -> None:
    """``b`` <- (L L')^-1 b."""
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
    """``theta`` <- the minimum of `_loss` over the entries of model ``m``, found from where theta is.

    Newton's steps, halved while they overshoot. On return ``hessian`` (lower half) and its ``factor``, both (D, D),
    are those at theta. False, and a theta of NaN, if numbers have left the finite range.
    """
    D = theta.shape[0]
    entries, n = np.empty(history.used[r], np.int64), 0
    for entry in range(history.used[r]):
        if history.model[r, entry] == m:
            entries[n] = entry
            n += 1
    gradient, step, before = np.zeros(D), np.zeros(D), np.zeros(D)
    least, halved = np.inf, 0
    for _ in range(NEWTON):
        loss = _loss(history, r, entries, n, theta, center, anchor)
        if loss > least + 1e-9 * (1.0 + abs(least)) and halved < 30:
            halved += 1
            for i in range(D):
                step[i] *= 0.5
                theta[i] = before[i] + step[i]
            continue
        least, halved = loss, 0
        _derivatives(history, r, entries, n, theta, center, anchor, gradient, hessian)
        if not cholesky(hessian, factor):
            theta[:] = np.nan
            return False
        for i in range(D):
            step[i] = -gradient[i]
        _solve(factor, step)
        decrement = 0.0
        for i in range(D):
            decrement -= step[i] * gradient[i]
        if decrement < 1e-22:  # squared length of the step in units of the posterior's width
            break
        for i in range(D):
            before[i] = theta[i]
            theta[i] += step[i]
    return True


@njit(cache=True, nogil=True)
def _keep(factor: FloatArray, kept: FloatArray) -> None:
    for i in range(kept.shape[0]):
        for j in range(i + 1):
            kept[i, j] = factor[i, j]


@njit(cache=True, nogil=True)
def _refit(posterior: Posterior, history: History, r: int, m: int) -> None:
    """The exact MAP of one model given prior and history, and the Laplace posterior there."""
    theta, H, inverse = posterior.theta[r, m], posterior.H[r, m], posterior.inverse[r, m]
    D, whole = theta.shape[0], H.shape[0] > 1
    hessian, factor = np.empty((D, D)), np.empty((D, D))
    if not newton(history, r, m, posterior.center[r, m], posterior.anchor[r, m], theta, hessian, factor):
        return
    if whole:
        for i in range(D):
            for j in range(i + 1):
                H[i, j] = hessian[i, j]
                H[j, i] = hessian[i, j]
        invert(factor, inverse)
        _keep(factor, posterior.factor[r, m])
    else:
        for i in range(D):
            H[0, i] = hessian[i, i]
            inverse[0, i] = 1.0 / hessian[i, i]


@njit(cache=True, nogil=True)
def _fold(posterior: Posterior, history: History, r: int) -> None:
    """What a row believes becomes the prior of what follows, and its history begins anew."""
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
    """The inverse afresh from H, to wipe out the rounding of many rank-one updates."""
    P, D = posterior.H.shape[2], posterior.H.shape[3]
    factor = np.empty((D, D))
    if P > 1 and cholesky(posterior.H[r, m], factor):
        invert(factor, posterior.inverse[r, m])
        _keep(factor, posterior.factor[r, m])


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
    """One observation of one model: the posterior so far is the prior. ``u, rows (D,)`` are scratch."""
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
    if not np.isfinite(weight):  # the scores become NaN, which stops the row; H stays finite for its spectrum
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
    """One observation per slot shown, and every ``refit`` (0: never) observations of a model the exact fit.

    ``bits`` is ``values`` seen as integers, for hashing.
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
                x, col, rewards[r, s], shows[r, s], posterior.theta[r, m], posterior.H[r, m], posterior.inverse[r, m],
                posterior.factor[r, m], u, rows,
            )  # fmt: skip
            posterior.seen[r, m] += 1
            full, stale = False, posterior.seen[r, m] % REFRESH == 0
            if refit > 0:
                entry = _find(history, r, m, x, bits[c, k], col)
                history.shows[r, entry] += shows[r, s]
                history.clicks[r, entry] += rewards[r, s]
                full = history.used[r] == L
                due = posterior.seen[r, m] % refit == 0
                stale = stale and not due
                first, last = (0, M) if full else (m, m + int(due))
                for a in range(first, last):
                    _refit(posterior, history, r, a)
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
    """theta_m . x and x' H_m^-1 x for every candidate where H is diagonal, two of (R, K); ``inverse (R, M, 1, D)``."""
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
    starting: bool,
) -> None:
    """Take in the slots shown: into the history while ``starting``, then into the ``gradient`` at ``iterate``."""
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
            if starting:
                entry = _find(history, r, m, x, bits[c, k], col)
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
def sgd_start(history: History, ridge: FloatArray, center: FloatArray, iterate: FloatArray) -> None:
    """``center``, ``iterate`` <- the MAP of each model given the history."""
    R, M, D = center.shape
    nothing, prior = np.zeros(D), np.empty((1, D))
    hessian, factor = np.empty((D, D)), np.empty((D, D))
    for r in range(R):
        for i in range(D):
            prior[0, i] = ridge[r]
        for m in range(M):
            newton(history, r, m, nothing, prior, iterate[r, m], hessian, factor)
            for i in range(D):
                center[r, m, i] = iterate[r, m, i]


@njit(cache=True, nogil=True)
def sgd_step(
    j: int,
    rate: FloatArray,
    sigma2: FloatArray,
    radius: FloatArray,
    normals: FloatArray,
    center: FloatArray,
    iterate: FloatArray,
    mean: FloatArray,
    drawn: FloatArray,
    gradient: FloatArray,
) -> None:
    """The end of batch j = 1, 2, ...: one projected step, the mean of the iterates, and a draw around it.

    ``center, iterate, mean, drawn, gradient, normals (R, M, D)``; the ball is that of a row's M models together.
    """
    R, M, D = center.shape
    for r in range(R):
        square = 0.0
        for m in range(M):
            for d in range(D):
                iterate[r, m, d] -= rate[r] / j * gradient[r, m, d]
                away = iterate[r, m, d] - center[r, m, d]
                square += away * away
        keep = min(1.0, radius[r] / np.sqrt(square)) if square > 0.0 else 1.0
        width = np.sqrt(sigma2[r] / j)
        for m in range(M):
            for d in range(D):
                if keep < 1.0:
                    iterate[r, m, d] = center[r, m, d] + keep * (iterate[r, m, d] - center[r, m, d])
                mean[r, m, d] += (iterate[r, m, d] - mean[r, m, d]) / j
                drawn[r, m, d] = mean[r, m, d] + width * normals[r, m, d]
                gradient[r, m, d] = 0.0
