"""Snapshots of an agent during a run (spectrum, calibration, belief check) and the steps at which
they are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandits.base.types import FloatArray, IntArray, OfflineTraining

# at most, per run
SNAPSHOTS = 40
# nominal levels of the intervals whose calibration is stored
LEVELS = (0.5, 0.8, 0.95)
# of the PIT histogram
BINS = 10


def nice_spacing(steps: int, points: int) -> int:
    """Return the smallest of 1, 2, 10, 20, 100, 200, ...

    that covers ``steps`` steps with at most ``points`` points.

    Each divides the next, so that the grid of a longer run is a subset of that of a shorter one: a
    finished run that is continued has the same points as one of that length from the start."""
    spacing, factor = 1, 2
    while steps > spacing * points:
        spacing, factor = spacing * factor, 7 - factor
    return spacing


def grid_points(steps: int, spacing: int) -> IntArray:
    """Return 0, spacing, 2 spacing, ... and ``steps``, int64."""
    grid = np.arange(0, steps + 1, spacing, dtype=np.int64)
    return grid if grid[-1] == steps else np.append(grid, steps)


def snapshot_steps(steps: int) -> list[int]:
    """Return the steps at which snapshots are taken, including the last step."""
    return [int(s) for s in grid_points(steps, nice_spacing(steps, SNAPSHOTS))[1:]]


@dataclass(slots=True)
class Calibration:
    """Shares of true expected rewards inside an agent's intervals at one step, float64 (R,
    levels).
    """

    step: int
    inside: FloatArray


@dataclass(slots=True)
class BeliefCheck:
    """Estimates of an agent against the truth at one step, over the next rounds: float64 (R, 3 +
    `BINS`).

    Columns: standard deviation of the candidate with the highest score (NaN: none stated); mean
    squared error of the estimated means; variance of the true expected rewards within a round; then
    the PIT histogram, the shares of the truths in each tenth of the agent's distributions (NaN: no
    distributions)."""

    step: int
    values: FloatArray

    @property
    def uncertainty(self) -> FloatArray:
        """Standard deviation of the candidate with the highest score, float64 (R,)."""
        return self.values[:, 0]

    @property
    def explained(self) -> FloatArray:
        """Explained variance of the true expected rewards within a round (R^2), float64 (R,): at
        most 1.
        """
        variance = self.values[:, 2][np.isfinite(self.values[:, 2])]
        if not variance.any():
            return np.full(len(self.values), np.nan)
        return np.asarray(1 - self.values[:, 1] / variance.mean())

    @property
    def pit_histogram(self) -> FloatArray:
        """Shares of the truths by quantile of the agent's distributions, float64 (R, `BINS`)."""
        return self.values[:, 3:]


@dataclass(slots=True)
class ExplorationCheck:
    """Decisions of an agent at one step against its own best estimates, over the next rounds:
    float64 (R, 5).

    Columns: share of the shown items that are not among those with the highest estimated means;
    expected reward of what was chosen, of the highest estimated means (the greedy choice), of the
    optimum, and of a uniformly random choice."""

    step: int
    values: FloatArray

    @property
    def explored(self) -> FloatArray:
        """Share of the shown items that the greedy choice does not contain, float64 (R,)."""
        return self.values[:, 0]

    @property
    def chosen(self) -> FloatArray:
        """Expected reward of the agent's choice, float64 (R,)."""
        return self.values[:, 1]

    @property
    def greedy(self) -> FloatArray:
        """Expected reward of the greedy choice, float64 (R,)."""
        return self.values[:, 2]

    @property
    def best(self) -> FloatArray:
        """Expected reward of the optimal choice, float64 (R,)."""
        return self.values[:, 3]

    @property
    def random(self) -> FloatArray:
        """Expected reward of a uniformly random choice, float64 (R,)."""
        return self.values[:, 4]


@dataclass(slots=True)
class SegmentCheck:
    """Decisions for each user segment against an agent's own best estimates, over the next rounds:
    (R, G, 2).

    Sum of the shares of the shown items that are not among those with the highest estimated means,
    and rounds."""

    step: int
    values: FloatArray


@dataclass(slots=True)
class Spectrum:
    """Eigenvalues of the design matrix at one step, float64 (R, M, m), descending, NaN-padded."""

    step: int
    eigenvalues: FloatArray


def training_arrays(training: OfflineTraining) -> dict[str, Any]:
    """Return a training on a log as arrays, by the keys under which histories store them."""
    return {f"training.{name}": np.array(value) for name, value in training._asdict().items()}


def read_training(arrays: Mapping[str, Any]) -> OfflineTraining | None:
    """Return what `training_arrays` was given; None where there is none."""
    if "training.interactions" not in arrays:
        return None
    fields = {name: arrays[f"training.{name}"] for name in OfflineTraining._fields}
    whole = {name: int(fields[name]) for name in ("interactions", "held_out")}
    return OfflineTraining(**{**fields, **whole, "seconds": float(fields["seconds"])})
