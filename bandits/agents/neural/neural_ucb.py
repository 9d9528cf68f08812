"""NeuralUCB: upper confidence bounds from the gradient of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.model_params import bonus_param
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec

from .gradient import GradientAgent, GradientParams


class NeuralUCB(GradientAgent):
    """NeuralUCB [1]_: optimism in the face of uncertainty, with a network as the model.

    score_a = f(x_a) + alpha sqrt(g_a' A^-1 g_a)

    References
    ----------
    .. [1] Zhou, Li, Gu (2020), Neural contextual bandits with UCB-based exploration, Algorithm 1.
       The authors' code writes the bonus as sqrt(lambda nu g' A^-1 g): alpha = sqrt(lambda nu).
    """

    class Params(GradientParams):
        kind: Literal["neural_ucb"] = "neural_ucb"
        alpha: float = bonus_param(0.1, usual=(0.03, 1))

    title = "NeuralUCB"
    formula = r"f(x_a)+\alpha\sqrt{g_a^\top A^{-1}g_a},\quad g_a=\nabla_w f(x_a)"
    uncertainty = "bonus"
    exploration_param = "alpha"
    colour = "#D55E00"
    dash = "dash"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    def scores(self, round: Round) -> FloatArray:
        mean, width = self.predict(round)
        return np.asarray(mean + self.alpha[:, None] * width)

    def explain(self, round: Round) -> Explanation:
        mean, width = self.predict(round)
        return Explanation(
            "bonus",
            self.scores(round),
            mean,
            width,
            self.alpha[:, None],
            "alpha",
            logit=self.log_odds,
        )
