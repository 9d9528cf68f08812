"""Does an agent know what it does not know? Its intervals against the truth."""

from __future__ import annotations

import numpy as np
from scipy.special import logit
from scipy.stats import norm

from .engine import Lane
from .rounds import FloatArray
from .trace import LEVELS

CELLS, ROUNDS = 200, 32  # candidates that a row is asked about, over at most so many of the next rounds
_HALF = norm.ppf(0.5 + np.array(LEVELS) / 2)  # standard deviations on either side of the mean


def inside(lane: Lane) -> FloatArray | None:
    """Share of candidates whose expected reward lies in the agent's interval, float64 (R, levels).

    The interval is mean +- z sd, of all candidates of the next rounds as the agent stands now. The standard deviation
    is the one that it explores with: that of its draws, or alpha times its width; on the scale of log-odds where it
    believes in those, where certainties (0 or 1) have no place: candidates of that worth are left out. What it knows
    nothing of has an interval without end. None if the agent states no doubt, or if nothing is left.

    Nothing is changed: no round is answered, nothing is learned.
    """
    probabilities = lane.simulator.world().probabilities
    ahead = max(1, min(ROUNDS, CELLS // lane.simulator.setting.n_candidates))
    distances = []
    for step in range(lane.step, lane.step + ahead):
        round = lane.simulator.round_at(step)
        told = lane.agent.explain(round)
        if told.mean is None or told.width is None or told.how not in ("bonus", "sample"):
            return None
        truth = probabilities(round)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.where(np.isinf(told.width), np.inf, told.scale * told.width)
            gap = np.abs((logit(truth) if told.logit else truth) - told.mean)
            away = np.where(np.isinf(spread), 0.0, np.where(gap == 0, 0.0, gap / spread))
        asked = round.available & (np.isfinite(logit(truth)) if told.logit else True)
        distances.append(np.where(asked, away, np.nan))
    away = np.concatenate(distances, axis=1)  # (R, candidates), in standard deviations
    if told.logit and np.isnan(away).all():
        return None
    count = np.maximum((~np.isnan(away)).sum(axis=1), 1)
    return np.stack([(away <= half).sum(axis=1) / count for half in _HALF], axis=1)
