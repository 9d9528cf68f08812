"""A landscape as plotly dictionaries: a heat map of two parameters, a curve of one, and the curves of a cell."""

from __future__ import annotations

import numpy as np

from bandits.base.formatting import number, short
from bandits.base.types import BoolArray, FloatArray
from bandits.results import metrics
from bandits.results.figures import curves, empty_figure, rate
from bandits.results.metrics import Band
from bandits.results.style import Spec, Style, styles
from bandits.sweeps.analysis.landscape import METRICS, Landscape
from bandits.sweeps.sweep import Sweep, Value

OUTLINE = "#D55E00"


def format_value(value: Value) -> str:
    """A value as axes and tables say it."""
    if isinstance(value, float):
        return number(value)
    return "none" if value is None else str(value).replace("_", " ") if isinstance(value, str) else short(value)


def landscape(found: Landscape, metric: str, picked: int | None = None, *, over: bool = True) -> Spec:
    """A heat map over the first two axes (any others at the best point's values), or a curve over the only one.

    Before it is ``over``, nothing is called as good as the best.
    """
    sweep = found.sweep
    if not found.completed.any():
        layout = {"title": {"text": METRICS[metric].title}, "meta": {"note": ""}}
        return empty_figure(layout, "The first points are on their way.")
    return (_curve if len(sweep.axes) == 1 else _map)(found, metric, picked, over)


def _shown(sweep: Sweep, leader: int) -> np.ndarray:
    """Points of the map, int64 (second axis, first axis)."""
    points = np.arange(sweep.size).reshape(sweep.shape)
    at = np.unravel_index(leader, sweep.shape)
    return points.reshape(*sweep.shape[:2], -1)[:, :, np.ravel_multi_index(at[2:], sweep.shape[2:]) if at[2:] else 0].T


def _map(found: Landscape, metric: str, picked: int | None, over: bool) -> Spec:
    sweep, meant = found.sweep, METRICS[metric]
    leader = found.leader(metric)
    points = _shown(sweep, leader or 0)
    cells = {cell.point: cell for cell in found.results(metric)}
    z = np.array([[cells[p].estimate.mean if p in cells else np.nan for p in line] for line in points.tolist()])
    region = found.best_region(metric)[points] & over
    numbers = found.adjusted(metric)
    told = [[hover_text(found, p, numbers[p]) for p in line] for line in points.tolist()]
    trace: Spec = {
        "type": "heatmap", "x": np.arange(z.shape[1], dtype=float), "y": np.arange(z.shape[0], dtype=float), "z": z,
        "text": told, "hovertemplate": "%{text}<extra></extra>", "colorscale": "Cividis",
        "reversescale": meant.sign < 0, "xgap": 1, "ygap": 1,
        "colorbar": {"title": {"text": ""}, "thickness": 12, "outlinewidth": 0},
    }  # fmt: skip
    x, y = _outline(region)
    data: list[Spec] = [
        trace,
        {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": {"color": OUTLINE, "width": 3},
         "hoverinfo": "skip", "name": "as good as the best"},
        *[_mark(points, p, symbol) for p, symbol in ((leader, "star"), (picked, "circle-open")) if p is not None],
    ]  # fmt: skip
    rest = sweep.axes[2:]
    at = sweep.values_at(leader or 0)
    fixed = ", ".join(f"{a.name} {format_value(v)}" for a, v in zip(rest, at[2:], strict=True))
    note = f"{meant.unit}, mean over runs. ★ the best" + (
        "; outlined: not shown to be worse than it." if over else " so far."
    )
    layout: Spec = {
        "title": {"text": f"{meant.title}" + (f" at {fixed}" if fixed else "")},
        "meta": {"note": note[0].upper() + note[1:], "pick": True},
        "hovermode": "closest",
        "xaxis": _ticks(sweep, 0),
        "yaxis": {**_ticks(sweep, 1), "showgrid": False},
    }
    return {"data": data, "layout": layout}


def point_at(found: Landscape, metric: str, x: float, y: float) -> int | None:
    """The point at a place of the figure that `landscape` makes; None where nothing is known."""
    sweep = found.sweep
    if len(sweep.axes) == 1:
        point = round(x)
    else:
        points = _shown(sweep, found.leader(metric) or 0)
        if not (0 <= round(y) < points.shape[0] and 0 <= round(x) < points.shape[1]):
            return None
        point = int(points[round(y), round(x)])
    return point if 0 <= point < sweep.size and found.completed[point].any() else None


def _mark(points: np.ndarray, point: int, symbol: str) -> Spec:
    at = np.argwhere(points == point)
    y, x = at[0] if len(at) else (np.nan, np.nan)
    marker = {"symbol": symbol, "size": 14, "color": OUTLINE, "line": {"width": 2, "color": OUTLINE}}
    return {"type": "scatter", "mode": "markers", "x": np.array([x], float), "y": np.array([y], float),
            "marker": marker, "hoverinfo": "skip", "name": symbol}  # fmt: skip


def _outline(region: BoolArray) -> tuple[np.ndarray, np.ndarray]:
    """The edges between what is in the region and what is not, as line segments with gaps."""
    inside = np.pad(region, 1)
    x: list[float] = []
    y: list[float] = []
    for i, j in np.argwhere(region):
        for di, dj in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            if not inside[i + 1 + di, j + 1 + dj]:
                ends = ((0.5 * di - 0.5 * (not di), 0.5 * dj - 0.5 * (not dj)),
                        (0.5 * di + 0.5 * (not di), 0.5 * dj + 0.5 * (not dj)))  # fmt: skip
                x += [j + ends[0][1], j + ends[1][1], np.nan]
                y += [i + ends[0][0], i + ends[1][0], np.nan]
    return np.array(x), np.array(y)


