"""Base class of agents with Bayesian logistic models: parameters, models, state and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, get_args

from pydantic import model_validator

from bandits.agents.base import Agent
from bandits.agents.facts import ModelFacts, Representation
from bandits.agents.model_params import (
    ESTIMATED,
    ModelParams,
    clicks_param,
    every_param,
    gamma_param,
    groups_of,
    misses_param,
    prior_param,
    ridge_param,
    window_param,
)
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.linear.empirical_bayes import Prior, PriorLogistic, PriorState
from bandits.models.linear.forgetting_logistic import forgetting_memory, make_logistic
from bandits.models.linear.given_prior import give_logistic, given_memory
from bandits.models.linear.logistic import Covariance, Logistic, Sharing


class LogisticParams(ModelParams):
    """Parameters of a logistic model."""

    ridge: float = ridge_param(
        1.0,
        "draw click probabilities towards one half; usually 0.1 to 10",
        basic=True,
        usual=(0.1, 10),
    )
    sharing: Sharing = param(
        "per_arm",
        title="Sharing",
        structural=True,
        help=(
            "Which arms share weights. per_arm: one model per arm. shared: one model for all arms."
        ),
    )
    refit: int = param(
        100,
        title="Refit interval",
        unit="observations",
        ge=0,
        le=1_000_000,
        typical=(0, 1000),
        structural=True,
        help=(
            "Number of observations between two exact fits of a model to its history; in "
            "between, the posterior serves as a Gaussian prior. Larger values are faster and "
            "less exact; usually 10 to 1,000; 0: never. With a discount factor or a window: "
            "number of steps between two fits of all models."
        ),
        sweep=(10, 1000),
    )
    gamma: float = gamma_param()
    window: int | None = window_param()
    history: int = param(
        1000,
        title="History size",
        unit="distinct observations",
        ge=1,
        le=1_000_000,
        typical=(100, 10_000),
        structural=True,
        help=(
            "Number of distinct feature vectors, with exposures and clicks, that a refit uses; "
            "older ones are summarised by the posterior. Larger values are more exact and "
            "slower; usually 100 to 10,000."
        ),
    )

    prior: Prior = prior_param()
    prior_every: int = every_param()
    prior_clicks: float = clicks_param()
    prior_misses: float = misses_param()

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().closest(values)
        if (values.get("gamma", 1.0) < 1 or values.get("window") is not None) and values.get(
            "refit"
        ) == 0:
            values = {**values, "refit": 100}
        return values

    @model_validator(mode="after")
    def _can_forget(self) -> Self:
        if (self.gamma < 1 or self.window is not None) and self.refit == 0:
            raise ValueError(
                f"{self.kind}: refit is 0; gamma below 1 and window need a refit interval of at "
                "least 1"
            )
        return self


class LogisticAgent(ModelFacts, Agent):
    """Keeps `Logistic` models of 0/1 rewards and updates them after every observation."""

    needs = frozenset({"binary"})
    # True: draws from a posterior that candidates share
    joint = False

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p = params[0]
        ridge = self.column("ridge")
        if p.prior in ESTIMATED:
            groups = groups_of(p.prior, len(ridge), spec, access)
            self.model: Logistic = PriorLogistic(
                ridge, spec, p.prior, p.prior_every, groups, refit=p.refit, history=p.history
            )
        else:
            self.model = make_logistic(
                ridge, self.column("gamma"), spec, p, self.covariance(p), joint=self.joint
            )
        if p.prior == "given":
            clicks, misses = self.column("prior_clicks"), self.column("prior_misses")
            give_logistic(self.model, access.round_at, spec, ridge, clicks, misses)
        self.state = tuple(f"model.{name}" for name in self.model.state)

    @classmethod
    def covariance(cls, params: Any) -> Covariance:  # noqa: ARG003
        """Name the part of the covariance that the models keep."""
        return "full"

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.model.update(round, slate, feedback, self.exposure(feedback))

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        return self.model.spectrum(bases)

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "features"

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | ({"categories"} if params.prior == "category" else set())

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small: list[dict[str, Any]] = [
            {"refit": 10, "history": 20, "sharing": s} for s in get_args(Sharing)
        ]
        priors = [
            {**small[0], "sharing": "per_arm", "prior": p, "prior_every": 7}
            for p in (*ESTIMATED, "given")
        ]
        forgetting = [
            {**part, **change} for part in small for change in ({"gamma": 0.98}, {"window": 20})
        ]
        return [*small, *forgetting, *priors]

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        without = [] if "categories" in spec.capabilities else [{"prior": "zero"}]
        return [*without, *([{"sharing": "shared"}] if "arm_features" in spec.capabilities else [])]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        # and 41 spectra at most
        models = 1 if params.sharing == "shared" else spec.n_items
        kept = {
            "refit": params.refit,
            "history": params.history,
            "covariance": cls.covariance(params),
        }
        own = Logistic.memory(spec, params.sharing, **kept)
        if params.prior == "given":
            own += given_memory(spec)
        if params.prior in ESTIMATED:
            own += PriorState.memory(spec.n_items, spec.n_features) + Logistic.memory(
                spec, "shared", **kept
            )
        return own + 8 * 41 * models * spec.n_features + forgetting_memory(params, spec)
