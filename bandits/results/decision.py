"""Why this arm? One row of a run is lived again up to a step, and its agent is asked there."""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base.errors import UserError
from bandits.base.explanation import Explanation, How
from bandits.base.types import FloatArray, IntArray, Round
from bandits.experiments.experiment import Experiment
from bandits.experiments.lane import Lane
from bandits.experiments.race import CHUNK, make_lane

T = TypeVar("T", Round, Explanation)

SECONDS = 40.0  # of computing that living a row again may take
REDRAWS, _CELLS = 1000, 20_000_000  # draws behind a chance; fewer where there are many candidates


class Candidate(NamedTuple):
    """What went by one name; a NaN stands for what there is not.

    Attributes
    ----------
    name : str
    item : int
        The one of them that was shown, or else the one with the highest score. The numbers are its own.
    alike : int
        How many there are of that name.
    truth : float
        Expected reward.
    score, mean, width, spread : float
        See `Explanation`; the spread is the scaled width.
    chance : float
        Probability that one of them is shown first, over the agent's dice.
    slot : int
        Place on the slate, counted from 1; 0 if none of them was shown.
    best : bool
        Nothing has a higher expected reward.
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
    """The scale of the bonus at which another candidate takes over, and its name."""

    at: float
    name: str


class Why(NamedTuple):
    """One decision, taken apart.

    Attributes
    ----------
    label : str
        The agent.
    step, replication : int
        The step is counted from 1, the replication from 0.
    visitor : str
        Who came, where the world has a name for them.
    item_noun, reward_noun : str
    how, parameter, logit
        See `Explanation`.
    scale : float
        The bonus' alpha; NaN for all others.
    randomised : bool
        Dice decided.
    candidates : tuple of Candidate
        What was shown comes first, then the highest score.
    below, above : Switch, optional
        For a bonus: the nearest scales at which something of another name would have been shown.
    redraws : int
        Draws from which the chances are estimated; 0 where they are exact, or where there are none.
    reward : float
        What came of it.
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


def why(experiment: Experiment, agent: int | str, step: int, replication: int = 0) -> Why:
    """One decision of a run: what each candidate had going for it, and what would have changed it.

    The row is computed again, so that no run need keep what this takes: alone, or with the rows beside it where an
    agent's numbers are the same bits only then.

    Parameters
    ----------
    experiment : Experiment
    agent : int or str
        Its position in the experiment, or its label.
    step : int
        1 is the first decision.
    replication : int
        The row, counted from 0.

    Raises
    ------
    UserError
        There is no such decision, or it would take too long to get there.
    """
    index = _position(experiment, agent)
    label = experiment.labels[index]
    if not 1 <= step <= experiment.steps:
        raise UserError(f"step is {step}; it must be a whole number from 1 to {experiment.steps:,}")
    if not 0 <= replication < experiment.replications:
        last = experiment.replications - 1
        raise UserError(f"replication is {replication}; it must be a whole number from 0 to {last:,}")
    alone = experiment.agent_class(index).alone
    lane = make_lane(experiment, index, rows=[replication] if alone else None)
    row = 0 if alone else replication
    with threadpool_limits(1):  # as in a race: the same bits
        lane.agent.prepare()
        _replay_to(lane, row, step - 1, label)
        _check_alive(lane, row, label)
        everybody = lane.simulator.round_at(step - 1)
        truth = lane.simulator.probabilities(everybody)[row]
        round, told = _of_row(everybody, row), _of_row(lane.agent.explain(everybody), row)
        chances, redraws = _chances(lane, everybody, row, step)
        trace = lane.advance(1)
    _check_alive(lane, row, label)
    slate = [int(np.flatnonzero(round.items[0] == item)[0]) for item in trace.items[0, row]]
    names, kind = _kinds(lane, round)
    below, above = _switches(told, round, slate[0], names, kind)
    segments = lane.simulator.segment_names()
    return Why(
        label=label, step=step, replication=replication,
        visitor=segments[round.segments[0]] if segments else "",
        item_noun=lane.simulator.item_noun, reward_noun=lane.simulator.reward_noun,
        how=told.how, parameter=told.parameter, logit=told.logit,
        scale=float(np.ravel(told.scale)[0]) if told.how == "bonus" else float("nan"),
        randomised=_is_random(told),
        candidates=_candidates(round, told, truth, slate, names, kind, chances),
        below=below, above=above, redraws=redraws, reward=float(trace.rewards[0, row]),
    )  # fmt: skip


def _position(experiment: Experiment, agent: int | str) -> int:
    known = experiment.labels
    if isinstance(agent, str) and agent in known:
        return known.index(agent)
    if isinstance(agent, int) and 0 <= agent < len(known):
        return agent
    raise UserError(f"agent is {agent}; it must be one of {', '.join(known)}, or a number from 0 to {len(known) - 1}")


def _of_row(of_all: T, row: int) -> T:
    """What concerns one row, as if there were no other."""
    told: dict[str, Any] = of_all._asdict()
    arrays = {name: value for name, value in told.items() if isinstance(value, np.ndarray)}
    mine: T = of_all._replace(**{**told, **{name: value[row : row + 1] for name, value in arrays.items()}})
    return mine


