"""Draw a landscape as plotly dictionaries: a heat map of two parameters, a curve of one, and curves
over time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bandits.agents.guards.params import GuardParams
from bandits.base.formatting import number, percent, short
from bandits.base.params import declaration
from bandits.base.types import BoolArray, FloatArray
from bandits.results import metrics, words
from bandits.results.figures.board import drawn_rate
from bandits.results.figures.curves import curves
from bandits.results.figures.parts import drawing, hover, line, points, ring
from bandits.results.figures.style import COUNT, RATE, Spec, Style, styles
from bandits.results.metric_registry import OBJECTIVES
from bandits.results.metrics import Band
from bandits.sweeps.analysis.landscape import EQUIVALENT, Landscape
from bandits.sweeps.axis import JOINT, Value
from bandits.sweeps.sweep import Sweep, owner_of

OUTLINE = "#D55E00"
NOISY = "#8A8A8A"
# characters that the labels below a plot may have together, on a phone too
LABELS = 40
# the same below a map, which shares its width with the scale of colours
MAP_LABELS = 26
# characters at a tick that the margin of every plot holds
SHORT = 5


def format_value(value: Value) -> str:
    """Format a parameter value for axes and tables."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return value.replace("_", " ").replace(JOINT, f" {JOINT} ")
    return "none" if value is None else short(value)


def landscape_figure(
    landscape: Landscape,
    metric: str,
    selected: int | None = None,
    *,
    setting: int | None = None,
    finished: bool = True,
) -> Spec:
    """Draw a heat map over the first two axes (others at the values of the best point), or a curve
    over a single one.

    The points ``selected`` and ``setting`` (the user's own) are marked; the best region, only if
    the sweep is ``finished``."""
    sweep = landscape.sweep
    if not landscape.completed.any():
        return drawing(
            [],
            OBJECTIVES[metric].of(sweep.experiment).title,
            empty="Waiting for the first results.",
        )
    marks = {"star": landscape.leader(metric), "x": setting}
    if len(sweep.axes) == 1:
        return _curve(landscape, metric, {**marks, "diamond-open": selected}, finished)
    return _map(landscape, metric, {**marks, "circle-open": selected}, finished)


def _shown(sweep: Sweep, leader: int) -> np.ndarray:
    """Return the points of the heat map, int64 (second axis, first axis)."""
    points = np.arange(sweep.size).reshape(sweep.shape)
    at = np.unravel_index(leader, sweep.shape)
    return points.reshape(*sweep.shape[:2], -1)[
        :, :, np.ravel_multi_index(at[2:], sweep.shape[2:]) if at[2:] else 0
    ].T


def _map(landscape: Landscape, metric: str, marks: dict[str, int | None], finished: bool) -> Spec:
    sweep = landscape.sweep
    shown = OBJECTIVES[metric].of(sweep.experiment)
    leader = marks["star"]
    shown_points = _shown(sweep, leader or 0)
    results = {result.point: result for result in landscape.results(metric)}
    z = np.array(
        [
            [results[p].estimate.mean if p in results else np.nan for p in row]
            for row in shown_points.tolist()
        ]
    )
    states = np.array(landscape.states(metric))[shown_points]
    numbers = landscape.adjusted(metric)
    texts = [
        [hover_text(landscape, metric, p, numbers[p]) for p in row] for row in shown_points.tolist()
    ]
    places = {
        "x": np.arange(z.shape[1], dtype=float),
        "y": np.arange(z.shape[0], dtype=float),
        "z": z,
    }
    bar = {"title": {"text": shown.unit, "side": "right"}, "thickness": 12, "outlinewidth": 0}
    look = {
        "colorscale": "Cividis",
        "reversescale": shown.better < 0,
        "xgap": 1,
        "ygap": 1,
        "colorbar": bar,
    }
    data: list[Spec] = [
        {"type": "heatmap", **places, **hover(texts), **look},
        line(
            "too noisy to tell",
            *_outline((states == "unclear") & finished),
            NOISY,
            "dot",
            hoverinfo="skip",
        ),
        line("tied", *_outline((states == "tied") & finished), OUTLINE, width=3, hoverinfo="skip"),
        *[_mark(shown_points, p, symbol) for symbol, p in marks.items() if p is not None],
    ]
    at = sweep.values_at(leader or 0)
    others = range(2, len(sweep.axes))
    fixed = ", ".join(f"{parameter_title(sweep, i)} {format_value(at[i])}" for i in others)
    legend = _legend(marks, "outlined", "dotted", finished)
    note = f"{shown.full_unit}, mean over replications. {legend}"
    vertical = {**axis_ticks(sweep, 1), "showgrid": False}
    vertical["ticktext"] = rows = [
        text.replace(f" {JOINT} ", "<br>") for text in vertical["ticktext"]
    ]
    longest = max(len(word) for row in rows for word in row.split("<br>"))
    plot = drawing(
        data,
        f"{shown.title}" + (f" at {fixed}" if fixed else ""),
        note[0].upper() + note[1:],
        meta={"pick": True},
        x=axis_ticks(sweep, 0, MAP_LABELS),
        y=vertical,
        hovermode="closest",
    )
    if longest > SHORT:
        plot["layout"]["margin"] = {"l": 30 + 7 * longest}
    return plot


