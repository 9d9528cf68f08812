"""Base class of agents without context: exposures and clicks of each item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bandits.agents.base import Agent
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec


class ContextFreeAgent(Agent):
    """Counts exposures and clicks per item: ``shown, clicks`` float64 (R, n_items)."""

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.shown = np.zeros((len(params), spec.n_items))
        self.clicks = np.zeros((len(params), spec.n_items))
        self.state = ("shown", "clicks")
        self._rows = np.arange(len(params))[:, None]

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        return super().memory(params, spec) + 64 * spec.n_items

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        items = round.items[self._rows, slate]
        np.add.at(self.shown, (self._rows, items), self.exposure(feedback))
        np.add.at(self.clicks, (self._rows, items), feedback.rewards)

    def counts(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Return exposures and clicks of the candidates, two of float64 (R, K)."""
        n = self.shown.shape[1]
        place = round.items + n * self._rows  # in the flat arrays, from which `take` reads faster than an index does
        return self.shown.ravel().take(place), self.clicks.ravel().take(place)
