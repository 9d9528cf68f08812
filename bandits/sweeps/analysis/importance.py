"""Importance of parameters among scattered points, from a random forest fitted to them.

References
----------
Hutter, Hoos & Leyton-Brown (2014), An efficient approach for assessing hyperparameter importance:
functional ANOVA."""

from __future__ import annotations

import math

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.sweeps.axis import Axis, Value
from bandits.sweeps.sweep import Sweep

# with fewer, a forest explains nothing
MIN_POINTS = 10
TREES = 100
# settings of the other parameters that are averaged over
SAMPLES = 256
# values of a range at which its profile is evaluated
PROFILE_POINTS = 17


def explained_shares(sweep: Sweep, means: FloatArray) -> list[float]:
    """Estimate the share of the variance between points that each axis explains by itself.

    The share is the first-order Sobol index on the surface of a random forest, with all values of
    an axis equally likely, times the out-of-bag R² of the forest: a forest that predicts nothing
    explains nothing.

    Parameters
    ----------
    sweep : Sweep
    means : float64 (P,)
        Mean of every proposed point; NaN if unknown.

    Returns
    -------
    list of float
        One share per axis, 0 to 1; NaN if fewer than ten points are known.
    """
    from sklearn.ensemble import RandomForestRegressor

    known = np.isfinite(means)
    if known.sum() < MIN_POINTS:
        return [float("nan")] * len(sweep.axes)
    at = np.array(
        [
            [position(axis, v) for axis, v in zip(sweep.axes, values, strict=True)]
            for values in sweep.proposed
        ]
    )
    generator = Streams(sweep.experiment.seed, ()).generator("proposal", part=1)
    seed = int(generator.integers(2**31))
    forest = RandomForestRegressor(TREES, min_samples_leaf=2, oob_score=True, random_state=seed)
    forest.fit(_columns(sweep, at[known[: len(at)]]), means[known])
    predictive = max(float(forest.oob_score_), 0.0)
    levels = [
        np.arange(len(a.values), dtype=float) if a.values else np.linspace(0, 1, PROFILE_POINTS)
        for a in sweep.axes
    ]
    others = np.stack([generator.choice(level, SAMPLES) for level in levels], axis=1)
    total = float(forest.predict(_columns(sweep, others)).var())
    shares = []
    for i, level in enumerate(levels):
        settings = np.repeat(others[None], len(level), axis=0)
        settings[:, :, i] = level[:, None]
        predicted = forest.predict(_columns(sweep, settings.reshape(-1, len(levels))))
        profile = predicted.reshape(len(level), -1).mean(axis=1)
        shares.append(predictive * min(float(profile.var()) / total, 1.0) if total > 0 else 0.0)
    return shares


def position(axis: Axis, value: Value) -> float:
    """Return the position of a value on its axis: 0 to 1 on the scale of a range, the index in a
    list.
    """
    if axis.values is not None:
        return float(axis.values.index(value))
    if not isinstance(value, (int, float)) or axis.low is None or axis.high is None:
        raise ValueError(f"{axis.path} is no range with {value} in it")
    low, high, v = (math.log(x) if axis.scale == "log" else x for x in (axis.low, axis.high, value))
    return (v - low) / (high - low)


def _columns(sweep: Sweep, positions: FloatArray) -> FloatArray:
    """Encode positions (N, axes) as features of a forest: one column per range, one per value of a
    list.
    """
    columns = []
    for axis, column in zip(sweep.axes, positions.T, strict=True):
        columns += (
            [column] if axis.values is None else [column == i for i in range(len(axis.values))]
        )
    return np.stack(columns, axis=1).astype(float)
