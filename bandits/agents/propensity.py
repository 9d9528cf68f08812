"""Estimate the propensities of agents that draw their scores, by redrawing them.

Redraws come from a random stream of their own, one for each row and step: they change no choice of the agent, and a
row's estimate does not depend on the other rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bandits.base.selection import top_k
from bandits.base.types import FloatArray, IntArray, Round

if TYPE_CHECKING:
    from .base import Agent

REDRAWS = 1000
CAP = 1000
_AGAIN = 2**16  # parts of the stream from here on are those of `inverse_propensity`


def first_choices(agent: Agent, round: Round, *, part: int = 0) -> Iterator[IntArray]:
    """Yield the candidate that the first slot shows under each redraw of the scores, int64 (R,), without end.

    Parameters
    ----------
    agent : Agent
        With ``propensity`` monte_carlo, also a guard around one.
    round : Round
    part : int
        Of the random stream; redraws of different parts are independent.

    Raises
    ------
    ValueError
        The agent has no `Agent.redraws`.
    """
    scores = None
    for scores in agent.redraws(round, agent.streams.of_rows("propensity", part=part, block=round.step)):
        yield np.where(round.available, scores, -np.inf).argmax(axis=1)
    if scores is None:
        raise ValueError(f"an agent whose propensity is {agent.propensity} must implement redraws")


def choice_counts(agent: Agent, round: Round, *, n: int = REDRAWS, part: int = 0) -> IntArray:
    """Count how often each candidate is shown first in n redraws of the scores, int64 (R, K); see `first_choices`."""
    counts, rows = np.zeros(round.items.shape, np.int64), np.arange(len(round.items))
    for chosen in itertools.islice(first_choices(agent, round, part=part), n):
        counts[rows, chosen] += 1
    return counts


def slot_counts(agent: Agent, round: Round, *, n: int = REDRAWS) -> IntArray:
    """Count how often each candidate fills each slot in n redraws of the scores, int64 (R, S, K).

    Raises
    ------
    ValueError
        The agent has no `Agent.redraws`.
    """
    (R, K), S = round.items.shape, agent.spec.slate
    counts, rows, slots = np.zeros((R, S, K), np.int64), np.arange(R)[:, None], np.arange(S)
    numbers, alive, scores = agent.streams.of_rows("propensity", block=round.step), np.ones(R, np.bool_), None
    for scores in itertools.islice(agent.redraws(round, numbers), n):
        counts[rows, slots, top_k(scores, round.available, alive, S)] += 1
    if scores is None:
        raise ValueError("an agent that chooses at random must implement redraws where it shows slates")
    return counts


def standard_error(probabilities: FloatArray, n: int = REDRAWS) -> FloatArray:
    """Compute the standard error of probabilities estimated from n redraws, in their shape.

    It is the posterior standard deviation under a uniform prior, that of Beta(n p + 1, n (1 - p) + 1): above 0 also
    where all redraws agree, and close to sqrt(p (1 - p) / n) elsewhere. Through a guard that mixes the agent's
    probabilities with known ones it is an upper bound.
    """
    p = (n * probabilities + 1) / (n + 2)
    return np.asarray(np.sqrt(p * (1 - p) / (n + 3)))


def inverse_propensity(agent: Agent, round: Round, shown: IntArray, *, cap: int = CAP, part: int = 0) -> FloatArray:
    """Estimate 1/p of what is shown: the number of redraws until it is shown again (geometric resampling [1]_).

    Its mean is (1 - (1 - p)^cap) / p: 1/p but for what the cap cuts off, which is less than e^(-p cap) of it. One
    number is a rough estimate, with variance (1 - p) / p^2, but has no bias below the cap, unlike the inverse of an
    estimated probability. The agent's own probability is used where it is known.

    Parameters
    ----------
    agent : Agent
    round : Round
        The round of the decision, before the agent has learned from it.
    shown : int64 (R,)
        Index of the candidate in the first slot.
    cap : int
        Most redraws.
    part : int
        As in `first_choices`; independent of the redraws there and in `Agent.probabilities`.

    Returns
    -------
    float64 (R,)
        At least 1; infinite where a stated probability is 0.

    References
    ----------
    .. [1] Neu, Bartók (2013), An efficient algorithm for learning with semi-bandit feedback, section 3.
    """
    if agent.propensity != "monte_carlo":
        p = np.take_along_axis(agent.probabilities(round), shown[:, None], axis=1)[:, 0]
        with np.errstate(divide="ignore"):
            return np.asarray(1 / p)
    count, waiting = np.zeros(len(shown)), np.ones(len(shown), np.bool_)
    for chosen in itertools.islice(first_choices(agent, round, part=_AGAIN + part), cap):
        count += waiting
        waiting &= chosen != shown
        if not waiting.any():
            break
    return count
