"""Three worlds as small as a contract allows, and how the tests put agents into them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from bandits.agents import REGISTRY as AGENTS
from bandits.agents.neural.base import NeuralAgent
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, LoggedData, Round, Truth, WorldSpec
from bandits.experiments.history import Trace
from bandits.experiments.lane import Lane
from bandits.simulators import Simulator, SimulatorParams


class Dense(Simulator):
    """What these worlds share: dense features (R, K, D) of which any vector may occur, and no log."""

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        return 8 * rows * params.n_arms * params.n_features

    def features(self, item: int | None) -> FloatArray:
        return np.eye(self.params.n_features)

    def log(self, layout: int, n: int) -> LoggedData:
        raise NotImplementedError("this world offers no log")

    def make_round(self, step: int, items: IntArray, features: FloatArray) -> Round:
        R, K, D = features.shape
        columns = np.ascontiguousarray(np.broadcast_to(np.arange(D), (R, K, D)))
        contexts = Contexts(np.ascontiguousarray(features), columns, D)
        nobody = np.zeros(R, np.int64)
        return Round(step, nobody, items, contexts, np.arange(R), np.ones((R, K), np.bool_), nobody)


class Linear(Dense):
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

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, K, D = len(streams.rows), params.n_arms, params.n_features
        self.theta = np.stack([self._draw_theta(int(layout)) for layout in self.layouts()])  # (R, D)
        self._draws = streams.blocks("world", self._draw_features, width=K * D)
        self._items = np.ascontiguousarray(np.broadcast_to(np.arange(K), (R, K)))

    @classmethod
    def layout_per_row(cls, params: Any) -> bool:
        return bool(params.layout == "per_row")

    @classmethod
    def describe(cls, params: Any) -> WorldSpec:
        K, D = params.n_arms, params.n_features
        capabilities = {"truth", "binary"} if params.reward == "bernoulli" else {"truth"}
        return WorldSpec(n_items=K, n_candidates=K, n_features=D, n_stored=D, capabilities=frozenset(capabilities))

    def round_at(self, step: int) -> Round:
        return self.make_round(step, self._items, self._draws.at(step))

    def respond(self, round: Round, slate: IntArray, uniforms: FloatArray) -> tuple[Feedback, Truth]:
        means, rows = self.probabilities(round), np.arange(len(slate))
        offered = np.where(round.available, means, -np.inf)
        best = offered.argmax(axis=1)
        value, best_value = means[rows, slate[:, 0]], means[rows, best]
        average = np.where(round.available, means, 0).sum(axis=1) / round.available.sum(axis=1)
        rewards = self._reward(value, uniforms[:, 0])
        truth = Truth(value, best_value, average, self._reward(best_value, uniforms[:, 0]))
        return Feedback(rewards[:, None], np.ones(slate.shape, np.bool_)), truth

    def probabilities(self, round: Round) -> FloatArray:
        return np.einsum("rkd,rd->rk", round.features, self.theta)

    def _draw_theta(self, layout: int) -> FloatArray:
        generator = self.streams.generator("layout", row=layout)
        if self.params.reward == "bernoulli":
            return generator.random(self.params.n_features)
        return self.params.scale * generator.standard_normal(self.params.n_features)

    def _draw_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        shape = (n, self.params.n_arms, self.params.n_features)
        if self.params.reward == "gaussian":
            return generator.standard_normal(shape)
        drawn = generator.random(shape)  # convex weights: the mean of numbers in [0, 1] is a probability
        return drawn / drawn.sum(axis=-1, keepdims=True)

    def _reward(self, mean: FloatArray, uniforms: FloatArray) -> FloatArray:
        if self.params.reward == "bernoulli":
            return (uniforms < mean).astype(np.float64)
        return mean + self.params.noise * ndtri(uniforms)


class Changing(Linear):
    """The linear world, in which the last arm is launched at step 20 and the first withdrawn at step 40."""

    class Params(Linear.Params):
        kind: Literal["test_changing"] = "test_changing"

    title = "Changing"
    LAUNCH, WITHDRAWAL = 20, 40

    def round_at(self, step: int) -> Round:
        round = super().round_at(step)
        round.available[:, -1] = step >= self.LAUNCH
        round.available[:, 0] = step < self.WITHDRAWAL
        return round


class Shuffled(Linear):
    """The linear world with its candidates in another order; each arm keeps its identity."""

    title = "Shuffled"

    def round_at(self, step: int) -> Round:
        order = np.random.default_rng(step).permutation(self.params.n_arms)
        items = np.ascontiguousarray(self._items[:, order])
        return self.make_round(step, items, self._draws.at(step)[:, order])


class Cascade(Dense):
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
            n_stored=params.n_features, slate=cls.SLATE, capabilities=frozenset({"truth", "binary"}),
        )  # fmt: skip

    def round_at(self, step: int) -> Round:
        items = np.ascontiguousarray(self._what.at(step).argsort(axis=1)[:, : self.params.n_arms])
        taste = self._who.at(step)
        taste = taste / taste.sum(axis=1, keepdims=True)
        return self.make_round(step, items, taste[:, None] * self._attractions[items])

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
