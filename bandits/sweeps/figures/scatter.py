"""Draw proposed points as plotly dictionaries: the best so far, and the metric against each
parameter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.results.figures.curves import curves
from bandits.results.figures.parts import axis as titled
from bandits.results.figures.parts import drawing, hover, points, ring
from bandits.results.figures.style import REFERENCE, Spec, styles
from bandits.results.metric_registry import OBJECTIVES
from bandits.results.metrics import Band
from bandits.sweeps.analysis.importance import position
from bandits.sweeps.analysis.landscape import Landscape

from .grid import OUTLINE, format_value, hover_text, parameter_label, parameter_title

ObjectArray = np.ndarray[tuple[int], np.dtype[np.object_]]  # of text
# of the range of an axis, beyond its ends
MARGIN = 0.04
# relative error of a number that was sent to a browser and back
TOLERANCE = 1e-5


class Progress(NamedTuple):
    """The best point after each proposal.

    Attributes
    ----------
    points : int (N,)
        Points with all replications, in the order of the proposals.
    means : float64 (N,)
    best : int (N,)
        Position in ``points`` of the best point so far.
    low, high : float64 (N,)
        95 % interval of each point.
    """

    points: IntArray
    means: FloatArray
    best: IntArray
    low: FloatArray
    high: FloatArray


def progress(landscape: Landscape, metric: str) -> Progress:
    """Compute the best point after each proposal; points with diverged rows are excluded."""
    completed = np.asarray(landscape.completed.all(axis=1))
    results = [
        r
        for r in landscape.results(metric)
        if completed[r.point] and not r.diverged and np.isfinite(r.estimate.mean)
    ]
    means, low, high = (
        np.array([getattr(r.estimate, name) for r in results], float)
        for name in ("mean", "low", "high")
    )
    signed = OBJECTIVES[metric].better * means
    leads = signed > np.maximum.accumulate(np.concatenate([[-np.inf], signed]))[:-1]
    best = np.maximum.accumulate(np.where(leads, np.arange(len(results)), 0))
    return Progress(np.array([r.point for r in results], int), means, best, low, high)


def figures(
    landscape: Landscape,
    metric: str,
    selected: int | None = None,
    *,
    setting: int | None = None,
    finished: bool = True,
) -> list[Spec]:
    """Draw the best point so far, and the metric against each parameter.

    The points ``selected`` and ``setting`` (nearest to the user's own) are marked; the best region,
    only if the sweep is ``finished``."""
    trajectory = progress(landscape, metric)
    if not len(trajectory.points):
        title = OBJECTIVES[metric].of(landscape.sweep.experiment).title
        return [drawing([], title, empty="Waiting for the first results.")]
    numbers, states = landscape.adjusted(metric), np.array(landscape.states(metric))
    states = np.where(finished, states, "")[trajectory.points]
    texts = np.array(
        [hover_text(landscape, metric, p, numbers[p]) for p in trajectory.points.tolist()], object
    )
    marks = [(landscape.leader(metric), "star"), (selected, "circle-open"), (setting, "x")]
    slices = [
        _slice(landscape, metric, trajectory, axis, texts, states, marks, finished)
        for axis in range(len(landscape.sweep.axes))
    ]
    return [_best_so_far(landscape, metric, trajectory, texts), *slices]


def point_at(landscape: Landscape, metric: str, x: float, y: float) -> int | None:
    """Return the point at a position of one of the figures of `figures`; None if there is none."""
    trajectory, near = progress(landscape, metric), list[tuple[float, int]]()
    for point, mean in zip(trajectory.points.tolist(), trajectory.means.tolist(), strict=True):
        places = [
            point + 1.0,
            *(_at(landscape, axis, point) for axis in range(len(landscape.sweep.axes))),
        ]
        if np.isclose(mean, y, TOLERANCE, 1e-12) and np.isclose(places, x, TOLERANCE, 1e-12).any():
            near.append((abs(mean - y), int(point)))
    return min(near)[1] if near else None


def _best_so_far(
    landscape: Landscape, metric: str, trajectory: Progress, texts: ObjectArray
) -> Spec:
    e = landscape.sweep.experiment
    shown_metric, style = OBJECTIVES[metric].of(e), next(iter(styles(e).values()))
    at, best = (trajectory.points + 1).astype(float), trajectory.best
    # a step function: the best stays until a better one is found
    x = np.repeat(at, 2)[1:]
    mid, low, high = (
        np.repeat(v[best], 2)[:-1] for v in (trajectory.means, trajectory.low, trajectory.high)
    )
    low, high = (np.where(np.isfinite(ends), ends, mid) for ends in (low, high))
    band = Band(x, mid, low, high, landscape.sweep.experiment.replications)
    note = (
        f"{shown_metric.full_unit}. Line: best point so far with 95 % interval. Dots: all points."
    )
    note, title = note[0].upper() + note[1:], f"{shown_metric.title}: best so far"
    spec = curves(
        {"best": band},
        {"best": style},
        title=title,
        note=note,
        x_title="number of points",
        y_title=shown_metric.unit,
    )
    spec["data"].insert(0, _dots(trajectory, at, texts, np.full(len(at), True), REFERENCE))
    spec["layout"] |= {"hovermode": "closest"}
    spec["layout"]["meta"]["pick"] = True
    return spec


def _slice(
    landscape: Landscape,
    metric: str,
    trajectory: Progress,
    axis: int,
    texts: ObjectArray,
    states: np.ndarray,
    marks: list[tuple[int | None, str]],
    finished: bool,
) -> Spec:
    sweep = landscape.sweep
    shown_metric = OBJECTIVES[metric].of(sweep.experiment)
    style = next(iter(styles(sweep.experiment).values()))
    x = np.array([_at(landscape, axis, p) for p in trajectory.points.tolist()])
    data = [
        _dots(trajectory, x, texts, ~np.isin(states, ("tied", "unclear")), REFERENCE),
        _dots(trajectory, x, texts, states == "unclear", style.color, "circle-open"),
        _dots(trajectory, x, texts, states == "tied", style.color),
        *(_mark(trajectory, x, p, symbol) for p, symbol in marks if p is not None),
    ]
    note = "All points, with any values of the other parameters. ★ best point" + (
        "; coloured: tied; rings: too noisy to tell; grey: worse" if finished else " so far"
    )
    marked = any(symbol == "x" and point is not None for point, symbol in marks)
    note += "; ✕ the point nearest to your setting." if marked else "."
    return drawing(
        data,
        f"{shown_metric.title} against {parameter_title(sweep, axis)}",
        note,
        meta={"pick": True},
        x=_scale(landscape, axis),
        y=titled(shown_metric.unit),
        hovermode="closest",
    )


def _dots(
    trajectory: Progress,
    x: FloatArray,
    texts: ObjectArray,
    shown: BoolArray,
    color: str,
    symbol: str = "circle",
) -> Spec:
    text = hover(texts[shown].tolist())
    dots = points("points", x[shown], trajectory.means[shown], color, 7, symbol, **text)
    dots["marker"]["opacity"] = 0.75
    return dots


def _mark(trajectory: Progress, x: FloatArray, point: int, symbol: str) -> Spec:
    at = trajectory.points == point
    return ring(symbol, x[at], trajectory.means[at], OUTLINE, symbol=symbol)


def _at(landscape: Landscape, axis: int, point: int) -> float:
    """Return the x coordinate of a point in the figure of an axis: its value, or its position in a
    list.
    """
    value, swept = landscape.sweep.values_at(point)[axis], landscape.sweep.axes[axis]
    return (
        position(swept, value)
        if swept.values is not None or not isinstance(value, (int, float))
        else float(value)
    )


def _scale(landscape: Landscape, axis: int) -> Spec:
    swept, title = (
        landscape.sweep.axes[axis],
        {"title": {"text": parameter_label(landscape.sweep, axis)}},
    )
    if swept.values is not None:
        ends = [-0.5, len(swept.values) - 0.5]
        labels = [format_value(v) for v in swept.values]
        shown = {"tickvals": list(range(len(swept.values))), "ticktext": labels, "range": ends}
        return {**title, **shown, "tickangle": 0}
    scale: Spec = {**title, "type": swept.scale}
    if swept.low is None or swept.high is None:
        return scale
    low, high = swept.low, swept.high
    if swept.scale == "log":
        ticks = _log_ticks(low, high)
        scale |= {"tickvals": ticks, "ticktext": [f"{tick:,.10g}" for tick in ticks]}
        # plotly's ranges of log axes are exponents
        low, high = math.log10(low), math.log10(high)
    margin = MARGIN * (high - low)
    return {**scale, "range": [low - margin, high + margin]}


def _log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten in a range; with 2 and 5 times them if there are fewer than three."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [
            factor * 10.0**e
            for e in exponents
            for factor in factors
            if low <= factor * 10.0**e <= high
        ]
        if len(ticks) > 2:
            break
    return ticks
