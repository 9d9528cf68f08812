"""Estimate the propensities of agents that draw their scores, by redrawing them.

Redraws come from a random stream of their own, one for each row and step: they change no choice of
the agent, and a row's estimate does not depend on the other rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.selection import redraw_keys, top_k
from bandits.base.types import FloatArray, IntArray, Round, SimulatorSpec

REDRAWS = 1000
# redraws of one part that break ties independently
TIED = 2**32


class Redrawing(Protocol):
    """What is redrawn: an agent, or a guard around one."""

    streams: Streams

    @property
    def spec(self) -> SimulatorSpec:
        """The simulator as agents see it."""

    @property
    def propensity(self) -> str:
        """How probabilities are known."""

    def redraws(self, round: Round, generator: Any) -> Iterator[FloatArray]:
        """Yield scores under other random draws, float64 (R, K)."""


def first_choices(agent: Redrawing, round: Round, *, part: int = 0) -> Iterator[IntArray]:
    """Yield the candidate that the first slot shows under each redraw of the scores, int64 (R,),
    without end.

    Parameters
    ----------
    agent : Redrawing
        With ``propensity`` monte_carlo, also a guard around one.
    round : Round
    part : int
        Of the random stream; redraws of different parts are independent.

    Raises
    ------
    ValueError
        The agent has no `Agent.redraws`.
    """
    scores, alive = None, np.ones(len(round.items), np.bool_)
    ties = redraw_keys(agent.streams.ties, round.step)
    numbers = agent.streams.of_rows("propensity", part=part, block=round.step)
    for i, scores in enumerate(agent.redraws(round, numbers), start=part * TIED):
        yield top_k(scores, round.available, alive.copy(), 1, ties, i)[:, 0]
    if scores is None:
        raise ValueError(f"an agent whose propensity is {agent.propensity} must implement redraws")


def choice_counts(agent: Redrawing, round: Round, *, n: int = REDRAWS, part: int = 0) -> IntArray:
    """Count how often each candidate is shown first in n redraws of the scores, int64 (R, K).

    See `first_choices`.
    """
    counts, rows = np.zeros(round.items.shape, np.int64), np.arange(len(round.items))
    for chosen in itertools.islice(first_choices(agent, round, part=part), n):
        counts[rows, chosen] += 1
    return counts


def slot_counts(agent: Redrawing, round: Round, *, n: int = REDRAWS) -> IntArray:
    """Count how often each candidate fills each slot in n redraws of the scores, int64 (R, S, K).

    Raises
    ------
    ValueError
        The agent has no `Agent.redraws`.
    """
    (R, K), S = round.items.shape, agent.spec.slate
    counts, rows, slots = np.zeros((R, S, K), np.int64), np.arange(R)[:, None], np.arange(S)
    numbers, alive, scores = (
        agent.streams.of_rows("propensity", block=round.step),
        np.ones(R, np.bool_),
        None,
    )
    ties = redraw_keys(agent.streams.ties, round.step)
    for i, scores in enumerate(itertools.islice(agent.redraws(round, numbers), n)):
        counts[rows, slots, top_k(scores, round.available, alive, S, ties, i)] += 1
    if scores is None:
        raise ValueError(
            "an agent that chooses at random must implement redraws where it shows slates"
        )
    return counts
