"""Snapshots of an agent during a run (spectrum, calibration, belief check) and the steps at which they are taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bandits.base.types import FloatArray, IntArray

SNAPSHOTS = 40  # at most, per run
LEVELS = (0.5, 0.8, 0.95)  # nominal levels of the intervals whose calibration is stored
BINS = 10  # of the PIT histogram


def nice_spacing(steps: int, points: int) -> int:
    """Smallest of 1, 2, 10, 20, 100, 200, ... that needs at most ``points`` points for ``steps`` steps.

    Each divides the next, so that the grid of a longer run is part of that of a shorter one: a finished run can be
    continued and has the same points as if it had been that long from the start.
    """
    spacing, factor = 1, 2
    while steps > spacing * points:
        spacing, factor = spacing * factor, 7 - factor
    return spacing


def grid_points(steps: int, spacing: int) -> IntArray:
    """0, spacing, 2 spacing, ... and ``steps`` itself."""
    grid = np.arange(0, steps + 1, spacing, dtype=np.int64)
    return grid if grid[-1] == steps else np.append(grid, steps)


def snapshot_steps(steps: int) -> list[int]:
    """Steps at which spectra are taken, the last one included."""
    return [int(s) for s in grid_points(steps, nice_spacing(steps, SNAPSHOTS))[1:]]


@dataclass(slots=True)
class Calibration:
    """How many of the truths lay inside an agent's intervals at one step, float64 (R, levels): shares of 1."""

    step: int
    inside: FloatArray


@dataclass(slots=True)
class BeliefCheck:
    """How an agent stood at one step, over the candidates of the next rounds: float64 (R, 3 + `BINS`).

    Columns: how much doubt there was in what it would have shown first (NaN: none stated); mean squared error of what
    it expected; variance of the truths within a round; then shares of the truths by their place in its beliefs, a
    tenth of these each (NaN: no beliefs).
    """

    step: int
    values: FloatArray

    @property
    def uncertainty(self) -> FloatArray:
        """(R,)."""
        return self.values[:, 0]

    @property
    def explained(self) -> FloatArray:
        """Share of the variance of the truths within a round that it foresaw, (R,): at most 1."""
        variance = self.values[:, 2][np.isfinite(self.values[:, 2])]
        if not variance.any():
            return np.full(len(self.values), np.nan)
        return np.asarray(1 - self.values[:, 1] / variance.mean())

    @property
    def pit_histogram(self) -> FloatArray:
        """(R, `BINS`)."""
        return self.values[:, 3:]


@dataclass(slots=True)
class Spectrum:
    """Eigenvalues of the design matrix at one step, float64 (R, M, m), descending, NaN-padded."""

    step: int
    eigenvalues: FloatArray
