"""Logistic Thompson sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.model_params import noise_variance_param
from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.linear.logistic import Covariance
from bandits.models.linear.ridge import Ridge

from .base import LogisticAgent, LogisticParams


class LogisticTS(LogisticAgent):
    """Logistic Thompson sampling [1]_: shows the best arm under one draw from the Laplace
    posterior.

    score_a = theta~ . x_a with ONE draw theta~ ~ N(theta, sigma^2 H^-1) per model and step

    The diagonal covariance is that of [1]_, whose update is a batch; here a batch is one
    observation, and the refit uses all. The full covariance is the same Laplace approximation with
    its correlations.

    References
    ----------
    .. [1] Chapelle, Li (2011), An empirical evaluation of Thompson sampling, Algorithm 3.
    """

    class Params(LogisticParams):
        kind: Literal["logistic_ts"] = "logistic_ts"
        sigma2: float = noise_variance_param(
            0.01,
            "Factor of the posterior variance; 1 draws from the posterior itself.",
            title="Posterior scale",
            usual=(0.003, 1),
        )
        ridge: float = override_default(LogisticParams, "ridge", 0.01)
        covariance: Covariance = param(
            "full",
            title="Covariance",
            structural=True,
            help=(
                "Part of the posterior covariance that is kept. full: with correlations. "
                "diagonal: variances alone (as published), faster for many features."
            ),
        )

    title = "Logistic TS"
    formula = r"\tilde\theta_a^\top x_a,\quad\tilde\theta_a\sim\mathcal N(\hat\theta_a,\ \sigma^2H_a^{-1})"  # noqa: E501
    uncertainty = "posterior"
    exploration_param = "sigma2"
    colour = "#D55E00"
    dash = "longdash"
    propensity = "monte_carlo"
    joint = True

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.sigma = np.sqrt(self.column("sigma2"))
        width = Ridge.noise_width(spec, params[0].sharing)
        self.normals = streams.blocks(
            "agent", lambda g, n: g.standard_normal((n, width)), width=width
        )

    @classmethod
    def covariance(cls, params: Any) -> Covariance:
        kept: Covariance = params.covariance
        return kept

    def scores(self, round: Round) -> FloatArray:
        return self.model.sample(round, self.sigma, self.normals.at(round.step))

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.model.predict(round)
        return Explanation(
            "sample", self.scores(round), mean, np.sqrt(variance), self.sigma[:, None], logit=True
        )

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        shape = self.normals.at(round.step).shape
        while True:
            yield self.model.sample(round, self.sigma, generator.standard_normal(shape))
