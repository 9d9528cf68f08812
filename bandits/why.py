"""Why this arm? One row of a run is lived again up to a step, and its agent is asked there."""

from __future__ import annotations

import itertools
import time

import numpy as np
from threadpoolctl import threadpool_limits

from .engine import Lane
from .experiment import Experiment
from .explanation import Candidate, Explanation, Switch, Why, takes_over
from .race import CHUNK, make_lane
from .refused import Refused
from .rounds import FloatArray, IntArray, Round

SECONDS = 40.0  # of computing that living a row again may take
REDRAWS, _CELLS = 1000, 20_000_000  # draws behind a chance; fewer where there are many candidates


def why(experiment: Experiment, agent: int | str, step: int, replication: int = 0) -> Why:
    """One decision of a run: what each candidate had going for it, and what would have changed it.

    The row is computed again, so that no run need keep what this takes. It is the run's own row: a row's numbers
    never depend on the rows beside it.

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
    Refused
        There is no such decision, or it would take too long to get there.
    """
    index = _position(experiment, agent)
    label = experiment.labels[index]
    if not 1 <= step <= experiment.steps:
        raise Refused(f"step is {step}; it must be a whole number from 1 to {experiment.steps:,}")
    if not 0 <= replication < experiment.replications:
        last = experiment.replications - 1
        raise Refused(f"replication is {replication}; it must be a whole number from 0 to {last:,}")
    lane = make_lane(experiment, index, rows=[replication])
    with threadpool_limits(1):  # as in a race: the same bits
        lane.agent.prepare()
        _live(lane, step - 1, label)
        _sound(lane, label)
        round = lane.simulator.round_at(step - 1)
        told = lane.agent.explain(round)
        chances, redraws = _chances(lane, round, step)
        trace = lane.advance(1)
    _sound(lane, label)
    slate = [int(np.flatnonzero(round.items[0] == item)[0]) for item in trace.items[0, 0]]
    names, kind = _kinds(lane, round)
    below, above = _switches(told, round, slate[0], names, kind)
    segments = lane.simulator.segment_names()
    return Why(
        label=label, step=step, replication=replication,
        visitor=segments[round.segments[0]] if segments else "",
        item_noun=lane.simulator.item_noun, reward_noun=lane.simulator.reward_noun,
        how=told.how, knob=told.knob, logit=told.logit,
        scale=float(np.ravel(told.scale)[0]) if told.how == "bonus" else float("nan"),
        rolled=_rolled(told),
        candidates=_candidates(lane, round, told, slate, names, kind, chances),
        below=below, above=above, redraws=redraws, reward=float(trace.rewards[0, 0]),
    )  # fmt: skip


def _position(experiment: Experiment, agent: int | str) -> int:
    known = experiment.labels
    if isinstance(agent, str) and agent in known:
        return known.index(agent)
    if isinstance(agent, int) and 0 <= agent < len(known):
        return agent
    raise Refused(f"agent is {agent}; it must be one of {', '.join(known)}, or a number from 0 to {len(known) - 1}")


def _live(lane: Lane, steps: int, label: str) -> None:
    """Advance to a step; no further than can be done in `SECONDS`, which shows soon."""
    lane.advance(min(1, steps))  # whatever must be compiled or loaded is not in the timing
    began = time.thread_time()  # not the wall's: that others are busy is no reason to refuse
    while lane.step < steps and lane.alive[0]:
        lane.advance(min(CHUNK, steps - lane.step))
        spent = time.thread_time() - began
        needed = spent * steps / lane.step
        allowed = SECONDS if 2 * lane.step < steps else 1.5 * SECONDS  # having come so far, it is not given up so soon
        if needed > allowed and spent > SECONDS / 20:
            raise Refused(
                f"step {steps + 1:,} of {label} is too far: to live its run again until there would take about "
                f"{needed:,.0f} seconds of computing, and {SECONDS:.0f} are allowed"
            )


def _sound(lane: Lane, label: str) -> None:
    if not lane.alive[0]:
        raise Refused(f"{label} stopped early in this run, because its numbers grew beyond all bounds")


def _rolled(told: Explanation) -> bool:
    return told.rolled is not None and bool(told.rolled[0])


def _chances(lane: Lane, round: Round, step: int) -> tuple[FloatArray, int]:
    """Probability that each candidate is shown first over the agent's dice (K,), and the draws it rests on."""
    agent, K = lane.agent, round.items.shape[1]
    if agent.propensity == "exact":
        return agent.probabilities(round)[0], 0
    streams = lane.simulator.streams  # dice of our own: the agent's are left alone
    dice = streams.generator("question", row=streams.rows[0], block=step)
    n = int(np.clip(_CELLS // K, 20, REDRAWS))
    counts, drawn = np.zeros(K), 0
    for scores in itertools.islice(agent.redraws(round, dice), n):
        counts[np.where(round.available[0], scores[0], -np.inf).argmax()] += 1
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
    both = (takes_over(mean, width, kind[offered], chosen, alpha, up=up) for up in (False, True))
    below, above = (Switch(t[0], names[kind[offered[t[1]]]]) if t is not None else None for t in both)
    return below, above


def _candidates(
    lane: Lane, round: Round, told: Explanation, slate: list[int], names: list[str], kind: IntArray, chances: FloatArray
) -> tuple[Candidate, ...]:
    """One for every name on offer: what was shown first, then by score (by mean, or truth, where dice decided)."""
    K = len(kind)
    nothing = np.full(K, np.nan)
    truth, available = lane.simulator.probabilities(round)[0], round.available[0]
    score = nothing if _rolled(told) else told.score[0]
    mean = nothing if told.mean is None else told.mean[0]
    width = nothing if told.width is None else told.width[0]
    spread = nothing if told.width is None else width * np.broadcast_to(told.scale, told.score.shape)[0]
    merit = truth if told.mean is None else mean
    merit = merit if _rolled(told) else score
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
