"""Whether propensities are right within contexts: weighted features have their unweighted means."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from bandits.base.formatting import number, short
from bandits.base.types import FloatArray

from .log import DecisionLog
from .support import CONSTANT, MAX_DISTANCE, Alarm


def balance(log: DecisionLog, weights: FloatArray) -> list[Alarm]:
    """Compare the weighted mean of every feature with its mean in the log.

    Weights of right propensities are 1 on average in every context, so that they move the mean of
    no feature: E[(w - 1)(x - E x)] = 0. Propensities that are right on average over all contexts
    and wrong within them do not change the mean weight.

    Parameters
    ----------
    log : DecisionLog
        n rounds.
    weights : float64 (n,)
        Importance weights.

    Returns
    -------
    list of Alarm
        At most one, on the feature that moves most: by more standard errors than are allowed for
        the mean weight, corrected for the number of features (Bonferroni).

    References
    ----------
    Austin and Stuart (2015), Moving towards best practice when using inverse probability of
    treatment weighting (balance of the weighted sample)."""
    if log.features is None:
        return []
    n, u = len(weights), log.row_weights
    excess = weights - 1 if u is None else (weights - 1) * (u / u.mean())
    total, groups = 1 + float(excess.mean()), log.groups
    if total <= 0:
        return []
    names = log.feature_names or [f"feature {j}" for j in range(log.features.shape[1])]
    spread, found = float(excess.var()), list[tuple[float, str, float, float]]()
    for name, feature in zip(names, log.features.T, strict=True):
        mean = float(feature.mean()) if u is None else float(np.average(feature, weights=u))
        centred = feature - mean
        scale = float(np.abs(centred).max())
        # a feature that is constant but for rounding has no balance
        if scale <= CONSTANT * float(np.abs(feature).max()):
            continue
        # squares of huge and of tiny values would be lost
        centred = centred / scale
        each = excess * centred
        # a rare value of a feature may have seen no heavy weight yet
        least = spread * float(centred @ centred) / n**2
        by_event = each if groups is None else np.bincount(groups, weights=each)
        error = max(float(by_event.var()) * len(by_event) / n**2, least) ** 0.5
        moved = float(each.mean())
        if error > CONSTANT:
            found.append((abs(moved) / error, name, mean, mean + scale * moved / total))
    if not found:
        return []
    most, name, mean, weighted = max(found)
    allowed = -float(ndtri(ndtr(-MAX_DISTANCE) / len(found)))
    if most <= allowed:
        return []
    return [
        Alarm(
            "balance",
            f"Weighted, the mean of {short(name)} is {number(weighted)} instead of {number(mean)}, "
            f"{number(most)} standard errors away (allowed: {number(allowed)}): propensities are "
            "wrong in some contexts, the log hardly ever takes actions of the target there, or "
            f"{short(name)} depends on what was shown.",
        )
    ]
