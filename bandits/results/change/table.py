"""The figures of a change, agent by agent: reward before and after it, recovery, clicks lost."""

from __future__ import annotations

import math

import pandas as pd

from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.metrics import Estimate
from bandits.results.run import Run

from . import recovery
from .lost_clicks import lost


def change_table(result: Run, unchanged: Run | None, *, pending: str = "–") -> pd.DataFrame:
    """Return one row per agent; "–" where nothing is known yet.

    Parameters
    ----------
    result : Run
        A run in which the simulator changes.
    unchanged : Run, optional
        The same run without the changes.
    pending : str
        What the column of lost clicks shows while that run is not at hand: it has its place from the beginning.
    """
    rate, noun = result.experiment.simulator_class().rate_title, result.experiment.simulator_class().reward_noun
    short = "CTR" if rate == "Click-through rate" else rate
    begins = min(c.begins for c in result.experiment.simulator.all_changes.values())
    rows = []
    for label in result.experiment.labels:
        history = result.histories.get(label)
        row = {"Agent": label}
        if begins:
            row[f"{short} before"] = "–" if history is None else words.plus_minus(_between(history, 0, begins), "rate")
        row[f"{short} after"] = (
            "–" if history is None else words.plus_minus(_between(history, begins, history.step), "rate")
        )
        row["Recovery"] = "–" if history is None else recovery.in_words(result, label)
        known = None if history is None or unchanged is None else lost(result, unchanged, label)
        row[f"{noun.capitalize()} lost to the change"] = pending if known is None else words.plus_minus(known, "count")
        rows.append(row)
    return pd.DataFrame(rows)


def _between(history: History, first: int, last: int) -> Estimate:
    """Estimate the reward per step between two steps, to the next stored points."""
    grid, rewards = history.grid[: history.size], history.sums["clicks"]
    low, high = (min(int(grid.searchsorted(step)), len(grid) - 1) for step in (first, last))
    if low == high:
        return Estimate(math.nan, math.nan, math.nan)
    return metrics.estimate((rewards[high] - rewards[low])[history.alive] / (grid[high] - grid[low]))
