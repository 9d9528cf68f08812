"""From scores or probabilities to a slate: the k best, epsilon-greedy exploration, and sampling by
Gumbel-top-k.

Candidates whose scores differ by rounding alone (`TIE`) are tied, and a tie is broken at random:
the one with the highest priority is shown. The priority is a hash of the row's key
(`bandits.base.randomness.Streams.ties`), the step and the candidate's index. Nothing is drawn and
nothing is stored, so that it depends neither on chunks nor on other rows, and all agents of a
replication break the same tie in the same way.

References
----------
Steele, Lea, Flood (2014), Fast splittable pseudorandom number generators: SplitMix64, the hash;
Kool, van Hoof, Welling (2019), Stochastic beams and where to find them: the Gumbel-top-k trick;
Plackett (1975), The analysis of permutations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray, KeyArray

# share of the highest score by which another one may be lower and is tied with it: rounding
TIE = 2.0**-40
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
# of the ratio of two weights, above what is rounded and what `TIE` ties
_SLACK = 1e-8


@njit(cache=True, nogil=True)
def hashed(key: Any, counter: int) -> Any:
    """Return the number of SplitMix64 with the seed ``key`` at a place of its sequence, uint64."""
    word = key + np.uint64(counter + 1) * _GOLDEN
    word = (word ^ (word >> _SHIFTS[0])) * _FACTORS[0]
    word = (word ^ (word >> _SHIFTS[1])) * _FACTORS[1]
    return word ^ (word >> _SHIFTS[2])


@njit(cache=True, nogil=True)
def redraw_keys(ties: KeyArray, step: int) -> KeyArray:
    """Return keys (R,) that break the ties of redraws of one step: redraw i is their step i."""
    out = np.empty(len(ties), np.uint64)
    for r in range(len(ties)):
        # other numbers than those of the choice itself
        out[r] = hashed(~ties[r], step)
    return out


@njit(cache=True, nogil=True)
def tied_from(highest: float) -> float:
    """Return the lowest score that is tied with the highest one."""
    return highest - TIE * abs(highest) if np.isfinite(highest) else highest


@njit(cache=True, nogil=True)
def first_of_tied(candidates: IntArray, key: Any, step: int) -> int:
    """Return the one of the ``candidates (n,)`` with the highest priority."""
    decision, best, highest = hashed(key, step), 0, np.uint64(0)
    for k in candidates:
        priority = hashed(decision, k)
        if priority >= highest:
            best, highest = k, priority
    return best


@njit(cache=True, nogil=True)
def best_of(scores: FloatArray, left: BoolArray, key: Any, step: int) -> int:
    """Return the candidate with the highest score among those ``left``, at least one; ties at
    random.

    Parameters
    ----------
    scores : float64 (K,)
        Without NaN.
    left : bool (K,)
    key : uint64
        Of the row.
    step : int
    """
    best, highest, floor, tied = 0, -np.inf, -np.inf, False
    for k in range(len(scores)):
        score = scores[k]
        if score < floor or not left[k]:
            continue
        if score > highest:
            floor = tied_from(score)
            best, tied, highest = k, highest >= floor, score
        else:
            tied = True
    if tied:
        # one by one: arrays of conditions take the compiler a second
        candidates, n = np.empty(len(scores), np.int64), 0
        for k in range(len(scores)):
            if left[k] and scores[k] >= floor:
                candidates[n] = k
                n += 1
        best = first_of_tied(candidates[:n], key, step)
    return best


@njit(cache=True, nogil=True)
def top_k(
    scores: FloatArray,
    available: BoolArray,
    alive: BoolArray,
    size: int,
    ties: KeyArray,
    step: int,
) -> IntArray:
    """Select the ``size`` best available candidates, best first, ties at random.

    Parameters
    ----------
    scores : float64 (R, K)
    available, alive : bool (R, K), (R,)
        A row whose available scores hold a NaN is marked False in ``alive``.
    size : int
        Length S of the slate.
    ties : uint64 (R,)
        Key of each row.
    step : int
        Of the decision.

    Returns
    -------
    int64 (R, S)
        Positions among the candidates. Zeros in rows that are not alive.
    """
    R, K = scores.shape
    out = np.zeros((R, size), np.int64)
    for r in range(R):
        # candidates in out[r], whose scores descend; the lowest of these, and what is tied with it
        n, least, floor = 0, -np.inf, -np.inf
        # whether the best candidate that is not in out[r] is tied with the last one that is
        tied = False
        for k in range(K if alive[r] else 0):
            score = scores[r, k]
            if (n == size and score < floor) or not available[r, k]:
                continue
            if np.isnan(score):
                alive[r] = False
                break
            if n == size and score <= least:
                tied = True
                continue
            full, best_outside = n == size, least
            n = min(n + 1, size)
            s = n - 1
            while s > 0 and score > scores[r, out[r, s - 1]]:
                out[r, s] = out[r, s - 1]
                s -= 1
            out[r, s] = k
            least = scores[r, out[r, n - 1]]
            floor = tied_from(least)
            tied = full and best_outside >= floor
        if not alive[r]:
            out[r] = 0
            continue
        for s in range(1, n):
            tied = tied or scores[r, out[r, s]] >= tied_from(scores[r, out[r, s - 1]])
        if tied:
            left = available[r].copy()
            for s in range(n):
                out[r, s] = best_of(scores[r], left, ties[r], step)
                left[out[r, s]] = False
    return out


@njit(cache=True, nogil=True)
def best_of_tables(tables: FloatArray, index: IntArray, ties: KeyArray, start: int) -> IntArray:
    """Return the candidate with the highest score in a table at each step, ties at random.

    Parameters
    ----------
    tables : float64 (P, K)
        Without NaN.
    index : int64 (T, R)
        The table of each row at each step.
    ties : uint64 (R,)
    start : int
        Number of steps before the first of these.

    Returns
    -------
    int64 (T, R)
    """
    P, K = tables.shape
    out = np.empty(index.shape, np.int64)
    # the candidates that are tied in each table, and how many they are
    best, n = np.empty((P, K), np.int64), np.empty(P, np.int64)
    for p in range(P):
        highest = tables[p, 0]
        for k in range(1, K):
            highest = max(highest, tables[p, k])
        n[p] = 0
        for k in range(K):
            if tables[p, k] >= tied_from(highest):
                best[p, n[p]] = k
                n[p] += 1
    for t in range(len(index)):
        for r in range(index.shape[1]):
            p = index[t, r]
            out[t, r] = best[p, 0]
            if n[p] > 1:
                out[t, r] = first_of_tied(best[p, : n[p]], ties[r], start + t)
    return out


def explored_share(estimates: FloatArray, available: BoolArray, slate: IntArray) -> FloatArray:
    """Compute the share of the items of ``slate (R, S)`` that are not among the S best by their
    estimates, float64 (R,).

    Parameters
    ----------
    estimates : float64 (R, K)
        NaN without observations, which is below every number. An item that is tied with the S-th
        best is not explored.
    available : bool (R, K)
    slate : int64 (R, S)
    """
    known = np.where(available & ~np.isnan(estimates), estimates, -np.inf)
    last = np.partition(known, -slate.shape[1], axis=1)[:, -slate.shape[1]]
    floor = np.where(np.isfinite(last), last - TIE * np.abs(last), last)
    return np.asarray((np.take_along_axis(known, slate, axis=1) < floor[:, None]).mean(axis=1))


@njit(cache=True, nogil=True)
def epsilon_slate(
    scores: FloatArray,
    available: BoolArray,
    epsilon: FloatArray,
    uniforms: FloatArray,
    ties: KeyArray,
    step: int,
) -> FloatArray:
    """Replace the candidate of each slot, with probability epsilon, by a random one of those left.

    Parameters
    ----------
    scores : float64 (R, K)
    available : bool (R, K)
    epsilon : float64 (R,)
    uniforms : float64 (R, S, 2)
        For each slot: whether it explores, and which candidate it then takes.
    ties, step
        As in `top_k`.

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
                chosen = best_of(scores[r], left, ties[r], step)
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


