"""Rewards that are a known function of the features: the synthetic experiments of the NeuralUCB
paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.base.params import param
from bandits.base.types import FloatArray, LoggedData

from .base import SimulatorParams, layout_param, normal
from .changes import ShocksAndFaults, changes_param, check
from .dense import DenseSimulator

# the reward functions of a.x, for a hidden direction a
_ALONG: dict[str, Callable[[FloatArray], FloatArray]] = {
    "linear": lambda along: along,
    "quadratic": lambda along: 10 * np.square(along),
    "cosine": lambda along: np.cos(3 * along),
}


class Synthetic(DenseSimulator):
    """Arms with features x, drawn anew at every step; the expected reward is a function h of x
    alone [1]_.

    linear h = a.x, quadratic h = 10 (a.x)^2, form h = x'A'Ax, cosine h = cos(3 a.x), with |a| = 1
    and A's entries N(0, 1), drawn once per layout. Gaussian rewards are scale h(x) + noise N(0, 1);
    Bernoulli rewards are 1 with probability sigmoid(scale h(x)), so that a logistic model is well
    specified for linear h.

    The paper draws x from the unit ball, and a too (which only shrinks h); the authors' code draws
    x from the unit sphere.

    References
    ----------
    .. [1] Zhou, Li, Gu (2020), Neural contextual bandits with UCB-based exploration, section 7.1.
    """

    class Params(SimulatorParams):
        kind: Literal["synthetic"] = "synthetic"
        function: Literal["linear", "quadratic", "form", "cosine"] = param(
            "quadratic",
            title="Reward function",
            basic=True,
            help=(
                "Expected reward of an arm with features x. linear: a·x. quadratic: 10 (a·x)². "
                "form: x'A'Ax. cosine: cos(3 a·x). The weights a and A are hidden."
            ),
        )
        n_arms: int = param(
            4,
            title="Arms",
            symbol="K",
            ge=2,
            le=10_000,
            basic=True,
            help="Number of arms to choose from. More arms need more exploration; usually 2 to 50.",
        )
        n_features: int = param(
            20,
            title="Features",
            symbol="d",
            ge=1,
            le=1000,
            basic=True,
            help=(
                "Number of features of each arm. More features are harder to learn from; usually "
                "5 to 50."
            ),
        )
        reward: Literal["gaussian", "bernoulli"] = param(
            "gaussian",
            title="Reward distribution",
            basic=True,
            help=(
                "gaussian: the function's value plus noise, as published. bernoulli: 1 or 0, "
                "with probability sigmoid of the value."
            ),
        )
        noise: float = param(
            1.0,
            title="Noise",
            symbol=r"\xi",
            ge=0,
            le=100,
            typical=(0, 2),
            help=(
                "Standard deviation of Gaussian rewards. Larger values make learning slower; "
                "usually 0 to 2."
            ),
        )
        scale: float = param(
            1.0,
            title="Scale",
            ge=0,
            le=100,
            typical=(0, 10),
            help=(
                "Multiplies the reward function. Larger values raise the signal-to-noise ratio; "
                "usually 0.1 to 10."
            ),
        )
        contexts: Literal["ball", "sphere"] = param(
            "ball",
            title="Feature distribution",
            help=(
                "Features are uniform. ball: in the unit ball, as published. sphere: on its "
                "surface, as in the authors' code."
            ),
        )
        layout: Literal["shared", "per_row"] = layout_param("hidden weights")
        changes: ShocksAndFaults = changes_param("preferences (shock)")

        @model_validator(mode="after")
        def _agree(self) -> Self:
            check(self.all_changes, self.n_features)
            return self

    title = "Synthetic"
    family = "Known functions"
    preset = "quadratic"
    reward_noun = "points"
    rate_title = "Reward per step"
    item_noun = "arm"

    @classmethod
    def sizes(cls, params: Any) -> tuple[int, int]:
        return params.n_arms, params.n_features

    @classmethod
    def binary(cls, params: Any) -> bool:
        return bool(params.reward == "bernoulli")

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        # stacked from the parts
        layouts, D = 2 * rows if params.layout == "per_row" else 1, params.n_features
        return int(
            super().memory(params, rows) + 8 * layouts * D * (D if params.function == "form" else 1)
        )

    def draw_weights(self, generator: np.random.Generator) -> FloatArray:
        """Draw a (D,), or A (D, D) for the form."""
        D = self.params.n_features
        if self.params.function == "form":
            return generator.standard_normal((D, D))
        direction = generator.standard_normal(D)
        return np.asarray(direction / np.linalg.norm(direction))

    def draw_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        return self._draw(generator, n, self.params.n_arms)

    def expected_rewards(self, features: FloatArray, weights: FloatArray) -> FloatArray:
        from scipy.special import expit

        if self.params.function == "form":
            h = np.square(features @ weights.transpose(0, 2, 1)).sum(axis=-1)
        else:
            h = _ALONG[self.params.function]((features * weights[:, None]).sum(axis=-1))
        h = self.params.scale * h
        return np.asarray(expit(h) if self.params.reward == "bernoulli" else h)

    def reward(self, means: FloatArray, uniforms: FloatArray) -> FloatArray:
        if self.params.reward == "bernoulli":
            return super().reward(means, uniforms)
        return np.asarray(means + self.params.noise * normal(uniforms))

    def log(self, layout: int, n: int) -> LoggedData:
        generator, p = self.streams.generator("log", row=layout), self.params
        items = generator.integers(0, p.n_arms, size=n)
        # arms are exchangeable: only the chosen one is drawn
        features = self._draw(generator, n, 1)[:, 0]
        means = self.expected_rewards(features[None], self._layout_weights(layout)[None])[0]
        columns = np.broadcast_to(np.arange(p.n_features), features.shape)
        rewards = self.reward(means, generator.random(n))
        return LoggedData(np.zeros(n, np.int64), items, features, columns, rewards, means)

    def _draw(self, generator: np.random.Generator, n: int, arms: int) -> FloatArray:
        """Draw features, float64 (n, arms, D): a direction, and in the ball a distance whose D-th
        power is uniform.
        """
        D = self.params.n_features
        drawn = generator.standard_normal((n, arms, D))
        length = np.sqrt(np.square(drawn).sum(axis=-1, keepdims=True))
        if self.params.contexts == "ball":
            length /= generator.random((n, arms, 1)) ** (1 / D)
        drawn /= length
        return drawn
