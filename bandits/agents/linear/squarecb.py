"""SquareCB on ridge models."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from bandits.agents.inverse_gap import InverseGapAgent, InverseGapParams
from bandits.base.types import BoolArray, FloatArray, IntArray, PredrawnSteps, Round

from .base import LinearAgent
from .params import LinearParams


class SquareCB(InverseGapAgent, LinearAgent):
    """SquareCB [1]_: the further an estimate is below the best one, the less often it is chosen
    (inverse gap weighting).

    P(a) = 1 / (K + c t^rho (y_b - y_a)) for all candidates a but the best one b, which has the
    rest; y_a = theta_a . x_a. K counts the candidates. Estimates that are tied for the best share
    its part.

    Algorithm 1 of the paper has mu = K and one learning rate gamma = sqrt(K T / regret) for a run
    of T steps; here it grows with the step, as in Vowpal Wabbit.

    References
    ----------
    .. [1] Foster, Rakhlin (2020), Beyond UCB: optimal and efficient contextual bandits with
           regression oracles, Algorithm 1; Abe, Long (1999), Associative reinforcement learning
           using linear probabilistic concepts: the weighting.
    """

    class Params(InverseGapParams, LinearParams):
        kind: Literal["squarecb"] = "squarecb"

    title = "SquareCB"
    keywords = "VW, Vowpal Wabbit"
    exploration_param = "gap_weight"
    formula = r"P(a)=\frac{1}{K+c\,t^{\rho}\,(\hat y_b-\hat y_a)},\quad\hat y_a=\hat\theta_a^\top x_a,\quad b=\arg\max\hat y"  # noqa: E501
    colour = "#B8A500"
    dash = "dashdot"

    def estimates(self, round: Round) -> FloatArray:
        return self.mean(round)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if (model := self.compiled_model) is None:
            return None
        n = len(steps.context)
        weights = self.weight(np.arange(steps.start, steps.start + n)[:, None])
        uniforms = self._uniforms.slice(steps.start, n)
        return model.play(steps, alive, self.streams.ties, gaps=weights, exploration=uniforms)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"sharing": "shared", "gamma": 0.98}, {"sharing": "hybrid", "growth": 0.0}]