def point_at(landscape: Landscape, metric: str, x: float, y: float) -> int | None:
    """Return the point at a position of the figure of `landscape_figure`.

    None if it has no results.
    """
    sweep = landscape.sweep
    if len(sweep.axes) == 1:
        point = round(x)
    else:
        points = _shown(sweep, landscape.leader(metric) or 0)
        if not (0 <= round(y) < points.shape[0] and 0 <= round(x) < points.shape[1]):
            return None
        point = int(points[round(y), round(x)])
    return point if 0 <= point < sweep.size and landscape.completed[point].any() else None


def _mark(shown: np.ndarray, point: int, symbol: str) -> Spec:
    at = np.argwhere(shown == point)
    y, x = at[0] if len(at) else (np.nan, np.nan)
    return ring(symbol, np.array([x], float), np.array([y], float), OUTLINE, symbol=symbol)


def _outline(region: BoolArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the border of a region as line segments with gaps."""
    inside = np.pad(region, 1)
    x: list[float] = []
    y: list[float] = []
    for i, j in np.argwhere(region):
        for di, dj in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            if not inside[i + 1 + di, j + 1 + dj]:
                ends = (
                    (0.5 * di - 0.5 * (not di), 0.5 * dj - 0.5 * (not dj)),
                    (0.5 * di + 0.5 * (not di), 0.5 * dj + 0.5 * (not dj)),
                )
                x += [j + ends[0][1], j + ends[1][1], np.nan]
                y += [i + ends[0][0], i + ends[1][0], np.nan]
    return np.array(x), np.array(y)


def axis_ticks(sweep: Sweep, axis: int, labels: int = LABELS) -> Spec:
    """Return the layout of an axis of plots on which the values of a parameter stand at equal
    distances.

    ``labels`` is the width of the axis in characters; no two labels touch.
    """
    values = sweep.values[axis]
    widths = [len(format_value(value)) + 2 for value in values]
    fits = (
        n
        for n in range(1, len(values))
        if all(a + b <= 2 * n * labels / len(values) for a, b in pairwise(widths[::n]))
    )
    shown = range(0, len(values), next(fits, len(values) - 1))
    ticks = {"tickvals": list(shown), "ticktext": [format_value(values[i]) for i in shown]}
    title, ends = {"text": parameter_label(sweep, axis)}, [-0.5, len(values) - 0.5]
    return {"title": title, **ticks, "range": ends, "showspikes": False, "tickangle": 0}


def parameter_title(sweep: Sweep, axis: int) -> str:
    """Return the title of the parameter of an axis."""
    swept, title = sweep.axes[axis], joint_title(_fields(sweep, axis))
    owner = owner_of(sweep.experiment, swept)
    return f"{owner.title}: {title}" if isinstance(owner, GuardParams) else title


def joint_title(fields: Sequence[Any]) -> str:
    """Return the title of a parameter, or of several that move together: Sharing and prior."""
    first, *more = (str(field.title) for field in fields)
    return " and ".join([first, *(title.lower() for title in more)])


def parameter_label(sweep: Sweep, axis: int) -> str:
    """Return the title of the parameter of an axis with its unit: Decay rate (per step)."""
    unit = _unit(sweep, axis)
    return f"{parameter_title(sweep, axis)} ({unit})" if unit else parameter_title(sweep, axis)


def with_unit(sweep: Sweep, axis: int, value: Value) -> str:
    """Format a value of an axis with its unit: 0.001 per step."""
    unit = _unit(sweep, axis)
    return (
        f"{format_value(value)} {unit}"
        if unit and isinstance(value, (int, float))
        else format_value(value)
    )


def described(sweep: Sweep, values: Sequence[Value], mark: str = "") -> str:
    """List the parameters of a point: Exploration bonus 2, Ridge 1.

    ``mark`` surrounds the values.
    """
    return ", ".join(
        f"{parameter_title(sweep, i)} {mark}{with_unit(sweep, i, value)}{mark}"
        for i, value in enumerate(values)
    )


def _unit(sweep: Sweep, axis: int) -> Any:
    """Return the unit of the parameter of an axis.

    None without one, or where several move together.
    """
    field, *more = _fields(sweep, axis)
    return None if more else declaration(field)["unit"]


def _fields(sweep: Sweep, axis: int) -> list[Any]:
    swept = sweep.axes[axis]
    fields = type(owner_of(sweep.experiment, swept)).model_fields
    return [fields[name] for name in swept.names]


def hover_text(landscape: Landscape, metric: str, point: int, numbers: FloatArray) -> str:
    """Describe a point: parameters, mean, 95 % interval and replications.

    ``numbers (R,)`` are its rows'.
    """
    sweep = landscape.sweep
    at = "<br>".join(
        f"{parameter_title(sweep, i)} {with_unit(sweep, i, v)}"
        for i, v in enumerate(sweep.values_at(point))
    )
    n = int(np.isfinite(numbers).sum())
    if not n:
        return f"{at}<br>not computed yet"
    estimate = metrics.estimate(numbers)
    dropped = "<br>eliminated early" if landscape.dropped[point] else ""
    replications = f"{n} replication{'s' if n > 1 else ''}"
    shown = OBJECTIVES[metric].of(sweep.experiment)
    # Longer lines are cut at the edge
    interval = f"<br>{words.interval(estimate, shown.form)}" if n > 1 else ""
    value = f"{shown.title} <b>{words.mean(estimate, shown.form)}</b> {shown.unit}"
    return f"{at}<br>{value}{interval}<br>{replications}{dropped}"


def _curve(landscape: Landscape, metric: str, marks: dict[str, int | None], finished: bool) -> Spec:
    sweep = landscape.sweep
    shown = OBJECTIVES[metric].of(sweep.experiment)
    style = next(iter(styles(sweep.experiment).values()))
    results, numbers = landscape.results(metric), landscape.adjusted(metric)
    x = np.array([result.point for result in results], float)
    mid, low, high = np.array([result.estimate for result in results]).T
    low, high = (np.where(np.isfinite(ends), ends, mid) for ends in (low, high))
    band = Band(x, mid, low, high, sweep.experiment.replications)
    spec = curves({"mean": band}, {"mean": style}, title=shown.title, note="", y_title=shown.unit)
    of_state = {
        state: np.where([finished and r.state == state for r in results], mid, np.nan)
        for state in ("tied", "unclear")
    }
    texts = [
        hover_text(landscape, metric, result.point, numbers[result.point]) for result in results
    ]
    spec["data"] += [
        points("points", x, mid, style.color, **hover(texts)),
        ring("too noisy to tell", x, of_state["unclear"], NOISY, 14),
        # larger than the star
        ring("tied", x, of_state["tied"], OUTLINE, 20),
    ]
    for symbol, point in marks.items():
        at = [i for i, result in enumerate(results) if result.point == point]
        spec["data"] += [ring(symbol, x[at], mid[at], OUTLINE, 15, symbol)] if at else []
    spec["layout"] |= {"xaxis": axis_ticks(sweep, 0), "hovermode": "closest"}
    note = (
        f"{shown.full_unit}, mean over replications with 95 % interval. "
        f"{_legend(marks, 'circled', 'grey ring', finished)}"
    )
    spec["layout"]["meta"] = {"note": note[0].upper() + note[1:], "pick": True}
    return spec


def _legend(marks: dict[str, int | None], tied: str, unclear: str, finished: bool) -> str:
    """Explain the marks: ★ best point; outlined: tied; dotted: too noisy; ✕ your setting."""
    parts = (
        [
            "★ best point",
            f"{tied}: tied, loses at most {percent(EQUIVALENT)}",
            f"{unclear}: too noisy to tell; others: worse",
        ]
        if finished
        else ["★ best point so far"]
    )
    return "; ".join(parts + ["✕ your setting"] * (marks["x"] is not None)) + "."


def point_curves(landscape: Landscape, point: int | None, metric: str) -> list[Spec]:
    """Draw click-through rate and regret over time, of a point and of the best one.

    Empty without results.
    """
    e = landscape.sweep.experiment
    titles = (f"{e.simulator_class().rate_title} over time", "Cumulative regret")
    if point is None:
        return [drawing([], title, empty="Waiting for the first results.") for title in titles]
    leader = landscape.leader(metric)
    noun, style = e.simulator_class().reward_noun, next(iter(styles(e).values()))
    shown = {"chosen": point} | ({"best": leader} if leader not in (None, point) else {})
    looks = {"chosen": style, "best": Style(OUTLINE, "dash")}
    histories = {name: landscape.curves(p) for name, p in shown.items() if p is not None}
    if not np.isfinite(histories["chosen"].sums["value"][:, histories["chosen"].alive]).all():
        why = (
            "These curves were deleted to save space. Open the point in the Arena to compute them "
            "again."
        )
        return [drawing([], title, empty=why) for title in titles]
    legend = (
        "Solid: selected point. Dashed: best point. "
        if "best" in shown
        else "The selected point is the best. "
    )
    window = metrics.effective_window(histories["chosen"], metrics.WINDOW)
    rates = {name: drawn_rate(e, h, metrics.WINDOW) for name, h in histories.items()}
    regrets = {name: metrics.pseudo_regret(h) for name, h in histories.items()}
    average = f"{legend}Moving average over {window:,} steps."
    lost = f"{legend}Expected {noun} lost against always choosing the best arm."
    return [
        curves(
            rates, looks, title=titles[0], note=average, y_title=f"{noun} per step", y_format=RATE
        ),
        curves(regrets, looks, title=titles[1], note=lost, y_title=f"{noun} lost", y_format=COUNT),
    ]
