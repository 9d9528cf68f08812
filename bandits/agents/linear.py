"""What the agents with a ridge model share: the parameters, the model and its bookkeeping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..forgetting import DiscountedRidge
from ..params import setting
from ..randomness import Streams
from ..ridge import Ridge, Sharing
from ..rounds import Feedback, FloatArray, IntArray, Round, Setting, World
from .base import Agent, AgentParams


class LinearParams(AgentParams):
    """Parameters of a ridge model."""

    ridge: float = setting(
        1.0, title="Ridge", symbol=r"\lambda", ge=1e-6, le=1e4, typical=(0.01, 100), basic=True, log=True,
        help="Strength of the belief, before any data, that all weights are small. Larger learns more cautiously.",
    )  # fmt: skip
    sharing: Sharing = setting(
        "per_arm", title="Sharing", structural=True,
        help="per_arm: a model of its own for every product. shared: one model for all. hybrid: both at once.",
    )  # fmt: skip


class LinearAgent(Agent):
    """An agent that keeps `Ridge` models and updates them after every observation."""

    joint = False  # True: it draws from a posterior that candidates share

    def __init__(self, params: Sequence[Any], setting: Setting, streams: Streams, world: World) -> None:
        super().__init__(params, setting, streams, world)
        self.model = self.make_model()
        self.state = tuple(f"model.{name}" for name in self.model.state)

    def make_model(self) -> Ridge | DiscountedRidge:
        """The models it learns with."""
        n_features, n_items = self.setting.n_features, self.setting.n_items
        return Ridge(self.column("ridge"), n_features, n_items, self.params[0].sharing, joint=self.joint)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.model.update(round, slate, feedback)

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        return self.model.spectrum(bases)

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:
        return bool(params.sharing != "shared")

    @classmethod
    def memory(cls, params: Any, setting: Setting) -> int:
        models = 1 if params.sharing == "shared" else setting.n_items  # and 41 spectra at most
        return Ridge.memory(setting, params.sharing) + 8 * 41 * models * setting.n_features
