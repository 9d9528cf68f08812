"""Base class of agents with ridge models: state, facts about their parameters, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from bandits.agents.base import Agent
from bandits.agents.facts import ModelFacts, Representation
from bandits.agents.model_params import ESTIMATED
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.linear.random_features import RandomFourierFeatures
from bandits.models.linear.ridge import Ridge, Sharing
from bandits.models.position_bias import weighted

from .models import make_model, model_memory
from .params import PrivateLinearParams


class LinearAgent(ModelFacts, Agent):
    """Keeps the models that its parameters choose (`make_model`), and updates them after every
    observation.

    With Fourier features, ``spec`` has the dimension of the transformed features.
    """

    linear = True
    # True: draws from a posterior that candidates share
    joint = False

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        p = params[0]
        self.fourier = (
            RandomFourierFeatures(spec, streams, p.fourier, p.bandwidth) if p.fourier else None
        )
        spec = RandomFourierFeatures.transformed_spec(spec, p.fourier)
        super().__init__(params, spec, streams, access)
        self.model = make_model(
            self.params,
            spec,
            streams,
            access,
            lambda step: self.transformed(access.round_at(step)),
            joint=self.joint,
        )
        self.state = tuple(f"model.{name}" for name in self.model.state)

    @property
    def compiled_model(self) -> Ridge | None:
        """The models, if they have compiled steps (`Ridge.play`) and read the features
        themselves.
        """
        model = self.model
        return (
            model if self.fourier is None and isinstance(model, Ridge) and model.compiled else None
        )

    def transformed(self, round: Round) -> Round:
        """Return the round with the features that the models read, Fourier features if there are
        any.
        """
        return round if self.fourier is None else self.fourier.round(round)

    def mean(self, round: Round) -> FloatArray:
        """Compute the posterior mean of every candidate's reward, float64 (R, K)."""
        return self.model.mean(self.transformed(round))

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.model.update(
            *weighted(self.transformed(round), slate, feedback, self.exposure(feedback))
        )

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        if self.fourier is not None:
            bases = self.fourier.bases(self.model.sharing != "shared")
        return self.model.spectrum(bases)

    @classmethod
    def representation(cls, params: Any) -> Representation | None:
        return "fourier" if params.fourier else "features"

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        sharings: list[dict[str, Any]] = [{"sharing": s} for s in get_args(Sharing)]
        fourier = [{"fourier": 6, **sharing} for sharing in sharings[:2]]
        forgetting = [
            {**way, **sharing}
            for way in ({"gamma": 0.98}, {"window": 20})
            for sharing in sharings[:2]
        ]
        priors: list[dict[str, Any]] = [{"prior": prior, "prior_every": 7} for prior in ESTIMATED]
        given = {"prior": "given", "prior_clicks": 2.0, "prior_misses": 5.0}
        private = (
            [{"private": 1.0, **s} for s in sharings[:2]]
            if issubclass(cls.Params, PrivateLinearParams)
            else []
        )
        return [*sharings, *fourier, *forgetting, *priors, given, *private]

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        categories = params.sharing == "per_category" or params.prior == "category"
        return super().requires(params) | ({"categories"} if categories else set())

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        without = (
            [] if "categories" in spec.capabilities else [{"prior": "zero"}, {"sharing": "per_arm"}]
        )
        return [*without, *([{"sharing": "shared"}] if "arm_features" in spec.capabilities else [])]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        own = model_memory(params, RandomFourierFeatures.transformed_spec(spec, params.fourier))
        return own + RandomFourierFeatures.memory(spec, params.fourier)

    @classmethod
    def shared_memory(cls, params: Any, spec: SimulatorSpec, layouts: int) -> int:
        return RandomFourierFeatures.shared_memory(spec, params.fourier, layouts)
