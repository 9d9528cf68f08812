"""Rewards before and after a change: of a market shock in a run, and of every agent in a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.change import recovery
from bandits.results.change.lost_clicks import lost
from bandits.results.comparison import paired_tests
from bandits.results.comparison.paired_tests import Comparison
from bandits.results.metrics import Estimate
from bandits.results.run import Run, headline

if TYPE_CHECKING:
    import pandas as pd


class AroundShock(NamedTuple):
    """What a shock changed.

    Attributes
    ----------
    step : int
    best : str
        Agent with the highest mean reward per step over the whole run, without the oracle.
    before, after : Estimate
        Its reward per step in the second half of the steps before the shock, when it has learned,
        and in all steps after it.
    leader : str
        Agent with the highest mean reward per step after the shock, without the oracle.
    leader_after : Estimate
    runner_up : str
        The second after the shock; empty if there is none.
    comparison : Comparison or None
        Leader against runner-up over the steps after the shock, corrected for all pairs, as the
        same data chose the two.
    """

    step: int
    best: str
    before: Estimate
    after: Estimate
    leader: str
    leader_after: Estimate
    runner_up: str
    comparison: Comparison | None


def around_shock(result: Run) -> AroundShock | None:
    """Compute what the simulator's shock changed.

    None without a shock, or without steps on both sides.
    """
    e = result.experiment
    step = e.simulator_class().shock(e.simulator)
    found = headline(e, result.histories)
    if step is None or found is None:
        return None
    rates = {
        label: around
        for label, history in result.histories.items()
        if history.alive.any() and "truth" not in e.agent_class(e.labels.index(label)).needs
        if (around := rates_around(history, step)) is not None
    }
    if found.label not in rates:
        return None
    order = sorted(rates, key=lambda label: rates[label][1].mean, reverse=True)
    pairs = paired_tests.compare_pairs(result, order, since=step)
    first, second = order[0], order[1] if len(order) > 1 else ""
    comparison = pairs.get((first, second))
    before, after = rates[found.label]
    return AroundShock(step, found.label, before, after, first, rates[first][1], second, comparison)


def rates_around(history: History, step: int) -> tuple[Estimate, Estimate] | None:
    """Estimate the reward per step in the second half of the steps before ``step``, and from it on,
    between the nearest stored steps on either side.

    None where no stored steps lie on one of the sides, or in that half.
    """
    grid, clicks = history.grid[: history.size], history.sums["clicks"][: history.size]
    last, first = (
        int(np.searchsorted(grid, step, side="right")) - 1,
        int(np.searchsorted(grid, step)),
    )
    half = int(np.searchsorted(grid, step / 2))
    if half >= last or first >= len(grid) - 1:
        return None
    before, after = (
        (clicks[last] - clicks[half]) / int(grid[last] - grid[half]),
        (clicks[-1] - clicks[first]) / int(grid[-1] - grid[first]),
    )
    return metrics.estimate(before[history.alive]), metrics.estimate(after[history.alive])


def change_table(result: Run, unchanged: Run | None, *, pending: str = "–") -> pd.DataFrame:
    """Return one row per agent; "–" where nothing is known yet.

    Parameters
    ----------
    result : Run
        A run in which the simulator changes.
    unchanged : Run, optional
        The same run without the changes.
    pending : str
        What the column of lost clicks shows while that run is not at hand: it has its place from
        the beginning.
    """
    import pandas as pd

    rate, noun = (
        result.experiment.simulator_class().rate_title,
        result.experiment.simulator_class().reward_noun,
    )
    short = "CTR" if rate == "Click-through rate" else rate
    begins = min(c.begins for c in result.experiment.simulator.all_changes.values())
    rows = []
    for label in result.experiment.labels:
        history = result.histories.get(label)
        row = {"Agent": label}
        if begins:
            row[f"{short} before"] = (
                "–" if history is None else words.plus_minus(_between(history, 0, begins), "rate")
            )
        row[f"{short} after"] = (
            "–"
            if history is None
            else words.plus_minus(_between(history, begins, history.step), "rate")
        )
        row["Recovery"] = "–" if history is None else recovery.in_words(result, label)
        known = None if history is None or unchanged is None else lost(result, unchanged, label)
        row[f"{noun.capitalize()} lost to the change"] = (
            pending if known is None else words.plus_minus(known, "count")
        )
        rows.append(row)
    return pd.DataFrame(rows)


def _between(history: History, first: int, last: int) -> Estimate:
    """Estimate the reward per step between two steps, to the next stored points."""
    grid, rewards = history.grid[: history.size], history.sums["clicks"]
    low, high = (min(int(grid.searchsorted(step)), len(grid) - 1) for step in (first, last))
    if low == high:
        return Estimate(math.nan, math.nan, math.nan)
    return metrics.estimate(
        (rewards[high] - rewards[low])[history.alive] / (grid[high] - grid[low])
    )
