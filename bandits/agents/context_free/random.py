"""Uniformly random choice: the lower reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.base import Agent, Propensity
from bandits.agents.params import AgentParams
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, FloatArray, IntArray, PredrawnSteps, Round, SimulatorAccess, SimulatorSpec


class Random(Agent):
    """Chooses uniformly among the available candidates: the reward without learning."""

    class Params(AgentParams):
        kind: Literal["random"] = "random"

    title = "Random"
    formula = r"u_a\sim\mathrm{Uniform}(0,1)"
    colour = "#7F7F7F"
    learns = False
    propensity = "exact"

    def __init__(self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess) -> None:
        super().__init__(params, spec, streams, access)
        K = spec.n_candidates
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, K)), width=K)

    def scores(self, round: Round) -> FloatArray:
        return self.uniforms.at(round.step)

    def explain(self, round: Round) -> Explanation:
        return Explanation("score", self.scores(round), randomised=np.ones(len(self.params), np.bool_))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray:  # noqa: ARG002
        n = len(steps.context)
        best: IntArray = self.uniforms.slice(steps.start, n).argmax(axis=2)
        return best

    @property
    def slot_propensity(self) -> Propensity:
        return "exact"

    def slot_probabilities(self, round: Round) -> FloatArray:
        return np.repeat(self.probabilities(round)[:, None], self.spec.slate, axis=1)

    def probabilities(self, round: Round) -> FloatArray:
        available = round.available.astype(np.float64)
        return np.asarray(available / available.sum(axis=1, keepdims=True))
