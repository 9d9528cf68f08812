"""The columns of a log of decisions, filled while a run is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandits.base.types import Feedback, Round
from bandits.experiments.experiment import Experiment
from bandits.experiments.lane import Lane, Trace
from bandits.simulators.base import Simulator

from .log import DecisionLog
from .parquet import MAX_VECTOR
from .recorded_propensities import StatedProbabilities


def by_item(round: Round, values: NDArray[Any], n_items: int) -> NDArray[Any]:
    """Return values of the candidates (R, K) at the places of their items, (R, n_items).

    0 elsewhere.
    """
    return at_items(round.items, values, n_items)


def at_items(items: NDArray[np.int64] | None, values: NDArray[Any], n_items: int) -> NDArray[Any]:
    """Return values (..., K) at the places of their items (..., n_items).

    Without items they are there already.
    """
    if items is None:
        return values
    found = np.zeros((*values.shape[:-1], n_items), values.dtype)
    np.put_along_axis(found, np.broadcast_to(items, values.shape), values, axis=-1)
    return found


# numbers of a context that are written with each decision
MAX_FEATURES = 64
# column of a log of slates: 1 where the user examined the position
EXAMINED = "examined"
# blocks of a recording, at least
REPORTS = 100
# rounds times candidates that are held at once
BLOCK = 2**21


class RecordedColumns:
    """The columns of a log, float64, int64 or bool (T, R, S, ...), filled block by block.

    Parameters
    ----------
    lane : Lane
        Of R replications.
    steps : int
        T.
    """

    def __init__(self, lane: Lane, steps: int) -> None:
        self.simulator, spec, R = lane.simulator, lane.simulator.spec, lane.rows
        K, S, self.n_items = spec.n_candidates, spec.slate, spec.n_items
        self.segment_names, self.feature_names = (
            lane.simulator.segment_names(),
            _context_names(lane.simulator),
        )
        self.block = min(max(1, steps // REPORTS), max(1, BLOCK // (R * S * K)))
        # rounds and responses of the present block
        self.seen = self.answered = 0
        self.probabilities = StatedProbabilities(lane.agent, spec, self.block)
        shape = (steps, R, S)
        self.actions, self.propensities, self.rewards = (
            np.empty(shape, np.int64),
            np.empty(shape),
            np.empty(shape),
        )
        self.segments, self.contexts = (
            np.empty((steps, R), np.int64),
            np.empty((steps, R), np.int64),
        )
        # rewards and examined slots
        self.heard = None if S == 1 else np.empty((2, self.block, R, S))
        self.examined = None if S == 1 else np.empty(shape)
        vectors = not self.probabilities.deterministic and spec.n_items <= MAX_VECTOR
        self.distributions = np.empty((*shape, spec.n_items)) if vectors else None
        self.items = None if spec.n_items == K else np.empty((self.block, R, K), np.int64)
        self.offered = np.empty((self.block, R, K), np.bool_)
        # until a step does not offer every item
        self.available: NDArray[np.bool_] | None = None
        one_hot = len(self.feature_names) in (0, len(self.segment_names))
        # steps that end a visit
        visits = bool(lane.simulator.state)
        self.ended = np.empty((steps, R), np.bool_) if visits else None
        self.features = None if one_hot else np.empty((steps, R, len(self.feature_names)))

    def see(self, round: Round) -> None:
        """Take note of a round and of the probabilities of the candidates."""
        i = self.seen
        self.seen += 1
        self.contexts[round.step] = round.context
        self.offered[i] = round.available
        if self.items is not None:
            self.items[i] = round.items
        self.probabilities.see(i, round)
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
        # NaN after a replication has diverged
        self.rewards[steps] = trace.rewards[:, :, None]
        if self.ended is not None:
            self.ended[steps] = trace.ended
        if self.heard is not None and self.examined is not None:
            earned, self.examined[steps] = self.heard[:, :n]
            self.rewards[steps] = np.where(np.isfinite(self.rewards[steps]), earned, np.nan)
        items = None if self.items is None else self.items[:n, :, None]
        offered = self.offered[:n]
        place = shown if items is None else (items == shown[..., None]).argmax(axis=3)
        stated = self.probabilities.stated(trace.segments, offered)
        self.propensities[steps] = np.take_along_axis(stated, place[..., None], axis=3)[..., 0]
        if self.distributions is not None:
            self.distributions[steps] = at_items(items, stated, self.n_items)
        if items is not None or not offered.all():
            if self.available is None:
                self.available = np.ones((*self.contexts.shape, self.n_items), np.bool_)
            self.available[steps] = at_items(
                None if items is None else items[:, :, 0], offered, self.n_items
            )

    def _visits(self) -> NDArray[np.int64] | None:
        """Number the visits, those of the first replication first, int64 (T, R)."""
        if self.ended is None:
            return None
        before = np.asarray(np.cumsum(self.ended, axis=0) - self.ended, np.int64)
        before += np.append(0, np.cumsum(before[-1] + 1))[:-1]
        return before

    def log(self, experiment: Experiment, agent: int, replications: Sequence[int]) -> DecisionLog:
        """Return the log without the decisions of replications that have diverged."""
        T, R, S = self.actions.shape
        decisions = np.isfinite(self.rewards[:, :, 0])
        kept = np.broadcast_to(decisions[:, :, None], (T, R, S))

        def each(values: NDArray[Any] | None) -> Any:
            """Return values (T, R, ...) of the decisions kept, once for each slot."""
            found = _rows(values, decisions)
            return found if found is None or S == 1 else np.repeat(found, S, axis=0)

        step, row = (
            each(np.broadcast_to(v, (T, R)))
            for v in (np.arange(T)[:, None], np.array(replications))
        )
        run, texts = experiment.hash[:12], [str(t) for t in range(T)]
        ids = _texts([f"{r}-" for r in replications]) + _texts(texts)[:, None]  # joins texts
        segments, groups = each(self.segments), len(self.segment_names)
        features = (
            np.eye(groups)[segments]
            if self.feature_names and self.features is None
            else each(self.features)
        )
        return DecisionLog(
            actions=_rows(self.actions, kept),
            rewards=_rows(self.rewards, kept),
            names=tuple(str(item) for item in range(self.n_items)),
            propensities=_rows(self.propensities, kept),
            kinds=_texts([self.probabilities.kind]).repeat(len(step)),
            distributions=_rows(self.distributions, kept),
            features=features,
            feature_names=self.feature_names,
            available=each(self.available),
            positions=np.tile(np.arange(1, S + 1), len(step) // S) if S > 1 else None,
            segments=_texts(self.segment_names)[segments] if groups else None,
            event_ids=each(ids),
            unique_ids=True,
            versions=_texts([f"{run}-{t}" for t in texts])[step],
            rows=row,
            steps=step,
            contexts=each(self.contexts),
            visits=each(self._visits()),
            columns={} if self.examined is None else {EXAMINED: _rows(self.examined, kept)},
            experiment=experiment.model_dump_json(by_alias=True),
            agent=experiment.labels[agent],
        )


def _context_names(simulator: Simulator) -> tuple[str, ...]:
    """Name the numbers of a context: segments, or the features of the candidates.

    None where these are many.
    """
    spec = simulator.spec
    if spec.fixed_contexts and simulator.segment_names():
        return tuple(simulator.segment_names())
    if spec.n_candidates * spec.n_features > MAX_FEATURES:
        return ()
    return tuple(f"x{k}.{d}" for k in range(spec.n_candidates) for d in range(spec.n_features))


def _rows(values: NDArray[Any] | None, kept: NDArray[np.bool_]) -> Any:
    """Return what is kept, (n, ...), of values of the shape of ``kept`` and more axes, without a
    copy where all is.
    """
    if values is None:
        return None
    return values.reshape(-1, *values.shape[kept.ndim :]) if kept.all() else values[kept]


def _texts(found: Sequence[str]) -> NDArray[np.object_]:
    return np.array(found, dtype=object)
