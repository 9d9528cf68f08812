"""A cap on the share of each arm."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numba import njit

from bandits.agents.base import Agent
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
from bandits.base.selection import top_k
from bandits.base.types import BoolArray, FloatArray, IntArray, Round, SimulatorSpec

from . import params
from .base import Guard, decided

# of an arm that may be shown
LOWEST = -1e300


class Cap(Guard):
    """Shows no arm in more than the share c of the last w decisions: an arm at its limit is not
    available.

    The agent chooses among the other arms, so that a stochastic policy gives what is cut to them in
    proportion, and a deterministic one takes its next best. In n decisions, up to w, an arm is
    shown at most ceil(c n) times; while fewer arms than the slate needs are below that, all those
    with the fewest shows are allowed too."""

    guard: params.Cap

    def __init__(self, guard: params.Cap, inner: Agent, streams: Streams, position: int) -> None:
        super().__init__(guard, inner, streams, position)
        R = len(self.params)
        # items of the last decisions
        self.ring = np.full((guard.window - 1, R, self.spec.slate), -1, np.int64)
        # of each item among them
        self.shows = np.zeros((R, self.spec.n_items), np.int64)
        self.state = ("ring", "shows")

    def allowed(self, round: Round) -> Round:
        """Return the round with the arms at their limit not available."""
        n = min(round.step + 1, self.guard.window)
        limit = math.ceil(self.guard.share * n - 1e-9)
        below = allowed(self.shows, round.items, round.available, limit, self.spec.slate)
        return Round(*round[:5], below, round.segments)

    def scores(self, round: Round) -> FloatArray:
        left = self.allowed(round)
        return masked(self.inner.scores(left), left.available)

    def shown(self, round: Round, slate: IntArray) -> None:
        super().shown(round, slate)
        record(self.shows, self.ring[round.step % len(self.ring)], round.items, slate)

    def probabilities(self, round: Round) -> FloatArray:
        return self.inner.probabilities(self.allowed(round))

    def slot_probabilities(self, round: Round) -> FloatArray:
        return self.inner.slot_probabilities(self.allowed(round))

    def explain(self, round: Round) -> Explanation:
        left = self.allowed(round)
        inner = self.inner.explain(left)
        alive, ties = np.ones(len(round.items), np.bool_), self.streams.ties
        best = top_k(inner.score, round.available, alive, 1, ties, round.step)[:, 0]
        cut = ~left.available[np.arange(len(best)), best]
        guard = decided(inner, cut, "its first choice was at the limit of the exposure cap")
        randomised = cut if inner.randomised is None else cut | inner.randomised
        score = masked(inner.score, left.available)
        return inner._replace(score=score, randomised=randomised, guard=guard)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        left = self.allowed(round)
        for scores in self.inner.redraws(left, generator):
            yield masked(scores, left.available)

    @staticmethod
    def guard_memory(guard: params.Cap, spec: SimulatorSpec) -> int:
        """Compute the bytes per row."""
        return 8 * (guard.window * spec.slate + spec.n_items + 4 * spec.n_candidates)


@njit(cache=True, nogil=True)
def masked(scores: FloatArray, available: BoolArray) -> FloatArray:
    """Return the scores (R, K), -inf where a candidate is not available; NaN stays NaN."""
    out = np.empty(scores.shape)
    for r in range(len(scores)):
        for k in range(scores.shape[1]):
            score = scores[r, k]
            out[r, k] = (score if not score < LOWEST else LOWEST) if available[r, k] else -np.inf
    return out


@njit(cache=True, nogil=True)
def allowed(
    shows: IntArray, items: IntArray, available: BoolArray, limit: int, size: int
) -> BoolArray:
    """Return the available candidates with less than ``limit`` shows, and while these are fewer
    than ``size`` all those with the fewest shows.
    """
    R, K = items.shape
    out = np.zeros((R, K), np.bool_)
    for r in range(R):
        n = 0
        for k in range(K):
            if available[r, k] and shows[r, items[r, k]] < limit:
                out[r, k] = True
                n += 1
        while n < size:
            fewest = -1
            for k in range(K):
                if not available[r, k] or out[r, k]:
                    continue
                if fewest < 0 or shows[r, items[r, k]] < fewest:
                    fewest = shows[r, items[r, k]]
            if fewest < 0:
                break
            for k in range(K):
                if available[r, k] and not out[r, k] and shows[r, items[r, k]] == fewest:
                    out[r, k] = True
                    n += 1
    return out


@njit(cache=True, nogil=True)
def record(shows: IntArray, place: IntArray, items: IntArray, slate: IntArray) -> None:
    """Replace the oldest decision, in ``place (R, S)``, by the items of ``slate (R, S)``."""
    R, S = slate.shape
    for r in range(R):
        for s in range(S):
            if place[r, s] >= 0:
                shows[r, place[r, s]] -= 1
            place[r, s] = items[r, slate[r, s]]
            shows[r, place[r, s]] += 1
