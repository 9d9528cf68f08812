"""The ratio of two means, as contributions of the rounds."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray


def ratio_of_means(over: FloatArray, under: FloatArray) -> FloatArray:
    """Linearise a ratio of means V = E[y] / E[w]: V + (y - V w) / E[w].

    Parameters
    ----------
    over, under : float64 (n,)
        y and w.

    Returns
    -------
    float64 (n,)
        The mean is the ratio; the variance is that of the delta method. NaN where E[w] is 0.

    References
    ----------
    Owen (2013), Monte Carlo theory, methods and examples, section 9.2.
    """
    size = under.mean()
    if size == 0:
        return np.full(len(over), np.nan)
    ratio = over.mean() / size
    contributions: FloatArray = ratio + (over - ratio * under) / size
    return contributions
