"""Compiled loops that advance many predrawn steps of ridge models, with the same bits as step by
step.

One item is shown at each step, in one of C fixed contexts with sparse features (see
`ridge_kernels`)."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.selection import (
    best_of,
    first_of_tied,
    inverse_gaps_of,
    leading_gumbel_scores,
    tied_from,
)
from bandits.base.types import BoolArray, FloatArray, IntArray, KeyArray

from .rank_one import REFRESH, refresh
from .ridge_kernels import learn_one


@njit(cache=True, nogil=True)
def play_per_arm(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    probabilities: FloatArray,
    row: IntArray,
    uniforms: FloatArray,
    alive: BoolArray,
    ties: KeyArray,
    start: int,
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
    gaps: FloatArray,
    exploration: FloatArray,
) -> IntArray:
    """Advance T steps with one model per arm.

    Mean and width of an arm in a context change only when that arm learns, so they are cached until
    then. ``context, row, uniforms (T, R)``; the score is mean + scale width noise (``wide``; empty
    ``noise``: 1), and with probability ``epsilon (T, R)`` the item is random, decided by
    ``exploration (T, R, 2)``. With ``gaps (T, R)`` it is drawn by inverse gaps of these weights and
    ``exploration (T, R, K)``. Ties are broken by the keys ``ties (R,)`` and the step, of which
    ``start`` are done.

    Returns
    -------
    int64 (T, R)
        The items shown; -1 from the step at which a row stopped.
    """
    T, R = context.shape
    C, K, N = values.shape
    u, rows = np.empty(b.shape[2]), np.empty(b.shape[2], np.int64)
    out = np.full((T, R), -1)
    mean, width = np.empty((C, K)), np.empty((C, K))
    known = np.empty((C, K), np.bool_)
    scores, every, shares = np.empty(K), np.ones(K, np.bool_), np.empty(K)
    for r in range(R):
        known[:] = False
        for t in range(T):
            if not alive[r]:
                break
            c = context[t, r]
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
                scores[k] = score
            if not alive[r]:
                break
            if gaps.shape[0] > 0:
                inverse_gaps_of(scores, gaps[t, r], every, shares)
                leading_gumbel_scores(shares, exploration[t, r], scores)
            best = best_of(scores, every, ties[r], start + t)
            if epsilon.shape[0] > 0 and exploration[t, r, 0] < epsilon[t, r]:
                best = min(int(exploration[t, r, 1] * K), K - 1)
            out[t, r] = best
            reward = 1.0 if uniforms[t, r] < probabilities[row[t, r], best] else 0.0
            learn_one(
                values[c, best],
                columns[c, best],
                reward,
                A[r, best],
                inverse[r, best],
                b[r, best],
                theta[r, best],
                factor[r, best],
                u,
                rows,
            )
            count[r, best] += 1
            if count[r, best] % REFRESH == 0:
                refresh(A[r, best], inverse[r, best], b[r, best], theta[r, best])
            known[:, best] = False
    return out


@njit(cache=True, nogil=True)
def play_shared(
    values: FloatArray,
    columns: IntArray,
    order: IntArray,
    begin: IntArray,
    context: IntArray,
    probabilities: FloatArray,
    row: IntArray,
    uniforms: FloatArray,
    alive: BoolArray,
    ties: KeyArray,
    start: int,
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
    gaps: FloatArray,
    exploration: FloatArray,
) -> IntArray:
    """Advance T steps with one model for all arms.

    ``order (C, K)`` and ``begin (C, U + 1)`` group the arms of a context by their feature vectors
    (`ridge.equal_features`): arms with the same vector have the same score. With ``noise
    (T, R, D)`` the score is x . theta~ with theta~ = theta + scale L'^-1 noise; otherwise arguments
    and result are those of `play_per_arm`."""
    T, R = context.shape
    K, N, D = values.shape[1], values.shape[2], b.shape[2]
    u, rows, drawn = np.empty(D), np.empty(D, np.int64), np.empty(D)
    scores, several = np.empty(K), np.empty(K, np.int64)
    each, shares, every = np.empty(K), np.empty(K), np.ones(K, np.bool_)
    out = np.full((T, R), -1)
    for r in range(R):
        for t in range(T):
            if not alive[r]:
                break
            c = context[t, r]
            mean = theta[r, 0]
            if noise.shape[0] > 0:
                drawn[:] = noise[t, r]
                for i in range(D - 1, -1, -1):
                    total = drawn[i] / factor[r, 0, i, i]
                    drawn[i] = total
                    if total != 0.0:
                        for j in range(i):
                            drawn[j] -= factor[r, 0, i, j] * total
                for i in range(D):
                    drawn[i] = theta[r, 0, i] + scale[r] * drawn[i]
                mean = drawn
            best, highest, floor, tied = 0, -np.inf, -np.inf, False
            for d in range(begin.shape[1] - 1):
                if begin[c, d] == K:
                    break
                k = order[c, begin[c, d]]
                score, quadratic = 0.0, 0.0
                for i in range(N):
                    x, a = values[c, k, i], columns[c, k, i]
                    score += x * mean[a]
                    if wide:
                        inner = 0.0
                        for j in range(N):
                            inner += inverse[r, 0, a, columns[c, k, j]] * values[c, k, j]
                        quadratic += x * inner
                if wide:
                    score += scale[r] * np.sqrt(max(quadratic, 0.0))
                if np.isnan(score):
                    alive[r] = False
                scores[d] = score
                if score > highest:
                    floor = tied_from(score)
                    best, tied, highest = d, highest >= floor, score
                elif score >= floor:
                    tied = True
            if not alive[r]:
                break
            equal = order[c, begin[c, best] : begin[c, best + 1]]
            if tied:
                n = 0
                for d in range(begin.shape[1] - 1):
                    for i in range(begin[c, d], begin[c, d + 1]):
                        if scores[d] >= floor:
                            several[n] = order[c, i]
                            n += 1
                equal = several[:n]
            best = first_of_tied(equal, ties[r], start + t) if len(equal) > 1 else equal[0]
            if gaps.shape[0] > 0:
                for d in range(begin.shape[1] - 1):
                    for i in range(begin[c, d], begin[c, d + 1]):
                        each[order[c, i]] = scores[d]
                inverse_gaps_of(each, gaps[t, r], every, shares)
                leading_gumbel_scores(shares, exploration[t, r], each)
                best = best_of(each, every, ties[r], start + t)
            if epsilon.shape[0] > 0 and exploration[t, r, 0] < epsilon[t, r]:
                best = min(int(exploration[t, r, 1] * K), K - 1)
            out[t, r] = best
            reward = 1.0 if uniforms[t, r] < probabilities[row[t, r], best] else 0.0
            learn_one(
                values[c, best],
                columns[c, best],
                reward,
                A[r, 0],
                inverse[r, 0],
                b[r, 0],
                theta[r, 0],
                factor[r, 0],
                u,
                rows,
            )
            count[r, 0] += 1
            if count[r, 0] % REFRESH == 0:
                refresh(A[r, 0], inverse[r, 0], b[r, 0], theta[r, 0])
    return out
