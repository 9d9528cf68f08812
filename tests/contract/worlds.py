"""Simulators as small as the contract allows, and helpers that run agents on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np

from bandits.agents import REGISTRY as AGENTS
from bandits.agents.neural.base import NeuralAgent
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, Round, Truth, WorldSpec
from bandits.experiments.history import Trace
from bandits.experiments.lane import Lane
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators import Simulator, SimulatorParams
from bandits.simulators.base import normal
from bandits.simulators.dense import DenseSimulator


class Linear(DenseSimulator):
    """Features are drawn anew for every step, row and arm; the expected reward is linear in them."""

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
    def layout_per_row(cls, params: Any) -> bool:
        return bool(params.layout == "per_row")

    @property
    def theta(self) -> FloatArray:
        """The true weights of each row, float64 (R, D)."""
        return np.broadcast_to(self.weights, (len(self.streams.rows), self.params.n_features))

    def draw_weights(self, generator: np.random.Generator) -> FloatArray:
        if self.params.reward == "bernoulli":
            return generator.random(self.params.n_features)
        return self.params.scale * generator.standard_normal(self.params.n_features)

    def draw_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        shape = (n, self.params.n_arms, self.params.n_features)
        if self.params.reward == "gaussian":
            return generator.standard_normal(shape)
        drawn = generator.random(shape)  # convex weights: the mean of numbers in [0, 1] is a probability
        return drawn / drawn.sum(axis=-1, keepdims=True)

    def expected_rewards(self, features: FloatArray, weights: FloatArray) -> FloatArray:
        return np.einsum("rkd,rd->rk", features, np.broadcast_to(weights, (len(features), features.shape[2])))

    def reward(self, means: FloatArray, uniforms: FloatArray) -> FloatArray:
        if self.params.reward == "bernoulli":
            return super().reward(means, uniforms)
        return means + self.params.noise * normal(uniforms)


class Changing(Linear):
    """The linear simulator, in which the last arm is launched at step 20 and the first withdrawn at step 40."""

    class Params(Linear.Params):
        kind: Literal["test_changing"] = "test_changing"

    title = "Changing"
    LAUNCH, WITHDRAWAL = 20, 40

    def round_at(self, step: int) -> Round:
        round = super().round_at(step)
        available = round.available.copy()
        available[:, -1] = step >= self.LAUNCH
        available[:, 0] = step < self.WITHDRAWAL
        return round._replace(available=available)


class Shuffled(Linear):
    """The linear simulator with its candidates in another order; each arm keeps its identity."""

    title = "Shuffled"

    def round_at(self, step: int) -> Round:
        round = super().round_at(step)
        order = np.random.default_rng(step).permutation(self.params.n_arms)
        values, columns, D = round.contexts
        contexts = Contexts(np.ascontiguousarray(values[:, order]), columns, D)
        return round._replace(items=np.ascontiguousarray(round.items[:, order]), contexts=contexts)


class Cascade(Simulator):
    """Slates of three out of candidates drawn from a catalogue; the user stops at the first click."""

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
        self._who = streams.blocks("world", lambda g, n: g.random((n, params.n_features)), width=params.n_features)
        self._what = streams.blocks("world", lambda g, n: g.random((n, params.n_items)), width=params.n_items, part=1)

    @classmethod
    def describe(cls, params: Any) -> WorldSpec:
        return WorldSpec(
            n_items=params.n_items, n_candidates=params.n_arms, n_features=params.n_features,
            n_stored=params.n_features, slate=cls.SLATE, capabilities=frozenset({"truth", "binary", "arm_features"}),
        )  # fmt: skip

    def round_at(self, step: int) -> Round:
        items = np.ascontiguousarray(self._what.at(step).argsort(axis=1)[:, : self.params.n_arms])
        taste = self._who.at(step)
        taste = taste / taste.sum(axis=1, keepdims=True)
        features = taste[:, None] * self._attractions[items]
        R, K, D = features.shape
        contexts = Contexts(features, np.ascontiguousarray(np.broadcast_to(np.arange(D), (R, K, D))), D)
        zeros = np.zeros(R, np.int64)
        return Round(step, zeros, items, contexts, np.arange(R), np.ones((R, K), np.bool_), zeros)

    def respond(self, round: Round, slate: IntArray, uniforms: FloatArray) -> tuple[Feedback, Truth]:
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
        return round.features.sum(axis=-1) / 2

    @staticmethod
    def _look_down(p: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, np.ndarray]:
        would = uniforms < p
        examined = np.cumsum(would, axis=1) - would == 0
        return (would & examined).astype(np.float64), examined


ROWS, STEPS = (0, 1, 2), 60
SMALL_WORLDS: dict[str, dict[str, Any]] = {
    "petshop": {"n_products": 10, "n_users": 40, "shock_step": 30},
    "classification": {"data": "wine"},
    "synthetic": {"n_arms": 3, "n_features": 4, "reward": "bernoulli", "layout": "per_row"},
    "wheel": {"delta": 0.8, "encoding": "block"},
    "ranking": {"n_users": 20, "n_items": 30, "n_candidates": 8, "slate": 3, "embedding": 2, "temperature": 0.01},
}
SMALL_WORLDS["two stages"] = {**SMALL_WORLDS["ranking"], "retrieval": "nearest", "breadth": 2, "noise": 0.02}
WORLDS = {
    **SIMULATORS, "two stages": SIMULATORS["ranking"], "linear": Linear,
    "changing": Changing, "cascade": Cascade,
}  # fmt: skip


def capabilities(world: str) -> frozenset[str]:
    """The capabilities of a simulator under test."""
    cls = WORLDS[world]
    return cls.describe(cls.Params(**SMALL_WORLDS.get(world, {}))).capabilities


def simulator(world: str) -> Simulator:
    """A simulator under test, with three rows."""
    cls = WORLDS[world]
    return cls(cls.Params(**SMALL_WORLDS.get(world, {})), Streams(7, ROWS))


def check(array: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """Assert the type and the shape of an array."""
    assert (array.dtype, array.shape) == (np.dtype(dtype), shape)


NEURAL = [kind for kind, agent in AGENTS.items() if issubclass(agent, NeuralAgent)]


def make(
    agent: str | Sequence[Any],
    world: type[Simulator] = Linear,
    *,
    seed: int = 7,
    rows: Sequence[int] = (0, 1, 2),
    options: dict[str, Any] | None = None,
    **params: Any,
) -> Lane:
    """A lane: ``agent`` is a kind (with its parameters in ``params``) or the parameters row by row."""
    if isinstance(agent, str):
        agent = [AGENTS[agent].Params(**params)] * len(rows)
    simulator = world(world.Params(**(options or {})), Streams(seed, rows))
    return Lane(simulator, AGENTS[agent[0].kind](agent, simulator.spec, simulator.streams, simulator.access()))


def join(traces: Sequence[Trace]) -> Trace:
    """Consecutive traces as one."""
    arrays = zip(*(t[1:-1] for t in traces), strict=True)
    return Trace(traces[0].start, *(np.concatenate(a) for a in arrays), traces[-1].alive)


def same(a: Trace, b: Trace) -> bool:
    """Equal to the bit, NaN included."""
    return all(np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind == "f") for x, y in zip(a, b, strict=True))


def take(trace: Trace, rows: Sequence[int]) -> Trace:
    """Some rows of a trace."""
    return Trace(trace.start, *(a[:, rows] for a in trace[1:-1]), trace.alive[list(rows)])
