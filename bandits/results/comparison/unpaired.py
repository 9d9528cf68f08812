"""Compare agents on a replayed log, where each counts other events: rates with intervals, nothing
paired.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from bandits.experiments.history import History
from bandits.results.metrics import Estimate, click_rate
from bandits.results.run import Run

from .paired_tests import family_of


class RateDifference(NamedTuple):
    """Reward per counted event of agent a minus that of b.

    Attributes
    ----------
    difference : Estimate
        With its interval by Welch's t; NaN ends with fewer than two replications of one of them.
    p_value : float
        Two-sided; 1 without an interval or without variance.
    """

    difference: Estimate
    p_value: float


def compare(a: History, b: History, *, family: int = 1) -> RateDifference:
    """Compare two agents by their rates in each replication, as independent samples.

    Interval and p-value hold together with those of ``family`` comparisons (Bonferroni). The
    replications replay separate parts of the log. Two agents may count the same event of a
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
    half = float(stdtrit(freedom, 1 - 0.025 / family)) * error
    p_value = min(1.0, family * float(2 * stdtr(freedom, -abs(mean) / error)))
    return RateDifference(Estimate(mean, mean - half, mean + half), p_value)


def compare_pairs(result: Run, labels: Sequence[str]) -> dict[tuple[str, str], RateDifference]:
    """Compare agents of a run as `paired_tests.compare_pairs` does."""
    histories, family = result.histories, family_of(result.experiment)
    return {
        (a, b): compare(histories[a], histories[b], family=family)
        for a, b in itertools.combinations(labels, 2)
    }
