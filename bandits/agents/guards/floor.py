"""An exploration floor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from bandits.agents.base import Agent, Propensity
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams, block_length
from bandits.base.selection import mixed_with_uniform
from bandits.base.types import BoolArray, FloatArray, IntArray, Round, SimulatorSpec

from . import params
from .base import Guard


class Floor(Guard):
    """Mixes the policy with uniform choice: pi <- (1 - epsilon - new) pi + epsilon uniform + new
    uniform(new arms).

    One random number per decision determines which of the three decides the whole slate. Without
    new arms their share stays with the policy."""

    guard: params.Floor

    def __init__(self, guard: params.Floor, inner: Agent, streams: Streams, position: int) -> None:
        super().__init__(guard, inner, streams, position)
        R, K = len(self.params), self.spec.n_candidates
        self.uniforms = self.draws(lambda g, n: g.random((n, K + 1)), K + 1)
        self.shows = np.zeros((R, self.spec.n_items if guard.shows else 0), np.int64)
        self.state = ("shows",)
        self._epsilon = np.array(guard.segments or [guard.epsilon]) * (
            K if guard.per == "arm" else 1
        )
        # whether it depends on what has been shown
        self.remembers = bool(guard.shows)
        if inner.propensity == "deterministic":
            self.propensity = "exact"

    def scores(self, round: Round) -> FloatArray:
        return self._mixed(round, self.inner.scores(round), self.uniforms.at(round.step))[0]

    def _mixed(
        self, round: Round, scores: FloatArray, uniforms: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """Return the scores, random ones where the floor decides, and the rows in which it does."""
        arms = round.segments, round.items, round.available
        return mixed(
            scores, uniforms, self._epsilon, *arms, self.shows, self.guard.shows, self.guard.new
        )

    def _shares(self, round: Round, new: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability of a random arm and of a random new arm, two of float64 (R,)."""
        epsilon = self._epsilon[round.segments if self.guard.segments else 0 * round.segments]
        return epsilon, np.where(new.any(axis=1), np.minimum(self.guard.new, 1 - epsilon), 0.0)

    def _new(self, round: Round) -> BoolArray:
        """Return the available arms with too few shows, bool (R, K)."""
        if not self.guard.shows:
            return np.zeros(round.items.shape, np.bool_)
        return round.available & (
            np.take_along_axis(self.shows, round.items, axis=1) < self.guard.shows
        )

    def shown(self, round: Round, slate: IntArray) -> None:
        super().shown(round, slate)
        if self.guard.shows:
            count_shows(self.shows, round.items, slate)

    def probabilities(self, round: Round) -> FloatArray:
        if not self.remembers:
            return self.mixed_with(self.inner.probabilities(round), round.segments, round.available)
        new = self._new(round)
        epsilon, share = self._shares(round, new)
        uniform = round.available / round.available.sum(axis=1, keepdims=True)
        among_new = new / np.maximum(new.sum(axis=1, keepdims=True), 1)
        own = (1 - epsilon - share)[:, None] * self.inner.probabilities(round)
        return np.asarray(own + epsilon[:, None] * uniform + share[:, None] * among_new)

    @property
    def slot_propensity(self) -> Propensity:
        own = self.inner.slot_propensity
        return "exact" if own == "deterministic" else own

    def slot_probabilities(self, round: Round) -> FloatArray:
        new = self._new(round)
        epsilon, share = (each[:, None, None] for each in self._shares(round, new))
        own = (1 - epsilon - share) * self.inner.slot_probabilities(round)
        return np.asarray(
            own
            + epsilon * random_slots(round.available, self.spec.slate, round.available)
            + share * random_slots(new, self.spec.slate, round.available)
        )

    def mixed_with(
        self, probabilities: FloatArray, segments: IntArray, available: BoolArray
    ) -> FloatArray:
        """Mix probabilities (n, K) with uniform choice, for segments (n,), where it does not
        remember.
        """
        shares = self._epsilon[segments if self.guard.segments else 0 * segments]
        return mixed_with_uniform(probabilities, shares, available)

    def explain(self, round: Round) -> Explanation:
        inner = self.inner.explain(round)
        score, randomised = self._mixed(round, inner.score, self.uniforms.at(round.step))
        if inner.randomised is not None:
            randomised = randomised | inner.randomised
        return inner._replace(score=score, randomised=randomised)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        for scores in self.inner.redraws(round, generator):
            yield self._mixed(round, scores, generator.random((len(scores), scores.shape[1] + 1)))[
                0
            ]

    @staticmethod
    def guard_memory(guard: params.Floor, spec: SimulatorSpec) -> int:
        """Compute the bytes per row."""
        K = spec.n_candidates
        return 8 * (block_length(K + 1) * (K + 1) + 6 * K + (spec.n_items if guard.shows else 0))


