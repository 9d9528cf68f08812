"""What the agents with a Bayesian logistic model share: the parameters, the model and its bookkeeping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from bandits.agents.base import Agent, LearnerParams, Representation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.linear.logistic import Covariance, Logistic, Sharing


class LogisticParams(LearnerParams):
    """Parameters of a logistic model."""

    ridge: float = param(
        1.0, title="Ridge", symbol=r"\lambda", ge=1e-6, le=1e4, typical=(0.01, 100), basic=True, log=True,
        help="Strength of the belief, before any data, that all weights are small (and every chance one half).",
    )  # fmt: skip
    sharing: Sharing = param(
        "per_arm", title="Sharing", structural=True,
        help="per_arm: a model of its own for every product. shared: one model for all.",
    )  # fmt: skip
    refit: int = param(
        100, title="Refit every", unit="observations", ge=0, le=1_000_000, typical=(0, 1000), structural=True,
        help="After so many observations a model is fitted afresh to its whole history; in between it takes what it "
        "believed for a normal distribution. 0 never fits afresh.",
    )  # fmt: skip
    history: int = param(
        1000, title="History", unit="distinct observations", ge=1, le=1_000_000, typical=(100, 10_000),
        structural=True,
        help="What a refit can look back on: so many different feature vectors, with their shows and clicks. Older "
        "ones are kept as what was believed after them.",
    )  # fmt: skip


class LogisticAgent(Agent):
    """An agent that keeps `Logistic` models of 0/1 rewards and updates them after every observation."""

    needs = frozenset({"binary"})
    joint = False  # True: it draws from a posterior that candidates share

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        p = params[0]
        self.model = Logistic(
            self.column("ridge"), spec, p.sharing,
            refit=p.refit, history=p.history, covariance=self.covariance(p), joint=self.joint,
        )  # fmt: skip
        self.state = tuple(f"model.{name}" for name in self.model.STATE)

    @classmethod
    def covariance(cls, params: Any) -> Covariance:  # noqa: ARG003
        """What its models keep of the covariance."""
        return "full"

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.model.update(round, slate, feedback, self.shows(feedback))

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        return self.model.spectrum(bases)

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:
        return bool(params.sharing != "shared")

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "features"

    @classmethod
    def generalises(cls, params: Any) -> bool:
        return bool(params.sharing != "per_arm")

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{"refit": 10, "history": 20, "sharing": sharing} for sharing in get_args(Sharing)]

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        models = 1 if params.sharing == "shared" else spec.n_items  # and 41 spectra at most
        own = Logistic.memory(
            spec, params.sharing, refit=params.refit, history=params.history, covariance=cls.covariance(params)
        )
        return own + 8 * 41 * models * spec.n_features
