"""The metrics by which sweeps rank points: one number per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray, IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import metrics

FINAL_SHARE = 0.2  # of the steps, over which the final click-through rate is measured


class RunMetric(NamedTuple):
    """A metric with one value per row.

    Attributes
    ----------
    title, unit : str
    gap_unit : str
        Unit of a difference between two points.
    sign : int
        1 if larger values are better, -1 if smaller values are.
    of : callable
        Computes the values, float64 (R,), from a history.
    """

    title: str
    unit: str
    sign: int
    of: Callable[[History], FloatArray]
    gap_unit: str = "clicks per step"

    @property
    def short_unit(self) -> str:
        """The unit without its explanation."""
        return self.unit.split(",")[0]


def final_start(grid: IntArray) -> int:
    """Return the index of the grid point at which the final part of a run begins."""
    return min(int(np.searchsorted(grid, grid[-1] * (1 - FINAL_SHARE))), len(grid) - 2)


def _final_click_rate(history: History) -> FloatArray:
    grid, clicks = history.grid, history.sums["clicks"]
    at = final_start(grid)
    return np.asarray((clicks[-1] - clicks[at]) / (grid[-1] - grid[at]))


METRICS: dict[str, RunMetric] = {
    "click_rate": RunMetric("Click-through rate", "clicks per step", 1, metrics.click_rate),
    "late_click_rate": RunMetric(
        "Final click-through rate", "clicks per step, last fifth of the run", 1, _final_click_rate
    ),
    "pseudo_regret": RunMetric(
        "Cumulative regret",
        "expected clicks lost",
        -1,
        lambda h: metrics.total(h, "best_value") - metrics.total(h, "value"),
        "expected clicks",
    ),
    "learned": RunMetric(
        "Share of the oracle's gain", "share, 0: random, 1: oracle", 1, metrics.oracle_share, "of the gain"
    ),
}


def metric_of(experiment: Experiment, name: str) -> RunMetric:
    """Return a metric in the words of an experiment's simulator: points instead of clicks."""
    simulator, metric = experiment.simulator_class(), METRICS[name]
    rate = simulator.rate_title
    title = metric.title.replace("Click-through rate", rate).replace("click-through rate", rate.lower())
    unit, gap_unit = (text.replace("clicks", simulator.reward_noun) for text in (metric.unit, metric.gap_unit))
    return metric._replace(title=title, unit=unit, gap_unit=gap_unit)
