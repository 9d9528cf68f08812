"""How importance weights are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray

BINS = 40
LEAST = 0.001  # smaller weights are counted as this one: they contribute next to nothing
SHOWN = 0.1, 10.0  # weights that the bins always reach: 1 is what equal policies have


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
    """Compute the histogram of n importance weights, float64 (n,); those below `LEAST` are in the first bin."""
    positive = weights[weights > 0]
    if not len(positive):
        return Histogram([], [], [], 1.0)
    low, high = np.log(min(max(positive.min(), LEAST), SHOWN[0])), np.log(max(positive.max(), SHOWN[1]))
    edges = np.linspace(low, high, BINS + 1)
    place = np.clip(((np.log(positive) - edges[0]) / (edges[1] - edges[0])).astype(np.int64), 0, BINS - 1)
    decisions = np.bincount(place, minlength=BINS) / len(weights)
    weight = np.bincount(place, weights=positive, minlength=BINS) / positive.sum()
    return Histogram(np.exp(edges).tolist(), decisions.tolist(), weight.tolist(), 1 - len(positive) / len(weights))
