"""Guards that hold feedback back: delayed rewards, and updates in batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from bandits.agents.base import Agent
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, IntArray, Round, SimulatorSpec

from . import params
from .base import Guard

# times the mean: a geometric delay
LONGEST = 10


def places(guards: Sequence[params.GuardParams]) -> int:
    """Count the rounds that may wait in the first of these guards: its own, and those that the
    others let go.
    """
    held = 0
    for guard in guards:
        if isinstance(guard, params.Delay):
            held += 1 + guard.steps * (LONGEST if guard.law == "geometric" else 1)
        elif isinstance(guard, params.Batch):
            held += guard.steps
    return held


class LateFeedback(Guard):
    """Keeps each round and its feedback until they are due.

    The agent learns with the features as they were shown.

    Attributes
    ----------
    step, due : int64 (W,)
        Of each round that waits, the step at which it was shown, and that at whose end it is let
        go; -1 in places that are free.
    slates, rewards, examined : (W, R, S)
    """

    def __init__(self, guard: Any, inner: Agent, streams: Streams, position: int) -> None:
        super().__init__(guard, inner, streams, position)
        W, R, S = places(self.params[0].guards[position:]), len(self.params), self.spec.slate
        self.step, self.due = np.full(W, -1, np.int64), np.full(W, -1, np.int64)
        self.slates, self.rewards = np.zeros((W, R, S), np.int64), np.zeros((W, R, S))
        self.examined = np.zeros((W, R, S), np.bool_)
        self.state = ("step", "due", "slates", "rewards", "examined")
        self._rounds: dict[int, Round] = {}  # by place
        # places, a heap: the lowest is taken
        self._free = list(range(W))
        # due, step and place, a heap
        self._waiting: list[tuple[int, int, int]] = []
        self._now = 0

    @abstractmethod
    def due_at(self, step: int, now: int) -> int:
        """Return the step at whose end the round of ``step`` is let go, which has arrived at step
        ``now``.
        """

    def shown(self, round: Round, slate: IntArray) -> None:
        super().shown(round, slate)
        self._now = round.step

    def deliver(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        place, due = heappop(self._free), self.due_at(round.step, self._now)
        self.step[place], self.due[place], self.slates[place] = round.step, due, slate
        self.rewards[place], self.examined[place] = feedback[:2]
        self._rounds[place] = round
        heappush(self._waiting, (due, round.step, place))

    def settle(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._now:
            # in the order of their steps
            *_, place = heappop(self._waiting)
            self.due[place] = -1
            heappush(self._free, place)
            shown, feedback = (
                self._rounds.pop(place),
                Feedback(self.rewards[place], self.examined[place]),
            )
            super().deliver(shown, self.slates[place], feedback)
        super().settle()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        waits = np.flatnonzero(self.due >= 0).tolist()
        self._rounds = {place: self.access.round_at(int(self.step[place])) for place in waits}
        self._waiting = sorted(
            (int(self.due[place]), int(self.step[place]), place) for place in waits
        )
        self._free = np.flatnonzero(self.due < 0).tolist()


def late_memory(guards: Sequence[params.GuardParams], spec: SimulatorSpec) -> int:
    """Compute the bytes per row of the first of these guards, which holds feedback back."""
    features = 0 if spec.fixed_contexts else 16 * spec.n_candidates * spec.n_stored
    return places(guards) * (17 * spec.slate + 16 * spec.n_candidates + features)


class Delay(LateFeedback):
    """Rewards arrive d steps later: constant, or geometric with mean d and the same in all
    replications.
    """

    guard: params.Delay

    def __init__(self, guard: params.Delay, inner: Agent, streams: Streams, position: int) -> None:
        super().__init__(guard, inner, streams, position)
        alone = Streams(streams.seed, [0])
        self._uniforms = alone.blocks("guard", lambda g, n: g.random((n, 1)), part=self._part)

    def due_at(self, step: int, now: int) -> int:
        if self.guard.law == "constant":
            return now + self.guard.steps
        wait = np.log1p(-self._uniforms.at(step)[0, 0]) / np.log1p(-1 / (self.guard.steps + 1))
        return now + min(int(wait), LONGEST * self.guard.steps)


class Batch(LateFeedback):
    """The agent learns every n steps, from all rounds since the last time in their order."""

    guard: params.Batch

    def due_at(self, step: int, now: int) -> int:  # noqa: ARG002
        n = self.guard.steps
        return now - now % n + n - 1
