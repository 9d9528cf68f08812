"""Agents that choose at random from a distribution over the candidates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams, block_length
from bandits.base.selection import gumbel_scores
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec

from .base import Agent

# of the row's agent stream; a subclass draws its own numbers from other parts
SELECTION_PART = 7


class StochasticAgent(Agent):
    """Base class of agents that state the probability of each candidate.

    Choice and propensities follow from it.

    A subclass implements `probabilities`, and `learn` if it learns. The first slot shows candidate
    k with exactly the probability stated; further slots are drawn without replacement in proportion
    to it (Plackett-Luce), by the Gumbel-top-k method (`bandits.base.selection`)."""

    propensity = "exact"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        K = spec.n_candidates
        self._uniforms = streams.blocks(
            "agent", lambda g, n: g.random((n, K)), width=K, part=SELECTION_PART
        )

    @abstractmethod
    def probabilities(self, round: Round) -> FloatArray:
        """State the probability that each candidate fills the first slot.

        Returns
        -------
        float64 (R, K)
            Sums to 1 in each row; 0 for candidates that are not available. NaN stops the row.
        """

    def scores(self, round: Round) -> FloatArray:
        """Draw scores whose best candidate has exactly the probability stated, float64 (R, K)."""
        return gumbel_scores(self.probabilities(round), self._uniforms.at(round.step))

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        stated = self.probabilities(round)
        while True:
            yield gumbel_scores(stated, generator.random(stated.shape))

    def explain(self, round: Round) -> Explanation:
        return Explanation(
            "score", self.scores(round), randomised=np.ones(len(self.params), np.bool_)
        )

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        return super().memory(params, spec) + 8 * spec.n_candidates * block_length(
            spec.n_candidates
        )
