"""The time loop: step by step, or many steps in compiled code where possible (`Agent.play`),
bit-identical.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bandits.agents.base import Agent
from bandits.agents.guards.stack import build
from bandits.agents.params import AgentParams
from bandits.base.selection import top_k
from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, Round
from bandits.simulators.base import Simulator


class Trace(NamedTuple):
    """T consecutive steps of R rows. Values of a row that has stopped are NaN.

    Attributes
    ----------
    start : int
        Steps done before the first of these.
    items : int64 (T, R, S)
        Items shown.
    segments : int64 (T, R)
        Segment of the user.
    rewards, best_rewards : float64 (T, R)
        Reward, and that of the optimal slate under the same random numbers.
    value, best_value, random_value : float64 (T, R)
        Expected reward of the shown slate, of the optimal one, and of a uniformly random choice.
    alive : bool (R,)
        Rows still running at the end.
    fell_back : bool (T, R), optional
        Steps at which a fallback decided; None for an agent without one.
    counted : bool (T, R), optional
        Steps whose reward is known, in a simulator that replays a log; None elsewhere: all.
    ended, lost : bool and float64 (T, R), optional
        Steps that ended a visit, and the expected reward of the visit that each choice lost, where
        choices move the state; None elsewhere.
    """

    start: int
    items: IntArray
    segments: IntArray
    rewards: FloatArray
    best_rewards: FloatArray
    value: FloatArray
    best_value: FloatArray
    random_value: FloatArray
    alive: BoolArray
    fell_back: BoolArray | None = None
    counted: BoolArray | None = None
    ended: BoolArray | None = None
    lost: FloatArray | None = None


COLUMNS = (
    "items",
    "segments",
    "rewards",
    "best_rewards",
    "value",
    "best_value",
    "random_value",
)  # of a trace


class Lane:
    """R rows of one agent in one simulator, advanced together; made by `build_lane`.

    Parameters
    ----------
    simulator, agent
        Built for the same rows.
    """

    def __init__(self, simulator: Simulator, agent: Agent) -> None:
        self.simulator, self.agent = simulator, agent
        self.rows = len(agent.params)
        self.step = 0
        self.alive = np.ones(self.rows, np.bool_)
        # False: always step by step, for tests
        self.use_compiled = True
        # sees each round before the choice; none of compiled steps
        self.watch: Callable[[Round], None] | None = None
        # sees each response, likewise
        self.watch_feedback: Callable[[Feedback], None] | None = None
        # wall time of simulator, agent and recording
        self.seconds = 0.0

    def advance(self, n: int) -> Trace:
        """Advance by ``n`` steps.

        Rows whose scores contain a NaN stop there; the other rows are not affected.
        """
        began = time.perf_counter()
        end, parts = self.step + n, []
        while self.step < end:
            parts.append(
                self._advance_compiled(end - self.step) or self._advance_stepwise(end - self.step)
            )
            self.step += len(parts[-1].rewards)
        self.seconds += time.perf_counter() - began
        return join(parts) if len(parts) > 1 else parts[0] if parts else self._advance_stepwise(0)

    def _advance_stepwise(self, n: int) -> Trace:
        """Advance step by step; works for every simulator and agent."""
        simulator, agent, alive = self.simulator, self.agent, self.alive
        S, ties = simulator.spec.slate, simulator.streams.ties
        items = np.zeros((n, self.rows, S), np.int64)
        segments = np.empty((n, self.rows), np.int64)
        rewards, best_rewards, value, best_value, random_value = np.empty((5, n, self.rows))
        fell_back = None if agent.fell_back is None else np.zeros((n, self.rows), np.bool_)
        counted = (
            np.zeros((n, self.rows), np.bool_) if "replay" in simulator.spec.capabilities else None
        )
        visits = bool(simulator.state)
        ended = np.zeros((n, self.rows), np.bool_) if visits else None
        lost = np.zeros((n, self.rows)) if visits else None
        stopped_at = np.where(alive, n, 0)
        n_alive = self.rows if alive.all() else int(alive.sum())
        rows = np.arange(self.rows)[:, None]
        for i in range(n):
            step = self.step + i
            # the agent chooses
            round = simulator.round_at(step)
            if self.watch is not None:
                self.watch(round)
            slate = top_k(agent.scores(round), round.available, alive, S, ties, step)
            if (left := int(np.count_nonzero(alive))) < n_alive:
                stopped_at[~alive & (stopped_at == n)] = i
                n_alive = left
            # the user responds, the agent learns
            uniforms = simulator.uniforms.at(step)
            feedback, truth = simulator.respond(round, slate, uniforms)
            if n_alive < self.rows:
                feedback = feedback._replace(examined=feedback.examined & alive[:, None])
            if self.watch_feedback is not None:
                self.watch_feedback(feedback)
            agent.learn(round, slate, feedback)
            simulator.move(round, slate, uniforms)
            if ended is not None and lost is not None:
                ended[i], lost[i] = feedback.ended, truth.lost
            # record the step
            if fell_back is not None:
                fell_back[i] = agent.fell_back
            if counted is not None:
                counted[i] = feedback.examined.any(axis=1)
            items[i], segments[i] = round.items[rows, slate], round.segments
            rewards[i] = feedback.rewards[:, 0] if S == 1 else feedback.rewards.sum(axis=1)
            value[i], best_value[i], random_value[i], best_rewards[i] = truth[:4]
        if n_alive < self.rows:
            after = np.arange(n)[:, None] >= stopped_at[None, :]
            for column in (rewards, best_rewards, value, best_value, random_value):
                column[after] = np.nan
        columns = rewards, best_rewards, value, best_value, random_value
        more = fell_back, counted, ended, lost
        return Trace(self.step, items, segments, *columns, alive.copy(), *more)

    def _advance_compiled(self, n: int) -> Trace | None:
        """Advance many steps in compiled code; None where simulator or agent do not support it."""
        predrawn = self.simulator.predraw(self.step, n) if self.use_compiled else None
        shown = None if predrawn is None else self.agent.play(predrawn, self.alive)
        if predrawn is None or shown is None:
            return None
        row, uniforms = predrawn.row, predrawn.uniforms
        stopped = shown < 0
        value = predrawn.probabilities[row, shown]
        best_value = predrawn.probabilities[row, predrawn.best[row]]

        def masked(column: FloatArray) -> FloatArray:
            return np.where(stopped, np.nan, column) if stopped.any() else column

        return Trace(
            start=self.step,
            items=np.maximum(shown, 0)[:, :, None],
            segments=predrawn.segments,
            rewards=masked((uniforms < value).astype(np.float64)),
            best_rewards=masked((uniforms < best_value).astype(np.float64)),
            value=masked(value),
            best_value=masked(best_value),
            random_value=masked(predrawn.average[row]),
            alive=self.alive.copy(),
        )

    def state_dict(self, *, views: bool = False) -> dict[str, Any]:
        """Return the state as arrays and plain values, from which a run continues bit-identically;
        no pickles.

        Parameters
        ----------
        views : bool
            Do not copy what the agent holds, as the state is read before the next step.
        """
        held = self.agent.state_views() if views else self.agent.state_dict()
        agent = {f"agent.{name}": value for name, value in held.items()}
        moved = {
            f"simulator.{name}": getattr(self.simulator, name).copy()
            for name in self.simulator.state
        }
        plain = {"step": self.step, "alive": self.alive.copy(), "seconds": self.seconds}
        return {**plain, **moved, **agent}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.step, self.seconds = int(state["step"]), float(state["seconds"])
        self.alive[...] = state["alive"]
        for name in self.simulator.state:
            getattr(self.simulator, name)[...] = state[f"simulator.{name}"]
        prefix = "agent."
        self.agent.load_state_dict(
            {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}
        )


def build_lane(cls: type[Agent], params: Sequence[AgentParams], simulator: Simulator) -> Lane:
    """Build an agent with its guards, in the lane that runs it.

    Parameters
    ----------
    cls : subclass of Agent
    params : sequence of AgentParams
        One per row of the simulator, equal in structure.
    simulator : Simulator
        Other lanes of the same rows may share it, unless choices move its state.
    """
    streams, access = simulator.streams, simulator.access()
    return Lane(simulator, build(cls, params, simulator.spec, streams, access))


def join(traces: list[Trace]) -> Trace:
    """Concatenate consecutive traces."""
    columns = joined(traces, (*COLUMNS, "fell_back", "counted", "ended", "lost"))
    return Trace(start=traces[0].start, alive=traces[-1].alive, **columns)


def joined(parts: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Concatenate the arrays of these names of consecutive parts; None where no part has one."""
    found = {
        name: [array for part in parts if (array := getattr(part, name)) is not None]
        for name in names
    }
    return {name: np.concatenate(arrays) if arrays else None for name, arrays in found.items()}
