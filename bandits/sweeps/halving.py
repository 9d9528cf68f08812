"""Which runs are wanted next: all of them, or a few of every point and more of those that can still be the best."""

from __future__ import annotations

import numpy as np

from bandits.results import metrics
from bandits.sweeps.analysis.landscape import LEVEL, METRICS, Landscape

from .blocks import Row, coarse_to_fine
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


def rung_rows(sweep: Sweep, rung: range, landscape: Landscape) -> list[Row]:
    """The rows of a round, spread over the landscape first: of points that have not been dropped."""
    return [(p, r) for p in coarse_to_fine(sweep) if not landscape.dropped[p] for r in rung]


def eliminate(sweep: Sweep, landscape: Landscape, runs: int) -> None:
    """Give up the points that are clearly worse than the best of them after the first so many runs.

    Their paired difference to it is below zero at the level .05, divided by the number of points and of rounds: so the
    chance that the truly best point is ever given up is at most .05 (Bonferroni). Points all of whose runs diverged go
    too. What later runs have found is not looked at: judged again, a round comes to the same.

    References
    ----------
    Birattari et al. (2002), A racing algorithm for configuring metaheuristics; Jamieson & Talwalkar (2016),
    Non-stochastic best arm identification and hyperparameter optimization, for the doubling.
    """
    numbers = METRICS[sweep.metric].sign * landscape.numbers(sweep.metric)[:, :runs]
    known = np.isfinite(numbers).sum(axis=1)
    if not known.any():
        return
    landscape.dropped |= known == 0
    able = ~landscape.dropped & (known == known.max())
    if not able.any():
        return
    with np.errstate(invalid="ignore"):
        leader = int(np.argmax(np.where(able, np.nansum(numbers, axis=1) / np.maximum(known, 1), -np.inf)))
    level = LEVEL / (sweep.size * len(rungs(sweep)))
    for p in np.flatnonzero(~landscape.dropped):
        gap = (numbers[p] - numbers[leader])[np.isfinite(numbers[p] - numbers[leader])]
        better, p_value = metrics.paired_test(gap)
        if len(gap) > 1 and better < 0.5 and p_value < level:
            landscape.dropped[p] = True
