"""Parameters of ridge models: how they share weights, forget, begin, and protect observations."""

from __future__ import annotations

from typing import Any, Self

from pydantic import model_validator

from bandits.agents.guards.params import leak
from bandits.agents.model_params import (
    ModelParams,
    clicks_param,
    every_param,
    gamma_param,
    misses_param,
    prior_param,
    ridge_param,
    window_param,
)
from bandits.base.params import param
from bandits.models.linear.empirical_bayes import Prior
from bandits.models.linear.ridge import Sharing

# ways of sharing that cannot forget
JOINED = ("hybrid", "per_category")


class LinearParams(ModelParams):
    """Parameters of a ridge model; `models.make_model` builds what they choose."""

    ridge: float = ridge_param(
        1.0, "narrow the confidence width; usually 0.1 to 1", basic=True, usual=(0.1, 1)
    )
    sharing: Sharing = param(
        "per_arm",
        title="Sharing",
        structural=True,
        sweep=("per_arm", "shared", "hybrid"),
        help=(
            "Which arms share weights. per_arm: one model per arm. shared: one model for all "
            "arms. hybrid: the sum of both. per_category: one model for all arms of a category "
            "(in Artwork: the pictures of a title)."
        ),
    )
    fourier: int = param(
        0,
        title="Fourier features",
        symbol="m",
        ge=0,
        le=2000,
        structural=True,
        later=True,
        help=(
            "Number of random Fourier features cos(w·x/ℓ + b) that replace the features; 0 keeps "
            "the features. Larger values fit nonlinear rewards better and cost more; usually 50 "
            "to 500."
        ),
        sweep=(16, 1024),
    )
    bandwidth: float = param(
        1.0,
        title="Length scale",
        symbol=r"\ell",
        ge=0.01,
        le=100,
        typical=(0.1, 10),
        log=True,
        structural=True,
        usual=(0.3, 3),
        later=True,
        help=(
            "Length scale of the Fourier features: distance between feature vectors over which "
            "rewards are similar. Larger values fit smoother functions; usually 0.3 to 3."
        ),
    )
    gamma: float = gamma_param()
    window: int | None = window_param()
    prior: Prior = prior_param()
    prior_every: int = every_param()
    prior_clicks: float = clicks_param()
    prior_misses: float = misses_param()

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().closest(values)
        if (values.get("gamma", 1.0) < 1 or values.get("window") is not None) and values.get(
            "sharing"
        ) in JOINED:
            values = {**values, "sharing": "shared"}
        return values

    @model_validator(mode="after")
    def _can_share(self) -> Self:
        if (self.gamma < 1 or self.window is not None) and self.sharing in JOINED:
            raise ValueError(
                f"{self.kind}: gamma below 1 and window need sharing per_arm or shared, not "
                f"{self.sharing}"
            )
        return self


class PrivateLinearParams(LinearParams):
    """Parameters of ridge models that can be differentially private."""

    private: float | None = param(
        None,
        title="Privacy budget",
        empty="none",
        ge=0.1,
        le=10,
        structural=True,
        later=True,
        help=(
            "Budget ε of the differential privacy of each observation (δ = 0.00001), not of a "
            "user who returns; the models are renewed every 100 steps from sums with noise. "
            "Smaller values protect more and cost more clicks (usually 0.5 to 5); with one model "
            "per arm almost nothing is learned in 10,000 steps, so use sharing shared. Guards that "
            "learn from rewards or count shows are refused. Empty: no noise."
        ),
    )
    private_norm: float = param(
        2.0,
        title="Longest observation",
        gt=0,
        le=1000,
        typical=(1, 10),
        structural=True,
        later=True,
        help=(
            "Observations (features and reward) of a larger Euclidean length are shortened to it "
            "(privacy). Larger values need more noise; usually 1 to 5."
        ),
    )

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:
        return super().idle(values) | (
            frozenset() if values.get("private") else frozenset({"private_norm"})
        )

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().closest(values)
        return (
            {**values, "private": None}
            if values.get("private") is not None and _obstacle(values)
            else values
        )

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
    leaks = (leak(guard) for guard in values.get("guards") or ())
    return next((f"no guard {why}" for why in leaks if why), "")
