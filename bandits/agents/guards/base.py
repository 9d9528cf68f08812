"""The base class of guards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandits.agents.base import Agent, Propensity
from bandits.base.explanation import Explanation
from bandits.base.randomness import BlockedDraws, Streams
from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, Round

# of the stream of guards, for each of them
PARTS = 16


class Guard(Agent):
    """An agent around another one, which it passes everything on to.

    A subclass changes what it guards.

    Parameters
    ----------
    guard : GuardParams
    inner : Agent
        The agent, or the guard inside this one.
    streams : Streams
        Those of the agent; a guard draws from a stream of its own.
    position : int
        In the stack, from the inside out.
    """

    row_by_row = False

    def __init__(self, guard: Any, inner: Agent, streams: Streams, position: int) -> None:
        super().__init__(inner.params, inner.spec, streams, inner.access)
        self.guard, self.inner = guard, inner
        self._within = inner if isinstance(inner, Guard) else None
        self._part = PARTS * position
        self.propensity = inner.propensity

    def draws(
        self, draw: Callable[[np.random.Generator, int], NDArray[Any]], width: int
    ) -> BlockedDraws:
        """Return the guard's own random numbers of every step; see `Streams.blocks`."""
        return self.streams.blocks("guard", draw, width=width, part=self._part)

    # choosing

    def scores(self, round: Round) -> FloatArray:
        return self.inner.scores(round)

    def probabilities(self, round: Round) -> FloatArray:
        return self.inner.probabilities(round)

    @property
    def slot_propensity(self) -> Propensity:
        return self.inner.slot_propensity

    def slot_probabilities(self, round: Round) -> FloatArray:
        return self.inner.slot_probabilities(round)

    def explain(self, round: Round) -> Explanation:
        return self.inner.explain(round)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        return self.inner.redraws(round, generator)

    @property
    def fell_back(self) -> BoolArray | None:
        """The rows in which a fallback decided at the last call of `scores`, bool (R,).

        None without a fallback.
        """
        return self.inner.fell_back

    # learning: what is shown is known at once to all guards, feedback may be held back on its way
    # to the agent

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.shown(round, slate)
        self.deliver(round, slate, feedback)
        self.settle()

    def shown(self, round: Round, slate: IntArray) -> None:
        """Take note of what is shown."""
        if self._within is not None:
            self._within.shown(round, slate)

    def deliver(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        """Pass feedback on, to a guard inside or to the agent."""
        if self._within is not None:
            self._within.deliver(round, slate, feedback)
        else:
            self.inner.learn(round, slate, feedback)

    def settle(self) -> None:
        """Let go, at the end of a step, of what has been held back long enough."""
        if self._within is not None:
            self._within.settle()

    # everything else

    def note(self) -> str:
        return self.inner.note()

    def prepare(self) -> None:
        self.inner.prepare()
        self.offline_training = self.inner.offline_training

    def is_trained(self) -> bool:
        return self.inner.is_trained()

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        return self.inner.spectrum(bases)

    def state_dict(self) -> dict[str, Any]:
        inner = {f"inner.{name}": value for name, value in self.inner.state_dict().items()}
        return {**super().state_dict(), **inner}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        prefix = "inner."
        self.inner.load_state_dict(
            {n[len(prefix) :]: v for n, v in state.items() if n.startswith(prefix)}
        )


def unguarded(agent: Agent) -> Agent:
    """Return the agent inside its guards."""
    while isinstance(agent, Guard):
        agent = agent.inner
    return agent


def decided(inner: Explanation, rows: BoolArray, reason: str) -> NDArray[Any]:
    """Name the reason in the rows that a guard decides.

    Keep those of the guards inside it, str (R,).
    """
    before = np.full(len(rows), "", dtype=object) if inner.guard is None else inner.guard
    return np.where(rows, reason, before)
