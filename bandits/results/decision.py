"""Explain one decision of a run: replay one replication up to the step, and query the agent
there.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base.errors import UserError
from bandits.base.explanation import Explanation, How
from bandits.base.processes import Line
from bandits.base.selection import shares_of_largest
from bandits.base.types import FloatArray, IntArray, Round
from bandits.experiments.experiment import Experiment, require_truth
from bandits.experiments.lane import Lane, Trace
from bandits.experiments.lockstep import CHUNK, make_lane
from bandits.results.representation import Representation, representation

T = TypeVar("T", Round, Explanation)

# of computing time that a replay may take
SECONDS = 40.0
# the process stays for the next question: its start takes longer than most answers
EXPLANATIONS = Line("explanations", waiting=4, seconds=90.0, idle=300.0)
# samples behind a choice probability; fewer for many candidates
REDRAWS, _CELLS = 1000, 20_000_000


class Candidate(NamedTuple):
    """The candidates that share one name; NaN where a value does not exist.

    Attributes
    ----------
    name : str
    item : int
        The one that was shown, or else the one with the highest score; the other fields describe
        it.
    alike : int
        Number of candidates with this name.
    truth : float
        True expected reward.
    score, mean, width, spread : float
        See `Explanation`; the spread is the scaled width.
    chance : float
        Probability that one of them is shown first, over the agent's random draws.
    slot : int
        Position on the slate, counted from 1; 0 if none of them was shown.
    best : bool
        No candidate has a higher expected reward.
    others : tuple of float
        Scores of the others.
    """

    name: str
    item: int
    alike: int
    truth: float
    score: float
    mean: float
    width: float
    spread: float
    chance: float
    slot: int
    best: bool
    others: tuple[float, ...]


class Switch(NamedTuple):
    """The exploration coefficient at which another candidate has the highest score, and its
    name.
    """

    at: float
    name: str


class Asked(NamedTuple):
    """Scores and estimates of an agent before a decision: one row of a round.

    Attributes
    ----------
    round : Round
    explanation : Explanation
    truth : float64 (K,)
        True expected rewards.
    chances : float64 (K,)
        Choice probabilities, estimated from so many ``redraws``; 0: exact, or absent (NaN).
    redraws : int
    """

    round: Round
    explanation: Explanation
    truth: FloatArray
    chances: FloatArray
    redraws: int


class Why(NamedTuple):
    """Record of one decision.

    Attributes
    ----------
    label : str
        Label of the agent.
    step, replication : int
        The step is counted from 1, the replication from 0.
    visitor : str
        Segment of the user, where the simulator names segments.
    item_noun, reward_noun : str
    how, parameter, logit
        See `Explanation`.
    scale : float
        Exploration coefficient of a bonus; NaN for other agents.
    randomised : bool
        Whether random draws decided.
    candidates : tuple of Candidate
        Shown candidates first, then by decreasing score.
    below, above : Switch, optional
        For a bonus: the nearest coefficients at which a candidate with another name would have been
        shown.
    redraws : int
        Samples from which choice probabilities are estimated; 0 where they are exact or absent.
    reward : float
        Observed reward; NaN where the decision was only asked for.
    guard : str
        Why a guard decided instead of the agent; empty where it did not.
    learned : Representation, optional
        The items as the agent's network represents them before the decision.
    """

    label: str
    step: int
    replication: int
    visitor: str
    item_noun: str
    reward_noun: str
    how: How
    parameter: str
    logit: bool
    scale: float
    randomised: bool
    candidates: tuple[Candidate, ...]
    below: Switch | None
    above: Switch | None
    redraws: int
    reward: float
    guard: str = ""
    learned: Representation | None = None


def why(experiment: Experiment, agent: int | str, step: int, replication: int = 0) -> Why:
    """Explain one decision of a run: the scores of all candidates, and what would have changed the
    choice.

    The replication is computed again, so that runs need not store every decision: alone, or
    together with the other replications where an agent's numbers are bit-identical only then.

    Parameters
    ----------
    experiment : Experiment
    agent : int or str
        Position in the experiment, or label.
    step : int
        1 is the first decision.
    replication : int
        The row, counted from 0.

    Raises
    ------
    UserError
        The decision does not exist, or its replay would take too long.
    """
    index = position(experiment, agent)
    label = experiment.labels[index]
    require_truth(experiment, "the explanation of a decision")
    if not 1 <= step <= experiment.steps:
        raise UserError(f"step is {step}; it must be a whole number from 1 to {experiment.steps:,}")
    check_replication(experiment, replication)
    alone = experiment.agent_class(index).alone
    lane = make_lane(experiment, index, rows=[replication] if alone else None)
    row = 0 if alone else replication
    # as in a run: the same bits
    with threadpool_limits(1):
        lane.agent.prepare()
        replay_to(lane, row, step - 1, label)
        _check_alive(lane, row, label)
        rounds = lane.simulator.round_at(step - 1)
        asked = ask(lane, rounds, row, step)
        learned = representation(lane, row)
        trace = lane.advance(1)
    _check_alive(lane, row, label)
    items = asked.round.items[0]
    slate = [int(np.flatnonzero(items == item)[0]) for item in trace.items[0, row]]
    names = [lane.simulator.name(int(item)) for item in items]
    reward = float(trace.rewards[0, row])
    found = record(
        lane, asked, label, names, slate, step=step, replication=replication, reward=reward
    )
    return found._replace(learned=learned)


def ask(lane: Lane, round: Round, row: int, step: int) -> Asked:
    """Ask the agent of a lane for its scores in a round, which leaves its state as it is."""
    truth = lane.simulator.probabilities(round)[row]
    explanation = _of_row(lane.agent.explain(round), row)
    return Asked(_of_row(round, row), explanation, truth, *_chances(lane, round, row, step))


def record(
    lane: Lane,
    asked: Asked,
    label: str,
    names: Sequence[str],
    slate: list[int],
    *,
    step: int,
    replication: int,
    reward: float = float("nan"),
) -> Why:
    """Make the record of one decision.

    Parameters
    ----------
    names : sequence of str, (K,)
        Of the candidates; those with one name are grouped.
    slate : list of int
        RowNames of those that are shown.
    """
    round, explanation = asked.round, asked.explanation
    found: dict[str, int] = {}
    kind = np.array([found.setdefault(name, len(found)) for name in names], np.int64)
    distinct = list(found)
    below, above = _switches(explanation, round, slate[0], distinct, kind)
    segments = lane.simulator.segment_names()
    return Why(
        label=label,
        step=step,
        replication=replication,
        visitor=segments[round.segments[0]] if segments else "",
        item_noun=lane.simulator.item_noun,
        reward_noun=lane.simulator.reward_noun,
        how=explanation.how,
        parameter=explanation.parameter,
        logit=explanation.logit,
        scale=float(np.ravel(explanation.scale)[0]) if explanation.how == "bonus" else float("nan"),
        randomised=_is_random(explanation),
        candidates=_candidates(
            round, explanation, asked.truth, slate, distinct, kind, asked.chances
        ),
        below=below,
        above=above,
        redraws=asked.redraws,
        reward=reward,
        guard="" if explanation.guard is None else str(explanation.guard[0]),
    )


def position(experiment: Experiment, agent: int | str) -> int:
    """Return the position of an agent that is given by position or label.

    Raises
    ------
    UserError
        There is no such agent.
    """
    known = experiment.labels
    if isinstance(agent, str) and agent in known:
        return known.index(agent)
    if isinstance(agent, int) and 0 <= agent < len(known):
        return agent
    raise UserError(
        f"agent is {agent}; it must be one of {', '.join(known)}, or a number from 0 to "
        f"{len(known) - 1}"
    )


def check_replication(experiment: Experiment, replication: int) -> None:
    """Raise UserError if an experiment has no such replication, counted from 0."""
    if not 0 <= replication < experiment.replications:
        last = experiment.replications - 1
        raise UserError(
            f"replication is {replication}; it must be a whole number from 0 to {last:,}"
        )


def _of_row(of_all: T, row: int) -> T:
    """Select one row of a round or an explanation, with the row axis kept."""
    fields: dict[str, Any] = of_all._asdict()
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    mine: T = of_all._replace(
        **{**fields, **{name: value[row : row + 1] for name, value in arrays.items()}}
    )
    return mine


def replay_to(lane: Lane, row: int, steps: int, label: str) -> None:
    """Advance to a step; see `replayed`."""
    for _ in replayed(lane, row, steps, label):
        pass


def replayed(lane: Lane, row: int, steps: int, label: str) -> Iterator[Trace]:
    """Advance to a step and yield the traces; raise as soon as the projected computing time exceeds
    `SECONDS`.
    """
    # compiling and loading are not part of the timing
    yield lane.advance(min(1, steps))
    # not wall time, which depends on the load of the machine
    began = time.thread_time()
    while lane.step < steps and lane.alive[row]:
        trace = lane.advance(min(CHUNK, steps - lane.step))
        spent = time.thread_time() - began
        needed = spent * steps / lane.step
        # more tolerant after half of the way
        allowed = SECONDS if 2 * lane.step < steps else 1.5 * SECONDS
        if needed > allowed and spent > SECONDS / 20:
            raise UserError(
                f"step {steps + 1:,} of {label} cannot be replayed: it would take about "
                f"{needed:,.0f} s of computing time; at most {SECONDS:.0f} s are allowed"
            )
        yield trace


def _check_alive(lane: Lane, row: int, label: str) -> None:
    if not lane.alive[row]:
        raise UserError(f"{label} diverged in this replication before this step")


def _is_random(explanation: Explanation) -> bool:
    return explanation.randomised is not None and bool(explanation.randomised[0])


def _chances(lane: Lane, round: Round, row: int, step: int) -> tuple[FloatArray, int]:
    """Return the choice probability of each candidate (K,), and the number of samples it is
    estimated from.
    """
    agent, K = lane.agent, round.items.shape[1]
    if agent.propensity == "exact":
        return agent.probabilities(round)[row], 0
    # a stream of its own, which leaves the agent's state unchanged
    streams = lane.simulator.streams
    generator = streams.generator("question", row=streams.rows[row], block=step)
    n = int(np.clip(_CELLS // (K * len(round.items)), 20, REDRAWS))
    counts, drawn, began = np.zeros(K), 0, time.thread_time()
    for scores in itertools.islice(agent.redraws(round, generator), n):
        if drawn >= 20 and time.thread_time() - began > SECONDS / 8:
            break
        counts += shares_of_largest(np.where(round.available[row], scores[row], -np.inf))
        drawn += 1
    return (counts / drawn, drawn) if drawn else (np.full(K, np.nan), 0)


def _switches(
    explanation: Explanation, round: Round, shown: int, names: list[str], kind: IntArray
) -> tuple[Switch | None, Switch | None]:
    """Find the nearest smaller and larger coefficients that show a candidate with another name."""
    if explanation.how != "bonus" or explanation.mean is None or explanation.width is None:
        return None, None
    offered = np.flatnonzero(round.available[0])
    mean, width, alpha = (
        explanation.mean[0, offered],
        explanation.width[0, offered],
        float(np.ravel(explanation.scale)[0]),
    )
    chosen = int(np.flatnonzero(offered == shown)[0])
    both = (next_switch(mean, width, kind[offered], chosen, alpha, up=up) for up in (False, True))
    below, above = (
        Switch(t[0], names[kind[offered[t[1]]]]) if t is not None else None for t in both
    )
    return below, above


def _candidates(
    round: Round,
    explanation: Explanation,
    truth: FloatArray,
    slate: list[int],
    names: list[str],
    kind: IntArray,
    chances: FloatArray,
) -> tuple[Candidate, ...]:
    """Group the candidates by name: shown first, then by score (by mean or truth after a random
    choice).
    """
    K = len(kind)
    nothing = np.full(K, np.nan)
    available = round.available[0]
    score = nothing if _is_random(explanation) else explanation.score[0]
    mean = nothing if explanation.mean is None else explanation.mean[0]
    width = nothing if explanation.width is None else explanation.width[0]
    spread = (
        nothing
        if explanation.width is None
        else width * np.broadcast_to(explanation.scale, explanation.score.shape)[0]
    )
    merit = truth if explanation.mean is None else mean
    merit = merit if _is_random(explanation) else score
    best = np.where(available, truth, -np.inf).max()
    found = []
    for k, name in enumerate(names):
        mine = np.flatnonzero((kind == k) & available)
        if not len(mine):
            continue
        slots = [slate.index(int(i)) + 1 for i in mine if int(i) in slate]
        first = slate[min(slots) - 1] if slots else int(mine[np.argmax(merit[mine])])
        found.append(
            (
                (min(slots, default=len(slate) + 1), -merit[first]),
                Candidate(
                    name=name,
                    item=int(round.items[0, first]),
                    alike=len(mine),
                    truth=float(truth[first]),
                    score=float(score[first]),
                    mean=float(mean[first]),
                    width=float(width[first]),
                    spread=float(spread[first]),
                    chance=float(chances[mine].sum()),
                    slot=min(slots, default=0),
                    best=bool(truth[first] == best),
                    others=tuple(score[mine[mine != first]].tolist()),
                ),
            )
        )
    return tuple(candidate for _, candidate in sorted(found, key=lambda pair: pair[0]))


def next_switch(
    mean: FloatArray, width: FloatArray, kind: IntArray, chosen: int, alpha: float, *, up: bool
) -> tuple[float, int] | None:
    """Find the nearest alpha at which the maximum of ``mean + alpha width (K,)`` has another name.

    Follows the upper envelope of these lines: each candidate is overtaken by the steeper (``up``)
    or flatter line that it meets first. Of equal lines the first one is named.

    Parameters
    ----------
    kind : int64 (K,)
        Index of the name of each candidate; changes within a name do not count.
    chosen : int
        The maximum at ``alpha``.
    up : bool
        Search above ``alpha``; otherwise below, down to 0.
    """
    now, reached = chosen, alpha
    while True:
        rivals = np.flatnonzero(width > width[now] if up else width < width[now])
        if not len(rivals) or not np.isfinite(width[now]):
            return None
        meet = (mean[now] - mean[rivals]) / (width[rivals] - width[now])
        nearest = float(meet.min() if up else meet.max())
        first = rivals[meet == nearest]
        now = int(first[width[first].argmax() if up else width[first].argmin()])
        # rounding errors must not move backwards
        reached = max(nearest, reached) if up else min(nearest, reached)
        if reached <= 0 and not up:
            return None
        if kind[now] != kind[chosen]:
            return reached, now
