"""Empirical Bayes prior of the click-through rates of several items: a Beta distribution by the method of moments."""

from __future__ import annotations

from typing import NamedTuple

from bandits.base.types import FloatArray

LEAST_CLICKS, LEAST_MISSES = 0.1, 0.5  # of a prior; below, draws in double precision tie at 0 or 1
STRONGEST = 1000.0  # exposures that a prior counts as, at most


class BetaPrior(NamedTuple):
    """Pseudo-clicks and pseudo-misses."""

    clicks: float
    misses: float


def beta_prior(shows: FloatArray, clicks: FloatArray) -> BetaPrior | None:
    """Estimate the Beta distribution that the rates of several items are drawn from; None with too few data.

    The variance of the rates is the variance between items, beyond that of clicks within items (one-way analysis of
    variance with unequal numbers of observations) [1]_.

    Parameters
    ----------
    shows, clicks : float64 (n,)

    References
    ----------
    .. [1] Kleinman (1973), Proportions with extraneous variance: single and independent samples.
    """
    seen = shows > 0
    n, c = shows[seen], clicks[seen]
    items, total = len(n), float(n.sum())
    if items < 2 or total <= items:
        return None
    rate, rates = float(c.sum()) / total, c / n
    within = float((n * rates * (1 - rates)).sum()) / (total - items)
    between = float((n * (rates - rate) ** 2).sum()) / (items - 1)
    size = (total - float((n**2).sum()) / total) / (items - 1)
    variance = (between - within) / size
    strength = STRONGEST if variance * STRONGEST <= within else within / variance
    return BetaPrior(max(rate * strength, LEAST_CLICKS), max((1 - rate) * strength, LEAST_MISSES))
