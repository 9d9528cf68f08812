"""What the agents without context share: how often each item was shown and clicked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bandits.agents.base import Agent
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, Setting, World


class ContextFreeAgent(Agent):
    """Counts per item: ``shown, clicks`` float64 (R, n_items)."""

    def __init__(self, params: Sequence[Any], setting: Setting, streams: Streams, world: World) -> None:
        super().__init__(params, setting, streams, world)
        self.shown = np.zeros((len(params), setting.n_items))
        self.clicks = np.zeros((len(params), setting.n_items))
        self.state = ("shown", "clicks")
        self._rows = np.arange(len(params))[:, None]

    @classmethod
    def memory(cls, params: Any, setting: Setting) -> int:
        return super().memory(params, setting) + 64 * setting.n_items

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        items = round.items[self._rows, slate]
        np.add.at(self.shown, (self._rows, items), self.shows(feedback))
        np.add.at(self.clicks, (self._rows, items), feedback.rewards)

    def counts(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Shows and clicks of the candidates, two of float64 (R, K)."""
        return self.shown[self._rows, round.items], self.clicks[self._rows, round.items]
