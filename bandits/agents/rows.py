"""The rows of an agent: their parameters, the simulator they run in, and the arrays that learning
changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, Feedback, FloatArray, SimulatorAccess, SimulatorSpec
from bandits.models import position_bias
from bandits.models.position_bias import Position

from .facts import AgentFacts


def row_axis(name: str) -> int:
    """Return the axis of rows of a state array: the first one, or the second of ring buffers, named
    ``ring_...``.
    """
    return int(name.rpartition(".")[2].startswith("ring_"))


class AgentRows(AgentFacts):
    """R rows of an agent, and what is the same in all agents."""

    state: tuple[str, ...] = ()
    """Names (dotted) of the arrays that learning changes: what a checkpoint saves.

    See `row_axis`.
    """

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        self.params, self.spec, self.streams, self.access = list(params), spec, streams, access
        self.position: Position = self.slot_treatment(self.params[0]) or "examined"

    def column(self, name: str) -> FloatArray:
        """Return a numeric hyperparameter of all rows, float64 (R,)."""
        return np.array([getattr(p, name) for p in self.params], dtype=np.float64)

    def exposure(self, feedback: Feedback) -> FloatArray:
        """Weight each slot as an exposure, float64 (R, S).

        See `bandits.models.position_bias.exposure`.
        """
        return position_bias.exposure(feedback, self.position, self.spec.positions)

    @property
    def fell_back(self) -> BoolArray | None:
        """The rows in which a fallback decided at the last call of `scores`, bool (R,).

        None without a fallback.
        """
        return None

    def state_dict(self) -> dict[str, Any]:
        """Copy the state arrays, by name."""
        return {name: attrgetter(name)(self).copy() for name in self.state}

    def state_views(self) -> dict[str, Any]:
        """Return what `state_dict` does, without a copy where the class adds nothing to it: to be
        read before the next step.
        """
        if type(self).state_dict is not AgentRows.state_dict:
            return self.state_dict()
        return {name: attrgetter(name)(self) for name in self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore saved state arrays."""
        for name in self.state:
            attrgetter(name)(self)[...] = state[name]
