"""Linear agents that can forget (discount factor, sliding window) or estimate the prior of an arm from other arms."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from pydantic import model_validator

from bandits.agents.forgetting import check_one_way, closest_way, gamma_param, window_param
from bandits.agents.priors import (
    ESTIMATED,
    check_prior,
    clicks_param,
    closest_prior,
    every_param,
    groups_of,
    idle_prior,
    misses_param,
    prior_param,
)
from bandits.base.types import SimulatorSpec
from bandits.models.linear.empirical_bayes import Prior, PriorState
from bandits.models.linear.given_prior import given_memory, given_sums
from bandits.models.linear.nonstationary import DiscountedRidge, SlidingWindowRidge
from bandits.models.linear.prior_ridge import PriorRidge
from bandits.models.linear.ridge import Ridge

from .base import LinearAgent, LinearParams

JOINED = ("hybrid", "per_category")  # ways of sharing that cannot forget


class ForgettingLinearParams(LinearParams):
    """Parameters of a ridge model that can forget, or estimate its prior."""

    gamma: float = gamma_param()
    window: int | None = window_param()
    prior: Prior = prior_param()
    prior_every: int = every_param()
    prior_clicks: float = clicks_param()
    prior_misses: float = misses_param()

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:
        return super().idle(values) | idle_prior(values)

    def mode(self) -> str:
        return "discounted" if self.gamma < 1 else ""

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = closest_way(values)
        if (values.get("gamma", 1.0) < 1 or values.get("window") is not None) and values.get("sharing") in JOINED:
            values = {**values, "sharing": "shared"}
        return closest_prior(values)

    @model_validator(mode="after")
    def _one_way_to_forget(self) -> Self:
        check_one_way(self.kind, self.gamma, self.window)
        if (self.gamma < 1 or self.window is not None) and self.sharing in JOINED:
            raise ValueError(
                f"{self.kind}: gamma below 1 and window need sharing per_arm or shared, not {self.sharing}"
            )
        check_prior(self.kind, dict(self))
        return self


class ForgettingLinearAgent(LinearAgent):
    """Linear agent whose models discount old observations or leave them out; the prior is never discounted."""

    def make_model(self) -> Ridge | DiscountedRidge:
        p, ridge = self.params[0], self.column("ridge")
        if p.window is not None:
            return SlidingWindowRidge(ridge, self.spec, p.sharing, p.window)
        if p.gamma < 1:
            return DiscountedRidge(ridge, self.column("gamma"), self.spec, p.sharing)
        if p.prior == "given":
            model = super().make_model()
            assert isinstance(model, Ridge)
            clicks, misses = self.column("prior_clicks"), self.column("prior_misses")
            gram, b = given_sums(lambda step: self.transformed(self.access.round_at(step)), self.spec, clicks, misses)
            model.refit(gram, b, np.zeros(b.shape[:2], np.int64))
            return model
        if p.prior != "zero":
            D, K = self.spec.n_features, self.spec.n_items
            return PriorRidge(
                ridge, D, K, p.prior, p.prior_every, groups_of(p.prior, len(ridge), self.spec, self.access)
            )
        return super().make_model()

    def plain_model(self) -> Ridge | None:
        """Return the models if they have compiled steps (`Ridge.play`): on the features, without forgetting."""
        model = self.model
        if self.fourier is not None or not isinstance(model, Ridge) or isinstance(model, SlidingWindowRidge):
            return None
        return model

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | ({"categories"} if params.prior == "category" else set())

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        without = [] if "categories" in spec.capabilities else [{"prior": "zero"}]
        return [*without, *super().alternatives(spec)]

    @classmethod
    def generalises(cls, params: Any) -> bool:
        return super().generalises(params) or params.prior in ESTIMATED

    @classmethod
    def starts_with_data(cls, params: Any) -> bool:
        return bool(params.prior == "given")

    @classmethod
    def forgets(cls, params: Any) -> bool:
        return bool(params.gamma < 1 or params.window is not None)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        forgetting: list[dict[str, Any]] = [{"gamma": 0.98}, {"window": 20}]
        more = [{**change, "sharing": s} for change in forgetting for s in ("per_arm", "shared")]
        priors: list[dict[str, Any]] = [{"prior": prior, "prior_every": 7} for prior in ESTIMATED]
        given = {"prior": "given", "prior_clicks": 2.0, "prior_misses": 5.0}
        return [*super().test_params(), *more, *priors, given]

    @classmethod
    def model_memory(cls, params: Any, spec: SimulatorSpec) -> int:
        if params.gamma < 1:
            own = Ridge.memory(spec, params.sharing)
            return super().model_memory(params, spec) - own + DiscountedRidge.memory(spec, params.sharing)
        ring = 0 if params.window is None else SlidingWindowRidge.ring_memory(spec, params.window)
        learned = PriorState.memory(spec.n_items, spec.n_features) if params.prior in ESTIMATED else 0
        if params.prior == "given":
            learned = given_memory(spec)
        return super().model_memory(params, spec) + ring + learned
