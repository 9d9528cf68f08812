"""Resets of an agent: at intervals, or when a detector of changes rings."""

from __future__ import annotations

import numpy as np

from bandits.agents.base import Agent
from bandits.agents.rows import row_axis
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, Round, SimulatorSpec
from bandits.models.detectors import Adwin, PageHinkley

from . import params
from .base import Guard, unguarded

DETECTORS: dict[str, type[PageHinkley] | type[Adwin]] = {
    "page_hinkley": PageHinkley,
    "adwin": Adwin,
}


class Reset(Guard):
    """Puts the agent back to its beginning; what it has learned is lost.

    Its random numbers go on, and so do schedules in the number of the step, such as the decay of
    epsilon-greedy.

    Guards inside keep what they know: shows, feedback that waits. A detector observes the mean
    reward of the slots, as it arrives, and resets its replication alone."""

    guard: params.Reset

    def __init__(self, guard: params.Reset, inner: Agent, streams: Streams, position: int) -> None:
        super().__init__(guard, inner, streams, position)
        R = len(self.params)
        self.resets = np.zeros(R, np.int64)
        self.state = ("resets",)
        self._agent = unguarded(inner)
        self._beginning = self._agent.state_dict()
        self.detector = None if guard.monitor is None else DETECTORS[guard.monitor](R)
        if self.detector is not None:
            self.state += tuple(f"detector.{name}" for name in self.detector.state)

    def prepare(self) -> None:
        agent, now = self._agent, self._agent.state_dict()
        agent.load_state_dict(self._beginning)
        super().prepare()
        fresh = agent.state_dict()
        # a run that goes on
        if any(not np.array_equal(now[name], value) for name, value in self._beginning.items()):
            agent.load_state_dict(now)
        self._beginning = fresh

    def deliver(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        super().deliver(round, slate, feedback)
        if self.guard.every is not None:
            if (round.step + 1) % self.guard.every == 0:
                self._restart(np.ones(len(slate), np.bool_))
            return
        assert self.detector is not None
        rings = self.detector.update(*mean_reward(feedback))
        if np.count_nonzero(rings):
            self._restart(rings)

    def _restart(self, rows: BoolArray) -> None:
        self.resets += rows
        if rows.all():
            self._agent.load_state_dict(self._beginning)
            return
        state = self._agent.state_dict()
        for name, value in state.items():
            at = (slice(None),) * row_axis(name) + (rows,)
            value[at] = self._beginning[name][at]
        self._agent.load_state_dict(state)

    def note(self) -> str:
        counted = f"{self.resets.mean():.1f} resets per replication"
        return ", ".join(part for part in (self.inner.note(), counted) if part)

    @staticmethod
    def guard_memory(guard: params.Reset, spec: SimulatorSpec) -> int:  # noqa: ARG004
        """Compute the bytes per row, without the copy of the agent's state at the beginning."""
        return 8 + (0 if guard.monitor is None else DETECTORS[guard.monitor].memory())


def mean_reward(feedback: Feedback) -> tuple[FloatArray, BoolArray]:
    """Return the mean reward of the slots examined, and whether there are any, float64 (R,) and
    bool (R,).
    """
    if feedback.rewards.shape[1] == 1:
        return feedback.rewards[:, 0], feedback.examined[:, 0]
    seen = np.maximum(feedback.examined.sum(axis=1), 1)
    return feedback.rewards.sum(axis=1) / seen, np.asarray(feedback.examined.any(axis=1))
