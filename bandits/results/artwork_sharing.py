"""One model for all titles against one per title: the paired difference, and how many times as many
impressions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.base.formatting import percent
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.comparison import paired_tests
from bandits.results.metrics import Estimate
from bandits.results.run import Run

# share of the gap between random choice and the oracle that counts as learned
LEVEL = 0.7
# steps over which that share is taken
WINDOW = 1000


class SharingComparison(NamedTuple):
    """What a shared model earns against a model per category of the same kind.

    Attributes
    ----------
    shared, apart : str
        Labels of the agents.
    also : tuple of str
        Names of other parameters in which they differ.
    rates : tuple of float
        Clicks per impression of both, over the replications in which both finished.
    difference : Estimate
        Of these rates, shared minus apart, paired by replication; corrected for all pairs of the
        run.
    rows : int
        Replications in which both finished.
    p_value : float
        Corrected, too.
    factor : Estimate or None
        See `impressions_factor`.
    learned, at_once : tuple of int
        Replications in which each has learned, and those in which it has in its first window: it
        may have needed less.
    """

    shared: str
    apart: str
    also: tuple[str, ...]
    rates: tuple[float, float]
    difference: Estimate
    rows: int
    p_value: float
    factor: Estimate | None
    learned: tuple[int, int]
    at_once: tuple[int, int]


def pairs(experiment: Experiment) -> list[tuple[str, str, tuple[str, ...]]]:
    """List agents of one kind with ``sharing`` shared and per_category, and in what else they
    differ.
    """
    named = list(zip(experiment.labels, experiment.agents, strict=True))
    found = []
    for shared, a in named:
        for apart, b in named:
            sides = getattr(a, "sharing", None), getattr(b, "sharing", None)
            if a.kind == b.kind and sides == ("shared", "per_category"):
                own = [
                    name for name in type(a).model_fields if getattr(a, name) != getattr(b, name)
                ]
                found.append(
                    (shared, apart, tuple(name for name in own if name not in ("label", "sharing")))
                )
    return found


def comparisons(result: Run) -> list[SharingComparison]:
    """Compare every shared model with the models per category of its kind, where both have finished
    replications.
    """
    wanted = pairs(result.experiment)
    running = {label: h for label, h in result.histories.items() if h.alive.any()}
    family = paired_tests.family_of(result.experiment)
    if not wanted or result.experiment.offers("replay"):
        return []
    found = []
    for shared, apart, also in wanted:
        a, b = running.get(shared), running.get(apart)
        if a is None or b is None or not (both := a.alive & b.alive).any():
            continue
        compared = paired_tests.compare(a, b, family=family)
        steps = min(a.step, b.step)
        at = min(a.size, b.size) - 1
        first, second = (float(h.sums["clicks"][at, both].mean() / h.grid[at]) for h in (a, b))
        needed, more = impressions_needed(a)[both], impressions_needed(b)[both]
        at_once = int((needed == _first_end(a)).sum()), int((more == _first_end(b)).sum())
        found.append(
            SharingComparison(
                shared,
                apart,
                also,
                (first, second),
                Estimate(*(value / steps for value in compared.difference)),
                compared.rows,
                compared.p_value,
                factor=impressions_factor(needed, more, at_once),
                at_once=at_once,
                learned=(int(np.isfinite(needed).sum()), int(np.isfinite(more).sum())),
            )
        )
    return found


def impressions_factor(
    shared: FloatArray, apart: FloatArray, at_once: tuple[int, int]
) -> Estimate | None:
    """Estimate the ratio apart / shared of the impressions (R,) that two agents need until they
    have learned.

    The interval is that of the mean logarithm, over replications. Where an agent has learned in its
    first window (``at_once``), what it needed is only bounded from above, and so the interval has
    one end: none above (inf) if that is the shared model, none below (0) if it is the other. None
    if it is both, or if a replication of either never gets there. Each end errs in 2.5 % of runs,
    so that it may depend on the run which of them is stated."""
    if not np.isfinite([shared, apart]).all() or all(at_once):
        return None
    mean, low, high = np.exp(metrics.estimate(np.log(apart / shared)))
    return Estimate(
        float(mean), 0.0 if at_once[1] else float(low), np.inf if at_once[0] else float(high)
    )


def _first_end(history: History) -> int:
    """Return the end of the first whole window, or the last step of a shorter run."""
    return int(history.grid[min(int(np.searchsorted(history.grid, WINDOW)), len(history.grid) - 1)])


def impressions_needed(history: History) -> FloatArray:
    """Return the impressions until an agent has learned, float64 (R,); inf: never.

    That is the end of the first whole window of `WINDOW` steps that closes `LEVEL` of the gap
    between random choice and the oracle, in expected rewards."""
    grid = history.grid[: history.size]
    ends, starts = metrics.whole_windows(grid, WINDOW)
    names = ("value", "best_value", "random_value")
    value, best, random = (history.sums[name][ends] - history.sums[name][starts] for name in names)
    closed = (value - random) >= LEVEL * (best - random)
    if not len(ends):
        return np.full(history.rows, np.inf)
    return np.where(
        closed.any(axis=0), grid[ends][closed.argmax(axis=0)].astype(np.float64), np.inf
    )


def conclusions(result: Run) -> list[str]:
    """State for each pair which side earns more per impression, and how many more impressions the
    other needs.
    """
    name = result.experiment.simulator_class().rate_title.lower()
    return [_sentence(found, name) for found in comparisons(result)]


def _sentence(found: SharingComparison, rate: str) -> str:
    d, first, second = found.difference, found.rates[0], found.rates[1]
    evidence = f"{found.rows} paired replications"
    if found.rows < 2:
        sure, evidence = False, "one replication, which gives no interval"
    elif d.low == d.high:
        sure = d.mean != 0
    else:
        sure, evidence = found.p_value < 0.05, f"{words.interval(d, 'rate')}; {evidence}"
    sides = [(found.shared, first), (found.apart, second)]
    (ahead, most), (behind, least) = sides if d.mean >= 0 else sides[::-1]
    also = f" They also differ in {', '.join(found.also)}." if found.also else ""
    gap = (
        f"{found.shared} minus {found.apart} {words.mean(d, 'rate')} "
        f"({evidence}).{also}{_needed(found)}"
    )
    if not sure:
        return (
            f"{ahead} ({most:.3f}) and {behind} ({least:.3f}) are not shown to differ in {rate}; "
            f"{gap}"
        )
    return f"{ahead} has the higher {rate}: {most:.3f}, against {least:.3f} of {behind}; {gap}"


def _needed(found: SharingComparison) -> str:
    """State the factor, or how often each learned; nothing if neither did."""
    gap = f"closed {percent(LEVEL)} of the gap between random choice and the oracle"
    if found.factor is None:
        known = found.learned if min(found.learned) < found.rows else found.at_once
        if not any(known):
            return ""
        counts = f"in {known[0]} of {found.rows} replications, {found.apart} in {known[1]}"
        if known is found.learned:
            return f" {found.shared} {gap} {counts}."
        return (
            f" {found.shared} {gap} within the first {WINDOW:,} impressions {counts}: no ratio of "
            "impressions is known."
        )
    mean, low, high = (f"{value:.1f}" if value >= 1 else f"{value:.2f}" for value in found.factor)
    bound, interval = "", f"{low} to {high}"
    if found.at_once[0]:
        bound, interval = "at least ", f"{low} or more"
    elif found.at_once[1]:
        bound, interval = "at most ", f"{high} or less"
    stated = f" (95 % CI {interval})" if found.rows > 1 else ""
    return (
        f" Until it {gap}, {found.apart} needed {bound}{mean} times as many impressions as "
        f"{found.shared}{stated}."
    )
