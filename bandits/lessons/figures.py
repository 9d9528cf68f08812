"""Draw what a lesson shows: plots of some agents of a run, with predictions as dashed marks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bandits.base.formatting import number
from bandits.results import metrics
from bandits.results.figures.board import Options
from bandits.results.figures.board import plot as draw
from bandits.results.figures.curves import curves, cut
from bandits.results.figures.parts import line, reference
from bandits.results.figures.style import COUNT, Spec, styles
from bandits.results.result import Result

from .answers import Prediction
from .lesson import Lesson, NumberAnswer, Plot, SeeStep

# of a prediction
COLOUR = "#D55E00"


def see(
    lesson: Lesson, step: SeeStep, result: Result, predictions: Mapping[str, Prediction]
) -> list[Spec]:
    """Draw the plots of a step.

    Predictions that have been made are dashed lines in the plots that their marks name.

    Parameters
    ----------
    result : Result
        Of the run that the step shows; it may still be computed.
    """
    drawn = _plots(step, result)
    if step.until is not None:
        drawn = {name: _cut(plot, step.until) for name, plot in drawn.items()}
    for name in step.predictions:
        answer = lesson.predictions[name].answer
        value = predictions.get(name)
        if (
            isinstance(answer, NumberAnswer)
            and answer.mark is not None
            and isinstance(value, (int, float))
        ):
            plot = drawn.get(answer.mark.plot)
            if plot is not None:
                _mark(plot, float(value), answer.mark.axis)
    return list(drawn.values())


def _cut(plot: Spec, until: int) -> Spec:
    """Keep the points up to a step, so that the vertical axis fits them.

    Lines between two points end there.
    """
    data = []
    for trace in plot["data"]:
        x, y = np.asarray(trace["x"]), np.asarray(trace["y"])
        kept = x <= until
        if len(x) == 2 and kept.any():
            data.append({**trace, "x": np.minimum(x, until)})
        elif kept.any():
            data.append({**trace, "x": x[kept], "y": y[kept]})
    return {**plot, "data": data}


def _plots(step: SeeStep, result: Result) -> dict[Plot, Spec]:
    labels = step.agents or result.experiment.labels
    chosen = {label: h for label, h in result.histories.items() if label in labels}
    shown = Result(result.experiment, chosen)
    return {
        name: lead(result, *step.agents, until=step.until)
        if name == "lead"
        else draw(shown, name, Options(step.window))
        for name in step.plots
    }


def lead(result: Result, a: str, b: str, *, until: int | None = None) -> Spec:
    """Draw the difference in cumulative clicks of two agents on the same visitors, with its 95 %
    band.

    Parameters
    ----------
    until : int, optional
        Last step that is drawn: cut before long curves are thinned, as that leaves their bands half
        as many points.
    """
    noun = result.experiment.simulator_class().reward_noun
    bands = {}
    if a in result.histories and b in result.histories:
        first, second = result.histories[a], result.histories[b]
        size = min(first.size, second.size)
        gap = first.sums["clicks"][:size] - second.sums["clicks"][:size]
        band = metrics.band(first.grid[:size], gap, first.alive & second.alive)
        bands = {a: band if until is None else cut(band, band.x <= until)}
    plot = curves(
        bands,
        styles(result.experiment),
        title=f"Lead of {a}",
        y_title=f"{noun} more than {b}",
        y_format=COUNT,
        note=(
            f"{noun.capitalize()} of {a} minus {noun} of {b} so far, paired by replication. Below "
            f"zero {a} is behind."
        ),
        empty="Waiting for the first points.",
    )
    if plot["data"]:
        plot["data"].append(reference("equal", bands[a].x[[0, -1]], np.zeros(2)))
    return plot


def _mark(plot: Spec, value: float, axis: str) -> None:
    """Add a dashed line at a predicted value, and its name."""
    drawn = [trace for trace in plot["data"] if len(trace["x"])]
    if not drawn:
        return
    low, high = (f(float(f(trace["x"])) for trace in drawn) for f in (min, max))
    bottom, top = (
        f(float(np.nanmin(t["y"]) if f is min else np.nanmax(t["y"])) for t in drawn)
        for f in (min, max)
    )
    ends = ([low, high], [value, value]) if axis == "y" else ([value, value], [bottom, top])
    name = f"your prediction: {number(value)}"
    x, y = map(np.array, ends)
    plot["data"].append(line(name, x, y, COLOUR, dash="dash", width=2, hoverinfo="name"))
    if axis == "y" and "ends" in plot["layout"]["meta"]:
        plot["layout"]["meta"]["ends"][name] = "your prediction"
    else:
        plot["layout"]["meta"]["note"] += f" Dashed, in orange: your prediction, {number(value)}."