@njit(cache=True, nogil=True)
def leading_gumbel_scores(weights: FloatArray, uniforms: FloatArray, out: FloatArray) -> None:
    """Compute `gumbel_scores` of the candidates that may have the best one, -inf for the others.

    The order of the scores is that of p / -log(1 - u), which is at most p / u: most candidates are
    left out without a logarithm.

    Parameters
    ----------
    weights : float64 (K,)
        Probabilities, or numbers in proportion to them.
    uniforms : float64 (K,)
    out : float64 (K,)
        Where a weight is NaN, so is the score.
    """
    first = 0
    for k in range(len(weights)):
        if weights[k] * uniforms[first] > weights[first] * uniforms[k]:
            first = k
    weight, wait = weights[first], -np.log1p(-uniforms[first])
    for k in range(len(weights)):
        out[k] = -np.inf
        if weights[k] == 0 or weights[k] * wait * (1 + _SLACK) < weight * uniforms[k]:
            continue
        own = -np.log1p(-uniforms[k])
        out[k] = np.log(weights[k]) - np.log(own)
        if weights[k] * wait > weight * own:
            weight, wait = weights[k], own


@njit(cache=True, nogil=True)
def slots_by_rank(by_rank: FloatArray, scores: FloatArray, available: BoolArray) -> FloatArray:
    """Compute the probability that each candidate fills each slot, from that of its rank by score.

    Tied candidates share the ranks that they occupy.

    Parameters
    ----------
    by_rank : float64 (R, S, S + 1)
        By rank from 0, the best; the last entry is that of every rank from S on.
    scores : float64 (R, K)
    available : bool (R, K)

    Returns
    -------
    float64 (R, S, K)
        0 for candidates that are not available.
    """
    R, K = scores.shape
    S = by_rank.shape[1]
    out = np.zeros((R, S, K))
    for r in range(R):
        ranked = np.flatnonzero(available[r])
        ranked = ranked[np.argsort(-scores[r][ranked])]
        first = 0
        while first < len(ranked):
            end, floor = first + 1, tied_from(scores[r, ranked[first]])
            while end < len(ranked) and scores[r, ranked[end]] >= floor:
                end += 1
            for s in range(S):
                total = 0.0
                for rank in range(first, end):
                    total += by_rank[r, s, min(rank, S)]
                for rank in range(first, end):
                    out[r, s, ranked[rank]] = total / (end - first)
            first = end
    return out


