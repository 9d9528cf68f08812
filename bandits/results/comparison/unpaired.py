"""Compare agents on a replayed log, where each counts other events: rates with intervals, nothing
paired.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

from bandits.experiments.history import History
from bandits.results.metrics import Estimate, click_rate

from .paired_tests import holm


class RateDifference(NamedTuple):
    """Reward per counted event of agent a minus that of b.

    Attributes
    ----------
    difference : Estimate
        With its interval by Welch's t; NaN ends with fewer than two replications of one of them.
    p_value : float
        Two-sided; 1 without an interval or without variance.
    freedom : float
        Degrees of freedom of the interval (Welch); NaN without one.
    """

    difference: Estimate
    p_value: float
    freedom: float = math.nan


def compare(a: History, b: History, level: float = 0.95) -> RateDifference:
    """Compare two agents by their rates in each replication, as independent samples.

    The replications replay separate parts of the log. Two agents may count the same event of a
    part; that makes their rates alike and the interval too wide, not too narrow.

    References
    ----------
    Welch (1947), The generalization of "Student's" problem when several different population
    variances are involved."""
    from scipy.special import stdtr, stdtrit

    # without NaN: nothing counted
    rates = [rate[~(rate != rate)] for rate in (click_rate(a), click_rate(b))]
    if not all(len(rate) for rate in rates):
        return RateDifference(Estimate(math.nan, math.nan, math.nan), 1.0)
    mean = float(rates[0].mean() - rates[1].mean())
    if min(len(rate) for rate in rates) < 2:
        return RateDifference(Estimate(mean, math.nan, math.nan), 1.0)
    parts = [float(rate.var(ddof=1)) / len(rate) for rate in rates]
    if not (error := math.sqrt(sum(parts))):
        return RateDifference(Estimate(mean, math.nan, math.nan), 1.0)
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(rate) - 1) for part, rate in zip(parts, rates, strict=True)
    )
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    p_value = float(2 * stdtr(freedom, -abs(mean) / error))
    return RateDifference(Estimate(mean, mean - half, mean + half), p_value, freedom)


def corrected(found: RateDifference, p_value: float) -> Estimate:
    """Widen the interval of a difference to agree with a corrected p-value (Holm).

    As in `paired_tests.corrected`: it contains zero if and only if ``p_value`` is above .05.
    """
    from scipy.special import stdtrit

    d = found.difference
    if not math.isfinite(d.low) or p_value <= found.p_value:
        return d
    share = max(found.p_value / p_value, 1e-6)
    wider = stdtrit(found.freedom, 1 - 0.025 * share) / stdtrit(found.freedom, 0.975)
    half = (d.high - d.low) / 2 * float(wider)
    return Estimate(d.mean, d.mean - half, d.mean + half)


def compare_pairs(
    histories: Mapping[str, History],
) -> dict[tuple[str, str], tuple[RateDifference, float]]:
    """Compare all pairs of agents, each with its p-value corrected for all pairs (Holm)."""
    pairs = list(itertools.combinations(histories, 2))
    found = [compare(histories[a], histories[b]) for a, b in pairs]
    levels = holm([one.p_value for one in found])
    return {pair: (one, p) for pair, one, p in zip(pairs, found, levels, strict=True)}
