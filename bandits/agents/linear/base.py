"""Base class of agents with ridge models: parameters, models, state and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from bandits.agents.base import Agent, LearnerParams, Representation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.linear.nonstationary import DiscountedRidge
from bandits.models.linear.random_features import RandomFourierFeatures
from bandits.models.linear.ridge import Ridge, Sharing, n_models
from bandits.models.position_bias import weighted


class LinearParams(LearnerParams):
    """Parameters of a ridge model."""

    ridge: float = param(
        1.0, title="Ridge", symbol=r"\lambda", ge=1e-6, le=1e4, typical=(0.01, 100), basic=True, log=True,
        usual=(0.1, 1),
        help="Prior precision of the weights (ridge penalty). Larger values shrink the weights more strongly and "
        "narrow the confidence width; usually 0.1 to 1.",
    )  # fmt: skip
    sharing: Sharing = param(
        "per_arm", title="Sharing", structural=True, sweep=("per_arm", "shared", "hybrid"),
        help="Which arms share weights. per_arm: one model per arm. shared: one model for all arms. hybrid: the sum "
        "of both. per_category: one model for all arms of a category (in Artwork: the pictures of a title).",
    )  # fmt: skip
    fourier: int = param(
        0, title="Fourier features", symbol="m", ge=0, le=2000, structural=True, later=True,
        help="Number of random Fourier features cos(w·x/ℓ + b) that replace the features; 0 keeps the features. "
        "Larger values fit nonlinear rewards better and cost more; usually 50 to 500.",
        sweep=(16, 1024),
    )  # fmt: skip
    bandwidth: float = param(
        1.0, title="Length scale", symbol=r"\ell", ge=0.01, le=100, typical=(0.1, 10), log=True, structural=True,
        usual=(0.3, 3),
        later=True,
        help="Length scale of the Fourier features: distance between feature vectors over which rewards are similar. "
        "Larger values fit smoother functions; usually 0.3 to 3.",
    )  # fmt: skip


class LinearAgent(Agent):
    """Keeps `Ridge` models and updates them after every observation.

    With Fourier features, ``spec`` has the dimension of the transformed features.
    """

    linear = True
    joint = False  # True: draws from a posterior that candidates share

    def __init__(self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess) -> None:
        p = params[0]
        self.fourier = RandomFourierFeatures(spec, streams, p.fourier, p.bandwidth) if p.fourier else None
        spec = RandomFourierFeatures.transformed_spec(spec, p.fourier)
        super().__init__(params, spec, streams, access)
        self.model = self.make_model()
        self.state = tuple(f"model.{name}" for name in self.model.state)

    def make_model(self) -> Ridge | DiscountedRidge:
        """Create the models."""
        n_features, n_items, sharing = self.spec.n_features, self.spec.n_items, self.params[0].sharing
        groups = self.access.categories() if sharing == "per_category" else None
        return Ridge(self.column("ridge"), n_features, n_items, sharing, joint=self.joint, groups=groups)

    def transformed(self, round: Round) -> Round:
        """Return the round with the features that the models read, Fourier features if there are any."""
        return round if self.fourier is None else self.fourier.round(round)

    def mean(self, round: Round) -> FloatArray:
        """Compute the posterior mean of every candidate's reward, float64 (R, K)."""
        return self.model.mean(self.transformed(round))

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.model.update(*weighted(self.transformed(round), slate, feedback, self.exposure(feedback)))

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        if self.fourier is not None:
            bases = self.fourier.bases(self.model.sharing != "shared")
        return self.model.spectrum(bases)

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:
        return bool(params.sharing != "shared")

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def representation(cls, params: Any) -> Representation | None:
        return "fourier" if params.fourier else "features"

    @classmethod
    def generalises(cls, params: Any) -> bool:
        return bool(params.sharing != "per_arm")

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        sharings: list[dict[str, Any]] = [{"sharing": s} for s in get_args(Sharing)]
        return [*sharings, *({"fourier": 6, **sharing} for sharing in sharings[:2])]

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | ({"categories"} if params.sharing == "per_category" else set())

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        without = [] if "categories" in spec.capabilities else [{"sharing": "per_arm"}]
        return [*without, *([{"sharing": "shared"}] if "arm_features" in spec.capabilities else [])]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        n = params.fourier
        own = cls.model_memory(params, RandomFourierFeatures.transformed_spec(spec, n))
        return own + RandomFourierFeatures.memory(spec, n)

    @classmethod
    def model_memory(cls, params: Any, spec: SimulatorSpec) -> int:
        """Compute the bytes per row of the models and of their (at most 41) spectra."""
        models = n_models(spec, params.sharing)
        return Ridge.memory(spec, params.sharing) + 8 * 41 * models * spec.n_features

    @classmethod
    def shared_memory(cls, params: Any, spec: SimulatorSpec, layouts: int) -> int:
        return RandomFourierFeatures.shared_memory(spec, params.fourier, layouts)
