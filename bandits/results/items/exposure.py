"""Exposure of items: the share of the less shown half per user segment, and of the most shown item."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray
from bandits.experiments.history import History


def less_shown_half(history: History) -> FloatArray | None:
    """Return the share of the shows of each segment that the half of the items got which it saw least, float64 (R, G).

    50 % under uniform choice, with enough shows; NaN without shows. None where segments are not counted.
    """
    if history.segments is None or (at := history.segments.reached(history.step) - 1) < 0:
        return None
    shown = np.sort(history.segments.counts[at], axis=2)  # (R, G, n_items)
    total, half = shown.sum(axis=2), shown[:, :, : shown.shape[2] // 2].sum(axis=2)
    return np.asarray(np.divide(half, total, out=np.full(half.shape, np.nan), where=total > 0))


def smallest_segment(history: History) -> int | None:
    """Return the index of the segment with the fewest visits; None where segments are not counted."""
    if history.segments is None or (at := history.segments.reached(history.step) - 1) < 0:
        return None
    return int(history.segments.counts[at].sum(axis=(0, 2)).argmin())


def most_shown(history: History) -> FloatArray:
    """Return the share of all shows of the item that was shown most, float64 (R,); NaN without shows."""
    shown = history.counts[history.count_size - 1]
    total = shown.sum(axis=1)
    return np.asarray(np.divide(shown.max(axis=1), total, out=np.full(len(total), np.nan), where=total > 0))
