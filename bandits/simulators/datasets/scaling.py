"""Turn columns of a table into features: code texts, scale, and add a constant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from bandits.base.params import param
from bandits.base.types import FloatArray

Scale = Literal["norm", "none", "minmax", "standard"]
# text that stands for a missing value
MISSING = "?"


def coded(columns: Iterable[Any]) -> FloatArray:
    """Return columns as features, float64 (n, d): numbers unchanged, texts as alphabetical ranks.

    What is missing, "?" or a number that is not finite, becomes -1.
    """
    features = np.column_stack([_codes(column) for column in columns])
    return np.where(np.isfinite(features), features, -1.0)


def _codes(column: Any) -> FloatArray:
    values = np.asarray(column)
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    text = [str(value).strip() for value in values]
    rank = {value: float(i) for i, value in enumerate(sorted(set(text) - {MISSING}))}
    return np.array([rank.get(value, -1.0) for value in text])


def scale_param(more: str = "") -> Any:
    """Declare how the features of a table are scaled; ``more`` ends the help."""
    return param(
        "standard",
        title="Feature scaling",
        basic=True,
        help=(
            "standard: each feature with mean 0 and standard deviation 1. minmax: each feature "
            "from 0 to 1 over the table. norm: each row is divided by its Euclidean norm; features "
            "with small numbers then count little. none: as in the table; features with large "
            f"numbers dominate the exploration bonuses.{more}"
        ),
    )


def constant_param() -> Any:
    """Declare whether a constant feature is added to those of a table."""
    return param(
        True,
        title="Constant feature",
        basic=True,
        help=(
            "Add a feature that is always 1, after scaling: the intercept of a linear model. "
            "Without it, the model predicts 0 for the average row of standardised features."
        ),
    )


def prepared(features: FloatArray, scale: Scale, *, constant: bool) -> FloatArray:
    """Return scaled features, with a last column of ones if ``constant``: float64 (n, d or d + 1).

    The constant is added after scaling, which would turn it into 0.
    """
    found = scaled(features, scale)
    return np.column_stack([found, np.ones(len(found))]) if constant else found


def scaled(features: FloatArray, scale: Scale) -> FloatArray:
    """Return scaled features, float64 (n, d).

    ``norm`` divides each row by its Euclidean norm, which needs no statistics. ``minmax`` and
    ``standard`` transform each column by statistics of the data set as a whole: they are then the
    same in every replication, for every agent and at every step, do not depend on what was chosen,
    and involve no labels. Statistics of a log would differ between logs, and experiments without a
    log would have none. In production they come from past data instead. A missing value is scaled
    as the number -1 that stands for it; a constant column becomes 0.

    Parameters
    ----------
    features : float64 (n, d)
    scale : {"norm", "none", "minmax", "standard"}
        ``minmax``: from 0 to 1. ``standard``: mean 0 and standard deviation 1, that of a
        population.
    """
    if scale == "none":
        return features
    if scale == "norm":
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        return np.asarray(features / np.where(norms == 0, 1.0, norms))
    low, high = features.min(axis=0), features.max(axis=0)
    centre, spread = (
        (low, high - low) if scale == "minmax" else (features.mean(axis=0), features.std(axis=0))
    )
    # the mean of equal numbers can differ from them by rounding
    constant = (low == high) | (spread == 0)
    return np.where(constant, 0.0, (features - centre) / np.where(constant, 1.0, spread))
