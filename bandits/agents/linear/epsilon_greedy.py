"""Epsilon-greedy on ridge models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.base import Propensity
from bandits.agents.model_params import decay_param, epsilon_param
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
from bandits.base.selection import (
    epsilon_slate,
    epsilon_slots,
    mixed_with_uniform,
    shares_of_largest,
    slots_by_rank,
)
from bandits.base.types import (
    BoolArray,
    FloatArray,
    IntArray,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)

from .base import LinearAgent
from .params import LinearParams


class EpsilonGreedy(LinearAgent):
    """Epsilon-greedy [1]_: shows a random candidate with probability epsilon, otherwise the one
    with the best estimate.

    epsilon_t = epsilon / (1 + decay t)

    References
    ----------
    .. [1] Sutton, Barto (2018), Reinforcement learning: an introduction, section 2.4.
    """

    class Params(LinearParams):
        kind: Literal["epsilon_greedy"] = "epsilon_greedy"
        epsilon: float = epsilon_param()
        decay: float = decay_param("ε")

    title = "ε-greedy"
    keywords = "VW, Vowpal Wabbit"
    exploration_param = "epsilon"
    formula = r"\hat\theta_a^\top x_a,\quad\text{but a random arm with probability }\varepsilon/(1+\delta t)"  # noqa: E501
    colour = "#009E73"
    propensity = "exact"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.epsilon, self.decay = self.column("epsilon"), self.column("decay")
        S = spec.slate
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, S, 2)), width=2 * S)

    def scores(self, round: Round) -> FloatArray:
        mean = self.mean(round)
        step = round.step
        return epsilon_slate(
            mean,
            round.available,
            self.rate(step),
            self.uniforms.at(step),
            self.streams.ties,
            step,
        )

    def explain(self, round: Round) -> Explanation:
        randomised = np.any(
            self.uniforms.at(round.step)[:, :, 0] < self.rate(round.step)[:, None], axis=1
        )
        mean = self.mean(round)
        return Explanation("greedy", self.scores(round), mean, randomised=np.asarray(randomised))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if (model := self.compiled_model) is None:
            return None
        n = len(steps.context)
        rates = self.rate(np.arange(steps.start, steps.start + n)[:, None])
        uniforms = self.uniforms.slice(steps.start, n)[:, :, 0]
        return model.play(steps, alive, self.streams.ties, epsilon=rates, exploration=uniforms)

    def rate(self, step: int | IntArray) -> FloatArray:
        """Compute epsilon_t, float64 (R,), or (T, R) for steps (T, 1)."""
        return self.epsilon / (1 + self.decay * step)

    @property
    def slot_propensity(self) -> Propensity:
        return "exact"

    def slot_probabilities(self, round: Round) -> FloatArray:
        """State the probability that each candidate fills each slot: by its rank alone
        (`epsilon_slots`).
        """
        by_rank = epsilon_slots(round.available.sum(axis=1), self.rate(round.step), self.spec.slate)
        return np.asarray(slots_by_rank(by_rank, self.mean(round), round.available))

    def probabilities(self, round: Round) -> FloatArray:
        mean = np.where(round.available, self.mean(round), -np.inf)
        greedy = shares_of_largest(mean)
        return mixed_with_uniform(greedy, self.rate(round.step), round.available)
