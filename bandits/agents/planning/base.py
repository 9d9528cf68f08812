"""What agents that plan for a visit have in common: discount, and epsilon-greedy choice."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np

from bandits.agents.params import AgentParams
from bandits.agents.stochastic import StochasticAgent
from bandits.base.params import param
from bandits.base.selection import mixed_with_uniform, shares_of_largest
from bandits.base.types import FloatArray, Round

Loss = Literal["squared", "huber"]


class PlanningParams(AgentParams):
    """Parameters of agents that learn the value of the rest of a visit."""

    discount: float = param(
        0.99,
        title="Discount",
        symbol=r"\gamma",
        ge=0,
        le=0.999,
        basic=True,
        help=(
            "Weight of the next step's value beside the reward of this one. 0 is a bandit, which "
            "learns the next reward. Larger values plan further; usually 0.9 to 0.99."
        ),
    )


class PlanningAgent(StochasticAgent):
    """Shows a random item with probability epsilon, else one with the highest Q(s, a)."""

    needs = frozenset({"visits"})
    propensity = "exact"

    @abstractmethod
    def values(self, round: Round) -> FloatArray:
        """Return Q(s, a) of every candidate, float64 (R, K)."""

    @abstractmethod
    def exploration(self, step: int) -> FloatArray:
        """Return epsilon at a step, float64 (R,)."""

    def probabilities(self, round: Round) -> FloatArray:
        values = np.where(round.available, self.values(round), -np.inf)
        greedy = shares_of_largest(values)
        mixed = mixed_with_uniform(greedy, self.exploration(round.step), round.available)
        # a network that has diverged stops its row
        return np.where(np.isnan(values), np.nan, mixed)

    @classmethod
    def generalises(cls, params: Any) -> bool:  # noqa: ARG003
        return True