def random_slots(first: BoolArray, size: int, available: BoolArray) -> FloatArray:
    """Compute the probability of each slot where some candidates come first, the others behind,
    each in random order.

    Parameters
    ----------
    first, available : bool (R, K)
    size : int
        S.

    Returns
    -------
    float64 (R, S, K)
    """
    m, n, slot = first.sum(axis=1)[:, None], available.sum(axis=1)[:, None], np.arange(size)
    ahead = (slot < m) / np.maximum(m, 1)
    behind = (slot >= m) / np.maximum(n - m, 1)
    others = available & ~first
    return np.asarray(ahead[:, :, None] * first[:, None] + behind[:, :, None] * others[:, None])


@njit(cache=True, nogil=True)
def mixed(
    scores: FloatArray,
    uniforms: FloatArray,
    epsilon: FloatArray,
    segments: IntArray,
    items: IntArray,
    available: BoolArray,
    shows: IntArray,
    limit: int,
    share: float,
) -> tuple[FloatArray, BoolArray]:
    """Replace scores by random numbers in the rows in which a floor decides.

    Parameters
    ----------
    scores : float64 (R, K)
    uniforms : float64 (R, K + 1)
        What decides, and the score of each candidate if it is the floor.
    epsilon : float64 (1,) or (n_segments,)
        Share of random arms.
    segments : int64 (R,)
    items, available : (R, K)
    shows : int64 (R, n_items)
        Shows of each item; without columns if no arm is new.
    limit : int
        Shows below which an arm is new; 0: none is.
    share : float
        Of random new arms, while there is one.

    Returns
    -------
    float64 (R, K)
        A candidate without a number keeps none: a row that has diverged stops here too. New arms
        come first where one of them is shown.
    bool (R,)
    """
    R, K = scores.shape
    out, decides = scores.copy(), np.zeros(R, np.bool_)
    for r in range(R):
        mine = epsilon[segments[r]] if len(epsilon) > 1 else epsilon[0]
        any_new = False
        for k in range(K):
            if limit == 0 or any_new:
                break
            any_new = available[r, k] and shows[r, items[r, k]] < limit
        theirs = min(share, 1 - mine) if any_new else 0.0
        explores, tries = uniforms[r, 0] < mine, mine <= uniforms[r, 0] < mine + theirs
        if not explores and not tries:
            continue
        decides[r] = True
        for k in range(K):
            if not np.isnan(scores[r, k]):
                first = tries and available[r, k] and shows[r, items[r, k]] < limit
                out[r, k] = uniforms[r, k + 1] + (1.0 if first else 0.0)
    return out, decides


@njit(cache=True, nogil=True)
def count_shows(shows: IntArray, items: IntArray, slate: IntArray) -> None:
    """Count the items of ``slate (R, S)``, candidates among ``items (R, K)``, in ``shows (R,
    n_items)``.
    """
    for r in range(len(slate)):
        for s in range(slate.shape[1]):
            shows[r, items[r, slate[r, s]]] += 1
