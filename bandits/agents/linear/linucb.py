"""LinUCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.model_params import bonus_param, gamma_param, window_param
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
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
from .params import PrivateLinearParams


class LinUCB(LinearAgent):
    """Linear upper confidence bound [1]_: optimism in the face of uncertainty.

    score_a = theta_a . x_a + alpha sqrt(x_a' A_a^-1 x_a)

    In non-stationary environments it can forget: by a discount factor gamma [2]_ or a sliding
    window [3]_.

    References
    ----------
    .. [1] Li, Chu, Langford, Schapire (2010), A contextual-bandit approach to personalized news
       article recommendation: Algorithm 1 (per arm), Algorithm 2 (hybrid).
    .. [2] Russac, Vernade, Cappé (2019), Weighted linear bandits for non-stationary environments,
           Algorithm 1.
    .. [3] Cheung, Simchi-Levi, Zhu (2019), Learning to optimize under non-stationarity.
    """

    class Params(PrivateLinearParams):
        kind: Literal["linucb"] = "linucb"
        alpha: float = bonus_param(0.5)
        gamma: float = gamma_param(later=False)
        window: int | None = window_param(later=False)

    title = "LinUCB"
    formula = r"\hat\theta_a^\top x_a+\alpha\sqrt{x_a^\top A_a^{-1}x_a}"
    uncertainty = "bonus"
    exploration_param = "alpha"
    colour = "#0072B2"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    def scores(self, round: Round) -> FloatArray:
        mean, variance = self.model.predict(self.transformed(round))
        return np.asarray(mean + self.alpha[:, None] * np.sqrt(variance))

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.model.predict(self.transformed(round))
        return Explanation(
            "bonus", self.scores(round), mean, np.sqrt(variance), self.alpha[:, None], "alpha"
        )

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        model = self.compiled_model
        return (
            None if model is None else model.play(steps, alive, self.streams.ties, scale=self.alpha)
        )
