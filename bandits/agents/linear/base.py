"""What the agents with a ridge model share: the parameters, the model and its bookkeeping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from bandits.agents.base import Agent, LearnerParams, Representation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.linear.nonstationary import DiscountedRidge
from bandits.models.linear.random_features import RandomFourierFeatures
from bandits.models.linear.ridge import Ridge, Sharing
from bandits.models.position_bias import weighted


class LinearParams(LearnerParams):
    """Parameters of a ridge model."""

    ridge: float = param(
        1.0, title="Ridge", symbol=r"\lambda", ge=1e-6, le=1e4, typical=(0.01, 100), basic=True, log=True,
        help="Strength of the belief, before any data, that all weights are small. Larger learns more cautiously.",
    )  # fmt: skip
    sharing: Sharing = param(
        "per_arm", title="Sharing", structural=True,
        help="per_arm: a model of its own for every product. shared: one model for all. hybrid: both at once.",
    )  # fmt: skip
    fourier: int = param(
        0, title="Fourier features", symbol="m", ge=0, le=2000, structural=True, later=True,
        help="0: the model is linear in the features. Otherwise it is linear in so many random waves of them, "
        "cos(w·x/ℓ + b), and so can express what is not linear in the features.",
    )  # fmt: skip
    bandwidth: float = param(
        1.0, title="Length scale", symbol=r"\ell", ge=0.01, le=100, typical=(0.1, 10), log=True, structural=True,
        later=True,
        help="For Fourier features: how far apart two feature vectors can be and still earn alike.",
    )  # fmt: skip


class LinearAgent(Agent):
    """An agent that keeps `Ridge` models and updates them after every observation.

    With Fourier features, ``spec`` is what the models see of the world: the waves.
    """

    linear = True
    joint = False  # True: it draws from a posterior that candidates share

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        p = params[0]
        self.waves = RandomFourierFeatures(spec, streams, p.fourier, p.bandwidth) if p.fourier else None
        spec = RandomFourierFeatures.lifted(spec, p.fourier)
        super().__init__(params, spec, streams, access)
        self.model = self.make_model()
        self.state = tuple(f"model.{name}" for name in self.model.state)

    def make_model(self) -> Ridge | DiscountedRidge:
        """The models it learns with."""
        n_features, n_items = self.spec.n_features, self.spec.n_items
        return Ridge(self.column("ridge"), n_features, n_items, self.params[0].sharing, joint=self.joint)

    def seen(self, round: Round) -> Round:
        """The round as the models see it: as it is, or in waves."""
        return round if self.waves is None else self.waves.round(round)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.model.update(*weighted(self.seen(round), slate, feedback, self.shows(feedback)))

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        if self.waves is not None:
            bases = self.waves.bases(self.model.sharing != "shared")
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
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        n = params.fourier
        return cls.model_memory(params, RandomFourierFeatures.lifted(spec, n)) + RandomFourierFeatures.memory(spec, n)

    @classmethod
    def model_memory(cls, params: Any, spec: WorldSpec) -> int:
        """Bytes per row of its models and (41 at most) their spectra."""
        models = 1 if params.sharing == "shared" else spec.n_items
        return Ridge.memory(spec, params.sharing) + 8 * 41 * models * spec.n_features

    @classmethod
    def shared_memory(cls, params: Any, spec: WorldSpec, layouts: int) -> int:
        return RandomFourierFeatures.shared_memory(spec, params.fourier, layouts)