def _replay_to(lane: Lane, row: int, steps: int, label: str) -> None:
    """Advance to a step; no further than can be done in `SECONDS`, which shows soon."""
    lane.advance(min(1, steps))  # whatever must be compiled or loaded is not in the timing
    began = time.thread_time()  # not the wall's: that others are busy is no reason to refuse
    while lane.step < steps and lane.alive[row]:
        lane.advance(min(CHUNK, steps - lane.step))
        spent = time.thread_time() - began
        needed = spent * steps / lane.step
        allowed = SECONDS if 2 * lane.step < steps else 1.5 * SECONDS  # having come so far, it is not given up so soon
        if needed > allowed and spent > SECONDS / 20:
            raise UserError(
                f"step {steps + 1:,} of {label} is too far: to live its run again until there would take about "
                f"{needed:,.0f} seconds of computing, and {SECONDS:.0f} are allowed"
            )


def _check_alive(lane: Lane, row: int, label: str) -> None:
    if not lane.alive[row]:
        raise UserError(f"{label} stopped early in this run, because its numbers grew beyond all bounds")


def _is_random(told: Explanation) -> bool:
    return told.randomised is not None and bool(told.randomised[0])


def _chances(lane: Lane, round: Round, row: int, step: int) -> tuple[FloatArray, int]:
    """Probability that each candidate is shown first over the agent's dice (K,), and the draws it rests on."""
    agent, K = lane.agent, round.items.shape[1]
    if agent.propensity == "exact":
        return agent.probabilities(round)[row], 0
    streams = lane.simulator.streams  # dice of our own: the agent's are left alone
    dice = streams.generator("question", row=streams.rows[row], block=step)
    n = int(np.clip(_CELLS // (K * len(round.items)), 20, REDRAWS))
    counts, drawn, began = np.zeros(K), 0, time.thread_time()
    for scores in itertools.islice(agent.redraws(round, dice), n):
        if drawn >= 20 and time.thread_time() - began > SECONDS / 8:
            break
        counts[np.where(round.available[row], scores[row], -np.inf).argmax()] += 1
        drawn += 1
    return (counts / drawn, drawn) if drawn else (np.full(K, np.nan), 0)


def _kinds(lane: Lane, round: Round) -> tuple[list[str], IntArray]:
    """Names, each once, and which of them each candidate has, int64 (K,)."""
    found: dict[str, int] = {}
    kind = [found.setdefault(lane.simulator.name(int(item)), len(found)) for item in round.items[0]]
    return list(found), np.array(kind, np.int64)


def _switches(
    told: Explanation, round: Round, shown: int, names: list[str], kind: IntArray
) -> tuple[Switch | None, Switch | None]:
    """Below and above which scale of the bonus something of another name would have been shown."""
    if told.how != "bonus" or told.mean is None or told.width is None:
        return None, None
    offered = np.flatnonzero(round.available[0])
    mean, width, alpha = told.mean[0, offered], told.width[0, offered], float(np.ravel(told.scale)[0])
    chosen = int(np.flatnonzero(offered == shown)[0])
    both = (next_switch(mean, width, kind[offered], chosen, alpha, up=up) for up in (False, True))
    below, above = (Switch(t[0], names[kind[offered[t[1]]]]) if t is not None else None for t in both)
    return below, above


def _candidates(
    round: Round,
    told: Explanation,
    truth: FloatArray,
    slate: list[int],
    names: list[str],
    kind: IntArray,
    chances: FloatArray,
) -> tuple[Candidate, ...]:
    """One for every name on offer: what was shown first, then by score (by mean, or truth, where dice decided)."""
    K = len(kind)
    nothing = np.full(K, np.nan)
    available = round.available[0]
    score = nothing if _is_random(told) else told.score[0]
    mean = nothing if told.mean is None else told.mean[0]
    width = nothing if told.width is None else told.width[0]
    spread = nothing if told.width is None else width * np.broadcast_to(told.scale, told.score.shape)[0]
    merit = truth if told.mean is None else mean
    merit = merit if _is_random(told) else score
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
                    name=name, item=int(round.items[0, first]), alike=len(mine), truth=float(truth[first]),
                    score=float(score[first]), mean=float(mean[first]), width=float(width[first]),
                    spread=float(spread[first]), chance=float(chances[mine].sum()), slot=min(slots, default=0),
                    best=bool(truth[first] == best), others=tuple(score[mine[mine != first]].tolist()),
                ),
            )
        )  # fmt: skip
    return tuple(candidate for _, candidate in sorted(found, key=lambda pair: pair[0]))


def next_switch(
    mean: FloatArray, width: FloatArray, kind: IntArray, chosen: int, alpha: float, *, up: bool
) -> tuple[float, int] | None:
    """The nearest alpha at which the best of ``mean + alpha width (K,)`` is of another kind, and which it is then.

    Along the upper envelope of these lines: every candidate is overtaken by the steeper line (``up``), or the flatter
    one, that it meets first; ties go to the lowest index, as in every choice.

    Parameters
    ----------
    kind : int64 (K,)
        Candidates of the same kind may take over from each other unnoticed.
    chosen : int
        The best at ``alpha``.
    up : bool
        Look above ``alpha``; otherwise below, down to 0.
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
        reached = max(nearest, reached) if up else min(nearest, reached)  # rounding goes no step back
        if reached <= 0 and not up:
            return None
        if kind[now] != kind[chosen]:
            return reached, now
