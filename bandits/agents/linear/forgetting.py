"""Linear agents that can forget: by a discount factor or a sliding window."""

from __future__ import annotations

from typing import Any, Self

from pydantic import model_validator

from bandits.agents.forgetting import check_one_way, closest_way, gamma_param, window_param
from bandits.base.types import WorldSpec
from bandits.models.linear.nonstationary import DiscountedRidge, SlidingWindowRidge
from bandits.models.linear.ridge import Ridge

from .base import LinearAgent, LinearParams


class ForgettingLinearParams(LinearParams):
    """Parameters of a ridge model that can forget."""

    gamma: float = gamma_param()
    window: int | None = window_param()

    def mode(self) -> str:
        return "discounted" if self.gamma < 1 else ""

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = closest_way(values)
        if (values.get("gamma", 1.0) < 1 or values.get("window") is not None) and values.get("sharing") == "hybrid":
            values = {**values, "sharing": "shared"}
        return values

    @model_validator(mode="after")
    def _one_way_to_forget(self) -> Self:
        check_one_way(self.kind, self.gamma, self.window)
        if (self.gamma < 1 or self.window is not None) and self.sharing == "hybrid":
            raise ValueError(f"{self.kind}: gamma below 1 and window need sharing per_arm or shared, not hybrid")
        return self


class ForgettingLinearAgent(LinearAgent):
    """Linear agent whose models discount old observations or leave them out; the prior is never discounted."""

    def make_model(self) -> Ridge | DiscountedRidge:
        p, ridge = self.params[0], self.column("ridge")
        if p.window is not None:
            return SlidingWindowRidge(ridge, self.spec, p.sharing, p.window)
        if p.gamma < 1:
            return DiscountedRidge(ridge, self.column("gamma"), self.spec, p.sharing)
        return super().make_model()

    def plain_model(self) -> Ridge | None:
        """Return the models if they have compiled steps (`Ridge.play`): on the features, without forgetting."""
        return self.model if self.fourier is None and type(self.model) is Ridge else None

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
