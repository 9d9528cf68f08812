"""Base class of agents without context: exposures and clicks of each item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bandits.agents.base import Agent
from bandits.agents.model_params import ForgettingParams, gamma_param, window_param
from bandits.base.randomness import Streams
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)

from .loop import Stretch


class ContextFreeAgent(Agent):
    """Counts exposures and clicks per item: ``shown, clicks`` float64 (R, n_items)."""

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.shown = np.zeros((len(params), spec.n_items))
        self.clicks = np.zeros((len(params), spec.n_items))
        self.state = ("shown", "clicks")
        self._rows = np.arange(len(params))[:, None]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        return super().memory(params, spec) + 64 * spec.n_items

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        items = round.items[self._rows, slate]
        np.add.at(self.shown, (self._rows, items), self.exposure(feedback))
        np.add.at(self.clicks, (self._rows, items), feedback.rewards)

    def counts(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Return exposures and clicks of the candidates, two of float64 (R, K)."""
        n = self.shown.shape[1]
        # in the flat arrays, from which `take` reads faster than an index does
        place = round.items + n * self._rows
        return self.shown.ravel().take(place), self.clicks.ravel().take(place)

    def stretch(self, steps: PredrawnSteps, alive: BoolArray) -> Stretch:
        """Return predrawn steps and the counts that they change, for the compiled loop."""
        once = self.exposure(Feedback(np.zeros((1, 1)), np.ones((1, 1), np.bool_)))[0, 0]
        return Stretch(
            self.shown,
            self.clicks,
            float(once),
            steps.row,
            steps.probabilities,
            np.ascontiguousarray(steps.uniforms),
            alive,
            self.streams.ties,
            steps.start,
        )


class ForgettingCountsParams(ForgettingParams):
    """Parameters of counts that can forget."""

    gamma: float = gamma_param()
    window: int | None = window_param()


class ForgettingContextFreeAgent(ContextFreeAgent):
    """Counts that are multiplied by gamma at every step, or of the last ``window`` steps alone.

    Attributes
    ----------
    ring_items, ring_shown, ring_clicks : (W, R, S)
        What the window will take back.
    """

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.gamma, self.window = self.column("gamma")[:, None], params[0].window
        if self.window is not None:
            shape = (self.window, len(params), spec.slate)
            self.ring_items = np.zeros(shape, np.int64)
            self.ring_shown, self.ring_clicks = np.zeros(shape), np.zeros(shape)
            self.state += ("ring_items", "ring_shown", "ring_clicks")

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        if self.params[0].gamma < 1:
            self.shown *= self.gamma
            self.clicks *= self.gamma
        if self.window is not None:
            at = round.step % self.window
            old = (self._rows, self.ring_items[at])
            np.subtract.at(self.shown, old, self.ring_shown[at])
            np.subtract.at(self.clicks, old, self.ring_clicks[at])
            self.ring_items[at] = round.items[self._rows, slate]
            self.ring_shown[at], self.ring_clicks[at] = self.exposure(feedback), feedback.rewards
        super().learn(round, slate, feedback)

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        return super().memory(params, spec) + 24 * spec.slate * (params.window or 0)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [*super().test_params(), {"gamma": 0.98}, {"window": 20}]
