"""What each parameter explains where points are scattered: read off a random forest that is fitted to them."""

from __future__ import annotations

import math

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.sweeps.sweep import Axis, Sweep, Value

FEWEST = 10  # points that a forest can say something of
TREES = 100
OTHERS = 256  # settings of the other parameters that are averaged over
ALONG = 17  # values of a range


def shares(sweep: Sweep, means: FloatArray) -> list[float]:
    """Of every axis: its first-order Sobol index on the surface of a forest, its values being equally likely.

    Times what the forest foretells of points that its trees have not seen (out of bag): where nothing matters, its
    surface is chance and foretells nothing. On a grid the surface is the points themselves, and chance is taken off.

    Parameters
    ----------
    sweep : Sweep
    means : float64 (P,)
        Of the points that have been proposed; NaN where there is none.

    Returns
    -------
    list of float
        NaN where fewer than ten points are known.
    """
    from sklearn.ensemble import RandomForestRegressor

    known = np.isfinite(means)
    if known.sum() < FEWEST:
        return [float("nan")] * len(sweep.axes)
    at = np.array([[place(axis, v) for axis, v in zip(sweep.axes, values, strict=True)] for values in sweep.proposed])
    dice = Streams(sweep.experiment.seed, ()).generator("proposal", part=1)
    forest = RandomForestRegressor(TREES, min_samples_leaf=2, oob_score=True, random_state=int(dice.integers(2**31)))
    forest.fit(_columns(sweep, at[known[: len(at)]]), means[known])
    foretold = max(float(forest.oob_score_), 0.0)
    levels = [np.arange(len(a.values), dtype=float) if a.values else np.linspace(0, 1, ALONG) for a in sweep.axes]
    others = np.stack([dice.choice(level, OTHERS) for level in levels], axis=1)
    whole = float(forest.predict(_columns(sweep, others)).var())
    found = []
    for i, level in enumerate(levels):
        asked = np.repeat(others[None], len(level), axis=0)
        asked[:, :, i] = level[:, None]
        profile = forest.predict(_columns(sweep, asked.reshape(-1, len(levels)))).reshape(len(level), -1).mean(axis=1)
        found.append(foretold * min(float(profile.var()) / whole, 1.0) if whole > 0 else 0.0)
    return found


def place(axis: Axis, value: Value) -> float:
    """Where a value lies on an axis: 0 to 1 on the scale of a range, its position in a list."""
    if axis.values is not None:
        return float(axis.values.index(value))
    if not isinstance(value, (int, float)) or axis.low is None or axis.high is None:
        raise ValueError(f"{axis.path} is no range with {value} in it")
    low, high, v = (math.log(x) if axis.scale == "log" else x for x in (axis.low, axis.high, value))
    return (v - low) / (high - low)


def _columns(sweep: Sweep, places: FloatArray) -> FloatArray:
    """Places (N, axes) as a forest takes them: a column for each range, one for each value of a list."""
    found = []
    for axis, column in zip(sweep.axes, places.T, strict=True):
        found += [column] if axis.values is None else [column == i for i in range(len(axis.values))]
    return np.stack(found, axis=1).astype(float)
