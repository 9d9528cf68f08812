"""Linear Thompson sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.agents.base import Propensity
from bandits.agents.model_params import (
    noise_model_param,
    noise_scale_param,
    noise_shape_param,
    noise_variance_param,
)
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams, block_length
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.largest import normal_largest
from bandits.models.linear.random_features import RandomFourierFeatures
from bandits.models.linear.ridge import Ridge
from bandits.models.position_bias import targets

from .base import LinearAgent
from .params import JOINED, PrivateLinearParams


class LinTS(LinearAgent):
    """Linear Thompson sampling [1]_: shows the best arm under one draw from the posterior.

    score_a = theta~ . x_a with ONE draw theta~ ~ N(theta, sigma^2 A^-1) per model and step

    Propensities are exact per arm with fixed noise, where each candidate has a draw of its own;
    draws that share a parameter, or an estimated noise variance, are redrawn.

    It can forget: with a discount factor, theta~ ~ N(theta, sigma^2 V^-1 V~ V^-1), where V and V~
    weight an observation that is k steps old by gamma^k and gamma^2k [3]_; or by a sliding window.

    With noise ``inverse_gamma``, each model also draws sigma^2 from IG(a0 + n/2, b0 + (sum r^2 -
    theta' A theta)/2); per arm, with ridge .25, a0 = b0 = 6 and a constant feature, this is
    LinFullPost [2]_, except for its forced first pulls.

    References
    ----------
    .. [1] Agrawal, Goyal (2013), Thompson sampling for contextual bandits with linear payoffs,
           Algorithm 1.
    .. [2] Riquelme, Tucker, Snoek (2018), Deep Bayesian bandits showdown, section 3.
    .. [3] Russac, Vernade, Cappé (2019), Weighted linear bandits for non-stationary environments:
       the covariance of its estimator.
    """

    class Params(PrivateLinearParams):
        kind: Literal["lints"] = "lints"
        sigma2: float = noise_variance_param(0.005, usual=(0.001, 0.3))
        noise: Literal["fixed", "inverse_gamma"] = noise_model_param(later=True)
        a0: float = noise_shape_param(later=True)
        b0: float = noise_scale_param(later=True)

        @model_validator(mode="after")
        def _no_hybrid_noise(self) -> Self:
            if self.noise == "inverse_gamma" and self.sharing in JOINED:
                raise ValueError(
                    "lints: noise inverse_gamma needs sharing per_arm or shared, not "
                    f"{self.sharing}"
                )
            if self.noise == "inverse_gamma" and (self.gamma < 1 or self.window is not None):
                raise ValueError("lints: noise inverse_gamma needs gamma 1 and no window")
            if self.noise == "inverse_gamma" and self.prior != "zero":
                raise ValueError(f"lints: prior {self.prior} needs noise fixed, not inverse_gamma")
            return self

    title = "LinTS"
    formula = r"\tilde\theta_a^\top x_a,\quad\tilde\theta_a\sim\mathcal N(\hat\theta_a,\ \sigma^2A_a^{-1})"  # noqa: E501
    uncertainty = "posterior"
    exploration_param = "sigma2"
    colour = "#E69F00"
    propensity: Propensity = "monte_carlo"
    joint = True

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.sigma = np.sqrt(self.column("sigma2"))
        width = Ridge.noise_width(self.spec, params[0].sharing)
        self.normals = streams.blocks(
            "agent", lambda g, n: g.standard_normal((n, width)), width=width
        )
        self.estimated = params[0].noise == "inverse_gamma"
        # draws of the candidates are independent normals
        if params[0].sharing == "per_arm" and not self.estimated:
            self.propensity = "exact"
        if self.estimated:
            assert isinstance(self.model, Ridge)
            self.a0, self.b0, M = self.column("a0"), self.column("b0"), self.model.count.shape[1]
            # sum r^2 of each model
            self.squares = np.zeros((len(params), M))
            self.state += ("squares",)
            self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, M)), width=M, part=1)

    def scores(self, round: Round) -> FloatArray:
        return self.sampled_scores(round, self.noise_deviation(round), self.normals.at(round.step))

    def sampled_scores(self, round: Round, sigma: FloatArray, normals: FloatArray) -> FloatArray:
        """Compute scores from the noise's standard deviation, (R, 1) or (R, K), and normals for
        theta~.
        """
        round = self.transformed(round)
        if sigma.shape[1] == 1:
            return self.model.sample(round, sigma[:, 0], normals)
        mean, variance = self.model.predict(round)
        return np.asarray(mean + sigma * np.sqrt(variance) * normals)

    def probabilities(self, round: Round) -> FloatArray:
        if self.propensity != "exact":
            return super().probabilities(round)
        mean, variance = self.model.predict(self.transformed(round))
        return normal_largest(mean, self.sigma[:, None] * np.sqrt(variance), round.available)

    def noise_deviation(self, round: Round, uniforms: FloatArray | None = None) -> FloatArray:
        """Compute sigma of every candidate, (R, K), or of all, (R, 1).

        Drawn by ``uniforms (R, M)`` if estimated.
        """
        if not self.estimated:
            return self.sigma[:, None]
        from scipy.special import gammaincinv

        assert isinstance(self.model, Ridge)
        explained = (self.model.theta * self.model.b).sum(axis=2)  # theta' A theta
        a = self.a0[:, None] + self.model.count / 2
        b = self.b0[:, None] + np.maximum(self.squares - explained, 0) / 2
        drawn = self.uniforms.at(round.step) if uniforms is None else uniforms
        sigma = np.sqrt(b / gammaincinv(a, np.maximum(drawn, 2.0**-54)))
        return np.asarray(
            sigma if sigma.shape[1] == 1 else np.take_along_axis(sigma, round.items, axis=1)
        )

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        super().learn(round, slate, feedback)
        if self.estimated:
            shared = self.model.sharing == "shared"
            models = (
                np.zeros_like(slate) if shared else np.take_along_axis(round.items, slate, axis=1)
            )
            rows = np.broadcast_to(np.arange(len(slate))[:, None], slate.shape)
            counts = self.exposure(feedback)
            np.add.at(self.squares, (rows, models), counts * targets(feedback, counts) ** 2)

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.model.predict(self.transformed(round))
        return Explanation(
            "sample", self.scores(round), mean, np.sqrt(variance), self.noise_deviation(round)
        )

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        shape = self.normals.at(round.step).shape
        while True:
            uniforms = generator.random(self.squares.shape) if self.estimated else None
            yield self.sampled_scores(
                round, self.noise_deviation(round, uniforms), generator.standard_normal(shape)
            )

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        model = self.compiled_model
        if self.estimated or model is None or model.sharing in JOINED:
            return None
        noise = self.normals.slice(steps.start, len(steps.context))
        return model.play(steps, alive, self.streams.ties, scale=self.sigma, noise=noise)

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        width = Ridge.noise_width(
            RandomFourierFeatures.transformed_spec(spec, params.fourier), params.sharing
        )
        models = 1 if params.sharing == "shared" else spec.n_items
        estimated = (
            8 * models * (1 + block_length(models)) if params.noise == "inverse_gamma" else 0
        )
        return super().memory(params, spec) + 8 * block_length(width) * width + estimated

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [
            *super().test_params(),
            *({"noise": "inverse_gamma", "sharing": s} for s in ("per_arm", "shared")),
        ]
