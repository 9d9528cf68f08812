"""NeuralTS: Thompson sampling from the gradient of a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.model_params import noise_variance_param
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec

from .gradient import GradientAgent, GradientParams


class NeuralTS(GradientAgent):
    """Neural Thompson sampling [1]_, with a network as the model.

    score_a ~ N(f(x_a), sigma^2 g_a' A^-1 g_a), independent draws for the candidates, as published

    References
    ----------
    .. [1] Zhang, Zhou, Li, Gu (2021), Neural Thompson sampling, Algorithm 1. Its nu is sigma /
           sqrt(lambda) here.
    """

    class Params(GradientParams):
        kind: Literal["neural_ts"] = "neural_ts"
        sigma2: float = noise_variance_param(0.01)

    title = "NeuralTS"
    formula = r"\tilde r_a\sim\mathcal N\big(f(x_a),\ \sigma^2g_a^\top A^{-1}g_a\big),\quad g_a=\nabla_w f(x_a)"  # noqa: E501
    uncertainty = "posterior"
    exploration_param = "sigma2"
    colour = "#CC79A7"
    dash = "dash"
    propensity = "monte_carlo"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.sigma, K = np.sqrt(self.column("sigma2")), spec.n_candidates
        self.normals = streams.blocks("agent", lambda g, n: g.standard_normal((n, K)), width=K)

    def scores(self, round: Round) -> FloatArray:
        mean, width = self.predict(round)
        return np.asarray(mean + self.sigma[:, None] * width * self.normals.at(round.step))

    def explain(self, round: Round) -> Explanation:
        mean, width = self.predict(round)
        return Explanation(
            "sample", self.scores(round), mean, width, self.sigma[:, None], logit=self.log_odds
        )

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        mean, width = self.predict(round)
        while True:
            yield mean + self.sigma[:, None] * width * generator.standard_normal(mean.shape)
