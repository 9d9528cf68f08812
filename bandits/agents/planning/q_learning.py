"""Tabular Q-learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)

from .base import PlanningAgent, PlanningParams


class QLearning(PlanningAgent):
    """Learns the value of the rest of the visit for each observed state and kind of item, one by
    one.

    Q(s, a) += n^-w (r + gamma max_b Q(s', b) - Q(s, a)), n visits of (s, a); r alone at the end of
    a visit. The state is what agents observe: persona and mood. The next state is the next round,
    with which the update of a step is made.

    References
    ----------
    Watkins, Dayan (1992), Q-learning; Even-Dar, Mansour (2003), Learning rates for Q-learning.
    """

    class Params(PlanningParams):
        kind: Literal["q_learning"] = "q_learning"
        epsilon: float = param(
            0.1,
            title="Exploration",
            symbol=r"\varepsilon",
            ge=0,
            le=1,
            basic=True,
            sweep=(0.01, 0.5),
            help=(
                "Probability of a random item at each step. Larger values explore more; usually "
                "0.05 to 0.5."
            ),
        )
        step_power: float = param(
            0.7,
            title="Step exponent",
            symbol=r"\kappa",
            ge=0.5,
            le=1,
            help=(
                "Exponent of the step size n to the power of −w. Larger values average more and "
                "correct early values more slowly; usually 0.6 to 0.8."
            ),
        )

    title = "Q-learning"
    formula = r"Q(s,a)\mathrel{+}=n^{-\kappa}\left(r+\gamma\max_b Q(s',b)-Q(s,a)\right)"
    needs = frozenset({"visits", "states"})
    colour = "#AA4499"
    dash = "longdash"
    exploration_param = "epsilon"
    state = ("q", "count", "waits", "pending_state", "pending_action", "pending_reward")

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        R = len(self.params)
        self.epsilon, self.discount = self.column("epsilon"), self.column("discount")
        self.power = self.column("step_power")
        shape = R, spec.fixed_contexts, spec.n_distinct or spec.n_candidates
        self.q, self.count = np.zeros(shape), np.zeros(shape, np.int64)
        # the latest step, whose next state is not known yet
        self.waits = np.zeros(R, np.bool_)
        self.pending_state, self.pending_action = np.zeros((2, R), np.int64)
        self.pending_reward = np.zeros(R)
        self._rows = np.arange(R)

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        return super().memory(params, spec) + 32 * spec.fixed_contexts * spec.n_candidates

    def values(self, round: Round) -> FloatArray:
        return self.q[self._rows, round.context][:, _groups(round)]

    def exploration(self, step: int) -> FloatArray:  # noqa: ARG002
        return self.epsilon

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        # complete the step before this one
        after = self.discount * self.q[self._rows, round.context].max(axis=1)
        target = self.pending_reward + after
        self._update(self.waits, self.pending_state, self.pending_action, target)
        # a visit that has ended has no next state
        action, reward = _groups(round)[slate[:, 0]], feedback.rewards[:, 0]
        known = feedback.examined[:, 0]
        ended = known if feedback.ended is None else known & feedback.ended
        self._update(ended, round.context, action, reward)
        self.waits[...] = known & ~ended
        self.pending_state[...], self.pending_action[...] = round.context, action
        self.pending_reward[...] = reward

    def _update(
        self, rows: BoolArray, state: IntArray, action: IntArray, target: FloatArray
    ) -> None:
        step_size = _counted(self.count, rows, state, action) ** -self.power
        _add(self.q, rows, state, action, step_size, target)


@njit(cache=True, nogil=True)
def _counted(count: IntArray, rows: BoolArray, state: IntArray, action: IntArray) -> FloatArray:
    """Count one more visit of each row's pair, and return the counts (R,); 1 where it has none."""
    out = np.ones(len(rows))
    for r in np.flatnonzero(rows):
        count[r, state[r], action[r]] += 1
        out[r] = count[r, state[r], action[r]]
    return out


@njit(cache=True, nogil=True)
def _add(
    q: FloatArray,
    rows: BoolArray,
    state: IntArray,
    action: IntArray,
    step_size: FloatArray,
    target: FloatArray,
) -> None:
    """Move the value of each row's pair towards its target."""
    for r in np.flatnonzero(rows):
        old = q[r, state[r], action[r]]
        q[r, state[r], action[r]] = old + step_size[r] * (target[r] - old)


def _groups(round: Round) -> IntArray:
    """Return the number of each candidate's kind: candidates with equal features are one action."""
    distinct = round.contexts.distinct
    return np.arange(round.items.shape[1]) if distinct is None else distinct[1]
