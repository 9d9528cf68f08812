"""Oracle: the upper reference."""

from __future__ import annotations

from typing import Literal

from bandits.agents.base import Agent
from bandits.agents.params import AgentParams
from bandits.base.types import BoolArray, FloatArray, IntArray, PredrawnSteps, Round


class Oracle(Agent):
    """Shows the candidate with the highest true click probability at this step: the upper bound on reward."""

    class Params(AgentParams):
        kind: Literal["oracle"] = "oracle"

    title = "Oracle"
    formula = r"p(\text{click}\mid\text{user},a)"
    learns = False
    needs = frozenset({"truth"})

    def scores(self, round: Round) -> FloatArray:
        return self.access.probabilities(round)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray:  # noqa: ARG002
        best: IntArray = steps.best[steps.row]
        return best
