"""The compiled hot loops: one call serves all rows of a step.

Features come as stored entries (see `rounds.Contexts`), so that a one-hot vector costs its two non-zeros. Each
row is worked through alone: its bits never depend on its neighbours. Compiled once, cached on disk.

``model (R, K)`` says which ridge model each candidate uses. Arrays are C-contiguous float64 unless said.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray

REFRESH = 4096  # updates of a model after which its inverse is computed afresh from A
_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
def top(scores: FloatArray, available: BoolArray, alive: BoolArray, size: int) -> IntArray:
    """Positions of the ``size`` best available candidates, best first, int64 (R, size).

    Ties go to the lowest position. A row whose available scores hold a NaN is marked dead in ``alive``.
    """
    R, K = scores.shape
    out = np.zeros((R, size), np.int64)
    taken = np.zeros(K, np.bool_)
    for r in range(R):
        if not alive[r]:
            continue
        if size > 1:
            taken[:] = False
        for s in range(size):
            best, found = 0, False
            for k in range(K):
                if not available[r, k] or taken[k]:
                    continue
                if np.isnan(scores[r, k]):
                    alive[r] = False
                if not found or scores[r, k] > scores[r, best]:
                    best, found = k, True
            out[r, s] = best
            if size > 1:
                taken[best] = True
    return out


@njit(cache=True, nogil=True)
def click(
    probabilities: FloatArray,
    best: IntArray,
    average: FloatArray,
    context: IntArray,
    slate: IntArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """One product shown, one coin: rewards (R, 1), value, best_value, random_value, best_reward (R,)."""
    R = context.shape[0]
    rewards = np.empty((R, 1))
    value, best_value = np.empty(R), np.empty(R)
    random_value, best_reward = np.empty(R), np.empty(R)
    for r in range(R):
        c = context[r]
        value[r] = probabilities[c, slate[r, 0]]
        best_value[r] = probabilities[c, best[c]]
        random_value[r] = average[c]
        rewards[r, 0] = 1.0 if uniforms[r, 0] < value[r] else 0.0
        best_reward[r] = 1.0 if uniforms[r, 0] < best_value[r] else 0.0
    return rewards, value, best_value, random_value, best_reward


@njit(cache=True, nogil=True)
def epsilon_slate(scores: FloatArray, available: BoolArray, epsilon: FloatArray, dice: FloatArray) -> FloatArray:
    """Scores in which each slot's candidate was replaced, with probability epsilon, by a random one left.

    ``dice (R, S, 2)``: the coin and the choice. Rows in which no slot explores keep their scores.
    """
    R, K = scores.shape
    S = dice.shape[1]
    out = scores.copy()
    for r in range(R):
        explores = False
        for s in range(S):
            explores = explores or dice[r, s, 0] < epsilon[r]
        if not explores:
            continue
        left = available[r].copy()
        out[r, :] = 0.0
        for s in range(S):
            n = 0
            for k in range(K):
                n += left[k]
            if n == 0:
                break
            chosen = -1
            if dice[r, s, 0] < epsilon[r]:
                skip = min(int(dice[r, s, 1] * n), n - 1)
                for k in range(K):
                    if left[k]:
                        if skip == 0:
                            chosen = k
                            break
                        skip -= 1
            else:
                for k in range(K):
                    if left[k] and (chosen < 0 or scores[r, k] > scores[r, chosen]):
                        chosen = k
            left[chosen] = False
            out[r, chosen] = S - s
    return out


@njit(cache=True, nogil=True)
def ridge_mean(
    values: FloatArray, columns: IntArray, context: IntArray, model: IntArray, theta: FloatArray
) -> FloatArray:
    """theta_m . x for every candidate, (R, K); ``theta (R, M, D)``."""
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


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dense_predict(x: FloatArray, theta: FloatArray, inverse: FloatArray) -> tuple[float, float]:
    """theta . x and x' A^-1 x: straight loops, which the compiler turns into vector instructions."""
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
    """theta_m . x and x' A_m^-1 x for every candidate, two of (R, K); ``inverse (R, M, D, D)``."""
    R, K = model.shape
    N = values.shape[2]
    mean, variance = np.empty((R, K)), np.empty((R, K))
    for r in range(R):
        c = context[r]
        for k in range(K):
            m = model[r, k]
            total, quadratic = 0.0, 0.0
            if theta.shape[2] == N:
                total, quadratic = _dense_predict(values[c, k], theta[r, m], inverse[r, m])
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
def _direction(
    values: FloatArray, columns: IntArray, inverse: FloatArray, u: FloatArray, rows: IntArray
) -> tuple[float, int]:
    """u = A^-1 x; returns x' A^-1 x and how many entries of u are not zero (their indices in ``rows``)."""
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
def _shrink(inverse: FloatArray, u: FloatArray, rows: IntArray, used: int, gain: float) -> None:
    """A^-1 <- A^-1 - u u' gain (Sherman and Morrison), symmetric to the bit."""
    for a in range(used):
        i = rows[a]
        for b in range(used):
            j = rows[b]
            inverse[i, j] -= (u[i] * u[j]) * gain


