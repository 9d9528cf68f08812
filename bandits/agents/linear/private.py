"""Linear agents whose models can be differentially private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import SimulatorAccess, SimulatorSpec
from bandits.models.linear.nonstationary import DiscountedRidge
from bandits.models.linear.private_ridge import PrivateRidge
from bandits.models.linear.ridge import Ridge

from .forgetting import JOINED, ForgettingLinearAgent, ForgettingLinearParams


class PrivateLinearParams(ForgettingLinearParams):
    """Parameters of ridge models that can be differentially private."""

    private: float | None = param(
        None, title="Privacy budget", empty="none", ge=0.1, le=10, structural=True, later=True,
        help="Budget ε of the differential privacy of each observation (δ = 0.00001), not of a user who returns; the "
        "models are renewed every 100 steps from sums with noise. Smaller values protect more and cost more clicks "
        "(usually 0.5 to 5); with one model per arm almost nothing is learned in 10,000 steps, so use sharing shared. "
        "Empty: no noise.",
    )  # fmt: skip
    private_norm: float = param(
        2.0, title="Longest observation", gt=0, le=1000, typical=(1, 10), structural=True, later=True,
        help="Observations (features and reward) of a larger Euclidean length are shortened to it (privacy). Larger "
        "values need more noise; usually 1 to 5.",
    )  # fmt: skip

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:
        return super().idle(values) | (frozenset() if values.get("private") else frozenset({"private_norm"}))

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().closest(values)
        return {**values, "private": None} if values.get("private") is not None and _obstacle(values) else values

    @model_validator(mode="after")
    def _private(self) -> Self:
        if self.private is not None and (obstacle := _obstacle(dict(self))):
            raise ValueError(f"{self.kind}: private needs {obstacle}")
        return self


def _obstacle(values: dict[str, Any]) -> str:
    """Return what private models need and these parameters are not; empty if they fit."""
    if values.get("sharing") in JOINED:
        return f"sharing per_arm or shared, not {values['sharing']}"
    if values.get("gamma", 1.0) < 1 or values.get("window") is not None:
        return "gamma 1 and no window"
    if values.get("prior", "zero") != "zero":
        return f"prior zero, not {values['prior']}"
    if values.get("noise", "fixed") != "fixed":
        return f"noise fixed, not {values['noise']}"
    kinds = (each.get("kind") if isinstance(each, Mapping) else each.kind for each in values.get("guards") or ())
    if "reset" in kinds:
        return "no guard reset: a reset would use the noise again"
    return ""


class PrivateLinearAgent(ForgettingLinearAgent):
    """Linear agent whose models can be differentially private."""

    def __init__(self, params: Any, spec: SimulatorSpec, streams: Streams, access: SimulatorAccess) -> None:
        self._streams = streams
        super().__init__(params, spec, streams, access)

    def make_model(self) -> Ridge | DiscountedRidge:
        p = self.params[0]
        if p.private is None:
            return super().make_model()
        return PrivateRidge(
            self.column("ridge"), self.spec.n_features, self.spec.n_items, p.sharing, epsilon=p.private,
            norm=p.private_norm, slate=self.spec.slate, streams=self._streams, joint=self.joint,
        )  # fmt: skip

    def plain_model(self) -> Ridge | None:
        model = super().plain_model()
        return None if isinstance(model, PrivateRidge) else model

    @classmethod
    def model_memory(cls, params: Any, spec: SimulatorSpec) -> int:
        models, D = 1 if params.sharing == "shared" else spec.n_items, spec.n_features
        private = 0 if params.private is None else 8 * models * (D * D + D + 6 * (D + 1) ** 2)
        return super().model_memory(params, spec) + private

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [*super().test_params(), *({"private": 1.0, "sharing": s} for s in ("per_arm", "shared"))]
