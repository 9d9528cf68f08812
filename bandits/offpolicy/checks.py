"""Check the values of a log.

An error is one sentence that names row, column and the allowed range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.row_names import ROWS, RowNames
from bandits.base.types import BoolArray, FloatArray, IntArray

# of sums of probabilities
TOLERANCE = 1e-6
LEAST = 1e-300  # propensity


def check_rewards(rewards: FloatArray, *, at: RowNames = ROWS) -> None:
    """Check that all rewards are finite numbers.

    Parameters
    ----------
    rewards : float64 (n,)
    at : RowNames
        Names of the rows.

    Raises
    ------
    UserError
        A reward is not a finite number.
    """
    wrong = ~np.isfinite(rewards)
    if wrong.any():
        i = int(wrong.argmax())
        raise UserError(f"{at[i]}, reward: must be a finite number; got {rewards[i]}")


def check_propensities(
    propensities: FloatArray, *, at: RowNames = ROWS, column: str = "propensity"
) -> None:
    """Check that all propensities are above 0, so far that 1 / propensity is finite, and at most 1.

    Parameters
    ----------
    propensities : float64 (n,)
    at : RowNames
        Names of the rows.
    column : str

    Raises
    ------
    UserError
        A propensity is missing, 0, negative or above 1.
    """
    wrong = ~((propensities >= LEAST) & (propensities <= 1))
    if wrong.any():
        i = int(wrong.argmax())
        got = "it is missing" if np.isnan(propensities[i]) else f"got {propensities[i]:g}"
        raise UserError(f"{at[i]}, {column}: must be above 0 and at most 1; {got}")


def check_distributions(
    probabilities: FloatArray, *, at: RowNames = ROWS, column: str = "propensities"
) -> None:
    """Check that each row holds probabilities with the sum 1.

    Parameters
    ----------
    probabilities : float64 (n, K)
    at : RowNames
        Names of the rows.
    column : str

    Raises
    ------
    UserError
        A probability is missing, negative or above 1, or a row has another sum than 1.
    """
    # where none is negative and the sum is 1, none is above 1
    if not probabilities.min(initial=0.0) >= 0:
        i = int((~(probabilities.min(axis=1) >= 0)).argmax())
        k = int((~((probabilities[i] >= 0) & (probabilities[i] <= 1 + TOLERANCE))).argmax())
        raise UserError(
            f"{at[i]}, {column}: the probability of action {k} must be between 0 and 1; got "
            f"{probabilities[i, k]:g}"
        )
    # several times as fast as a sum over a short axis
    sums = probabilities @ np.ones(probabilities.shape[1])
    wrong = np.abs(sums - 1) > TOLERANCE
    if wrong.any():
        i = int(wrong.argmax())
        raise UserError(
            f"{at[i]}, {column}: the probabilities must sum to 1; their sum is {sums[i]:.6g}"
        )


def check_logged_probability(
    distributions: FloatArray, actions: IntArray, propensities: FloatArray, *, at: RowNames = ROWS
) -> None:
    """Check that the propensity of the logged action is its entry in the vector of propensities.

    Raises
    ------
    UserError
        They differ by more than one in a million.
    """
    entries = distributions[np.arange(len(actions)), actions]
    wrong = np.abs(entries - propensities) > TOLERANCE
    if wrong.any():
        i = int(wrong.argmax())
        raise UserError(
            f"{at[i]}, propensity: must be the entry of the logged action in propensities, "
            f"{entries[i]:g}; got {propensities[i]:g}"
        )


def check_actions(
    actions: IntArray,
    n_actions: int,
    available: BoolArray | None,
    *,
    at: RowNames = ROWS,
    names: tuple[str, ...] = (),
) -> None:
    """Check that each action is one of the K actions, and a candidate of its row.

    Parameters
    ----------
    actions : int64 (n,)
    n_actions : int
        K.
    available : bool (n, K), optional
    at : RowNames
        Names of the rows.
    names : tuple of str (K,), optional

    Raises
    ------
    UserError
        An action is outside the K actions or outside the candidates of its row.
    """
    wrong = (actions < 0) | (actions >= n_actions)
    if wrong.any():
        i = int(wrong.argmax())
        raise UserError(f"{at[i]}, action: must be between 0 and {n_actions - 1}; got {actions[i]}")
    if available is not None:
        wrong = ~available[np.arange(len(actions)), actions]
        if wrong.any():
            i = int(wrong.argmax())
            name = names[actions[i]] if names else actions[i]
            raise UserError(
                f"{at[i]}, action: must be one of the candidates of its row; got {short(name)}"
            )


def check_unique(event_ids: Any, positions: IntArray | None, *, at: RowNames = ROWS) -> None:
    """Check that no event id appears twice, or twice at the same position.

    Parameters
    ----------
    event_ids : object (n,)
    positions : int64 (n,), optional
    at : RowNames
        Names of the rows.

    Raises
    ------
    UserError
        An event id appears twice.
    """
    import pandas as pd

    if positions is None and len(pd.unique(event_ids)) == len(event_ids):
        return
    # not as pandas' own text, which takes several times as long to compare
    ids = pd.Series(event_ids, dtype=object)
    keys = {"event_id": ids} | ({} if positions is None else {"position": pd.Series(positions)})
    twice = pd.DataFrame(keys).duplicated().to_numpy()
    if twice.any():
        i = int(twice.argmax())
        where = "" if positions is None else f" at position {positions[i]}"
        raise UserError(
            f"{at[i]}, event_id: must be unique; '{short(str(event_ids[i]))}' appears twice{where}"
        )
