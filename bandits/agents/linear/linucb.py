"""LinUCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, FloatArray, IntArray, PredrawnSteps, Round, WorldAccess, WorldSpec
from bandits.models.linear.nonstationary import DiscountedRidge, SlidingWindowRidge
from bandits.models.linear.ridge import Ridge

from .base import LinearAgent, LinearParams


class LinUCB(LinearAgent):
    """Linear upper confidence bound [1]_: optimism in the face of uncertainty.

    score_a = theta_a . x_a + alpha sqrt(x_a' A_a^-1 x_a)

    In non-stationary environments it can forget: by a discount factor gamma [2]_ or a sliding window [3]_.

    References
    ----------
    .. [1] Li, Chu, Langford, Schapire (2010), A contextual-bandit approach to personalized news article
       recommendation: Algorithm 1 (per arm), Algorithm 2 (hybrid).
    .. [2] Russac, Vernade, Cappé (2019), Weighted linear bandits for non-stationary environments, Algorithm 1.
    .. [3] Cheung, Simchi-Levi, Zhu (2019), Learning to optimize under non-stationarity.
    """

    class Params(LinearParams):
        kind: Literal["linucb"] = "linucb"
        alpha: float = param(
            0.5, title="Exploration bonus", symbol=r"\alpha", ge=0, le=10, typical=(0, 4), basic=True,
            help="Exploration coefficient: multiplies the confidence width to give the exploration bonus. Larger "
            "values explore more; usually 0 (no exploration) to 2.",
            sweep=(0.03, 4),
        )  # fmt: skip
        gamma: float = param(
            1.0, title="Discount factor", symbol=r"\gamma", gt=0, le=1, typical=(0.99, 1),
            help="Discount factor for past observations: one that is k steps old has weight γ to the power k. Larger "
            "values forget more slowly; usually 0.99 to 1 (no forgetting).",
        )  # fmt: skip
        window: int | None = param(
            None, title="Sliding window", unit="steps", empty="all steps", ge=1, le=1_000_000, structural=True,
            help="Number of most recent steps that the models are fitted to. Larger values forget more slowly; usual "
            "are 500 to 10,000; empty means all steps.",
        )  # fmt: skip

        def mode(self) -> str:
            return "discounted" if self.gamma < 1 else ""

        @classmethod
        def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
            discounted, windowed = values.get("gamma", 1.0) < 1, values.get("window") is not None
            if discounted and windowed:
                values = {**values, "window": None}
            if (discounted or windowed) and values.get("sharing") == "hybrid":
                values = {**values, "sharing": "shared"}
            return values

        @model_validator(mode="after")
        def _one_way_to_forget(self) -> Self:
            if self.gamma < 1 and self.window is not None:
                raise ValueError("linucb: choose gamma below 1 or a window, not both")
            if (self.gamma < 1 or self.window is not None) and self.sharing == "hybrid":
                raise ValueError("linucb: gamma below 1 and window need sharing per_arm or shared, not hybrid")
            return self

    title = "LinUCB"
    formula = r"\hat\theta_a^\top x_a+\alpha\sqrt{x_a^\top A_a^{-1}x_a}"
    uncertainty = "bonus"
    exploration_param = "alpha"
    colour = "#0072B2"

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    def make_model(self) -> Ridge | DiscountedRidge:
        p, ridge = self.params[0], self.column("ridge")
        if p.window is not None:
            return SlidingWindowRidge(ridge, self.spec, p.sharing, p.window)
        if p.gamma < 1:
            return DiscountedRidge(ridge, self.column("gamma"), self.spec, p.sharing)
        return super().make_model()

    def scores(self, round: Round) -> FloatArray:
        mean, variance = self.model.predict(self.transformed(round))
        return np.asarray(mean + self.alpha[:, None] * np.sqrt(variance))

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.model.predict(self.transformed(round))
        return Explanation("bonus", self.scores(round), mean, np.sqrt(variance), self.alpha[:, None], "alpha")

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.fourier is not None or type(self.model) is not Ridge:
            return None
        return self.model.play(steps, alive, scale=self.alpha)

    @classmethod
    def forgets(cls, params: Any) -> bool:
        return bool(params.gamma < 1 or params.window is not None)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        forgetting: list[dict[str, Any]] = [{"gamma": 0.98}, {"window": 20}]
        more = [{**change, "sharing": s} for change in forgetting for s in ("per_arm", "shared")]
        return [*super().test_params(), *more]

    @classmethod
    def model_memory(cls, params: Any, spec: WorldSpec) -> int:
        if params.gamma < 1:
            own = Ridge.memory(spec, params.sharing)
            return super().model_memory(params, spec) - own + DiscountedRidge.memory(spec, params.sharing)
        ring = 0 if params.window is None else SlidingWindowRidge.ring_memory(spec, params.window)
        return super().model_memory(params, spec) + ring
