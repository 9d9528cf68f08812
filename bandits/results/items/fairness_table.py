"""Tables of what user segments, items and launches got, agent by agent."""

from __future__ import annotations

import pandas as pd

from bandits.base.formatting import count
from bandits.results import words
from bandits.results.run import Run

from . import fairness
from .demand import demand
from .launches import launches
from .new_items import reached


def segment_table(result: Run) -> pd.DataFrame | None:
    """Return one row per agent and user segment; None where there are no segments, or no sums by segment."""
    names = result.experiment.simulator_class().segment_names()
    rows = []
    for label in result.experiment.labels:
        history = result.histories.get(label)
        found = None if history is None or not history.step else fairness.segments(history)
        for name, own in zip(names, found or (), strict=False):
            rows.append(
                {
                    "Agent": label,
                    "Segment": name,
                    "Visits": count(own.visits.mean),
                    "CTR": words.cell(own.ctr, "rate"),
                    "Regret per visit": words.cell(own.regret_per_visit, "rate"),
                    "Disparity": words.cell(own.disparity, "rate"),
                    "Exploration": words.cell(own.exploration, "rate"),
                }
            )
    return pd.DataFrame(rows) if rows else None


def item_table(result: Run) -> pd.DataFrame | None:
    """Return one row per agent on its items, and on each launch that it has passed; None where there is no merit."""
    wanted = demand(result.experiment)
    rows = []
    for label in result.experiment.labels:
        history = result.histories.get(label)
        if wanted is None or history is None or (found := fairness.exposure(history, wanted.merit)) is None:
            continue
        row = {
            "Agent": label,
            "Gini": words.cell(found.gini, "rate"),
            "Exposure over merit": words.cell(found.exposure_merit_ratio, "rate"),
        }
        for i, one in enumerate(found_launches := launches(history, wanted)):
            alone = [each.step for each in found_launches].count(one.step) == 1
            name = f"Launch at {count(one.step)}" if alone else f"Launch {i + 1} at {count(one.step)}"
            row[f"{name}: share"] = f"{words.cell(one.share, 'rate')} of {one.fair_share:.3f}"
            row[f"{name}: fair share"] = reached(one)
        rows.append(row)
    return pd.DataFrame(rows).fillna("–") if rows else None
