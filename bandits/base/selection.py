"""From scores or probabilities to a slate: the k best, epsilon-greedy exploration, and sampling by Gumbel-top-k."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray


@njit(cache=True, nogil=True)
def top_k(scores: FloatArray, available: BoolArray, alive: BoolArray, size: int) -> IntArray:
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