def best_slots(scores: FloatArray, available: BoolArray, size: int) -> FloatArray:
    """Compute the probability that `top_k` shows each candidate in each slot: 1 or 0 without ties.

    Parameters
    ----------
    scores, available : (R, K)
    size : int
        S.

    Returns
    -------
    float64 (R, S, K)
    """
    order = np.tile(np.eye(size, size + 1), (len(scores), 1, 1))
    return np.asarray(slots_by_rank(order, scores, available))


def shares_of_largest(values: FloatArray) -> FloatArray:
    """Share 1 among the largest of the last axis; 0 elsewhere, float64 like ``values``.

    The first NaN of a row has the 1.
    """
    return np.asarray(_shares(values.reshape(-1, values.shape[-1])).reshape(values.shape))


@njit(cache=True, nogil=True)
def _shares(values: FloatArray) -> FloatArray:
    out = np.zeros(values.shape)
    for r in range(len(values)):
        highest, diverged = -np.inf, -1
        for k in range(values.shape[1]):
            if np.isnan(values[r, k]):
                diverged = k
                break
            highest = max(highest, values[r, k])
        if diverged >= 0:
            out[r, diverged] = 1.0
            continue
        floor, n = tied_from(highest), 0
        for k in range(values.shape[1]):
            n += values[r, k] >= floor
        for k in range(values.shape[1]):
            if values[r, k] >= floor:
                out[r, k] = 1.0 / n
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


@njit(cache=True, nogil=True)
def softmax_of(preferences: FloatArray, out: FloatArray) -> None:
    """Write exp(preference) / sum of exp to ``out (K,)``; 0 where a preference is -inf."""
    highest, total = preferences.max(), 0.0
    for k in range(len(out)):
        out[k] = np.exp(preferences[k] - highest)
        total += out[k]
    for k in range(len(out)):
        out[k] /= total


@njit(cache=True, nogil=True)
def softmax(preferences: FloatArray, available: BoolArray) -> FloatArray:
    """Compute `softmax_of` over the available candidates, float64 (R, K)."""
    out = np.empty(preferences.shape)
    for r in range(len(out)):
        softmax_of(np.where(available[r], preferences[r], -np.inf), out[r])
    return out


@njit(cache=True, nogil=True)
def inverse_gaps(estimates: FloatArray, weight: FloatArray, available: BoolArray) -> FloatArray:
    """Weight candidates by the inverse of the gap to the best estimate.

    p_a = 1 / (n + weight (y_b - y_a)) over the n available candidates; what is left of 1 is shared
    by those that are tied for the best.

    Parameters
    ----------
    estimates : float64 (R, K)
    weight : float64 (R,)
        Not negative.
    available : bool (R, K)

    Returns
    -------
    float64 (R, K)
        NaN where an estimate is NaN.

    References
    ----------
    Abe, Long (1999), Associative reinforcement learning using linear probabilistic concepts.
    """
    out = np.zeros(estimates.shape)
    for r in range(len(estimates)):
        inverse_gaps_of(estimates[r], weight[r], available[r], out[r])
    return out


@njit(cache=True, nogil=True)
def inverse_gaps_of(
    estimates: FloatArray, weight: float, available: BoolArray, out: FloatArray
) -> None:
    """Write `inverse_gaps` of one row to ``out (K,)``."""
    n, highest = 0, -np.inf
    for k in range(len(estimates)):
        if available[k]:
            n += 1
            highest = max(highest, estimates[k])
    floor, left, tied = tied_from(highest), 1.0, 0
    for k in range(len(estimates)):
        out[k] = 0.0
        if not available[k]:
            continue
        if estimates[k] >= floor:
            tied += 1
        else:
            out[k] = 1 / (n + weight * (highest - estimates[k]))
            left -= out[k]
    for k in range(len(estimates)):
        if available[k] and estimates[k] >= floor:
            out[k] = left / tied
