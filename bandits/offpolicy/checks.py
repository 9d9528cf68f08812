"""Check the values of a log: each function finds the rows that are wrong, and what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.formatting import short
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.tables.problems import Wrong

# of sums of probabilities
TOLERANCE = 1e-6
LEAST = 1e-300  # propensity


def wrong_rewards(rewards: FloatArray) -> Wrong:
    """Find rewards, float64 (n,), that are not finite numbers."""
    return Wrong(
        ~np.isfinite(rewards), lambda i: f"reward: must be a finite number; got {rewards[i]}"
    )


def wrong_weights(weights: FloatArray) -> Wrong:
    """Find weights of rows, float64 (n,), that are negative or not finite."""
    return Wrong(
        ~(np.isfinite(weights) & (weights >= 0)),
        lambda i: f"weight: must be a finite number of at least 0; got {weights[i]:g}",
    )


def wrong_propensities(propensities: FloatArray) -> Wrong:
    """Find propensities, float64 (n,), that are missing, above 1, or so small that 1 / propensity
    is not finite.
    """

    def describe(i: int) -> str:
        got = "it is missing" if np.isnan(propensities[i]) else f"got {propensities[i]:g}"
        return f"propensity: must be above 0 and at most 1; {got}"

    return Wrong(~((propensities >= LEAST) & (propensities <= 1)), describe)


def wrong_distributions(probabilities: FloatArray, column: str = "propensities") -> Wrong:
    """Find rows of probabilities, float64 (n, K), with a missing or negative one, or with another
    sum than 1.
    """
    # several times as fast as a sum over a short axis
    sums = probabilities @ np.ones(probabilities.shape[1])
    wrong = ~(np.abs(sums - 1) <= TOLERANCE)
    # where none is negative and the sum is 1, none is above 1
    if not probabilities.min(initial=0.0) >= 0:
        wrong |= ~(probabilities.min(axis=1) >= 0)

    def describe(i: int) -> str:
        row = probabilities[i]
        if not row.min() >= 0:
            k = int((~((row >= 0) & (row <= 1 + TOLERANCE))).argmax())
            return (
                f"{column}: the probability of action {k} must be between 0 and 1; got {row[k]:g}"
            )
        return f"{column}: the probabilities must sum to 1; their sum is {sums[i]:.6g}"

    return Wrong(wrong, describe)


def wrong_logged_probabilities(
    distributions: FloatArray, actions: IntArray, propensities: FloatArray
) -> Wrong:
    """Find propensities that differ from the entry of the logged action in the vector of
    propensities by more than one in a million.
    """
    entries = distributions[np.arange(len(actions)), actions]
    return Wrong(
        np.asarray(np.abs(entries - propensities) > TOLERANCE),
        lambda i: (
            "propensity: must be the entry of the logged action in propensities, "
            f"{entries[i]:g}; got {propensities[i]:g}"
        ),
    )


def wrong_actions(actions: IntArray, n_actions: int) -> Wrong:
    """Find actions, int64 (n,), that are none of the K actions."""
    return Wrong(
        (actions < 0) | (actions >= n_actions),
        lambda i: f"action: must be between 0 and {n_actions - 1}; got {actions[i]}",
    )


def wrong_candidates(actions: IntArray, available: BoolArray, names: tuple[str, ...]) -> Wrong:
    """Find actions that are no candidate of their row; ``available`` is bool (n, K)."""
    return Wrong(
        ~available[np.arange(len(actions)), actions],
        lambda i: (
            f"action: must be one of the candidates of its row; got {short(names[actions[i]])}"
        ),
    )


def wrong_features(features: FloatArray, names: tuple[str, ...]) -> Wrong:
    """Find rows of features, float64 (n, D), with a number that is not finite."""
    finite = np.isfinite(features)

    def describe(i: int) -> str:
        d = int((~finite[i]).argmax())
        column = names[d] if names else f"feature {d}"
        return f"{column}: must be a finite number; got {features[i, d]}"

    return Wrong(np.asarray(~finite.all(axis=1)), describe)


def wrong_ids(event_ids: Any, positions: IntArray | None) -> Wrong:
    """Find event ids, object (n,), that an earlier row has too, at the same position."""
    import pandas as pd

    def describe(i: int) -> str:
        where = "" if positions is None else f" at position {positions[i]}"
        text = short(str(event_ids[i]))
        return f"event_id: must be unique; '{text}' appears twice{where}"

    if positions is None and len(pd.unique(event_ids)) == len(event_ids):
        return Wrong(np.zeros(len(event_ids), bool), describe)
    # not as pandas' own text, which takes several times as long to compare
    ids = pd.Series(event_ids, dtype=object)
    keys = {"event_id": ids} | ({} if positions is None else {"position": pd.Series(positions)})
    return Wrong(pd.DataFrame(keys).duplicated().to_numpy(), describe)
