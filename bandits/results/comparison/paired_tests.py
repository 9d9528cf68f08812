"""Compare agents on common random numbers: paired differences, tests, break-even steps.

The pairs of a run are corrected by their number alone (Bonferroni): what is stated of two agents
depends on how many run, not on what the others earn, and holds together. Coverage is simulated in
`tests/results/test_run_conclusion.py`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray, IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results.metrics import Estimate, estimate, t_quantile
from bandits.results.run import Run

# with fewer, the interval of the break-even step covers less than stated
MIN_BREAK_EVEN_ROWS = 4


class Comparison(NamedTuple):
    """Paired comparison of agents a and b on the same users and random numbers (common random
    numbers).

    Attributes
    ----------
    difference : Estimate
        Clicks of a minus clicks of b, paired by row; its interval holds together with those of a
        family of comparisons (Bonferroni).
    rows : int
        Rows in which both agents finished.
    probability_better : float
        Probability that the expected clicks of a exceed those of b (Student t). One half with fewer
        than two rows or without variance.
    p_value : float
        Two-sided paired t test, times the size of the family: below .05 where the interval excludes
        zero. 1 with fewer than two rows or without variance.
    break_even_step : int or None
        Step from which the mean cumulative clicks of a stay above those of b: 0 if always, None if
        never.
    break_even_interval : tuple of int or None
        95 % interval of the step from which the expected difference stays positive: the break-even
        steps of the two ends of the band. None with fewer than `MIN_BREAK_EVEN_ROWS` rows, or if
        the lower end of the band is not positive at the last step.
    exploration_cost : float
        Largest mean deficit of a, in clicks.
    trailed : bool
        Whether the upper end of the band, 95 % at each step, lies below zero at a stored step.
    """

    difference: Estimate
    rows: int
    probability_better: float
    p_value: float
    break_even_step: int | None
    break_even_interval: tuple[int, int] | None
    exploration_cost: float
    trailed: bool = False

    @property
    def overtook(self) -> bool:
        """Whether a made up for a deficit: it was behind, by a click or more and not by chance, and
        the lead with which it ended is none of chance either.

        With fewer than `MIN_BREAK_EVEN_ROWS` rows, chance is not ruled out.
        """
        if not self.break_even_step or self.exploration_cost < 1:
            return False
        few = self.rows < MIN_BREAK_EVEN_ROWS
        return few or (self.trailed and self.break_even_interval is not None)


def mean_lead(a: History, b: History) -> float:
    """Compute the mean difference in clicks so far between a and b over common rows: the fast part
    of `compare`.
    """
    both = a.alive & b.alive
    return float(gaps(a, b)[both].mean()) if both.any() else float("nan")


def gaps(
    a: History,
    b: History,
    name: str = "clicks",
    *,
    at: int | None = None,
    per_visit: bool = False,
) -> FloatArray:
    """Return a minus b of a sum up to a stored step, float64 (R,): by default the last one that
    both have reached.

    R are the replications that both have; NaN where one of the two diverged, or has ended no visit
    if the sums are divided by those.
    """
    rows = min(a.rows, b.rows)

    def value(h: History) -> FloatArray:
        i = min(a.size, b.size) - 1 if at is None else np.searchsorted(h.grid, at)
        if not per_visit:
            return h.sums[name][i, :rows]
        visits = h.sums["visits"][i, :rows]
        return h.sums[name][i, :rows] / np.where(visits > 0, visits, np.nan)

    first, second = value(a), value(b)
    return np.where(a.alive[:rows] & b.alive[:rows], first - second, np.nan)


def compare(a: History, b: History, *, since: int = 0, family: int = 1) -> Comparison:
    """Compare two agents on the same rows, from a step on, up to the last step both have
    reached.

    Intervals and p-value hold together with those of ``family`` comparisons (Bonferroni).
    """
    size = min(a.size, b.size)
    both = a.alive & b.alive
    first = min(int(np.searchsorted(a.grid[:size], since)), size - 1)
    grid = a.grid[first:]
    gap = (a.sums["clicks"][first:size] - b.sums["clicks"][first:size])[:, both]  # (G, n)
    gap = gap - gap[0]
    n = gap.shape[1]
    difference = estimate(gap[-1], family=family)
    better, p = paired_test(gap[-1], family=family)
    mean = gap.mean(axis=1) if n else np.zeros(size - first)
    at = _ahead_for_good(mean[None])[0]
    return Comparison(
        difference=difference,
        rows=n,
        probability_better=better,
        p_value=p,
        break_even_step=None if at < 0 else int(grid[at]),
        break_even_interval=_break_even_interval(gap, grid, family) if at >= 0 else None,
        exploration_cost=max(0.0, -float(mean.min())) if n else 0.0,
        trailed=n > 1 and bool((_band(gap, family)[1] < 0).any()),
    )


def family_of(experiment: Experiment) -> int:
    """Return the number of pairs of agents: comparisons of a run are corrected for all of them,
    whichever are shown, and whichever have diverged.
    """
    return max(1, math.comb(len(experiment.agents), 2))


def compare_pairs(
    result: Run, labels: Sequence[str], *, since: int = 0
) -> dict[tuple[str, str], Comparison]:
    """Compare agents of a run with each other, each with those after it in ``labels``."""
    histories, family = result.histories, family_of(result.experiment)
    return {
        (a, b): compare(histories[a], histories[b], since=since, family=family)
        for a, b in itertools.combinations(labels, 2)
    }


def differs(difference: Estimate, p_value: float) -> bool:
    """Tell whether agents differ: significantly, or by the same amount in every replication, which
    has no variance to test.
    """
    return p_value < 0.05 or difference.low == difference.high != 0


def paired_test(gap: FloatArray, *, family: int = 1) -> tuple[float, float]:
    """Return the probability that the mean of paired differences (n,) is positive, and the p-value
    (Student t), times the size of a ``family`` of tests (Bonferroni).

    (0.5, 1) with fewer than two rows or without variance.
    """
    from scipy.special import stdtr

    n = len(gap)
    if n < 2 or (spread := float(gap.std(ddof=1))) == 0:
        return 0.5, 1.0
    t = float(gap.mean()) / (spread / n**0.5)
    return float(stdtr(n - 1, t)), min(1.0, family * float(2 * stdtr(n - 1, -abs(t))))


def _ahead_for_good(gaps: FloatArray) -> IntArray:
    """Return the index from which each curve of ``gaps (B, G)`` stays positive.

    0 if always, -1 if never.
    """
    behind = gaps[:, 1:] <= 0
    if behind.shape[1] == 0:
        return np.full(len(gaps), -1)
    # after the last <= 0
    last = np.where(behind.any(axis=1), behind.shape[1] - behind[:, ::-1].argmax(axis=1), 0)
    out = np.where(last == 0, 0, last + 1)
    return np.where(behind[:, -1], -1, out)


def _band(gap: FloatArray, family: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the band of cumulative differences ``gap (G, n)``, which at each step
    holds together with those of a ``family`` in 95 % of runs.
    """
    n = gap.shape[1]
    mean, half = gap.mean(axis=1), t_quantile(n, family) * gap.std(axis=1, ddof=1) / n**0.5
    return mean - half, mean + half


def _break_even_interval(
    gap: FloatArray, grid: IntArray, family: int = 1
) -> tuple[int, int] | None:
    """Invert paired t tests of the cumulative differences ``gap (G, n)``.

    The true step is outside only if the test at that step, or just before it, errs. Coverage is
    measured in `tests/results/test_break_even.py`."""
    n = gap.shape[1]
    if n < MIN_BREAK_EVEN_ROWS:
        return None
    low_end, high_end = _band(gap, family)
    low, high = _ahead_for_good(np.stack([high_end, low_end]))
    return None if high < 0 else (int(grid[low]), int(grid[high]))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down correction, in the order given: summaries hold it since
    version 1.0; no sentence rests on it.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    out, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        out[int(i)] = running
    return out
