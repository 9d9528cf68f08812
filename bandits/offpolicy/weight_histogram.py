"""Importance weights: how they are distributed, and the threshold for them that the data choose
(SLOPE++).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from bandits.base.types import FloatArray

BINS = 40
# smaller weights are counted as this one: they contribute next to nothing
LEAST = 0.001
# weights that the bins always reach: 1 is what equal policies have
SHOWN = 0.1, 10.0


class Histogram(NamedTuple):
    """A histogram of importance weights over bins of equal width in log w.

    Attributes
    ----------
    edges : sequence of float (B + 1,)
        Of the B bins.
    decisions : sequence of float (B,)
        Share of all decisions in each bin.
    weight : sequence of float (B,)
        Share of the sum of weights.
    zero : float
        Share of decisions with the weight 0: the target would not have chosen what was shown.
    """

    edges: Sequence[float]
    decisions: Sequence[float]
    weight: Sequence[float]
    zero: float


def histogram(weights: FloatArray) -> Histogram:
    """Compute the histogram of n importance weights, float64 (n,).

    Those below `LEAST` are in the first bin.
    """
    positive = weights[weights > 0]
    if not len(positive):
        return Histogram([], [], [], 1.0)
    low, high = (
        np.log(min(max(positive.min(), LEAST), SHOWN[0])),
        np.log(max(positive.max(), SHOWN[1])),
    )
    edges = np.linspace(low, high, BINS + 1)
    place = np.clip(
        ((np.log(positive) - edges[0]) / (edges[1] - edges[0])).astype(np.int64), 0, BINS - 1
    )
    decisions = np.bincount(place, minlength=BINS) / len(weights)
    weight = np.bincount(place, weights=positive, minlength=BINS) / positive.sum()
    return Histogram(
        np.exp(edges).tolist(),
        decisions.tolist(),
        weight.tolist(),
        1 - len(positive) / len(weights),
    )


WIDTH_FACTOR = float(np.sqrt(6)) - 1
POINTS = 20


def weight_grid(weights: FloatArray, *, square: bool = False) -> FloatArray:
    """List thresholds for weights, from the median of those above 0 to the largest, and no
    threshold at all.

    Parameters
    ----------
    weights : float64 (n,)
    square : bool
        The thresholds of the squared weights, for shrinkage.

    Returns
    -------
    float64 (at most POINTS + 1,)
        Ascending; the last is infinite.
    """
    positive = weights[weights > 0]
    if not len(positive):
        return np.array([np.inf])
    low, high = np.median(positive), positive.max()
    grid = np.unique(np.geomspace(low, high, POINTS)) if high > low else np.array([high])
    return np.append(grid**2 if square else grid, np.inf)


def slope(
    estimate: Callable[[float], FloatArray],
    values: Sequence[float] | FloatArray,
    *,
    level: float = 0.95,
) -> tuple[float, FloatArray]:
    """Choose the value with the narrowest interval that agrees with all wider ones.

    Candidates are sorted by decreasing half width c of their confidence intervals. The last one is
    chosen before the first for which |V_i - V_j| <= c_i + (sqrt(6) - 1) c_j fails with an earlier
    j: from there on bias shows.

    Parameters
    ----------
    estimate : callable
        From a value to contributions, float64 (n,).
    values : sequence of float
    level : float
        Level of the one-sided Student intervals, between 0 and 1.

    Returns
    -------
    value : float
    contributions : float64 (n,)

    References
    ----------
    Tucker, Lee (2021), Improved estimator selection for off-policy evaluation, Algorithm 1
    (SLOPE++). Su, Srinath, Krishnamurthy (2020), Adaptive estimator selection for off-policy
    evaluation, equation 3."""
    middles, widths = np.empty(len(values)), np.empty(len(values))
    for i, value in enumerate(values):
        contributions = estimate(value)
        n = len(contributions)
        middles[i] = contributions.mean()
        widths[i] = (
            stdtrit(n - 1, level) * contributions.std() / np.sqrt(max(n - 1, 1))
            if n > 1
            else np.inf
        )
    order = np.argsort(-widths, kind="stable")
    chosen = order[0]
    for rank, i in enumerate(order[1:], start=1):
        wider = order[:rank]
        if not (
            np.abs(middles[i] - middles[wider]) <= widths[i] + WIDTH_FACTOR * widths[wider]
        ).all():
            break
        chosen = i
    return float(values[chosen]), estimate(values[chosen])
