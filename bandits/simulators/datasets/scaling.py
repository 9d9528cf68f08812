"""Scale the features of a data set."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bandits.base.types import FloatArray

Scale = Literal["norm", "none", "minmax", "standard"]


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
