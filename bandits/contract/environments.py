"""Environments of the contract: the registered simulators at a small size, and three that test what
those do not.

`Linear` has a known optimum, `Changing` launches and withdraws arms, `Cascade` shows slates of
candidates drawn from a larger catalogue."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import (
    BoolArray,
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorSpec,
    Truth,
)
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators import Simulator, SimulatorParams
from bandits.simulators.base import normal
from bandits.simulators.dense import DenseSimulator


class Linear(DenseSimulator):
    """Features are drawn anew for every step, row and arm.

    The expected reward is linear in them.
    """

    class Params(SimulatorParams):
        kind: Literal["test_linear"] = "test_linear"
        n_arms: int = 5
        n_features: int = 4
        reward: Literal["bernoulli", "gaussian"] = "bernoulli"
        noise: float = 0.5
        scale: float = 1.0
        layout: Literal["shared", "per_row"] = "shared"

    title = "Linear"

    @classmethod
    def sizes(cls, params: Any) -> tuple[int, int]:
        return params.n_arms, params.n_features

    @classmethod
    def binary(cls, params: Any) -> bool:
        return bool(params.reward == "bernoulli")

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        spec = super().describe(params)
        return replace(spec, capabilities=spec.capabilities | {"categories"})

    def categories(self) -> IntArray:
        return np.tile(np.arange(self.spec.n_items) % 2, (len(self.streams.rows), 1))

    @property
    def theta(self) -> FloatArray:
        """The true weights of each row, float64 (R, D)."""
        return np.broadcast_to(self.weights, (len(self.streams.rows), self.params.n_features))

    def draw_weights(self, generator: np.random.Generator) -> FloatArray:
        if self.params.reward == "bernoulli":
            return np.asarray(generator.random(self.params.n_features))
        return np.asarray(self.params.scale * generator.standard_normal(self.params.n_features))

    def draw_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        shape = (n, self.params.n_arms, self.params.n_features)
        if self.params.reward == "gaussian":
            return np.asarray(generator.standard_normal(shape))
        # convex weights: the mean of numbers in [0, 1] is a probability
        drawn = generator.random(shape)
        return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))

    def expected_rewards(self, features: FloatArray, weights: FloatArray) -> FloatArray:
        rows = np.broadcast_to(weights, (len(features), features.shape[2]))
        return np.asarray(np.einsum("rkd,rd->rk", features, rows))

    def reward(self, means: FloatArray, uniforms: FloatArray) -> FloatArray:
        if self.params.reward == "bernoulli":
            return super().reward(means, uniforms)
        return np.asarray(means + self.params.noise * normal(uniforms))


class Changing(Linear):
    """The linear simulator, in which the last arm is launched at step 20 and the first withdrawn at
    step 40.
    """

    class Params(Linear.Params):
        kind: Literal["test_changing"] = "test_changing"  # type: ignore[assignment]

    title = "Changing"
    LAUNCH, WITHDRAWAL = 20, 40

    def round_at(self, step: int) -> Round:
        round = super().round_at(step)
        available = round.available.copy()
        available[:, -1] = step >= self.LAUNCH
        available[:, 0] = step < self.WITHDRAWAL
        return round._replace(available=available)


class Cascade(Simulator):
    """Slates of three out of candidates drawn from a catalogue.

    The user stops at the first click.
    """

    class Params(SimulatorParams):
        kind: Literal["test_cascade"] = "test_cascade"
        n_items: int = 12
        n_arms: int = 6
        n_features: int = 4

    title = "Cascade"
    SLATE = 3

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        layout = streams.generator("layout")
        self._attractions = layout.random((params.n_items, params.n_features))
        self._tastes = streams.blocks(
            "world", lambda g, n: g.random((n, params.n_features)), width=params.n_features
        )
        self._what = streams.blocks(
            "world", lambda g, n: g.random((n, params.n_items)), width=params.n_items, part=1
        )

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        return SimulatorSpec(
            n_items=params.n_items,
            n_candidates=params.n_arms,
            n_features=params.n_features,
            n_stored=params.n_features,
            slate=cls.SLATE,
            capabilities=frozenset({"truth", "binary", "arm_features", "categories"}),
        )

    def categories(self) -> IntArray:
        return np.tile(np.arange(self.spec.n_items) % 3, (len(self.streams.rows), 1))

    def round_at(self, step: int) -> Round:
        items = np.ascontiguousarray(self._what.at(step).argsort(axis=1)[:, : self.params.n_arms])
        taste = self._tastes.at(step)
        taste = taste / taste.sum(axis=1, keepdims=True)
        features = taste[:, None] * self._attractions[items]
        R, K, D = features.shape
        contexts = Contexts(
            features, np.ascontiguousarray(np.broadcast_to(np.arange(D), (R, K, D))), D
        )
        zeros = np.zeros(R, np.int64)
        return Round(step, zeros, items, contexts, np.arange(R), np.ones((R, K), np.bool_), zeros)

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        p = self.probabilities(round)
        best = np.argsort(-p, axis=1, kind="stable")[:, : self.SLATE]
        rewards, examined = self._look_down(np.take_along_axis(p, slate, 1), uniforms)
        best_rewards, _ = self._look_down(np.take_along_axis(p, best, 1), uniforms)
        slates = np.array(list(combinations(range(p.shape[1]), self.SLATE)))
        every = np.ascontiguousarray(1 - (1 - p[:, slates]).prod(axis=2))  # (R, number of slates)
        value = 1 - (1 - np.take_along_axis(p, slate, 1)).prod(axis=1)
        truth = Truth(value, every.max(axis=1), every.mean(axis=1), best_rewards.sum(axis=1))
        return Feedback(rewards, examined), truth

    def probabilities(self, round: Round) -> FloatArray:
        return np.asarray(round.features.sum(axis=-1) / 2)

    @staticmethod
    def _look_down(p: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, BoolArray]:
        would = uniforms < p
        examined: BoolArray = np.cumsum(would, axis=1) - would == 0
        return (would & examined).astype(np.float64), examined


ROWS, STEPS = (0, 1, 2), 60
_BREAKS: list[dict[str, Any]] = [
    {"kind": "shock", "at": 20, "how": "next"},
    {"kind": "features", "at": 25, "column": 1, "how": "shifted", "by": 2.0},
    {"kind": "features", "at": 40, "column": 0, "how": "swapped", "other": 1},
]
_PARAMS: dict[str, dict[str, Any]] = {
    "moving shop": {
        "n_products": 10,
        "n_users": 40,
        "features": "both",
        "changes": [
            *_BREAKS,
            {
                "kind": "drift",
                "start": 10,
                "end": 30,
                "from": "new_puppy_parent",
                "to": "mature_dog_owner",
            },
            {"kind": "traffic", "at": 35, "shares": [0.7, 0.1, 0.1, 0.1]},
            {"kind": "season", "period": 25, "amplitude": 0.5},
        ],
    },
    "petshop": {"n_products": 10, "n_users": 40, "shock_step": 30},
    "classification": {"data": "wine"},
    "synthetic": {
        "n_arms": 3,
        "n_features": 4,
        "reward": "bernoulli",
        "layout": "per_row",
        "changes": _BREAKS,
    },
    "levers": {
        "n_arms": 4,
        "layout": "per_row",
        "changes": [{"kind": "shock", "at": 20}, {"kind": "season", "period": 25}],
    },
    "wheel": {"delta": 0.8, "encoding": "block", "changes": _BREAKS},
    "ranking": {
        "n_users": 20,
        "n_items": 30,
        "n_candidates": 8,
        "slate": 3,
        "embedding": 2,
        "temperature": 0.01,
        "changes": [
            {"kind": "launch", "at": 20, "items": 10, "quality": 2.0},
            {"kind": "withdraw", "at": 40, "items": 5},
        ],
    },
    "artwork": {"n_titles": 6, "n_pictures": [2, 5], "n_users": 40, "n_retrieved": 3},
    "sessions": {"n_products": 10, "n_users": 40, "observed": "mood", "intent": 0.3, "limit": 8},
}
_PARAMS["two stages"] = {
    **_PARAMS["ranking"],
    "retrieval": "nearest",
    "breadth": 2,
    "noise": 0.02,
    "changes": _BREAKS,
}
ENVIRONMENTS: dict[str, type[Simulator]] = {
    **SIMULATORS,
    "moving shop": SIMULATORS["petshop"],
    "two stages": SIMULATORS["ranking"],
    "linear": Linear,
    "changing": Changing,
    "cascade": Cascade,
}
# in which every code path of an agent is checked
DEMANDING = ("petshop", "classification", "changing", "cascade")


def params_of(environment: str) -> Any:
    """Return the parameters of an environment."""
    return ENVIRONMENTS[environment].Params(**_PARAMS.get(environment, {}))


def capabilities(environment: str) -> frozenset[str]:
    """Return the capabilities of an environment."""
    return ENVIRONMENTS[environment].describe(params_of(environment)).capabilities


def make_simulator(environment: str, rows: tuple[int, ...] = ROWS) -> Simulator:
    """Create an environment."""
    return ENVIRONMENTS[environment](params_of(environment), Streams(7, rows))
