"""Worlds made of a formula: the synthetic experiments of the NeuralUCB paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, LoggedData, Round, Truth, WorldSpec

from .base import Simulator, SimulatorParams, answer, normal

# what is earned along the hidden direction, by a.x
_ALONG: dict[str, Callable[[FloatArray], FloatArray]] = {
    "linear": lambda along: along,
    "quadratic": lambda along: 10 * np.square(along),
    "cosine": lambda along: np.cos(3 * along),
}


class Synthetic(Simulator):
    """Each arm comes with features x, drawn anew at every step; what it earns is a function h of them alone [1]_.

    linear h = a.x, quadratic h = 10 (a.x)^2, form h = x'A'Ax, cosine h = cos(3 a.x), with |a| = 1 and A's entries
    N(0, 1), drawn once per layout. Gaussian rewards are scale h(x) + noise N(0, 1); Bernoulli rewards are 1 with
    probability sigmoid(scale h(x)), so that a logistic model is true of linear h.

    The paper draws x from the unit ball, and a from it too (which only shrinks h); code that goes round draws x from
    the unit sphere.

    References
    ----------
    .. [1] Zhou, Li, Gu (2020), Neural contextual bandits with UCB-based exploration, section 7.1.
    """

    class Params(SimulatorParams):
        kind: Literal["synthetic"] = "synthetic"
        function: Literal["linear", "quadratic", "form", "cosine"] = param(
            "quadratic", title="Function", basic=True,
            help="What an arm with features x is worth. linear: a·x. quadratic: 10 (a·x)². form: x'A'Ax. "
            "cosine: cos(3 a·x). The weights a and A are hidden.",
        )  # fmt: skip
        n_arms: int = param(
            4, title="Arms", symbol="K", ge=2, le=10_000, basic=True, help="How many there are to choose from.",
        )  # fmt: skip
        n_features: int = param(
            20, title="Features", symbol="d", ge=1, le=1000, basic=True, help="Numbers that describe an arm.",
        )  # fmt: skip
        reward: Literal["gaussian", "bernoulli"] = param(
            "gaussian", title="Reward", basic=True,
            help="gaussian: the function's value plus noise, as published. bernoulli: 1 or 0, with probability "
            "sigmoid of the value.",
        )  # fmt: skip
        noise: float = param(
            1.0, title="Noise", symbol=r"\xi", ge=0, le=100, typical=(0, 2),
            help="Standard deviation of the noise in Gaussian rewards.",
        )  # fmt: skip
        scale: float = param(
            1.0, title="Scale", ge=0, le=100, typical=(0, 10),
            help="Multiplies the function: the larger, the easier it is to see through noise or coin.",
        )  # fmt: skip
        contexts: Literal["ball", "sphere"] = param(
            "ball", title="Contexts",
            help="Where features are drawn from, uniformly. ball: the unit ball, as published. sphere: its surface, as "
            "in code that goes round.",
        )  # fmt: skip
        layout: Literal["shared", "per_row"] = param(
            "shared", title="Layout",
            help="shared: the same hidden weights in every replication. per_row: each has its own (wider bands).",
        )  # fmt: skip

    title = "Synthetic"
    reward_noun = "points"
    rate_title = "Reward per step"
    item_noun = "arm"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, K, D = len(streams.rows), params.n_arms, params.n_features
        self._weights = np.stack([self._layout(int(layout)) for layout in dict.fromkeys(self.layouts())])
        self._draws = streams.blocks("world", lambda g, n: self._draw(g, n, K), width=K * D)
        self._columns = np.ascontiguousarray(np.broadcast_to(np.arange(D), (R, K, D)))
        self._items = np.ascontiguousarray(np.broadcast_to(np.arange(K), (R, K)))
        self._available = np.ones((R, K), np.bool_)
        self._rows, self._nobody = np.arange(R), np.zeros(R, np.int64)

    @classmethod
    def describe(cls, params: Any) -> WorldSpec:
        K, D = params.n_arms, params.n_features
        capabilities = {"truth", "log"} | ({"binary"} if params.reward == "bernoulli" else set())
        return WorldSpec(n_items=K, n_candidates=K, n_features=D, n_stored=D, capabilities=frozenset(capabilities))

    @classmethod
    def layout_per_row(cls, params: Any) -> bool:
        return bool(params.layout == "per_row")

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        K, D = params.n_arms, params.n_features
        layouts = rows if params.layout == "per_row" else 1
        drawn = (rows + 3) * block_length(K * D) * K * D  # and those of one row in the making
        weights = layouts * D * (D if params.function == "form" else 1)
        return int(8 * (drawn + weights + rows * K * (3 * D + 6)))

    def round_at(self, step: int) -> Round:
        contexts = Contexts(self._draws.at(step), self._columns, self.spec.n_features)
        return Round(step, self._nobody, self._items, contexts, self._rows, self._available, self._nobody)

    def respond(self, round: Round, slate: IntArray, uniforms: FloatArray) -> tuple[Feedback, Truth]:
        return answer(self.probabilities(round), slate, uniforms, self._reward)

    def probabilities(self, round: Round) -> FloatArray:
        return self._means(round.contexts.values, self._weights)

    def features(self, item: int | None) -> FloatArray:  # noqa: ARG002
        return np.eye(self.params.n_features)

    def log(self, layout: int, n: int) -> LoggedData:
        generator, p = self.streams.generator("log", row=layout), self.params
        items = generator.integers(0, p.n_arms, size=n)
        features = self._draw(generator, n, 1)[:, 0]
        means = self._means(features[None], self._layout(layout)[None])[0]
        columns = np.broadcast_to(np.arange(p.n_features), features.shape)
        return LoggedData(np.zeros(n, np.int64), items, features, columns, self._reward(means, generator.random(n)))

    def _layout(self, layout: int) -> FloatArray:
        """The hidden weights: a (D,), or A (D, D) for the form."""
        generator, D = self.streams.generator("layout", row=layout), self.params.n_features
        if self.params.function == "form":
            return generator.standard_normal((D, D))
        direction = generator.standard_normal(D)
        return np.asarray(direction / np.linalg.norm(direction))

    def _draw(self, generator: np.random.Generator, n: int, arms: int) -> FloatArray:
        """Features, float64 (n, arms, D): a direction, and (in the ball) a distance whose D-th power is uniform."""
        D = self.params.n_features
        drawn = generator.standard_normal((n, arms, D))
        length = np.sqrt(np.square(drawn).sum(axis=-1, keepdims=True))
        if self.params.contexts == "ball":
            length /= generator.random((n, arms, 1)) ** (1 / D)
        drawn /= length
        return drawn

    def _means(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Expected reward of features (R, K, D) under the weights of their layouts (or the one layout), (R, K)."""
        from scipy.special import expit

        if self.params.function == "form":
            h = np.square(x @ weights.transpose(0, 2, 1)).sum(axis=-1)
        else:
            h = _ALONG[self.params.function]((x * weights[:, None]).sum(axis=-1))
        h = self.params.scale * h
        return np.asarray(expit(h) if self.params.reward == "bernoulli" else h)

    def _reward(self, means: FloatArray, uniforms: FloatArray) -> FloatArray:
        if self.params.reward == "bernoulli":
            return (uniforms < means).astype(np.float64)
        return np.asarray(means + self.params.noise * normal(uniforms))
