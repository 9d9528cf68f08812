"""Draw a report on LinUCB as plotly specifications."""

from __future__ import annotations

import math

import numpy as np

from bandits.base.formatting import count, duration, rounded, size
from bandits.results.figures.curves import empty_figure
from bandits.results.figures.style import NUMBER, Spec
from bandits.width_cost.figures import MethodStyle, decades, scaling_figure
from bandits.width_cost.request import CostAxis
from bandits.width_cost.results import Quantity

from .complexity import LINEAR_METHODS
from .results import LinearReport
from .text import condition_text, error_text

_STYLES = {
    kind: MethodStyle(LINEAR_METHODS[kind].title, colour, symbol)
    for kind, colour, symbol in (
        ("inverse", "#D55E00", "circle"), ("rank_one", "#0072B2", "diamond"), ("compiled", "#009E73", "triangle-up"),
    )
}  # fmt: skip
_CONDITION = "#CC79A7"


def linear_colour(kind: str) -> str:
    """Return the colour of a method."""
    return _STYLES[kind].colour


def linear_figures(report: LinearReport, *, max_seconds: float, max_bytes: float) -> list[Spec]:
    """Draw time and memory against the sizes, the condition number of A, and the errors of its inverse.

    Parameters
    ----------
    report : LinearReport
    max_seconds : float
        Limit of the time of a decision with its update.
    max_bytes : float
        Memory of the machine.
    """
    base = report.request.sizes
    axes: dict[CostAxis, tuple[str, str, float, float, str]] = {
        "p": ("features", "features d", 3, 2e5, f"K = {count(base.K)}"),
        "K": ("arms", "arms K", 1.5, 3e6, f"d = {count(base.d)}"),
    }
    specs = []
    shown: tuple[tuple[CostAxis, Quantity], ...] = (("p", "seconds"), ("p", "bytes"), ("K", "seconds"), ("K", "bytes"))
    for axis, quantity in shown:
        name, x_title, low, high, fixed = axes[axis]
        of_time = quantity == "seconds"
        limit = max_seconds if of_time else max_bytes
        dotted = f"the limit of {duration(max_seconds)}" if of_time else f"the {size(max_bytes)} of this machine"
        specs.append(
            scaling_figure(
                {kind: report.curve(kind, axis, quantity, limit, until=high) for kind in LINEAR_METHODS},
                limit, quantity, styles=_STYLES, x_title=x_title, x_range=(low, high), fastest=1e-6,
                title=f"{'Time' if of_time else 'Memory'} vs. {name}",
                note=f"{'One decision with its update' if of_time else 'All matrices and vectors'}, at {fixed}. "
                f"Points: measured. Dashed: extrapolated. Dotted: {dotted}. ×: infeasible from here.",
            )
        )  # fmt: skip
    return [*specs, _conditions(report), _errors(report)]


def _conditions(report: LinearReport) -> Spec:
    """Draw the condition number of A before inversion against the observations."""
    t = np.array([c.t for c in report.conditions], dtype=np.float64)
    lines = (("largest", "solid", "circle"), ("median", "dash", "circle-open"))
    data: list[Spec] = [
        {
            "type": "scatter", "mode": "lines+markers", "name": f"{name} over the arms", "x": t,
            "y": np.array([getattr(c, name) for c in report.conditions]),
            "line": {"color": _CONDITION, "width": 2, "dash": dash},
            "marker": {"color": _CONDITION, "symbol": symbol, "size": 7},
            "text": [condition_text(getattr(c, name)) for c in report.conditions], "hovertemplate": "%{text}",
        }
        for name, dash, symbol in lines
    ]  # fmt: skip
    request = report.request
    note = (
        f"Ratio of the largest to the smallest eigenvalue, before inversion, with λ = {request.ridge:g} and correlated "
        f"features (ρ = {request.correlation:g}). Solid: largest of the arms. Dashed: median."
    )
    high = max((c.largest for c in report.conditions), default=1.0)
    return _over_time(data if len(t) else [], "Condition number of A", note, (0.7, max(100.0, 3 * high)), rounded)


def _errors(report: LinearReport) -> Spec:
    """Draw the rounding errors of the inverses against the observations."""
    t = np.array([c.t for c in report.conditions], dtype=np.float64)
    smallest = float(np.finfo(float).eps)
    data: list[Spec] = []
    for kind, (label, colour, symbol) in _STYLES.items() if len(t) else ():
        y = np.array([max(c.errors[kind], smallest / 10) for c in report.conditions])
        data.append({
            "type": "scatter", "mode": "lines+markers", "name": label, "legendgroup": label, "x": t, "y": y,
            "line": {"color": colour, "width": 2}, "marker": {"color": colour, "symbol": symbol, "size": 7},
            "text": [error_text(c.errors[kind]) for c in report.conditions], "hovertemplate": "%{text}",
        })  # fmt: skip
    note = (
        "Largest entry of |A A⁻¹ − I| over the arms, in double precision. Sherman–Morrison updates add up their "
        "rounding errors; a fresh inverse has those of one inversion."
    )
    high = max((e for c in report.conditions for e in c.errors.values()), default=1e-12)
    return _over_time(data, "Error of the inverse", note, (1e-16, max(1e-12, 10 * high)), error_text, every=2)


def _over_time(
    data: list[Spec], title: str, note: str, y_range: tuple[float, float], format_value: object, every: int = 1
) -> Spec:
    assert callable(format_value)
    ends = (5.0, 10.0)
    if data:
        ends = float(data[0]["x"][0]) / 1.5, float(data[0]["x"][-1]) * 1.5
    decades_shown = math.log10(y_range[1] / y_range[0])
    layout: Spec = {
        "title": {"text": title},
        "meta": {"note": note},
        "xaxis": {"title": {"text": "observations t"}, "hoverformat": NUMBER} | decades(*ends, lambda v: f"{v:,.0f}"),
        "yaxis": {"title": {"text": ""}, **decades(*y_range, format_value, max(every, math.ceil(decades_shown / 8)))},
        "showlegend": False,
    }
    return {"data": data, "layout": layout} if data else empty_figure(layout, "Condition numbers are computed last.")
