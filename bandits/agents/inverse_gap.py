"""Inverse gap weighting: the exploration of SquareCB, for agents with any model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import inverse_gaps
from bandits.base.types import FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec

from .params import AgentParams
from .stochastic import StochasticAgent


class InverseGapParams(AgentParams):
    """Parameters of inverse gap weighting."""

    gap_weight: float = param(
        100.0,
        title="Gap weight",
        symbol="c",
        gt=0,
        le=1e6,
        typical=(1, 1000),
        log=True,
        basic=True,
        usual=(1, 1000),
        help=(
            "Factor of the weight c t^ρ of the gap to the best estimate. Larger values explore "
            "less; usually 1 to 1,000."
        ),
        sweep=(1, 1000),
    )
    growth: float = param(
        0.5,
        title="Growth exponent",
        symbol=r"\rho",
        ge=0,
        le=1,
        help=(
            "Exponent with which the weight of the gap grows: at step t it is c t^ρ. Larger values "
            "stop exploring sooner; 1/2 as in the paper's analysis; 0 keeps exploring."
        ),
    )


class InverseGapAgent(StochasticAgent):
    """Base class of agents that choose by inverse gap weighting of their `estimates`."""

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.gap_weight, self.growth = self.column("gap_weight"), self.column("growth")

    @abstractmethod
    def estimates(self, round: Round) -> FloatArray:
        """Estimate the expected reward of every candidate, float64 (R, K)."""

    def probabilities(self, round: Round) -> FloatArray:
        return inverse_gaps(self.estimates(round), self.weight(round.step), round.available)

    def weight(self, step: int | IntArray) -> FloatArray:
        """Compute the weight of the gaps, c t^rho, float64 (R,), or (T, R) for steps (T, 1)."""
        return np.asarray(self.gap_weight * np.float_power(step + 1, self.growth))

    def explain(self, round: Round) -> Explanation:
        return super().explain(round)._replace(mean=self.estimates(round))
