"""Mark the changes of a simulator in plots over steps, and describe them in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from bandits.experiments.experiment import Experiment
from bandits.results.figures.style import REFERENCE, Spec, faint

# Names of changes, in pixels: type, width of a character, distance of two names, height of a line
SIZE, CHARACTER, GAP, LINE = 11, 6, 8, 14
# width of a plot on a phone
PHONE = 240
# lines of names above a plot
LEVELS = 3
# above a plot without names
MARGIN = 10


def mark(plot: Spec, experiment: Experiment, axis: tuple[float, float] | None = None) -> Spec:
    """Return a plot over steps with the changes that its curves have reached: lines, names above
    them, and strips.

    A change that takes some time has a line at its start and at its end, and a strip between them.

    Parameters
    ----------
    plot : dict
    experiment : Experiment
    axis : tuple of float, optional
        First and last step of the axis; by default those of the curves.
    """
    drawn = [trace["x"] for trace in plot["data"] if len(trace["x"])]
    first, last = axis or (
        min(map(np.min, drawn), default=0.0),
        max(map(np.max, drawn), default=0.0),
    )
    shapes: list[Spec] = []
    names: list[tuple[int, str]] = []  # step, text
    for change in experiment.simulator.all_changes.values():
        if not 0 < change.begins < last:
            continue
        shapes.append(_line(change.begins))
        names.append((change.begins, change.title))
        if change.ends is None or change.ends <= change.begins:
            continue
        strip = {
            "type": "rect",
            "x1": min(last, change.ends),
            "line": {"width": 0},
            "layer": "below",
        }
        shapes.append({**_line(change.begins), **strip, "fillcolor": faint(REFERENCE, 0.1)})
        if change.ends < last:
            shapes.append(_line(change.ends))
            names.append((change.ends, f"{change.title} ends"))
    if not shapes:
        return plot
    layout = plot["layout"]
    log = layout.get("xaxis", {}).get("type") == "log"
    annotations, levels = _above(names, _scale(float(first), float(last), log=log), log=log)
    room: Spec = {
        "shapes": shapes,
        "annotations": annotations,
        "margin": {"t": MARGIN + levels * LINE},
    }
    # it stands above the names
    if layout.get("showlegend"):
        room["legend"] = {"y": 1.02 + 0.08 * levels}
    return {**plot, "layout": {**layout, **room}}


def _line(step: int) -> Spec:
    return {
        "type": "line",
        "x0": step,
        "x1": step,
        "y0": 0,
        "y1": 1,
        "xref": "x",
        "yref": "paper",
        "line": {"color": REFERENCE, "width": 1, "dash": "dot"},
    }


def _scale(first: float, last: float, *, log: bool) -> Callable[[float], float]:
    """Return what places a step on an axis: 0 at its left end, 1 at its right end."""
    if log:
        low, high = math.log10(max(first, 1.0)), math.log10(last)
        return lambda step: (math.log10(step) - low) / max(high - low, 1e-9)
    return lambda step: (step - first) / max(last - first, 1e-9)


def _above(
    names: Sequence[tuple[int, str]], scale: Callable[[float], float], *, log: bool
) -> tuple[list[Spec], int]:
    """Place names above the plot, in as many lines as they need on a phone.

    Return them and the number of lines.

    Above the plot no curve covers them. A name that finds no room in `LEVELS` lines is left out:
    its line stays, and the note of the plot lists all changes."""
    # right end of the last name in each line, 0 to 1
    ends: list[float] = []
    found: list[Spec] = []
    for step, text in sorted(names):
        width = (len(text) * CHARACTER + GAP) / PHONE
        middle = min(max(scale(step), width / 2), 1 - width / 2)
        level = next((i for i, end in enumerate(ends) if end <= middle - width / 2), len(ends))
        if level == LEVELS:
            continue
        ends[level:] = [middle + width / 2, *ends[level + 1 :]]
        found.append(
            {
                "x": math.log10(step) if log else step,
                "y": 1,
                "xref": "x",
                "yref": "paper",
                "text": text,
                "showarrow": False,
                "xanchor": "center",
                "yanchor": "bottom",
                "yshift": level * LINE,
                "xshift": round((middle - scale(step)) * PHONE),
                "borderpad": 0,
                "font": {"size": SIZE},
            }
        )
    return found, len(ends)


def description(experiment: Experiment) -> str:
    """List the changes in one sentence; empty without any."""
    parts = []
    for change in experiment.simulator.all_changes.values():
        if change.ends is None:
            when = "throughout"
        elif change.ends > change.begins:
            when = f"from step {change.begins:,} to {change.ends:,}"
        else:
            when = f"at step {change.begins:,}"
        words = change.sentence()
        parts.append(f"{words[0].lower()}{words[1:]} {when}")
    return f"Changes: {'; '.join(parts)}." if parts else ""


def variation_budget(experiment: Experiment) -> list[str]:
    """State the variation budget in one sentence.

    Nothing without changes of rates, or where it is unknown.
    """
    found = experiment.simulator_class().variation(experiment.simulator, experiment.steps)
    meaning = "the largest change of any click probability, summed over the steps"
    return [f"Variation budget B = {found:.3g}: {meaning}."] if found else []
