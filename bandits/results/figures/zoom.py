"""Zoom the plots of a run on its leading agents, so that late differences are seen."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray
from bandits.results import metrics
from bandits.results.run import Run

from .style import Spec

LEADING = 0.5  # share of the oracle's gain over random choice
FIRST = 0.1  # share of the steps that is left out: at first all agents are far below
MARGIN = 0.04  # of the height


def zoom(plots: list[Spec], result: Run) -> list[Spec]:
    """Fit the vertical axes of the first two plots of `figures.board` to the leading agents.

    An agent is leading if it closed at least half of the gap between random choice and the oracle. The notes name the
    agents that lie outside. Plots stay as they are if all agents are leading, or none.

    Parameters
    ----------
    plots : list of dict
        Reward per step and regret against the step, then others.
    """
    leading = {name for name, history in result.histories.items() if metrics.oracle_share(history).mean() >= LEADING}
    others = [name for name in result.histories if name not in leading]
    if not leading or not others:
        return plots
    note = f" Zoomed: {' and '.join(others)} {'lies' if len(others) == 1 else 'lie'} outside."
    begun = FIRST * max(history.step for history in result.histories.values())
    rate, regret, *rest = plots
    late = np.concatenate([_values(rate, name, begun) for name in (*leading, "oracle")])
    lost = np.concatenate([[0.0], *(_values(regret, name, 0) for name in leading)])
    return [_fitted(rate, late, note), _fitted(regret, lost, note), *rest]


def _values(plot: Spec, name: str, begun: float) -> FloatArray:
    """Return the finite values of an agent's curve and band, or of a reference line, from a step on."""
    drawn = [trace for trace in plot["data"] if name in (trace.get("legendgroup"), trace["name"])]
    values = [np.asarray(trace["y"])[np.asarray(trace["x"]) >= begun] for trace in drawn if trace["mode"] == "lines"]
    found: FloatArray = np.concatenate([np.empty(0), *values])
    return np.asarray(found[np.isfinite(found)])


def _fitted(plot: Spec, values: FloatArray, note: str) -> Spec:
    if not len(values):
        return plot
    margin = MARGIN * (values.max() - values.min())
    layout = plot["layout"]
    axis = {**layout["yaxis"], "range": [float(values.min() - margin), float(values.max() + margin)]}
    meta = {**layout["meta"], "note": layout["meta"]["note"] + note}
    if caption := meta.get("caption"):
        meta["caption"] = f"{caption}; zoomed"
    return {**plot, "layout": {**layout, "yaxis": axis, "meta": meta}}
