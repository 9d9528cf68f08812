"""Does an agent know what it does not know? Its intervals against the truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from bandits.base.explanation import Explanation
from bandits.base.types import FloatArray, Round

from .lane import Lane
from .snapshots import BINS, LEVELS

CELLS, ROUNDS, FEWEST = 200, 32, 4  # candidates that a row is asked about, over so many of the next rounds
_HALF = ndtri(0.5 + np.array(LEVELS) / 2)  # standard deviations on either side of the mean


class Probe(NamedTuple):
    """What `probe` finds; None where the agent does not say so much.

    Attributes
    ----------
    inside : float64 (R, levels), optional
        Share of candidates whose expected reward lies in the agent's interval; NaN in a row that has none to ask about.
    values : float64 (R, 3 + BINS), optional
        See `trace.BeliefCheck`.
    """

    inside: FloatArray | None
    values: FloatArray | None


class _RoundProbe(NamedTuple):
    """One round's candidates (R, K): NaN where there is nothing to compare."""

    away: FloatArray | None  # truth less mean, in standard deviations
    doubt: FloatArray  # (R,), of the first choice
    expected: FloatArray
    truth: FloatArray


def probe(lane: Lane) -> Probe:
    """Ask an agent, as it stands now, about all candidates of the next rounds.

    The interval is mean +- z sd. The standard deviation is the one that it explores with: that of its draws, or alpha
    times its width; on the scale of log-odds where it believes in those, where certainties (0 or 1) have no place:
    candidates of that worth are left out. What it knows nothing of has an interval without end.

    Nothing is changed: no round is answered, nothing is learned.
    """
    ahead = max(FEWEST, min(ROUNDS, CELLS // lane.simulator.spec.n_candidates))
    probabilities = lane.simulator.access().probabilities
    asked = []
    for step in range(lane.step, lane.step + ahead):
        round = lane.simulator.round_at(step)
        told = lane.agent.explain(round)
        if told.mean is None:
            return Probe(None, None)
        asked.append(_ask(round, told, told.mean, probabilities(round)))
    expected = np.concatenate([a.expected for a in asked], axis=1)
    truth = np.concatenate([a.truth for a in asked], axis=1)
    doubt = _mean(np.stack([a.doubt for a in asked], axis=1))
    error = _mean((expected - truth) ** 2)
    variance = _mean(np.concatenate([(a.truth - _mean(a.truth)[:, None]) ** 2 for a in asked], axis=1))
    if any(a.away is None for a in asked):
        return Probe(None, np.column_stack([doubt, error, variance, np.full((len(doubt), BINS), np.nan)]))
    away = np.concatenate([a.away for a in asked if a.away is not None], axis=1)
    places = np.column_stack([doubt, error, variance, _places(away)])
    if np.isnan(away).all() and np.isfinite(truth).any() and told.logit:
        return Probe(None, places)
    with np.errstate(invalid="ignore"):  # NaN for a row that says nothing, as one that has stopped
        count = (~np.isnan(away)).sum(axis=1)
        return Probe(np.stack([(np.abs(away) <= half).sum(axis=1) / count for half in _HALF], axis=1), places)


def _ask(round: Round, told: Explanation, mean: FloatArray, truth: FloatArray) -> _RoundProbe:
    expected = np.where(round.available, expit(mean) if told.logit else mean, np.nan)
    shown = np.where(round.available, truth, np.nan)
    if told.width is None or told.how not in ("bonus", "sample"):
        return _RoundProbe(None, np.full(len(mean), np.nan), expected, shown)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(np.isinf(told.width), np.inf, told.scale * told.width)
        gap = (logit(truth) if told.logit else truth) - mean
        away = np.where(np.isinf(spread), 0.0, np.where(gap == 0, 0.0, gap / spread))
    possible = round.available & (np.isfinite(logit(truth)) if told.logit else True)
    first = np.where(round.available, told.score, -np.inf).argmax(axis=1)
    doubt = spread[np.arange(len(first)), first]
    return _RoundProbe(np.where(possible, away, np.nan), np.where(np.isinf(doubt), np.nan, doubt), expected, shown)


def _mean(values: FloatArray) -> FloatArray:
    """Of what there is in each row of ``values (R, n)``; NaN where there is nothing."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0).sum(axis=1) / known.sum(axis=1))


def _places(away: FloatArray) -> FloatArray:
    """Shares of the truths in each tenth of the agent's beliefs, (R, BINS): the probability integral transform."""
    place = np.minimum(np.floor(BINS * ndtr(away)), BINS - 1)
    counts = np.stack([(place == b).sum(axis=1) for b in range(BINS)], axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))
