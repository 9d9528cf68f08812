"""Linear Thompson sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import BoolArray, FloatArray, IntArray, PredrawnSteps, Round, WorldAccess, WorldSpec
from bandits.models.linear.ridge import Ridge

from .base import LinearAgent, LinearParams


class LinTS(LinearAgent):
    """Linear Thompson sampling [1]_: shows the best arm under one draw from the posterior.

    score_a = theta~ . x_a with ONE draw theta~ ~ N(theta, sigma^2 A^-1) per model and step

    References
    ----------
    .. [1] Agrawal, Goyal (2013), Thompson sampling for contextual bandits with linear payoffs, Algorithm 1.
    """

    class Params(LinearParams):
        kind: Literal["lints"] = "lints"
        sigma2: float = param(
            0.005, title="Noise variance", symbol=r"\sigma^2", ge=0, le=100, typical=(0, 2), basic=True, log=True,
            help="Variance of the reward noise that the model assumes; it scales the posterior variance. Larger "
            "values explore more; usually 0.001 to 0.3.",
            sweep=(0.001, 2),
        )  # fmt: skip

    title = "LinTS"
    formula = r"\tilde\theta_a^\top x_a,\quad\tilde\theta_a\sim\mathcal N(\hat\theta_a,\ \sigma^2A_a^{-1})"
    uncertainty = "posterior"
    exploration_param = "sigma2"
    colour = "#E69F00"
    propensity = "monte_carlo"
    joint = True
    model: Ridge

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.sigma = np.sqrt(self.column("sigma2"))
        width = Ridge.noise_width(self.spec, params[0].sharing)
        self.normals = streams.blocks("agent", lambda g, n: g.standard_normal((n, width)), width=width)

    def scores(self, round: Round) -> FloatArray:
        return self.model.sample(self.transformed(round), self.sigma, self.normals.at(round.step))

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.model.predict(self.transformed(round))
        return Explanation("sample", self.scores(round), mean, np.sqrt(variance), self.sigma[:, None])

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        transformed, shape = self.transformed(round), self.normals.at(round.step).shape
        while True:
            yield self.model.sample(transformed, self.sigma, generator.standard_normal(shape))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.fourier is not None or self.model.sharing == "hybrid":
            return None
        noise = self.normals.slice(steps.start, len(steps.context))
        return self.model.play(steps, alive, scale=self.sigma, noise=noise)

    @classmethod
    def model_memory(cls, params: Any, spec: WorldSpec) -> int:
        width = Ridge.noise_width(spec, params.sharing)
        return super().model_memory(params, spec) + 8 * block_length(width) * width
