"""From scores or probabilities to a slate: the k best, epsilon-greedy exploration, and sampling by
Gumbel-top-k.

References
----------
Kool, van Hoof, Welling (2019), Stochastic beams and where to find them: the Gumbel-top-k trick;
Plackett (1975), The analysis of permutations.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray


@njit(cache=True, nogil=True)
def top_k(scores: FloatArray, available: BoolArray, alive: BoolArray, size: int) -> IntArray:
    """Select the ``size`` best available candidates, best first.

    Parameters
    ----------
    scores : float64 (R, K)
    available, alive : bool (R, K), (R,)
        A row whose available scores hold a NaN is marked False in ``alive``.
    size : int
        Length S of the slate.

    Returns
    -------
    int64 (R, S)
        Positions among the candidates; ties go to the lowest. Zeros in rows that are not alive.
    """
    R, K = scores.shape
    out = np.zeros((R, size), np.int64)
    for r in range(R):
        # candidates in out[r], whose scores descend, and the lowest of these
        n, least = 0, -np.inf
        for k in range(K if alive[r] else 0):
            score = scores[r, k]
            if (n == size and score <= least) or not available[r, k]:
                continue
            if np.isnan(score):
                alive[r] = False
                out[r] = 0
                break
            n = min(n + 1, size)
            s = n - 1
            while s > 0 and score > scores[r, out[r, s - 1]]:
                out[r, s] = out[r, s - 1]
                s -= 1
            out[r, s] = k
            least = scores[r, out[r, n - 1]]
    return out


@njit(cache=True, nogil=True)
def epsilon_slate(
    scores: FloatArray, available: BoolArray, epsilon: FloatArray, uniforms: FloatArray
) -> FloatArray:
    """Replace the candidate of each slot, with probability epsilon, by a random one of those left.

    Parameters
    ----------
    scores : float64 (R, K)
    available : bool (R, K)
    epsilon : float64 (R,)
    uniforms : float64 (R, S, 2)
        For each slot: whether it explores, and which candidate it then takes.

    Returns
    -------
    float64 (R, K)
        Scores whose order is that of the slate; unchanged in rows in which no slot explores.
    """
    R, K = scores.shape
    S = uniforms.shape[1]
    out = scores.copy()
    for r in range(R):
        explores = False
        for s in range(S):
            explores = explores or uniforms[r, s, 0] < epsilon[r]
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
            if uniforms[r, s, 0] < epsilon[r]:
                skip = min(int(uniforms[r, s, 1] * n), n - 1)
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
def epsilon_slots(n: IntArray, epsilon: FloatArray, size: int) -> FloatArray:
    """Compute the probability with which `epsilon_slate` shows the candidate of each rank in each
    slot.

    Before slot s, f is the rank of the best candidate left, and u = s - f of those behind it are
    used. Their ranks are a uniformly random subset of the n - f - 1 behind it, because exploration
    treats all of these alike.

    Parameters
    ----------
    n : int64 (R,)
        Candidates.
    epsilon : float64 (R,)
    size : int
        Slots S, at most n.

    Returns
    -------
    float64 (R, S, S + 1)
        By rank from 0, the best; the last entry is that of every rank from S on.
    """
    out = np.zeros((len(n), size, size + 1))
    for r in range(len(n)):
        # probability of f
        at = np.zeros(size + 1)
        at[0] = 1.0
        for s in range(size):
            after, each = np.zeros(size + 1), epsilon[r] / (n[r] - s)
            for f in range(s + 1):
                used, behind = s - f, n[r] - f - 1
                out[r, s, f] += at[f] * (1 - epsilon[r] + each)
                for rank in range(f + 1, size + 1):
                    if behind > 0:
                        out[r, s, rank] += at[f] * each * (1 - used / behind)
                after[f] += at[f] * each * (n[r] - s - 1)
                # the best one is used: ranks behind it may be used too
                reached = at[f] * (1 - epsilon[r] + each)
                for passed in range(used + 1):
                    more = (used - passed) / (behind - passed) if behind > passed else 0.0
                    after[f + 1 + passed] += reached * (1 - more)
                    reached *= more
            at = after
    return out


def gumbel_scores(probabilities: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Draw scores log p + Gumbel noise, whose best candidate is candidate k with probability p_k.

    The k best are a draw without replacement (Plackett-Luce): each slot takes one of the candidates
    left, with probabilities in proportion to theirs.

    Parameters
    ----------
    probabilities, uniforms : float64 (R, K)
        Probabilities of the first slot, and independent uniforms in [0, 1).

    Returns
    -------
    float64 (R, K)
        -inf where a probability is 0, NaN where it is NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.log(probabilities) - np.log(-np.log1p(-uniforms))
    return np.where(probabilities == 0, -np.inf, scores)


def indicator_of_largest(values: FloatArray) -> FloatArray:
    """Return 1 at the largest of the last axis (ties to the lowest index) and 0 elsewhere, float64
    like ``values``.
    """
    return np.asarray(_indicator(values.reshape(-1, values.shape[-1])).reshape(values.shape))


@njit(cache=True, nogil=True)
def _indicator(values: FloatArray) -> FloatArray:
    out = np.zeros(values.shape)
    for r in range(len(values)):
        largest = 0
        for k in range(values.shape[1]):
            # the first NaN, as numpy's argmax
            if np.isnan(values[r, k]):
                largest = k
                break
            if values[r, k] > values[r, largest]:
                largest = k
        out[r, largest] = 1.0
    return out


@njit(cache=True, nogil=True)
def mixed_with_uniform(
    probabilities: FloatArray, share: FloatArray, available: BoolArray
) -> FloatArray:
    """Mix a policy with uniform choice: (1 - share) p + share / n over the n available candidates.

    Parameters
    ----------
    probabilities : float64 (R, K)
    share : float64 (R,)
        In [0, 1].
    available : bool (R, K)
    """
    out = np.empty(probabilities.shape)
    for r in range(len(probabilities)):
        each = share[r] / available[r].sum()
        for k in range(probabilities.shape[1]):
            out[r, k] = (1 - share[r]) * probabilities[r, k] + (each if available[r, k] else 0.0)
    return out
