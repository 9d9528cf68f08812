"""Reward per step of each user segment over time, a plot for each segment."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.results.figures.curves import clip_band, curves
from bandits.results.figures.style import RATE, Spec, styles
from bandits.results.items.fairness import Ratio
from bandits.results.metric_registry import METRICS
from bandits.results.metrics import Band
from bandits.results.run import Run

BEST = "best choice"


def segment_rates(history: History) -> list[Band] | None:
    """Compute the reward per visit of each segment between snapshots, with its 95 % interval.

    None without segments, or in runs stored by versions without these sums. The interval is that
    of `fairness.Ratio`.
    """
    return _rates(history, "clicks")


def best_rates(history: History) -> list[Band] | None:
    """Compute the expected reward per visit of each segment if the best was always chosen."""
    return _rates(history, "best_value")


def _rates(history: History, of: str) -> list[Band] | None:
    if (kept := history.segment_sums) is None:
        return None
    size = kept.reached(history.step)
    sums = np.diff(kept.sums[:size, history.alive], axis=0)
    visits, amounts = sums[..., 0], sums[..., kept.NAMES.index(of)]
    ends = kept.grid[1:size].astype(np.float64)
    return [_band(ends, amounts[..., g], visits[..., g]) for g in range(visits.shape[2])]


def _band(x: FloatArray, amounts: FloatArray, visits: FloatArray) -> Band:
    """Divide sums (P, R) at each of P points; without those at which nothing was seen."""
    seen = visits.sum(axis=1) > 0
    found = [
        Ratio.of(own, times).estimate()
        for own, times in zip(amounts[seen], visits[seen], strict=True)
    ]
    # a single replication, and equal ones, have no interval
    values = np.array(found).reshape(-1, 3).T
    low, high = (np.where(np.isnan(end), values[0], end) for end in values[1:])
    return Band(x[seen], values[0], low, high, amounts.shape[1])


def plots(result: Run) -> list[Spec]:
    """Draw the agents' reward per visit of each segment, beside that of the best choice; none
    without segments, before the first snapshot, and where a log is replayed.
    """
    experiment = result.experiment
    rates = {label: segment_rates(history) for label, history in result.histories.items()}
    found = {label: own for label, own in rates.items() if own is not None and len(own[0].x)}
    if not found or experiment.offers("replay"):
        return []
    metric = METRICS["ctr"].of(experiment)
    first = result.histories[max(found, key=lambda label: result.histories[label].step)]
    best = best_rates(first) if experiment.offers("truth") else None
    binary = experiment.offers("binary")
    note = (
        f"{metric.title} for these visitors, between two snapshots. Dashed: the expected value of "
        "the best choice. Bands: 95 % confidence interval of the mean over replications."
    )
    return [
        curves(
            {
                label: clip_band(own[g], 0.0, 1.0) if binary else own[g]
                for label, own in found.items()
            },
            styles(experiment),
            title=name,
            note=note,
            y_title=metric.unit,
            y_format=RATE,
            references={} if best is None else {BEST: best[g]},
            end_labels=True,
        )
        for g, name in enumerate(experiment.simulator_class().segment_names())
    ]
