"""Record the decisions of a run: what was shown, with which probability, and what it earned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bandits.agents.base import Agent, Propensity
from bandits.agents.guards.base import Guard, unguarded
from bandits.agents.guards.floor import Floor
from bandits.agents.stochastic import StochasticAgent
from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.selection import indicator_of_largest
from bandits.base.types import Feedback, FloatArray, Round
from bandits.experiments.experiment import Experiment
from bandits.experiments.lane import Lane
from bandits.experiments.race import make_lane
from bandits.experiments.trace import Trace
from bandits.simulators.base import Simulator

from .log import MAX_CELLS, MAX_ROWS, DecisionLog
from .parquet import MAX_VECTOR

MAX_FEATURES = 64  # numbers of a context that are written with each decision
EXAMINED = "examined"  # column of a log of slates: 1 where the user examined the position
REPORTS = 100  # calls of ``progress``
BLOCK = 2**21  # rounds times candidates that are held at once


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
        More rows than a log may have, or replications that the experiment does not have, named twice, or none.
    """
    R = experiment.replications
    if rows is not None and (not len(rows) or len(set(rows)) < len(rows) or not set(rows) <= set(range(R))):
        raise UserError(f"rows must be one or more different replications from 0 to {R - 1}; got {short(list(rows))}")
    if experiment.offers("replay"):
        raise UserError("a replayed log is not logged again: evaluate other policies on the log itself")
    S = slots(experiment)
    n, factors = experiment.steps * (R if rows is None else len(rows)) * S, "times slots" if S > 1 else ""
    if n > MAX_ROWS:
        counted = f"steps times replications {factors}".strip()
        raise UserError(f"a log may have {MAX_ROWS:,} decisions; {counted} are {n:,}")
    items = experiment.simulator_class().describe(experiment.simulator).n_items if S > 1 else 0
    if n * items > MAX_CELLS:
        raise UserError(
            f"a log of slates may have {MAX_CELLS:,} rows times items; it has a row for each of {S} slots, {n:,} in "
            f"all, and {items:,} items: record fewer steps or replications, or give the simulator fewer items"
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

    One row per decision and replication, in the order of the steps; none after a replication has diverged. Of a slate
    each slot has a row: its position from 1, its reward, whether the user examined it (column ``examined``), and the
    marginal propensity of its item, whatever the other slots show (`Agent.slot_probabilities`). The context is the
    segment of the user (one-hot), or the features of all candidates where these are few numbers.

    Propensities that are counts X of n redraws count the decision itself as one more, (X + 1) / (n + 1) for what is
    shown: none is 0, and the mean of their inverse is (1 - (1 - p)^(n + 1)) / p, close to 1 / p.

    Parameters
    ----------
    experiment : Experiment
    agent : int or str
        Position in the experiment, or label.
    rows : sequence of int, optional
        Replications to log; all of them by default. Their decisions are those of the whole log; where each replication
        has contexts of its own, only these are numbered.
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
    decisions = _Decisions(lane, steps)
    with threadpool_limits(1):  # as in a run: the same bits
        lane.agent.prepare()
        for trace in _traces(lane, steps, decisions, lambda: make_lane(experiment, index, replications).agent):
            decisions.add(trace)
            if progress is not None and _hundredth(lane.step, steps) > _hundredth(trace.start, steps):
                progress(lane.step)
    return decisions.log(experiment, replications)


def _traces(lane: Lane, steps: int, decisions: _Decisions, second: Callable[[], Agent]) -> Iterator[Trace]:
    """Advance a lane block by block, and let ``decisions`` see each round as it is before the choice.

    Step by step the lane shows the rounds. Compiled steps are made again: an agent whose propensities depend on what it
    has learned is built a second time and learns the same.
    """
    lane.watch = decisions.see
    lane.watch_feedback = decisions.hear if decisions.heard is not None else None
    learner = None
    while lane.step < steps:
        start = lane.step
        trace = lane.advance(min(decisions.block, steps - start))
        if not decisions.seen:
            states = decisions.kind != "deterministic"
            if states and lane.agent.learns and learner is None:
                learner = decisions.agent = second()
                learner.prepare()
            rewards, examined = trace.rewards[:, :, None], np.isfinite(trace.rewards)[:, :, None]
            for i, slate in enumerate(trace.items):
                round = lane.simulator.round_at(start + i)
                decisions.see(round)
                if learner is not None:
                    learner.learn(round, slate, Feedback(rewards[i], examined[i]))
        yield trace


class _Decisions:
    """The columns of a log, float64, int64 or bool (T, R, S, ...), filled block by block.

    Parameters
    ----------
    lane : Lane
        Of R replications.
    steps : int
        T.
    """

    def __init__(self, lane: Lane, steps: int) -> None:
        self.agent, self.simulator = lane.agent, lane.simulator
        spec, R = lane.simulator.spec, lane.rows
        K, S, self.n_items = spec.n_candidates, spec.slate, spec.n_items
        self.kind = lane.agent.propensity if S == 1 else lane.agent.slot_propensity
        self.segment_names, self.feature_names = lane.simulator.segment_names(), _context_names(lane.simulator)
        self.block = min(max(1, steps // REPORTS), max(1, BLOCK // (R * S * K)))
        self.seen = self.answered = 0  # rounds and responses of the present block
        shape, block = (steps, R, S), (self.block, R, S, K)
        self.actions, self.propensities, self.rewards = np.empty(shape, np.int64), np.ones(shape), np.empty(shape)
        self.segments, self.contexts = np.empty((steps, R), np.int64), np.empty((steps, R), np.int64)
        self.heard = None if S == 1 else np.empty((2, self.block, R, S))  # rewards and examined slots
        self.examined = None if S == 1 else np.empty(shape)
        self.stated = None if self.kind == "deterministic" else np.empty(block)
        self.redraws = _redraws(lane.agent, self.kind)
        self.floors, inside = _floors(lane.agent) if S == 1 else ([], lane.agent)
        self.scored = _Scored(inside) if self.floors else None
        self.once = None if self.stated is None or S > 1 or self.floors else _Once(unguarded(lane.agent))
        vectors = self.stated is not None and spec.n_items <= MAX_VECTOR
        self.distributions = np.empty((*shape, spec.n_items)) if vectors else None
        self.items = None if spec.n_items == K else np.empty((self.block, R, K), np.int64)
        self.offered = np.empty((self.block, R, K), np.bool_)
        self.available: NDArray[np.bool_] | None = None  # until a step does not offer every item
        one_hot = len(self.feature_names) in (0, len(self.segment_names))
        self.features = None if one_hot else np.empty((steps, R, len(self.feature_names)))

    def see(self, round: Round) -> None:
        """Take note of a round and of the probabilities of the candidates."""
        i = self.seen
        self.seen += 1
        self.contexts[round.step] = round.context
        self.offered[i] = round.available
        if self.items is not None:
            self.items[i] = round.items
        if self.stated is None:
            pass
        elif self.scored is not None:
            self.scored.into = self.stated[i, :, 0]
        elif self.once is None:
            self.stated[i] = self.agent.slot_probabilities(round)
        else:
            self.once.keeps = True
            self.stated[i, :, 0] = self.agent.probabilities(round)
            self.once.keeps = False
        if self.features is not None:
            self.features[round.step] = round.features.reshape(len(round.users), -1)

    def hear(self, feedback: Feedback) -> None:
        """Take note of the response to a slate."""
        assert self.heard is not None
        self.heard[:, self.answered] = feedback.rewards, feedback.examined
        self.answered += 1

    def add(self, trace: Trace) -> None:
        """Add what was shown and earned in the rounds seen since the last call."""
        n, self.seen, self.answered = self.seen, 0, 0
        steps, shown = slice(trace.start, trace.start + n), trace.items
        self.actions[steps], self.segments[steps] = shown, trace.segments
        self.rewards[steps] = trace.rewards[:, :, None]  # NaN after a replication has diverged
        if self.heard is not None and self.examined is not None:
            earned, self.examined[steps] = self.heard[:, :n]
            self.rewards[steps] = np.where(np.isfinite(self.rewards[steps]), earned, np.nan)
        items = None if self.items is None else self.items[:n, :, None]
        if self.stated is not None:
            place = shown if items is None else (items == shown[..., None]).argmax(axis=3)
            stated = self.stated[:n]
            if self.floors:
                stated = self._of_floors(stated[:, :, 0], trace.segments)[:, :, None]
            if self.redraws:
                itself = np.arange(stated.shape[3]) == place[..., None]
                stated = (stated * self.redraws + itself) / (self.redraws + 1)
            self.propensities[steps] = np.take_along_axis(stated, place[..., None], axis=3)[..., 0]
            if self.distributions is not None:
                self.distributions[steps] = _by_item(items, stated, self.n_items)
        if items is not None or not self.offered[:n].all():
            if self.available is None:
                self.available = np.ones((*self.contexts.shape, self.n_items), np.bool_)
            self.available[steps] = _by_item(None if items is None else items[:, :, 0], self.offered[:n], self.n_items)

    def _of_floors(self, scores: FloatArray, segments: NDArray[np.int64]) -> FloatArray:
        """Compute the probabilities of floors around an agent that does not draw, from its scores (n, R, K)."""
        K = scores.shape[2]
        available = self.offered[: len(scores)].reshape(-1, K)
        found = indicator_of_largest(np.where(available, scores.reshape(-1, K), -np.inf))
        for floor in self.floors:
            found = floor.mixed_with(found, segments.reshape(-1), available)
        return found.reshape(scores.shape)

    def log(self, experiment: Experiment, replications: Sequence[int]) -> DecisionLog:
        """Return the log without the decisions of replications that have diverged."""
        T, R, S = self.actions.shape
        decisions = np.isfinite(self.rewards[:, :, 0])
        kept = np.broadcast_to(decisions[:, :, None], (T, R, S))

        def each(values: NDArray[Any] | None) -> Any:
            """Return values (T, R, ...) of the decisions kept, once for each slot."""
            found = _rows(values, decisions)
            return found if found is None or S == 1 else np.repeat(found, S, axis=0)

        step, row = (each(np.broadcast_to(v, (T, R))) for v in (np.arange(T)[:, None], np.array(replications)))
        run, texts, firsts = experiment.hash[:12], [str(t) for t in range(T)], [f"{r}-" for r in replications]
        ids = _texts([first + text for text in texts for first in firsts]).reshape(T, R)
        segments, groups = each(self.segments), len(self.segment_names)
        features = np.eye(groups)[segments] if self.feature_names and self.features is None else each(self.features)
        return DecisionLog(
            actions=_rows(self.actions, kept),
            rewards=_rows(self.rewards, kept),
            names=tuple(str(item) for item in range(self.n_items)),
            propensities=_rows(self.propensities, kept),
            kinds=_texts([self.kind]).repeat(len(step)),
            distributions=_rows(self.distributions, kept),
            features=features,
            feature_names=self.feature_names,
            available=each(self.available),
            positions=np.tile(np.arange(1, S + 1), len(step) // S) if S > 1 else None,
            segments=_texts(self.segment_names)[segments] if groups else None,
            event_ids=each(ids),
            versions=_texts([f"{run}-{t}" for t in texts])[step],
            rows=row,
            steps=step,
            contexts=each(self.contexts),
            columns={} if self.examined is None else {EXAMINED: _rows(self.examined, kept)},
            experiment=experiment.model_dump_json(by_alias=True),
        )


def _floors(agent: Agent) -> tuple[list[Floor], Agent]:
    """Return the floors around an agent that does not draw, from the inside out, and that agent.

    Their probabilities follow from its scores, and are computed for many steps at once; none where one of them
    remembers what was shown, or other guards are outside.
    """
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
    """

    def __init__(self, agent: Agent) -> None:
        self.compute: Callable[[Round], FloatArray] = agent.scores
        self.into: FloatArray | None = None
        setattr(agent, "scores", self)  # noqa: B010 - a method of this object alone

    def __call__(self, round: Round) -> FloatArray:
        found = self.compute(round)
        if self.into is not None:
            self.into[...] = found
        return found


class _Once:
    """The scores or probabilities of an agent, computed once where its propensities and its choice both need them.

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
            self.kept = round, value.copy()  # the caller may change its own
        return value


def _redraws(agent: Agent, kind: Propensity) -> int:
    """Return the number of redraws whose counts are an agent's probabilities.

    0 where these are known, and under a floor that gives each candidate more than one redraw would.
    """
    if kind != "monte_carlo":
        return 0
    n = unguarded(agent).n_redraws
    while isinstance(agent, Guard):
        if isinstance(agent, Floor) and agent.least * n >= 1:
            return 0
        agent = agent.inner
    return n


def _position(experiment: Experiment, agent: int | str) -> int:
    labels = experiment.labels
    if isinstance(agent, str) and agent in labels:
        return labels.index(agent)
    if isinstance(agent, int) and 0 <= agent < len(labels):
        return agent
    raise UserError(f"agent is {short(agent)}; it must be one of {', '.join(labels)}, or a number below {len(labels)}")


def _context_names(simulator: Simulator) -> tuple[str, ...]:
    """Name the numbers of a context: segments, or the features of the candidates; none where these are many."""
    spec = simulator.spec
    if spec.fixed_contexts and simulator.segment_names():
        return tuple(simulator.segment_names())
    if spec.n_candidates * spec.n_features > MAX_FEATURES:
        return ()
    return tuple(f"x{k}.{d}" for k in range(spec.n_candidates) for d in range(spec.n_features))


def by_item(round: Round, values: NDArray[Any], n_items: int) -> NDArray[Any]:
    """Return values of the candidates (R, K) at the places of their items, (R, n_items); 0 elsewhere."""
    return _by_item(round.items, values, n_items)


def _by_item(items: NDArray[np.int64] | None, values: NDArray[Any], n_items: int) -> NDArray[Any]:
    """Return values (..., K) at the places of their items (..., n_items); without items they are there already."""
    if items is None:
        return values
    found = np.zeros((*values.shape[:-1], n_items), values.dtype)
    np.put_along_axis(found, np.broadcast_to(items, values.shape), values, axis=-1)
    return found


def _rows(values: NDArray[Any] | None, kept: NDArray[np.bool_]) -> Any:
    """Return what is kept, (n, ...), of values of the shape of ``kept`` and more axes, without a copy where all is."""
    if values is None:
        return None
    return values.reshape(-1, *values.shape[kept.ndim :]) if kept.all() else values[kept]


def _hundredth(step: int, steps: int) -> int:
    return step * REPORTS // steps


def _texts(found: Sequence[str]) -> NDArray[np.object_]:
    return np.array(found, dtype=object)
