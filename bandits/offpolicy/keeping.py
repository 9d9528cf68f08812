"""Keep a user's log for replays with agents that learn, in the simulator `logged`."""

from __future__ import annotations

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import FloatArray
from bandits.simulators.datasets.kept_logs import KeptLog, save_log

from .log import DecisionLog

# of uniform propensities
TOLERANCE = 1e-6
MAX_SEGMENTS = 50


def keep_for_replay(log: DecisionLog, title: str, *, uniform: bool = False) -> str:
    """Store the events of a log, in the order of its rows; return the id for `Logged.Params.log`.

    Where the log has no features, they are indicators of its segments, or else a constant.

    Parameters
    ----------
    log : DecisionLog
        Every item is a candidate at every decision, chosen with the same probability; one item per
        decision.
    title : str
        Its name in lists.
    uniform : bool
        Where the log has no propensities: it is known that every item was equally likely.

    Raises
    ------
    UserError
        The log was not chosen uniformly at random, or cannot be kept; the sentence names row and
        column.
    """
    check_uniform(log, uniform=uniform)
    features, names = _features(log)
    kept = KeptLog(log.actions, log.rewards, features, log.names, names)
    return save_log(kept, title=title, at=log.places)


def check_uniform(log: DecisionLog, *, uniform: bool = False) -> None:
    """Check that a replay of a log is right: every item was equally likely at every decision.

    Raises
    ------
    UserError
        It was not, or it is not known; or an event shows several items.
    """
    K = log.n_actions
    if log.row_weights is not None:
        raise UserError(
            "weight: a replay takes every decision once; the rows of this log have weights"
        )
    if log.groups is not None:
        raise UserError(
            "event_id: a replay takes one item per event; keep the rows of one position"
        )
    if log.available is not None and not log.available.all():
        i = int((~log.available.all(axis=1)).argmax())
        raise UserError(
            f"{log.places[i]}, candidates: a replay takes logs in which every item is a candidate "
            f"in every row; here are {int(log.available[i].sum())} of {K}"
        )
    if log.propensities is None:
        if not uniform:
            raise UserError(
                "propensity: a replay takes uniformly random logs, and this one has no "
                "propensities; state that every item was equally likely if you know it"
            )
        return
    wrong = np.abs(log.propensities - 1 / K) > TOLERANCE
    if wrong.any():
        i = int(wrong.argmax())
        p = log.propensities[i]
        raise UserError(
            f"{log.places[i]}, propensity: a replay takes uniformly random logs, where it is 1/{K} "
            f"= {1 / K:.4g} for each of {K} items; got {p:.4g}; if there are more items than the "
            "rows show, list all in a column candidates"
        )


def _features(log: DecisionLog) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the features that agents see, float64 (n, d), with their names."""
    if log.features is not None:
        names = log.feature_names or tuple(f"feature {d}" for d in range(log.features.shape[1]))
        return log.features, names
    if (
        log.segments is not None
        and len(found := sorted(set(log.segments.tolist()))) <= MAX_SEGMENTS
    ):
        return np.asarray(log.segments[:, None] == np.array(found, object), np.float64), tuple(
            map(str, found)
        )
    return np.ones((len(log), 1)), ("constant",)
