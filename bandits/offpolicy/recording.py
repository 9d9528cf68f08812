"""Record the decisions of a run: what was shown, with which probability, and what it earned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.agents.base import Agent
from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.types import Feedback
from bandits.experiments.experiment import Experiment
from bandits.experiments.lane import Lane, Trace
from bandits.experiments.lockstep import make_lane

from .log import MAX_CELLS, MAX_ROWS, DecisionLog
from .recorded_columns import REPORTS, RecordedColumns


def check(experiment: Experiment, rows: Sequence[int] | None = None) -> None:
    """Raise if the decisions of an experiment cannot be logged.

    Parameters
    ----------
    experiment : Experiment
    rows : sequence of int, optional
        Replications to log; all of them by default.

    Raises
    ------
    UserError
        More rows than a log may have, or replications that the experiment does not have, named
        twice, or none.
    """
    R = experiment.replications
    if rows is not None and (
        not len(rows) or len(set(rows)) < len(rows) or not set(rows) <= set(range(R))
    ):
        raise UserError(
            f"rows must be one or more different replications from 0 to {R - 1}; got "
            f"{short(list(rows))}"
        )
    if experiment.offers("replay"):
        raise UserError(
            "a replayed log is not logged again: evaluate other policies on the log itself"
        )
    S = slots(experiment)
    n, factors = (
        experiment.steps * (R if rows is None else len(rows)) * S,
        "times slots" if S > 1 else "",
    )
    if n > MAX_ROWS:
        counted = f"steps times replications {factors}".strip()
        raise UserError(f"a log may have {MAX_ROWS:,} decisions; {counted} are {n:,}")
    items = experiment.simulator_class().describe(experiment.simulator).n_items if S > 1 else 0
    if n * items > MAX_CELLS:
        raise UserError(
            f"a log of slates may have {MAX_CELLS:,} rows times items; it has a row for each of "
            f"{S} slots, {n:,} in all, and {items:,} items: record fewer steps or replications, or "
            "give the simulator fewer items"
        )


def most_replications(experiment: Experiment) -> int:
    """Return how many replications a log may hold; `check` refuses even one where this is 0."""
    S = slots(experiment)
    items = experiment.simulator_class().describe(experiment.simulator).n_items if S > 1 else 1
    return min(experiment.replications, min(MAX_ROWS, MAX_CELLS // items) // (experiment.steps * S))


def slots(experiment: Experiment) -> int:
    """Return the number of items shown at once, S: rows of a log for each decision."""
    return experiment.simulator_class().slate_size(experiment.simulator)


def record(
    experiment: Experiment,
    agent: int | str = 0,
    *,
    rows: Sequence[int] | None = None,
    progress: Callable[[int], None] | None = None,
) -> DecisionLog:
    """Log the decisions of one agent of an experiment, by an exact replay.

    One row per decision and replication, in the order of the steps; none after a replication has
    diverged. Of a slate each slot has a row: its position from 1, its reward, whether the user
    examined it (column ``examined``), and the marginal propensity of its item, whatever the other
    slots show (`Agent.slot_probabilities`). The context is the segment of the user (one-hot), or
    the features of all candidates where these are few numbers.

    Propensities that are counts X of n redraws count the decision itself as one more, (X + 1) / (n
    + 1) for what is shown: none is 0, and the mean of their inverse is (1 - (1 - p)^(n + 1)) / p,
    close to 1 / p.

    Parameters
    ----------
    experiment : Experiment
    agent : int or str
        Position in the experiment, or label.
    rows : sequence of int, optional
        Replications to log; all of them by default. Their decisions are those of the whole log;
        where each replication has contexts of its own, only these are numbered.
    progress : callable, optional
        Called at most about 100 times with the number of steps done.

    Raises
    ------
    UserError
        No such agent, or see `check`.
    """
    check(experiment, rows)
    index, steps = _position(experiment, agent), experiment.steps
    replications = tuple(range(experiment.replications) if rows is None else rows)
    lane = make_lane(experiment, index, replications)
    decisions = RecordedColumns(lane, steps)
    # as in a run: the same bits
    with threadpool_limits(1):
        lane.agent.prepare()
        for trace in _traces(
            lane, steps, decisions, lambda: make_lane(experiment, index, replications).agent
        ):
            decisions.add(trace)
            if progress is not None and _hundredth(lane.step, steps) > _hundredth(
                trace.start, steps
            ):
                progress(lane.step)
    return decisions.log(experiment, index, replications)


def _traces(
    lane: Lane, steps: int, decisions: RecordedColumns, second: Callable[[], Agent]
) -> Iterator[Trace]:
    """Advance a lane block by block, and let ``decisions`` see each round as it is before the
    choice.

    Step by step the lane shows the rounds, and the scores of an agent that does not draw. Compiled
    steps are made again: an agent whose propensities depend on what it has learned is built a
    second time and learns the same."""
    lane.watch = decisions.see
    lane.watch_feedback = decisions.hear if decisions.heard is not None else None
    lane.use_compiled = not decisions.probabilities.deterministic
    learner = None
    while lane.step < steps:
        start = lane.step
        trace = lane.advance(min(decisions.block, steps - start))
        if not decisions.seen:
            if lane.agent.learns and learner is None:
                learner = decisions.probabilities.agent = second()
                learner.prepare()
            rewards, examined = trace.rewards[:, :, None], np.isfinite(trace.rewards)[:, :, None]
            for i, slate in enumerate(trace.items):
                round = lane.simulator.round_at(start + i)
                decisions.see(round)
                if learner is not None:
                    learner.learn(round, slate, Feedback(rewards[i], examined[i]))
        yield trace


def _position(experiment: Experiment, agent: int | str) -> int:
    labels = experiment.labels
    if isinstance(agent, str) and agent in labels:
        return labels.index(agent)
    if isinstance(agent, int) and 0 <= agent < len(labels):
        return agent
    raise UserError(
        f"agent is {short(agent)}; it must be one of {', '.join(labels)}, or a number below "
        f"{len(labels)}"
    )


def _hundredth(step: int, steps: int) -> int:
    return step * REPORTS // steps
