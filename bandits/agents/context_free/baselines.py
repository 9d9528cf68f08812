"""Agents that never learn: uniformly random choice, the default candidate, and the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.base import Agent, Propensity
from bandits.agents.params import AgentParams
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import TIE
from bandits.base.types import (
    BoolArray,
    FloatArray,
    IntArray,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)


class Random(Agent):
    """Chooses uniformly among the available candidates: the reward without learning."""

    class Params(AgentParams):
        kind: Literal["random"] = "random"

    title = "Random"
    keywords = "baseline"
    formula = r"u_a\sim\mathrm{Uniform}(0,1)"
    colour = "#7F7F7F"
    learns = False
    propensity = "exact"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        K = spec.n_candidates
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, K)), width=K)

    def scores(self, round: Round) -> FloatArray:
        return self.uniforms.at(round.step)

    def explain(self, round: Round) -> Explanation:
        return Explanation(
            "score", self.scores(round), randomised=np.ones(len(self.params), np.bool_)
        )

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


class Default(Agent):
    """Shows the first available candidate: the default picture in Artwork, always the same item
    where all items are
    candidates, and a random one where candidates are drawn.
    """

    class Params(AgentParams):
        kind: Literal["default"] = "default"

    title = "Default"
    keywords = "baseline"
    formula = r"-a"
    colour = "#7F7F7F"
    dash = "dash"
    learns = False

    def scores(self, round: Round) -> FloatArray:
        return np.tile(-np.arange(round.items.shape[1], dtype=np.float64), (len(round.items), 1))


class Oracle(Agent):
    """Shows the candidate with the highest true click probability at this step, or for the rest of
    the visit: the upper bound on reward.

    Of equal candidates it always shows the first one: as the reference of diagnostics it is the
    narrowest policy that is optimal.
    """

    class Params(AgentParams):
        kind: Literal["oracle"] = "oracle"
        maximises: Literal["visit", "step"] = param(
            "visit",
            title="Maximises",
            later=True,
            structural=True,
            help=(
                "What the shown candidate has the highest true value of, where visits have many "
                "steps. visit: the rest of the visit. step: the next reward."
            ),
        )

    title = "Oracle"
    keywords = "baseline"
    formula = r"p(\text{click}\mid\text{user},a)"
    learns = False
    needs = frozenset({"truth"})

    def scores(self, round: Round) -> FloatArray:
        whole = self.params[0].maximises == "visit"
        return first_ahead((self.access.long_run if whole else self.access.probabilities)(round))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray:  # noqa: ARG002
        best: IntArray = first_ahead(steps.probabilities).argmax(axis=1)[steps.row]
        return best


def first_ahead(probabilities: FloatArray) -> FloatArray:
    """Lower each candidate a little more than the one before it, so that none are tied."""
    return np.asarray(probabilities * (1 - 2 * TIE * np.arange(probabilities.shape[1])))
