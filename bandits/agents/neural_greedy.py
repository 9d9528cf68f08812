"""A network without exploration."""

from __future__ import annotations

from typing import Literal

from ..explanation import Explanation
from ..rounds import FloatArray, Round
from .neural import NeuralAgent, NeuralParams


class NeuralGreedy(NeuralAgent):
    """Shows what a network, trained on what was shown before, believes to be best. It never doubts.

    score_a = f(x_a)
    """

    class Params(NeuralParams):
        kind: Literal["neural_greedy"] = "neural_greedy"

    title = "Neural greedy"
    formula = r"f(x_a;\,w)"

    def scores(self, round: Round) -> FloatArray:
        return self.mean(round)

    def explain(self, round: Round) -> Explanation:
        return Explanation("greedy", self.scores(round), self.mean(round), logit=self.log_odds)
