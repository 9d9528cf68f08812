"""Softmax (Boltzmann) exploration without context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.model_params import decay_param
from bandits.agents.stochastic import StochasticAgent
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import softmax
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec

from .base import ForgettingContextFreeAgent, ForgettingCountsParams


class Softmax(StochasticAgent, ForgettingContextFreeAgent):
    """Shows each item with a probability that grows exponentially with its average reward [1]_.

    P(a) is proportional to exp(mean_a / tau_t), with tau_t = tau / (1 + decay t) and mean 0 for an
    item never shown.

    References
    ----------
    .. [1] Luce (1959), Individual choice behavior; Sutton, Barto (2018), Reinforcement learning: an
           introduction, exercise 2.9; cooling: Cesa-Bianchi, Fischer (1998), Finite-time regret
           bounds for the multiarmed bandit problem.
    """

    class Params(ForgettingCountsParams):
        kind: Literal["softmax"] = "softmax"
        temperature: float = param(
            0.1,
            title="Temperature",
            symbol=r"\tau",
            gt=0,
            le=100,
            typical=(0.001, 1),
            basic=True,
            log=True,
            usual=(0.01, 0.3),
            help=(
                "Divides the average rewards. Larger values explore more; usually 0.01 to 0.3 for "
                "clicks."
            ),
            sweep=(0.005, 1),
        )
        decay: float = decay_param("τ")

    title = "Softmax"
    keywords = "Boltzmann"
    formula = r"P(a)\propto\exp\big(\bar r_a\,(1+\delta t)/\tau\big)"
    colour = "#E69F00"
    dash = "dashdot"
    exploration_param = "temperature"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.temperature = self.column("temperature")[:, None]
        self.decay = self.column("decay")[:, None]

    def probabilities(self, round: Round) -> FloatArray:
        shows, clicks = self.counts(round)
        mean = clicks / np.where(shows > 0, shows, 1)
        return softmax(mean * (1 + self.decay * round.step) / self.temperature, round.available)
