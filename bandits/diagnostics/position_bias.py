"""What a slot does to an item's clicks, from clicks alone."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray


def examination(looks: FloatArray, clicks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How often an item that is looked at is clicked in each slot, as against the first: b_k and its standard error.

    Users look down a slate and stop at the first click, so whoever comes far has not been tempted above, and clicks per
    look mix what the slot does with which items are left. With a chance of its own for every item, b_k p_i in slot k,
    who comes far tells no more: the likelihood is a product over looks. It is maximised by turns, p given b and b given
    p, with clicks taken for Poisson counts, for which the many p_i leave b without bias. Errors are those of b with
    every p_i unknown.

    Parameters
    ----------
    looks, clicks : float64 (n, S)
        Of each of n items (the same item for the same user) in each slot.

    Returns
    -------
    b, error : float64 (S,)
        b_1 = 1. NaN where nobody looked, and throughout if nothing was clicked in the first slot.
    """
    said = clicks.any(axis=1)  # an item without clicks tells nothing of slots
    looks, clicks = looks[said], clicks[said]
    per_item, per_slot = clicks.sum(axis=1), clicks.sum(axis=0)
    b, error = np.ones(looks.shape[1]), np.zeros(looks.shape[1])
    if not per_slot[0]:
        return np.full(len(b), np.nan), np.full(len(b), np.nan)
    for _ in range(2000):
        p = per_item / (looks @ b)
        new = per_slot / np.maximum(p @ looks, 1e-300)
        before, b = b, new / new[0]
        if np.abs(b - before).max() < 1e-10:
            break
    expected = looks * p[:, None] * b
    information = np.diag(expected.sum(axis=0)) - expected.T @ (expected / expected.sum(axis=1, keepdims=True))
    known = np.flatnonzero(per_slot)[1:]
    error[known] = b[known] * np.sqrt(np.diag(np.linalg.pinv(information[np.ix_(known, known)])))
    silent = per_slot == 0
    error[silent] = 1 / np.maximum(p @ looks, 1e-300)[silent]  # as much as one click would have made of it
    nobody = ~looks.any(axis=0)
    b[nobody] = error[nobody] = np.nan
    return b, error