def _ticks(sweep: Sweep, axis: int) -> Spec:
    values = sweep.values[axis]
    every = -(-len(values) // 7)
    shown = range(0, len(values), every)
    return {
        "title": {"text": parameter_title(sweep, axis)}, "tickvals": list(shown),
        "ticktext": [format_value(values[i]) for i in shown],
        "range": [-0.5, len(values) - 0.5], "showspikes": False, "tickangle": 0,
    }  # fmt: skip


def parameter_title(sweep: Sweep, axis: int) -> str:
    """What an axis is called."""
    path = sweep.axes[axis]
    owner = sweep.experiment.simulator if path.path.startswith("simulator.") else sweep.experiment.agents[0]
    return str(type(owner).model_fields[path.name].title)


def hover_text(found: Landscape, point: int, numbers: FloatArray) -> str:
    """A point in words, for whoever points at it; ``numbers (R,)`` are its runs'."""
    sweep = found.sweep
    at = "<br>".join(f"{parameter_title(sweep, i)} {format_value(v)}" for i, v in enumerate(sweep.values_at(point)))
    runs = int(np.isfinite(numbers).sum())
    if not runs:
        return f"{at}<br>not known yet"
    mean, low, high = metrics.estimate(numbers)
    wide = f" ({number(low)} to {number(high)})" if runs > 1 else ""
    gone = "<br>dropped early" if found.dropped[point] else ""
    return f"{at}<br><b>{number(mean)}</b>{wide}<br>{runs} runs{gone}"


def _curve(found: Landscape, metric: str, picked: int | None, over: bool) -> Spec:
    sweep, meant, leader = found.sweep, METRICS[metric], found.leader(metric)
    look = next(iter(styles(sweep.experiment).values()))
    cells, region, numbers = found.results(metric), found.best_region(metric) & over, found.adjusted(metric)
    x = np.array([cell.point for cell in cells], float)
    mid, low, high = (np.array([getattr(cell.estimate, end) for cell in cells]) for end in ("mean", "low", "high"))
    band = Band(x, mid, np.where(np.isfinite(low), low, mid), np.where(np.isfinite(high), high, mid),
                sweep.experiment.replications)  # fmt: skip
    spec = curves({"mean": band}, {"mean": look}, title=meant.title, note="", y_title=meant.unit.split(",")[0])
    good = np.array([cell.estimate.mean if region[cell.point] else np.nan for cell in cells])
    spec["data"] += [
        {"type": "scatter", "mode": "markers", "x": x, "y": mid,
         "text": [hover_text(found, c.point, numbers[c.point]) for c in cells],
         "hovertemplate": "%{text}<extra></extra>",
         "marker": {"size": 8, "color": look.color}, "name": "points"},
        {"type": "scatter", "mode": "markers", "x": x, "y": good, "hoverinfo": "skip", "name": "as good as the best",
         "marker": {"size": 13, "symbol": "circle-open", "color": OUTLINE, "line": {"width": 2.5, "color": OUTLINE}}},
    ]  # fmt: skip
    for point, symbol in ((leader, "star"), (picked, "diamond-open")):
        at = [i for i, cell in enumerate(cells) if cell.point == point]
        if at:
            marker = {"symbol": symbol, "size": 15, "color": OUTLINE, "line": {"width": 2, "color": OUTLINE}}
            spec["data"].append({"type": "scatter", "mode": "markers", "x": x[at], "y": mid[at], "marker": marker,
                                 "hoverinfo": "skip", "name": symbol})  # fmt: skip
    spec["layout"] |= {"xaxis": _ticks(sweep, 0), "hovermode": "closest"}
    ringed = "; ringed: not shown to be worse than it." if over else " so far."
    note = f"{meant.unit}, mean over runs with its 95 % interval. ★ the best{ringed}"
    spec["layout"]["meta"] = {"note": note[0].upper() + note[1:], "pick": True}
    return spec


def point_curves(found: Landscape, point: int | None, metric: str) -> list[Spec]:
    """Click rate and regret over time: of a point, and of the best one; empty before anything is known."""
    titles = ("Click rate over time", "Cumulative regret")
    if point is None:
        layouts = [{"title": {"text": title}, "meta": {"note": ""}} for title in titles]
        return [empty_figure(layout, "The first points are on their way.") for layout in layouts]
    leader = found.leader(metric)
    e = found.sweep.experiment
    noun, look = e.simulator_class().reward_noun, next(iter(styles(e).values()))
    shown = {"chosen": point} | ({"best": leader} if leader not in (None, point) else {})
    looks = {"chosen": look, "best": Style(OUTLINE, "dash")}
    histories = {name: found.curves(p) for name, p in shown.items() if p is not None}
    if not np.isfinite(histories["chosen"].sums["value"][:, histories["chosen"].alive]).all():
        gone = "These curves were given up to save space. Open the point in the Arena to compute them again."
        return [empty_figure({"title": {"text": title}, "meta": {"note": ""}}, gone) for title in titles]
    told = "Solid: the chosen point. " + ("Dashed: the best. " if "best" in shown else "It is the best. ")
    window = metrics.effective_window(histories["chosen"], metrics.WINDOW)
    return [
        curves({n: rate(e, h, metrics.WINDOW) for n, h in histories.items()}, looks, title=titles[0],
               note=f"{told}Average over the last {window:,} steps.",
               y_title=f"{noun} per step"),
        curves({n: metrics.pseudo_regret(h) for n, h in histories.items()}, looks, title=titles[1],
               note=f"{told}Expected {noun} lost against always choosing the best.", y_title=f"{noun} lost"),
    ]  # fmt: skip