@njit(cache=True, nogil=True)
def cholesky_update(factor: FloatArray, x: FloatArray) -> None:
    """L <- the lower factor of L L' + x x'; destroys ``x``. Zeros of x cost nothing."""
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


@njit(cache=True, nogil=True)
def _learn_one(
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
    """One observation of one model; ``u, rows (D,)`` are scratch."""
    N = x.shape[0]
    quadratic, used = _direction(x, col, inverse, u, rows)
    gain = 1.0 / (1.0 + quadratic)
    error = reward
    for i in range(N):
        error -= x[i] * theta[col[i]]
    _shrink(inverse, u, rows, used, gain)
    for a in range(used):
        theta[rows[a]] += u[rows[a]] * (gain * error)
    for i in range(N):
        b[col[i]] += reward * x[i]
        for j in range(N):
            A[col[i], col[j]] += x[i] * x[j]
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
    """One observation per examined slot: A += x x', b += r x, and A^-1, theta with them.

    ``A, inverse (R, M, D, D)``, ``b, theta (R, M, D)``, ``count (R, M)``; ``factor`` is the lower Cholesky factor
    of A, shape (R, M, D, D), or (R, M, 0, 0) where nobody draws from the joint posterior.
    """
    R, S = slate.shape
    u, rows = np.empty(b.shape[2]), np.empty(b.shape[2], np.int64)
    for r in range(R):
        c = context[r]
        for s in range(S):
            if not examined[r, s]:
                continue
            k = slate[r, s]
            m = model[r, k]
            _learn_one(
                values[c, k], columns[c, k], rewards[r, s],
                A[r, m], inverse[r, m], b[r, m], theta[r, m], factor[r, m], u, rows,
            )  # fmt: skip
            count[r, m] += 1
            if count[r, m] % REFRESH == 0:
                inverse[r, m] = np.linalg.inv(A[r, m])
                theta[r, m] = inverse[r, m] @ b[r, m]


@njit(cache=True, nogil=True)
def play_per_arm(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    probabilities: FloatArray,
    uniforms: FloatArray,
    alive: BoolArray,
    A: FloatArray,
    inverse: FloatArray,
    b: FloatArray,
    theta: FloatArray,
    count: IntArray,
    factor: FloatArray,
    scale: FloatArray,
    wide: bool,
    noise: FloatArray,
    epsilon: FloatArray,
    dice: FloatArray,
) -> IntArray:
    """A stretch of T steps with one model per arm and one product shown: items (T, R), -1 where a row has stopped.

    The step by step of the engine in one loop, to the same bits. Mean and width of an arm in a context change only
    when that arm learns, so they are kept until then. ``context, uniforms (T, R)``; scores are
    mean + scale width noise (``wide``; no ``noise``: 1), and with chance ``epsilon (T, R)`` a random item.
    """
    T, R = context.shape
    C, K, N = values.shape
    u, rows = np.empty(b.shape[2]), np.empty(b.shape[2], np.int64)
    out = np.full((T, R), -1)
    mean, width = np.empty((C, K)), np.empty((C, K))
    known = np.empty((C, K), np.bool_)
    for r in range(R):
        known[:] = False
        for t in range(T):
            if not alive[r]:
                break
            c = context[t, r]
            best, highest = 0, 0.0
            for k in range(K):
                if not known[c, k]:
                    total, quadratic = 0.0, 0.0
                    for i in range(N):
                        x, a = values[c, k, i], columns[c, k, i]
                        total += x * theta[r, k, a]
                        if wide:
                            inner = 0.0
                            for j in range(N):
                                inner += inverse[r, k, a, columns[c, k, j]] * values[c, k, j]
                            quadratic += x * inner
                    mean[c, k], width[c, k] = total, np.sqrt(max(quadratic, 0.0))
                    known[c, k] = True
                score = mean[c, k]
                if wide:
                    if noise.shape[0] > 0:
                        score += scale[r] * width[c, k] * noise[t, r, k]
                    else:
                        score += scale[r] * width[c, k]
                if np.isnan(score):
                    alive[r] = False
                if k == 0 or score > highest:
                    best, highest = k, score
            if not alive[r]:
                break
            if epsilon.shape[0] > 0 and dice[t, r, 0] < epsilon[t, r]:
                best = min(int(dice[t, r, 1] * K), K - 1)
            out[t, r] = best
            reward = 1.0 if uniforms[t, r] < probabilities[c, best] else 0.0
            _learn_one(
                values[c, best], columns[c, best], reward,
                A[r, best], inverse[r, best], b[r, best], theta[r, best], factor[r, best], u, rows,
            )  # fmt: skip
            count[r, best] += 1
            if count[r, best] % REFRESH == 0:
                inverse[r, best] = np.linalg.inv(A[r, best])
                theta[r, best] = inverse[r, best] @ b[r, best]
            known[:, best] = False
    return out


@njit(cache=True, nogil=True, fastmath=_FAST)
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
    """Mean, variance and the arm's own part of the variance, three of (R, K), of the hybrid model (z = x).

    With y = A_a^-1 x: mean = theta_a . x + ridge beta . y and
    variance = x . y + ridge^2 y' A_0^-1 y (Li et al., Algorithm 2, simplified for z = x).
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
    """One observation per examined slot for the hybrid model (Li et al., Algorithm 2, with z = x).

    For z = x the cross terms are B_a = A_a - ridge I, so the shared part sees only
    A_0 += ridge^2 u u' / (1 + x'u) and b_0 += ridge (change of theta_a), with u = A_a^-1 x: rank one again.
    ``theta`` here is A_a^-1 b_a. ``A0, shared (R, D, D)``: the shared matrix and its inverse; ``factor`` its
    Cholesky factor, or (R, 0, 0).
    """
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
            quadratic, used = _direction(x, col, inverse[r, m], u, rows)
            gain = 1.0 / (1.0 + quadratic)
            error = rewards[r, s]
            for i in range(N):
                error -= x[i] * theta[r, m, col[i]]
            _shrink(inverse[r, m], u, rows, used, gain)
            v[:] = 0.0
            for a in range(used):
                i = rows[a]
                theta[r, m, i] += u[i] * (gain * error)
                b0[r, i] += ridge[r] * u[i] * (gain * error)
                v[i] = ridge[r] * u[i] * np.sqrt(gain)
            for i in range(N):
                b[r, m, col[i]] += rewards[r, s] * x[i]
                for j in range(N):
                    A[r, m, col[i], col[j]] += x[i] * x[j]
            # the shared matrix grows by v v'
            quadratic = 0.0
            for i in range(D):
                total = 0.0
                for j in range(D):
                    total += shared[r, i, j] * v[j]
                    A0[r, i, j] += v[i] * v[j]
                w[i] = total
                quadratic += v[i] * total
            _shrink(shared[r], w, every, D, 1.0 / (1.0 + quadratic))
            count[r, m] += 1
            if count[r, m] % REFRESH == 0:
                inverse[r, m] = np.linalg.inv(A[r, m])
                theta[r, m] = inverse[r, m] @ b[r, m]
                shared[r] = np.linalg.inv(A0[r])
            for i in range(D):
                total = 0.0
                for j in range(D):
                    total += shared[r, i, j] * b0[r, j]
                beta[r, i] = total
            if factor.shape[1] > 0:
                cholesky_update(factor[r], v)


@njit(cache=True, nogil=True)
def posterior_noise(factor: FloatArray, normals: FloatArray) -> FloatArray:
    """L'^-1 z: noise with covariance A^-1 when A = L L', (R, D) from ``factor (R, D, D)``, ``normals (R, D)``."""
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
    """Take one old observation per slot out of its model: the downdate that undoes `ridge_update`.

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
            quadratic, used = _direction(x, col, inverse[r, m], u, rows)
            if 1.0 - quadratic < 1e-2:  # what remains is little: the difference of large numbers, so compute it afresh
                for i in range(N):
                    b[r, m, col[i]] -= rewards[r, s] * x[i]
                    for j in range(N):
                        A[r, m, col[i], col[j]] -= x[i] * x[j]
                inverse[r, m] = np.linalg.inv(A[r, m])
                theta[r, m] = inverse[r, m] @ b[r, m]
                count[r, m] += 1
                continue
            gain = -1.0 / (1.0 - quadratic)
            error = rewards[r, s]
            for i in range(N):
                error -= x[i] * theta[r, m, col[i]]
            _shrink(inverse[r, m], u, rows, used, gain)
            for a in range(used):
                theta[r, m, rows[a]] += u[rows[a]] * (gain * error)
            for i in range(N):
                b[r, m, col[i]] -= rewards[r, s] * x[i]
                for j in range(N):
                    A[r, m, col[i], col[j]] -= x[i] * x[j]
            count[r, m] += 1  # counts changes, so that the inverse is refreshed often enough
            if count[r, m] % REFRESH == 0:
                inverse[r, m] = np.linalg.inv(A[r, m])
                theta[r, m] = inverse[r, m] @ b[r, m]


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
    """Mean and variance of every candidate under discounted ridge models, two of (R, K).

    In eigenvector coordinates of the fading Gram matrix: y = (age g + ridge)^-1 Q'x; mean = age y . Q'b,
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
    """Age the models of the examined slots to after this step, add the observations, decompose afresh."""
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
            found, basis = np.linalg.eigh(gram[r, m])
            basis = np.ascontiguousarray(basis)
            across = np.ascontiguousarray(basis.T)
            vectors[r, m] = basis
            eigenvalues[r, m] = np.maximum(found, 0.0)
            turned[r, m] = across @ gram2[r, m] @ basis
            target[r, m] = across @ b[r, m]
