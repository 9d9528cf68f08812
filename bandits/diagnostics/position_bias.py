"""Estimate position bias from clicks alone."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray


def estimate_position_bias(impressions: FloatArray, clicks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimate each slot's click probability relative to slot 1, given examination, by maximum likelihood.

    Users scan a slate downwards and stop at the first click (cascade model), so those who reach a lower slot have
    rejected the items above it, and clicks per examination confound the slot with the items that remain. With a click
    probability b_k p_i of item i in slot k, the likelihood is a product over examinations. It is maximised by
    alternating between p given b and b given p, with clicks as Poisson counts, for which the many nuisance parameters
    p_i leave b without bias. The standard errors are those of b with every p_i unknown.

    Parameters
    ----------
    impressions, clicks : float64 (n, S)
        Examinations and clicks of each of n items (an item for one user) in each slot.

    Returns
    -------
    b, error : float64 (S,)
        b_1 = 1. NaN for slots that were never examined, and for all if slot 1 was never clicked.
    """
    informative = clicks.any(axis=1)  # an item without clicks carries no information about slots
    impressions, clicks = impressions[informative], clicks[informative]
    per_item, per_slot = clicks.sum(axis=1), clicks.sum(axis=0)
    b, error = np.ones(impressions.shape[1]), np.zeros(impressions.shape[1])
    if not per_slot[0]:
        return np.full(len(b), np.nan), np.full(len(b), np.nan)
    for _ in range(2000):
        p = per_item / (impressions @ b)
        new = per_slot / np.maximum(p @ impressions, 1e-300)
        before, b = b, new / new[0]
        if np.abs(b - before).max() < 1e-10:
            break
    expected = impressions * p[:, None] * b
    information = np.diag(expected.sum(axis=0)) - expected.T @ (expected / expected.sum(axis=1, keepdims=True))
    clicked = np.flatnonzero(per_slot)[1:]
    error[clicked] = b[clicked] * np.sqrt(np.diag(np.linalg.pinv(information[np.ix_(clicked, clicked)])))
    unclicked = per_slot == 0
    error[unclicked] = 1 / np.maximum(p @ impressions, 1e-300)[unclicked]  # the estimate that one click would give
    unexamined = ~impressions.any(axis=0)
    b[unexamined] = error[unexamined] = np.nan
    return b, error
