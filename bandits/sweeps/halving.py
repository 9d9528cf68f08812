"""Successive halving by paired tests: which rows to run next, and which points to eliminate.

References
----------
Jamieson & Talwalkar (2016), Non-stochastic best arm identification and hyperparameter optimization:
the doubling. Birattari et al. (2002), A racing algorithm for configuring metaheuristics:
elimination by statistical tests."""

from __future__ import annotations

import numpy as np

from bandits.results.comparison import paired_tests
from bandits.results.metric_registry import OBJECTIVES
from bandits.sweeps.analysis.landscape import Landscape, level_of_look

from .blocks import Row, coarse_to_fine
from .sweep import Sweep

# of the first rung; with fewer, confidence intervals are too wide to eliminate anything
MIN_REPLICATIONS = 4


def rungs(sweep: Sweep) -> list[range]:
    """Return the replications of each rung: a quarter of them, then doubling; 4, 4 and 8 of 16.

    A grid search has a single rung.
    """
    total = sweep.experiment.replications
    if sweep.search == "grid":
        return [range(total)]
    found, done, size = [], 0, max(MIN_REPLICATIONS, total // 4)
    while done < total:
        found.append(range(done, min(done + size, total)))
        done, size = found[-1].stop, found[-1].stop
    return found


def rung_rows(sweep: Sweep, rung: range, landscape: Landscape) -> list[Row]:
    """Return the rows of a rung for the new points that are not eliminated, ordered coarse to fine.

    Parameters
    ----------
    sweep : Sweep
        The landscape's sweep, or one of its stages; the rows are numbered by it.
    """
    dropped = landscape.dropped[landscape.sweep.points_of(sweep)]
    return [
        (p, r)
        for p in coarse_to_fine(sweep)
        if p in sweep.new_points and not dropped[p]
        for r in rung
    ]


def eliminate(sweep: Sweep, landscape: Landscape, replications: int) -> None:
    """Eliminate the points that are significantly worse than the best after the first
    ``replications``.

    A point is eliminated if its paired difference to the best is below zero at the level of the
    look (`level_of_look`), divided by the number of points and of rungs (Bonferroni). The
    probability that the truly best point is ever eliminated is therefore at most .05, and at most
    .075 with any number of refinements. This assumes differences that are nearly normal over
    replications: a best point whose mean rests on rare large rewards is likely to be eliminated
    before it has seen one, and no test of four replications can prevent that. Points of which all
    rows diverged are eliminated too. Later replications are ignored, so that evaluating a rung
    again gives the same result. ``sweep`` may be a stage of the landscape's sweep; later points are
    ignored then."""
    points = landscape.sweep.points_of(sweep)
    numbers = (
        OBJECTIVES[sweep.metric].better * landscape.numbers(sweep.metric)[points, :replications]
    )
    dropped = landscape.dropped[points]
    known = np.isfinite(numbers).sum(axis=1)
    if not known.any():
        return
    dropped |= known == 0
    candidates = ~dropped & (known == known.max())
    if not candidates.any():
        landscape.dropped[points] = dropped
        return
    with np.errstate(invalid="ignore"):
        leader = int(
            np.argmax(
                np.where(candidates, np.nansum(numbers, axis=1) / np.maximum(known, 1), -np.inf)
            )
        )
    level = level_of_look(sweep) / (sweep.size * len(rungs(sweep)))
    for p in np.flatnonzero(~dropped):
        gap = (numbers[p] - numbers[leader])[np.isfinite(numbers[p] - numbers[leader])]
        better, p_value = paired_tests.paired_test(gap)
        if len(gap) > 1 and better < 0.5 and p_value < level:
            dropped[p] = True
    landscape.dropped[points] = dropped
