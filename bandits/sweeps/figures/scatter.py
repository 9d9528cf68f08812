"""Points that have been proposed as plotly dictionaries: the best so far, and the metric against each parameter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.results.figures import curves, empty_figure
from bandits.results.metrics import Band
from bandits.results.style import REFERENCE, Spec, styles
from bandits.sweeps.analysis.importance import place
from bandits.sweeps.analysis.landscape import METRICS, Landscape

from .grid import OUTLINE, format_value, hover_text, parameter_title

ObjectArray = np.ndarray[tuple[int], np.dtype[np.object_]]  # of words
NEAR = 1e-5  # of a number that has been to a browser and back


class Progress(NamedTuple):
    """What is known after each point, in the order of the proposals.

    Attributes
    ----------
    points : int (N,)
        All of whose runs are done.
    means : float64 (N,)
    best : int (N,)
        The best of them so far, by its position in ``points``.
    low, high : float64 (N,)
        The 95 % interval of each.
    """

    points: IntArray
    means: FloatArray
    best: IntArray
    low: FloatArray
    high: FloatArray


def progress(found: Landscape, metric: str) -> Progress:
    """How the best point came about; points of which a run diverged cannot be it."""
    known = np.asarray(found.completed.all(axis=1))
    whole = [c for c in found.results(metric) if known[c.point] and not c.diverged and np.isfinite(c.estimate.mean)]
    means, low, high = (np.array([getattr(c.estimate, name) for c in whole], float) for name in ("mean", "low", "high"))
    signed = METRICS[metric].sign * means
    leads = signed > np.maximum.accumulate(np.concatenate([[-np.inf], signed]))[:-1]
    best = np.maximum.accumulate(np.where(leads, np.arange(len(whole)), 0))
    return Progress(np.array([c.point for c in whole], int), means, best, low, high)


def figures(found: Landscape, metric: str, picked: int | None = None, *, over: bool = True) -> list[Spec]:
    """The best so far, and a picture of each parameter.

    Before it is ``over``, nothing is called as good as the best.
    """
    told = progress(found, metric)
    if not len(told.points):
        layout = {"title": {"text": METRICS[metric].title}, "meta": {"note": ""}}
        return [empty_figure(layout, "The first points are on their way.")]
    numbers, good = found.adjusted(metric), found.best_region(metric)[told.points] & over
    words = np.array([hover_text(found, p, numbers[p]) for p in told.points.tolist()], object)
    marks = [(found.leader(metric), "star"), (picked, "circle-open")]
    slices = [_slice(found, metric, told, axis, words, good, marks, over) for axis in range(len(found.sweep.axes))]
    return [_best_so_far(found, metric, told, words), *slices]


def point_at(found: Landscape, metric: str, x: float, y: float) -> int | None:
    """The point at a place of any of the figures that `pictures` makes; None where there is none."""
    told, near = progress(found, metric), list[tuple[float, int]]()
    for point, mean in zip(told.points.tolist(), told.means.tolist(), strict=True):
        places = [point + 1.0, *(_at(found, axis, point) for axis in range(len(found.sweep.axes)))]
        if np.isclose(mean, y, NEAR, 1e-12) and np.isclose(places, x, NEAR, 1e-12).any():
            near.append((abs(mean - y), int(point)))
    return min(near)[1] if near else None


def _best_so_far(found: Landscape, metric: str, told: Progress, words: ObjectArray) -> Spec:
    meant, look = METRICS[metric], next(iter(styles(found.sweep.experiment).values()))
    at, best = (told.points + 1).astype(float), told.best
    x = np.repeat(at, 2)[1:]  # it stays until a better one comes
    mid, low, high = (np.repeat(v[best], 2)[:-1] for v in (told.means, told.low, told.high))
    band = Band(x, mid, np.where(np.isfinite(low), low, mid), np.where(np.isfinite(high), high, mid),
                found.sweep.experiment.replications)  # fmt: skip
    note = f"{meant.unit}. Line: the best so far, with the 95 % interval of its runs. Dots: all points."
    spec = curves(
        {"best": band}, {"best": look}, title=f"{meant.title}: the best so far", note=note[0].upper() + note[1:],
        x_title="points", y_title=meant.unit.split(",")[0],
    )  # fmt: skip
    spec["data"].insert(0, _dots(told, at, words, np.full(len(at), True), REFERENCE))
    spec["layout"] |= {"hovermode": "closest"}
    spec["layout"]["meta"]["pick"] = True
    return spec


def _slice(
    found: Landscape, metric: str, told: Progress, axis: int, words: ObjectArray, good: BoolArray,
    marks: list[tuple[int | None, str]], over: bool,
) -> Spec:  # fmt: skip
    meant, sweep = METRICS[metric], found.sweep
    look = next(iter(styles(sweep.experiment).values()))
    x = np.array([_at(found, axis, p) for p in told.points.tolist()])
    data = [
        _dots(told, x, words, ~good, REFERENCE),
        _dots(told, x, words, good, look.color),
        *(_mark(told, x, p, symbol) for p, symbol in marks if p is not None),
    ]
    note = "Every point, whatever its other values. ★ the best" + (
        "; in colour: not shown to be worse than it." if over else " so far."
    )
    layout: Spec = {
        "title": {"text": f"{meant.title} against {parameter_title(sweep, axis)}"},
        "meta": {"note": note, "pick": True},
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": _scale(found, axis),
        "yaxis": {"title": {"text": meant.unit.split(",")[0]}},
    }
    return {"data": data, "layout": layout}


def _dots(told: Progress, x: FloatArray, words: ObjectArray, shown: BoolArray, color: str) -> Spec:
    return {
        "type": "scatter", "mode": "markers", "x": x[shown], "y": told.means[shown], "name": "points",
        "text": words[shown].tolist(),
        "hovertemplate": "%{text}<extra></extra>", "marker": {"size": 7, "color": color, "opacity": 0.75},
    }  # fmt: skip


def _mark(told: Progress, x: FloatArray, point: int, symbol: str) -> Spec:
    at = told.points == point
    marker = {"symbol": symbol, "size": 14, "color": OUTLINE, "line": {"width": 2, "color": OUTLINE}}
    return {"type": "scatter", "mode": "markers", "x": x[at], "y": told.means[at], "marker": marker,
            "hoverinfo": "skip", "name": symbol}  # fmt: skip


def _at(found: Landscape, axis: int, point: int) -> float:
    """Where a point stands in the picture of an axis: its value, or the position of a value in a list."""
    value, of = found.sweep.values_at(point)[axis], found.sweep.axes[axis]
    return place(of, value) if of.values is not None or not isinstance(value, (int, float)) else float(value)


def _scale(found: Landscape, axis: int) -> Spec:
    of, title = found.sweep.axes[axis], {"title": {"text": parameter_title(found.sweep, axis)}}
    if of.values is not None:
        ends = [-0.5, len(of.values) - 0.5]
        labels = [format_value(v) for v in of.values]
        shown = {"tickvals": list(range(len(of.values))), "ticktext": labels, "range": ends}
        return {**title, **shown, "tickangle": 0}
    return {**title, "type": of.scale}
