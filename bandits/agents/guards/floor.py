"""An exploration floor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bandits.agents.base import Agent
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams, block_length
from bandits.base.selection import mixed_with_uniform
from bandits.base.types import BoolArray, FloatArray, IntArray, Round, WorldSpec

from . import params
from .base import Guard


class Floor(Guard):
    """Mixes the policy with uniform choice: pi <- (1 - epsilon - new) pi + epsilon uniform + new uniform(new arms).

    One random number per decision determines which of the three decides the whole slate. Without new arms their share
    stays with the policy.
    """

    guard: params.Floor

    def __init__(self, guard: params.Floor, inner: Agent, streams: Streams, position: int) -> None:
        super().__init__(guard, inner, streams, position)
        R, K = len(self.params), self.spec.n_candidates
        self.uniforms = self.draws(lambda g, n: g.random((n, K + 1)), K + 1)
        self.shows = np.zeros((R, self.spec.n_items if guard.shows else 0), np.int64)
        self.state = ("shows",)
        self._epsilon = np.array(guard.segments or [guard.epsilon]) * (K if guard.per == "arm" else 1)
        self._everywhere, self._nothing = np.full(R, self._epsilon[0]), np.zeros(R)
        if inner.propensity == "deterministic":
            self.propensity = "exact"

    def scores(self, round: Round) -> FloatArray:
        return self._mixed(round, self.inner.scores(round), self.uniforms.at(round.step))

    def _mixed(self, round: Round, scores: FloatArray, uniforms: FloatArray) -> FloatArray:
        new = self._new(round)
        explores, tries = self._deciding(round, new, uniforms[:, 0])
        if not explores.any() and not tries.any():
            return scores
        drawn = uniforms[:, 1:] + (new & tries[:, None])  # new arms first
        drawn[np.isnan(scores)] = np.nan  # a row that has diverged stops here too
        return np.where((explores | tries)[:, None], drawn, scores)

    def _deciding(self, round: Round, new: BoolArray, uniforms: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Return the rows that a random arm is shown in, and those that a random new arm is shown in."""
        epsilon, share = self._shares(round, new)
        return uniforms < epsilon, (uniforms >= epsilon) & (uniforms < epsilon + share)

    def _shares(self, round: Round, new: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability of a random arm and of a random new arm, two of float64 (R,)."""
        epsilon = self._epsilon[round.segments] if self.guard.segments else self._everywhere
        if not self.guard.shows:
            return epsilon, self._nothing
        return epsilon, np.where(new.any(axis=1), np.minimum(self.guard.new, 1 - epsilon), 0.0)

    def _new(self, round: Round) -> BoolArray:
        """Return the available arms with too few shows, bool (R, K)."""
        if not self.guard.shows:
            return np.zeros(round.items.shape, np.bool_)
        return round.available & (np.take_along_axis(self.shows, round.items, axis=1) < self.guard.shows)

    def shown(self, round: Round, slate: IntArray) -> None:
        super().shown(round, slate)
        if self.guard.shows:
            rows = np.arange(len(slate))[:, None]
            self.shows[rows, round.items[rows, slate]] += 1  # the items of a slate are distinct

    def probabilities(self, round: Round) -> FloatArray:
        new = self._new(round)
        epsilon, share = self._shares(round, new)
        if not self.guard.shows:
            return mixed_with_uniform(self.inner.probabilities(round), epsilon, round.available)
        uniform = round.available / round.available.sum(axis=1, keepdims=True)
        among_new = new / np.maximum(new.sum(axis=1, keepdims=True), 1)
        own = (1 - epsilon - share)[:, None] * self.inner.probabilities(round)
        return np.asarray(own + epsilon[:, None] * uniform + share[:, None] * among_new)

    def explain(self, round: Round) -> Explanation:
        inner, uniforms = self.inner.explain(round), self.uniforms.at(round.step)
        randomised = np.logical_or(*self._deciding(round, self._new(round), uniforms[:, 0]))
        if inner.randomised is not None:
            randomised = randomised | inner.randomised
        return inner._replace(score=self._mixed(round, inner.score, uniforms), randomised=randomised)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        for scores in self.inner.redraws(round, generator):
            yield self._mixed(round, scores, generator.random((len(scores), scores.shape[1] + 1)))

    @staticmethod
    def guard_memory(guard: params.Floor, spec: WorldSpec) -> int:
        """Compute the bytes per row."""
        K = spec.n_candidates
        return 8 * (block_length(K + 1) * (K + 1) + 6 * K + (spec.n_items if guard.shows else 0))
