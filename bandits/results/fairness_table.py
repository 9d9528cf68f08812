"""Tables of what user segments, items and launches got, agent by agent."""

from __future__ import annotations

import math

import pandas as pd

from bandits.base.formatting import count, percent

from . import fairness
from .demand import demand
from .launches import WINDOW, Launched, launches
from .metrics import Estimate
from .result import Result


def segment_table(result: Result) -> pd.DataFrame | None:
    """Return one row per agent and user segment; None where there are no segments, or no sums by segment."""
    names = result.experiment.simulator_class().segment_names()
    rows = []
    for label in result.experiment.labels:
        history = result.histories.get(label)
        found = None if history is None or not history.step else fairness.segments(history)
        for name, own in zip(names, found or (), strict=False):
            rows.append(
                {
                    "Agent": label, "Segment": name, "Visits": count(own.visits.mean), "CTR": _rate(own.ctr),
                    "Regret per visit": _rate(own.regret_per_visit), "Disparity": _rate(own.disparity),
                    "Exploration": _rate(own.exploration),
                }
            )  # fmt: skip
    return pd.DataFrame(rows) if rows else None


def item_table(result: Result) -> pd.DataFrame | None:
    """Return one row per agent on its items, and on each launch that it has passed; None where there is no merit."""
    wanted = demand(result.experiment)
    rows = []
    for label in result.experiment.labels:
        history = result.histories.get(label)
        if wanted is None or history is None or (found := fairness.exposure(history, wanted.merit)) is None:
            continue
        row = {"Agent": label, "Gini": _rate(found.gini), "Exposure over merit": _rate(found.exposure_merit_ratio)}
        for i, one in enumerate(found_launches := launches(history, wanted)):
            alone = [each.step for each in found_launches].count(one.step) == 1
            name = f"Launch at {count(one.step)}" if alone else f"Launch {i + 1} at {count(one.step)}"
            row[f"{name}: share"] = f"{_rate(one.share)} of {one.fair_share:.3f}"
            row[f"{name}: fair share"] = _steps(one)
        rows.append(row)
    return pd.DataFrame(rows).fillna("–") if rows else None


def _steps(one: Launched) -> str:
    if math.isnan(one.reached):
        return f"unknown (fewer than {count(WINDOW)} steps follow)"
    if one.steps_to_fair_share is None:
        return f"never ({percent(one.reached)} of the replications reached it)"
    text = f"after {count(one.steps_to_fair_share)} steps"
    if one.low is None:
        return text
    return f"{text} ({count(one.low)} to {'beyond the run' if one.high is None else count(one.high)})"


def _rate(e: Estimate) -> str:
    if not math.isfinite(e.mean):
        return "–"
    return f"{e.mean:.3f}" if not math.isfinite(e.low) else f"{e.mean:.3f} ({e.low:.3f} to {e.high:.3f})"
