"""What every simulator is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandits.base.params import Params
from bandits.base.randomness import Streams
from bandits.base.types import (
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    PredrawnSteps,
    Round,
    Truth,
    WorldAccess,
    WorldSpec,
)

from . import click_kernels


class SimulatorParams(Params):
    """Parameters of a world."""

    kind: str


class Simulator(ABC):
    """A world lived through by R rows at once; a pure function of the step.

    Parameters
    ----------
    params : Params
    streams : Streams
        World and clicks of a row depend on its replication number alone, never on the agent.
    """

    Params: ClassVar[type[SimulatorParams]]
    title: ClassVar[str]
    reward_noun: ClassVar[str] = "clicks"
    rate_title: ClassVar[str] = "Click rate"
    item_noun: ClassVar[str] = "product"

    def __init__(self, params: Any, streams: Streams) -> None:
        self.params, self.streams = params, streams
        self.spec = self.describe(params)
        S = self.spec.slate
        self.uniforms = streams.blocks("clicks", lambda g, n: g.random((n, S)), width=S)

    @classmethod
    @abstractmethod
    def describe(cls, params: Any) -> WorldSpec:
        """Sizes and capabilities, known without building the world."""

    @classmethod
    @abstractmethod
    def memory(cls, params: Any, rows: int) -> int:
        """Bytes that ``rows`` rows need, by arithmetic, before anything is allocated."""

    @classmethod
    def layout_per_row(cls, params: Any) -> bool:  # noqa: ARG003
        """Whether each row draws a layout (catalogue, personas, weights) of its own."""
        return False

    @classmethod
    def slate_size(cls, params: Any) -> int:
        """Return the number of items shown at once, S; known even where the data are missing on this machine."""
        return cls.describe(params).slate

    @classmethod
    def shared_memory(cls, params: Any, layouts: int) -> int:  # noqa: ARG003
        """Bytes that the worlds of all agents share, for so many layouts, by arithmetic."""
        return 0

    @abstractmethod
    def round_at(self, step: int) -> Round:
        """Who comes at this step, and what could be shown."""

    @abstractmethod
    def respond(self, round: Round, slate: IntArray, uniforms: FloatArray) -> tuple[Feedback, Truth]:
        """What the users do with ``slate (R, S)``, decided by ``uniforms (R, S)``, and what was to be expected."""

    @abstractmethod
    def probabilities(self, round: Round) -> FloatArray:
        """Expected reward of each candidate if shown first, float64 (R, K)."""

    @abstractmethod
    def features(self, item: int | None) -> FloatArray:
        """Feature vectors that can occur, float64 (n, D), for one item or (None) for all: spans and spectra."""

    @abstractmethod
    def log(self, layout: int, n: int) -> LoggedData:
        """n interactions of one layout, logged under uniformly random choice."""

    @classmethod
    def credit(cls, params: Any) -> str:  # noqa: ARG003
        """Whose data it is, where a licence asks for it to be said."""
        return ""

    @classmethod
    def travels(cls, params: Any) -> bool:  # noqa: ARG003
        """Whether its parameters alone make this world again on another machine."""
        return True

    def predraw(self, step: int, n: int) -> PredrawnSteps | None:  # noqa: ARG002
        """Up to ``n`` steps drawn ahead (at most a block of draws of width K), or None if this world cannot."""
        return None

    def name(self, item: int, row: int = 0) -> str:  # noqa: ARG002
        """What an item is called; where several have the same name, they are alike to whoever comes."""
        return f"{self.item_noun} {item}"

    @classmethod
    def segment_names(cls) -> list[str]:
        """Names of the segments, or nothing where users form no groups."""
        return []

    def layouts(self) -> IntArray:
        """Number the layout of each row, int64 (R,): all 0 unless each row draws its own (`layout_per_row`)."""
        rows = self.streams.rows
        return np.array(rows if self.layout_per_row(self.params) else [0] * len(rows), np.int64)

    def bases(self, per_arm: bool) -> list[FloatArray]:
        """Orthonormal basis (D, m) of the span of the features: of each arm, or (one) of all arms together."""
        items: Sequence[int | None] = range(self.spec.n_items) if per_arm else [None]
        return [span(self.features(item)) for item in items]

    def access(self) -> WorldAccess:
        """The doors for the agents that need them."""
        return WorldAccess(self.probabilities, self.log, self.layouts(), f"{self.log_key()}|{self.streams.seed}")

    def log_key(self) -> str:
        """Names what the log depends on, besides the seed."""
        return str(self.params.model_dump_json())


def span(features: FloatArray) -> FloatArray:
    """Orthonormal basis (D, m) of the row space of ``features (n, D)``."""
    values, vectors = np.linalg.eigh(features.T @ features)
    return np.ascontiguousarray(vectors[:, values > max(values[-1], 1e-300) * 1e-10])


class ClickTable(NamedTuple):
    """Click probabilities of worlds that show one product in one of C contexts, and what follows from them.

    Attributes
    ----------
    probabilities : float64 (C, K)
    best : int64 (C,)
    average : float64 (C,)
        Expected reward of a uniformly random candidate.
    """

    probabilities: FloatArray
    best: IntArray
    average: FloatArray

    @classmethod
    def of(cls, probabilities: FloatArray) -> ClickTable:
        """Derive the optimum (ties to the lowest index) and the average."""
        table = np.ascontiguousarray(probabilities, dtype=np.float64)
        return cls(table, table.argmax(axis=1), table.mean(axis=1))

    def respond(self, context: IntArray, slate: IntArray, uniforms: FloatArray) -> tuple[Feedback, Truth]:
        """Click ~ Bernoulli(probability), decided by the uniform."""
        rewards, value, best_value, random_value, best_reward = click_kernels.click(*self, context, slate, uniforms)
        return (
            Feedback(rewards, np.ones(slate.shape, np.bool_)),
            Truth(value, best_value, random_value, best_reward),
        )


def answer(
    means: FloatArray, slate: IntArray, uniforms: FloatArray, luck: Callable[[FloatArray, FloatArray], FloatArray]
) -> tuple[Feedback, Truth]:
    """One of K candidates is shown, whose expected rewards are ``means (R, K)``, and examined.

    ``luck(means (R,), uniforms (R,))`` makes a reward of what was to be expected: with the same uniform for what was
    shown and for the best (ties to the lowest index), so that runs stay paired.
    """
    rows, uniform = np.arange(len(slate)), uniforms[:, 0]
    value, best_value = means[rows, slate[:, 0]], means[rows, means.argmax(axis=1)]
    truth = Truth(value, best_value, means.mean(axis=1), luck(best_value, uniform))
    return Feedback(luck(value, uniform)[:, None], np.ones(slate.shape, np.bool_)), truth


def normal(uniforms: FloatArray) -> FloatArray:
    """Standard normals from uniforms in [0, 1), by the inverse of the distribution function."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.maximum(uniforms, 2.0**-54)))  # of 0 it would be infinite
