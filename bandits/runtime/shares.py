"""Divide the agents of a run among workers: the first division, and moves that end the run earlier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .job import Job

MIN_GAIN = 0.1  # seconds by which a move must shorten a run, beyond its cost ...
MIN_SHARE_OF_REST = 0.05  # ... and relative to the longest rest
BYTES_PER_SECOND = 50e6  # of a state that is moved: packed, sent, unpacked


@dataclass(eq=False)
class Share:
    """The agents of a run that one worker computes.

    Attributes
    ----------
    job : Job
    agents : set of int
        Positions of the agents that it has not finished.
    step : int
        Step that it has reached.
    giving : set of int
        Agents that its worker has been asked to hand over.
    leaving : bool
        Whether its worker has been asked to return all agents.
    """

    job: Job
    agents: set[int]
    step: int = 0
    giving: set[int] = field(default_factory=set)
    leaving: bool = False

    @property
    def rest(self) -> float:
        """Expected seconds to its end."""
        return sum(self.job.agents_left.get(i, 0.0) for i in self.agents)


class Move(NamedTuple):
    """Agents that one share gives to another, or to a new one (None)."""

    source: Share
    agents: set[int]
    target: Share | None


def deal(job: Job, agents: Iterable[int], n: int) -> list[set[int]]:
    """Deal agents out to at most ``n`` workers, the largest states first, each to the worker with the least.

    Nothing has been measured yet, so the declared size of an agent's state stands for its cost per step.
    """
    experiment = job.experiment
    spec = experiment.simulator_class().describe(experiment.simulator)
    size = {i: experiment.agent_class(i).memory(experiment.agents[i], spec) for i in agents}
    hands: list[set[int]] = [set() for _ in range(max(1, min(n, len(size))))]
    for i in sorted(size, key=lambda i: (-size[i], i)):
        min(hands, key=lambda hand: (sum(size[j] for j in hand), len(hand))).add(i)
    return hands


def plan(job: Job, shares: Sequence[Share], *, spare: bool) -> Move | None:
    """Choose the agents to move from the share with the longest rest; None if no move is worth its cost.

    Parameters
    ----------
    spare : bool
        Whether an idle worker can take them; otherwise the share with the shortest rest does.
    """
    if not shares:
        return None
    rests = {share: share.rest for share in shares}
    source = max(shares, key=lambda share: (len(share.agents) > 1, rests[share]))
    target = None if spare else min(shares, key=lambda share: rests[share])
    if target is source or source.leaving:
        return None
    there, here, chosen = 0.0 if target is None else rests[target], rests[source], set[int]()
    for i in sorted(source.agents, key=lambda i: -job.agents_left.get(i, 0.0)):
        seconds = job.agents_left.get(i, 0.0)
        if len(chosen) + 1 < len(source.agents) and not job.is_waiting(i) and there + seconds < here:
            chosen.add(i)
            here, there = here - seconds, there + seconds
    gain = rests[source] - max(here, there)
    cost = MIN_GAIN + sum(map(job.state_bytes, chosen)) / BYTES_PER_SECOND
    return Move(source, chosen, target) if chosen and gain > max(cost, MIN_SHARE_OF_REST * rests[source]) else None
