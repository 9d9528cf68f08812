"""Base class of simulators whose arms come with dense features, drawn anew at every step."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from bandits.base.randomness import Streams, block_length
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    Round,
    SimulatorSpec,
    Truth,
)

from .base import Simulator, single_response
from .changed_inputs import break_dense
from .changes import order_at


class DenseSimulator(Simulator):
    """K arms with D features each, drawn anew at every step; one arm is shown.

    A subclass declares ``Params`` and ``title`` and implements `sizes`, `draw_features` and
    `expected_rewards`. Rounds, responses, the log, the memory estimate and the capabilities are
    derived from these.

    Attributes
    ----------
    weights : float64 (R, ...) or (1, ...)
        What `draw_weights` drew for each row; one for all rows where the layout is shared.
    """

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, (K, D) = len(streams.rows), self.sizes(params)
        self._changes = tuple(params.all_changes.values())
        layouts, index = np.unique(self.layouts(), return_inverse=True)
        weights = np.stack([self._layout_weights(int(layout)) for layout in layouts])
        self.weights = weights if len(layouts) == 1 else weights[index]
        self._features = streams.blocks("world", self._checked_features, width=K * D)
        self._columns = np.broadcast_to(np.arange(D), (R, K, D)).copy()
        self._items = np.broadcast_to(np.arange(K), (R, K)).copy()
        self._available = np.ones((R, K), np.bool_)
        self._rows, self._zeros = np.arange(R), np.zeros(R, np.int64)

    @classmethod
    @abstractmethod
    def sizes(cls, params: Any) -> tuple[int, int]:
        """Return the number of arms K and of features D."""

    @abstractmethod
    def draw_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        """Draw the features of n steps, float64 (n, K, D)."""

    @abstractmethod
    def expected_rewards(self, features: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the expected reward of every arm, float64 (R, K).

        Parameters
        ----------
        features : float64 (R, K, D)
        weights : float64 (R, ...) or (1, ...)
            See `draw_weights`.
        """

    def draw_weights(self, generator: np.random.Generator) -> FloatArray:  # noqa: ARG002
        """Draw the hidden parameters of one layout, float64 of any shape; empty by default."""
        return np.empty(0)

    def reward(self, means: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Draw a reward from each expected reward by a uniform number: Bernoulli by default."""
        return (uniforms < means).astype(np.float64)

    @classmethod
    def binary(cls, params: Any) -> bool:  # noqa: ARG003
        """Return whether all rewards are 0 or 1."""
        return True

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        K, D = cls.sizes(params)
        capabilities = {"truth", "log", "arm_features"} | (
            {"binary"} if cls.binary(params) else set()
        )
        return SimulatorSpec(
            n_items=K,
            n_candidates=K,
            n_features=D,
            n_stored=D,
            capabilities=frozenset(capabilities),
        )

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        K, D = cls.sizes(params)
        # two blocks of each row, as the rounds of a calibration lie in both, and a temporary one
        drawn = (2 * rows + 1) * block_length(K * D) * K * D
        return int(8 * (drawn + rows * K * (3 * D + 6)))

    def round_at(self, step: int) -> Round:
        observed = break_dense(self._features.at(step), self._changes, step)
        contexts = Contexts(observed, self._columns, self._columns.shape[-1])
        return Round(
            step, self._zeros, self._items, contexts, self._rows, self._available, self._zeros
        )

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        return single_response(
            self.probabilities(round), slate, uniforms, self.reward, round.available
        )

    def probabilities(self, round: Round) -> FloatArray:
        features = self._features.at(round.step) if self._changes else round.contexts.values
        order = order_at(self._changes, round.step, self.weights.shape[-1])
        return self.expected_rewards(
            features, self.weights if order is None else self.weights[..., order]
        )

    def log(self, layout: int, n: int) -> LoggedData:
        generator, weights = (
            self.streams.generator("log", row=layout),
            self._layout_weights(layout)[None],
        )
        K, D = self.sizes(self.params)
        items = generator.integers(0, K, size=n)
        values, means = np.empty((n, D)), np.empty(n)
        length = block_length(K * D)
        # a few steps at a time: only one arm of each is kept
        for start in range(0, n, length):
            chosen = items[start : start + length]
            features, steps = self._checked_features(generator, len(chosen)), np.arange(len(chosen))
            values[start : start + length] = features[steps, chosen]
            means[start : start + length] = self.expected_rewards(features, weights)[steps, chosen]
        columns = np.broadcast_to(np.arange(D), values.shape)
        return LoggedData(
            np.zeros(n, np.int64),
            items,
            values,
            columns,
            self.reward(means, generator.random(n)),
            means,
        )

    def _checked_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        features, shape = (
            np.asarray(self.draw_features(generator, n)),
            (n, *self.sizes(self.params)),
        )
        # compiled kernels would read beyond the array
        if features.shape != shape:
            raise ValueError(
                f"draw_features must return the shape {shape} that sizes states; got "
                f"{features.shape}"
            )
        return features

    def _layout_weights(self, layout: int) -> FloatArray:
        return self.draw_weights(self.streams.generator("layout", row=layout))
