"""The probabilities that an agent states in each round of a recording, with as little computation
as they allow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bandits.agents.base import Agent, Propensity
from bandits.agents.guards.base import unguarded
from bandits.agents.guards.floor import Floor
from bandits.agents.stochastic import StochasticAgent
from bandits.base.selection import best_slots, shares_of_largest
from bandits.base.types import BoolArray, FloatArray, IntArray, Round, SimulatorSpec


class StatedProbabilities:
    """The probabilities of the candidates in a block of rounds.

    Those of an agent that does not draw, also under floors, follow from its scores, which are kept
    where they are computed for its choice. Other agents are asked; where slates have one slot, what
    their propensities and their choice both need is computed once.

    Parameters
    ----------
    agent : Agent
        Of R replications; it may be exchanged for one that has learned the same.
    spec : SimulatorSpec
    block : int
        Rounds that are held at once.
    """

    def __init__(self, agent: Agent, spec: SimulatorSpec, block: int) -> None:
        single = spec.slate == 1
        self.agent = agent
        self.kind: Propensity = agent.propensity if single else agent.slot_propensity
        self.deterministic = self.kind == "deterministic"
        S = 1 if self.deterministic else spec.slate
        self.held = np.empty((block, len(agent.params), S, spec.n_candidates))
        self.slate = spec.slate
        self.floors, inside = _floors(agent) if single else ([], agent)
        self.scored = _Scored(inside, self.held) if self.floors or self.deterministic else None
        self.once = _Once(unguarded(agent)) if single and self.scored is None else None

    def see(self, i: int, round: Round) -> None:
        """Take note of the probabilities in a round, the i-th of the block, before the choice."""
        if self.scored is not None:
            self.scored.place = i
        elif self.once is None:
            self.held[i] = self.agent.slot_probabilities(round)
        else:
            self.once.keeps = True
            self.held[i, :, 0] = self.agent.probabilities(round)
            self.once.keeps = False

    def stated(self, segments: IntArray, offered: BoolArray) -> FloatArray:
        """Return the probabilities in the n rounds seen, float64 (n, R, S, K).

        Parameters
        ----------
        segments : int64 (n, R)
        offered : bool (n, R, K)
        """
        found = self.held[: len(segments)]
        if self.deterministic:
            K = found.shape[3]
            slots = best_slots(found.reshape(-1, K), offered.reshape(-1, K), self.slate)
            return slots.reshape(*found.shape[:2], self.slate, K)
        if self.floors:
            found = self._of_floors(found[:, :, 0], segments, offered)[:, :, None]
        return found

    def _of_floors(self, scores: FloatArray, segments: IntArray, offered: BoolArray) -> FloatArray:
        """Compute the probabilities of floors around an agent that does not draw, from its scores
        (n, R, K).
        """
        K = scores.shape[2]
        available = offered.reshape(-1, K)
        found = shares_of_largest(np.where(available, scores.reshape(-1, K), -np.inf))
        for floor in self.floors:
            found = floor.mixed_with(found, segments.reshape(-1), available)
        return found.reshape(scores.shape)


def _floors(agent: Agent) -> tuple[list[Floor], Agent]:
    """Return the floors around an agent that does not draw, from the inside out, and that agent.

    Their probabilities follow from its scores, and are computed for many steps at once; none where
    one of them remembers what was shown, or other guards are outside."""
    floors: list[Floor] = []
    inside = agent
    while isinstance(inside, Floor) and not inside.remembers:
        floors.insert(0, inside)
        inside = inside.inner
    return (floors, inside) if inside.propensity == "deterministic" else ([], agent)


class _Scored:
    """The scores of an agent, copied where they are computed for its choice.

    Parameters
    ----------
    agent : Agent
    into : float64 (n, R, 1, K)
        Receives the scores at the index ``place``.
    """

    def __init__(self, agent: Agent, into: FloatArray) -> None:
        self.compute: Callable[[Round], FloatArray] = agent.scores
        self.into, self.place = into[:, :, 0], 0
        setattr(agent, "scores", self)  # noqa: B010

    def __call__(self, round: Round) -> FloatArray:
        found = self.compute(round)
        self.into[self.place] = found
        return found


class _Once:
    """The scores or probabilities of an agent, computed once where its propensities and its choice
    both need them.

    Kept from the propensities to the choice only: learning changes them.

    Parameters
    ----------
    agent : Agent
        Without its guards.
    """

    def __init__(self, agent: Agent) -> None:
        name = "probabilities" if isinstance(agent, StochasticAgent) else "scores"
        self.compute: Callable[[Round], FloatArray] = getattr(agent, name)
        self.keeps = False
        self.kept: tuple[Round, FloatArray] | None = None
        setattr(agent, name, self)

    def __call__(self, round: Round) -> FloatArray:
        if self.kept is not None and self.kept[0] is round:
            value, self.kept = self.kept[1], None
            return value
        value = self.compute(round)
        if self.keeps:
            # the caller may change its own
            self.kept = round, value.copy()
        return value
