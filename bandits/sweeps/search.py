"""Which runs are wanted next: all of them, or a few of every point and more of those that can still be the best."""

from __future__ import annotations

import numpy as np

from .. import metrics
from .blocks import Row, coarse_to_fine
from .landscape import LEVEL, Landscape
from .sweep import Sweep

FIRST = 4  # runs of the first rung, at least: with fewer no interval is worth anything


def rungs(sweep: Sweep) -> list[range]:
    """The replications of each round: a quarter of them, then as many again, then as many as there were: 4, 4, 8 of 16.

    One round for a search of the whole grid.
    """
    total = sweep.experiment.replications
    if sweep.search == "grid":
        return [range(total)]
    found, done, size = [], 0, max(FIRST, total // 4)
    while done < total:
        found.append(range(done, min(done + size, total)))
        done, size = found[-1].stop, found[-1].stop
    return found


def wanted(sweep: Sweep, rung: range, landscape: Landscape) -> list[Row]:
    """The rows of a round, spread over the landscape first: of points that have not been dropped."""
    return [(p, r) for p in coarse_to_fine(sweep) if not landscape.dropped[p] for r in rung]


def drop(sweep: Sweep, landscape: Landscape) -> None:
    """Give up the points that are clearly worse than the best so far.

    Their paired difference to it is below zero at the level .05, divided by the number of points and of rounds: so the
    chance that the best of all is ever given up is at most .05 (Bonferroni).

    References
    ----------
    Birattari et al. (2002), A racing algorithm for configuring metaheuristics; Jamieson & Talwalkar (2016),
    Non-stochastic best arm identification and hyperparameter optimization, for the doubling.
    """
    leader = landscape.leader(sweep.metric)
    if leader is None:
        return
    level = LEVEL / (sweep.size * len(rungs(sweep)))
    gaps = landscape.gaps(sweep.metric)
    for p in np.flatnonzero(~landscape.dropped):
        gap = gaps[p][np.isfinite(gaps[p])]
        better, p_value = metrics.paired_test(gap)
        if len(gap) > 1 and better < 0.5 and p_value < level:
            landscape.dropped[p] = True
