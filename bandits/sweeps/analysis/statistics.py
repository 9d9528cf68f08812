"""Statistics over rows with missing values: means, variances and first-order Sobol indices."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray


def row_mean(values: FloatArray) -> FloatArray:
    """Mean over the known replications of ``values (P, R)``, (P,); NaN without any."""
    n = np.isfinite(values).sum(axis=1)
    return np.where(n > 0, np.nansum(values, axis=1) / np.maximum(n, 1), np.nan)


def row_variance(values: FloatArray) -> FloatArray:
    """Sample variance over the known replications of ``values (P, R)``, (P,).

    NaN with fewer than two.
    """
    n = np.isfinite(values).sum(axis=1)
    squares = np.nansum((values - row_mean(values)[:, None]) ** 2, axis=1)
    return np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan)


def noise_variance(numbers: FloatArray) -> float:
    """Estimate the sampling variance of a point's mean from ``numbers (P, R)``, without the common
    row effects.
    """
    row_effect = np.nanmean(numbers, axis=0, keepdims=True) if np.isfinite(numbers).any() else 0.0
    var, n = row_variance(numbers - row_effect), np.isfinite(numbers).sum(axis=1)
    each = (var / np.maximum(n, 1))[np.isfinite(var)]
    return float(each.mean()) if len(each) else 0.0


def sobol_index(grid: FloatArray, others: tuple[int, ...], noise: float) -> float:
    """First-order Sobol index of the axis of a grid that is not in ``others``, corrected for
    sampling noise.

    Parameters
    ----------
    grid : float64
        Mean of every point, one dimension per axis.
    others : tuple of int
        All other axes.
    noise : float
        Sampling variance of a point's mean.
    """
    profile = grid.mean(axis=others)
    total = float(grid.var()) - noise * (1 - 1 / grid.size)
    explained = float(profile.var()) - noise * len(profile) / grid.size * (1 - 1 / len(profile))
    return min(max(explained, 0.0) / total, 1.0) if total > 0 else 0.0
