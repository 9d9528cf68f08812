"""Draw a cost report as plotly specifications."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from bandits.base.formatting import count, duration, rounded, size
from bandits.results.figures.curves import empty_figure
from bandits.results.figures.style import NUMBER, REFERENCE, Spec, tick_text

from .complexity import LINEAR_METHODS, NEURAL_METHODS, Method
from .request import LinearRequest
from .results import CostCurve, CostReport, Quantity
from .text import error_text

_TICKS = [m * 10.0**e for e in range(-6, 4) for m in (1, 2, 5)]
_FEW_TICKS = {"type": "log", "tickmode": "array", "tickvals": _TICKS, "ticktext": [tick_text(t) for t in _TICKS]}
_CONDITION = "#CC79A7"


def cost_figures(report: CostReport, *, max_seconds: float, max_bytes: float) -> list[Spec]:
    """Draw time and memory against each size; then agreements, or condition numbers and errors of the inverse.

    Parameters
    ----------
    report : CostReport
    max_seconds : float
        Limit of the time of a decision with its update.
    max_bytes : float
        Memory of the machine.
    """
    request, specs = report.request, []
    base = request.sizes
    limits: dict[Quantity, float] = {"seconds": max_seconds, "bytes": max_bytes}
    for kind, axis in request.axes.items():
        high = max(axis.high, 30 * base.along(kind)) if kind == "p" else axis.high
        others = [f"{other.symbol} = {count(base.along(k))}" for k, other in request.axes.items() if k != kind]
        for quantity, limit in limits.items():
            of_time = quantity == "seconds"
            dotted = f"the limit of {duration(max_seconds)}" if of_time else f"the {size(max_bytes)} of this machine"
            specs.append(
                scaling_figure(
                    {method: report.curve(method, kind, quantity, limit, until=high) for method in report.methods},
                    limit,
                    quantity,
                    methods=report.methods,
                    x_title=axis.title,
                    x_range=(axis.low, high),
                    fastest=request.fastest,
                    title=f"{'Time' if of_time else 'Memory'} vs. {axis.name}",
                    note=f"{'One decision with its update' if of_time else request.held}, at {' and '.join(others)}. "
                    f"Points: measured. Dashed: extrapolated. Dotted: {dotted}. ×: infeasible from here.",
                )
            )
    if isinstance(request, LinearRequest):
        return [*specs, _conditions(report, request), _errors(report)]
    return [*specs, _agreement(report)]


def scaling_figure(
    curves: Mapping[str, CostCurve],
    limit: float,
    quantity: Quantity,
    *,
    methods: Mapping[str, Method],
    title: str,
    note: str,
    x_title: str,
    x_range: tuple[float, float],
    fastest: float,
) -> Spec:
    """Draw measured points, dashed extrapolations, the dotted limit, crossings as ×; times from ``fastest`` seconds."""
    seconds = quantity == "seconds"
    format_value, low, high = (duration, fastest, 50 * limit) if seconds else (size, 1e3, max(20 * limit, 1e12))
    data: list[Spec] = []
    for kind, curve in curves.items():
        label, colour, symbol = methods[kind].title, methods[kind].colour, methods[kind].symbol
        common = {"type": "scatter", "name": label, "legendgroup": label}
        visible = curve.extrapolated_y <= high
        if len(curve.extrapolated_x):
            data.append({
                **common, "mode": "lines", "showlegend": not len(curve.x), "x": curve.extrapolated_x[visible],
                "y": curve.extrapolated_y[visible], "line": {"color": colour, "width": 1.8, "dash": "dash"},
                "text": [f"about {format_value(y)}" for y in curve.extrapolated_y[visible]],
                "hovertemplate": "%{text}",
            })  # fmt: skip
        if len(curve.x):
            data.append({
                **common, "mode": "lines+markers", "x": curve.x, "y": curve.y, "line": {"color": colour, "width": 2.2},
                "marker": {"color": colour, "symbol": symbol, "size": 7}, "text": [format_value(y) for y in curve.y],
                "hovertemplate": "%{text}",
            })  # fmt: skip
        if curve.limit is not None and 0 < curve.limit[0] <= x_range[1]:
            data.append({
                **common, "mode": "markers", "showlegend": False, "x": [curve.limit[0]], "y": [curve.limit[1]],
                "marker": {"color": colour, "symbol": "x", "size": 11}, "text": [f"from {rounded(curve.limit[0])}"],
                "hovertemplate": "infeasible %{text}",
            })  # fmt: skip
    if data:
        line = {"color": REFERENCE, "width": 1.2, "dash": "dot"}
        data.append({
            "type": "scatter", "mode": "lines", "name": format_value(limit), "x": list(x_range), "y": [limit, limit],
            "line": line, "meta": "reference", "hoverinfo": "skip",
        })  # fmt: skip
    layout: Spec = {
        "title": {"text": title},
        "meta": {"note": note},
        "xaxis": {"title": {"text": x_title}, "hoverformat": NUMBER} | decades(*x_range, lambda value: f"{value:,.0f}"),
        "yaxis": {"title": {"text": ""}, **decades(low, high, format_value, every=1 if seconds else 2)},
        "showlegend": False,
    }
    return {"data": data, "layout": layout} if data else empty_figure(layout, "Waiting for the first measurement.")


def decades(low: float, high: float, format_value: Callable[[float], str], every: int = 1) -> Spec:
    """Return a logarithmic axis with a formatted label at the powers of ten."""
    tens = [10.0**e for e in range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1, every)]
    return {
        "type": "log", "range": [float(np.log10(low)), float(np.log10(high))], "tickmode": "array", "tickvals": tens,
        "ticktext": [format_value(ten) for ten in tens],
    }  # fmt: skip


def _agreement(report: CostReport) -> Spec:
    """Draw the widths of other methods against the exact ones."""
    compared = [a for a in report.agreements if a.simulator.startswith("Pet shop")]
    data: list[Spec] = []
    for a in compared:
        method = NEURAL_METHODS[a.kind]
        colour, symbol, label = method.colour, method.symbol, method.title
        data.append({
            "type": "scatter", "mode": "markers", "name": label, "legendgroup": label, "x": np.array(a.exact),
            "y": np.array(a.widths), "marker": {"color": colour, "symbol": symbol, "size": 6, "opacity": 0.6},
            "hovertemplate": f"exact %{{x:{NUMBER}}}, this method %{{y:{NUMBER}}}",
        })  # fmt: skip
    if data:
        ends = [float(side(np.concatenate([t["x"] for t in data]))) for side in (np.min, np.max)]
        line = {"color": REFERENCE, "width": 1.2, "dash": "dash"}
        data.append({
            "type": "scatter", "mode": "lines", "name": "equal", "x": ends, "y": ends, "line": line,
            "meta": "reference", "hoverinfo": "skip",
        })  # fmt: skip
    weights = next((f" (p = {a.p:,})" for a in compared if NEURAL_METHODS[a.kind].exact), "")
    layout: Spec = {
        "title": {"text": "Agreement with exact widths"},
        "meta": {"note": "Widths of products in the pet shop at the same decisions. Horizontal: exact width (dual). "
                 "Vertical: width by each method. Dashed: equal. Methods with a p × p matrix use a small "
                 f"network{weights}."},
        "xaxis": {"title": {"text": "exact width"}, **_FEW_TICKS},
        "yaxis": {"title": {"text": "width by method"}, **_FEW_TICKS},
        "hovermode": "closest",
        "showlegend": False,
    }  # fmt: skip
    return {"data": data, "layout": layout} if data else empty_figure(layout, "Agreement is measured last.")


def _conditions(report: CostReport, request: LinearRequest) -> Spec:
    """Draw the condition number of A before inversion against the observations."""
    t = np.array([c.t for c in report.conditions], dtype=np.float64)
    lines = (("largest", "solid", "circle"), ("median", "dash", "circle-open"))
    data: list[Spec] = [
        {
            "type": "scatter", "mode": "lines+markers", "name": f"{name} over the arms", "x": t,
            "y": np.array([getattr(c, name) for c in report.conditions]),
            "line": {"color": _CONDITION, "width": 2, "dash": dash},
            "marker": {"color": _CONDITION, "symbol": symbol, "size": 7},
            "text": [rounded(getattr(c, name)) for c in report.conditions], "hovertemplate": "%{text}",
        }
        for name, dash, symbol in lines
    ]  # fmt: skip
    note = (
        f"Ratio of the largest to the smallest eigenvalue, before inversion, with λ = {request.ridge:g} and correlated "
        f"features (ρ = {request.correlation:g}). Solid: largest of the arms. Dashed: median."
    )
    high = max((c.largest for c in report.conditions), default=1.0)
    return _over_time(data if len(t) else [], "Condition number of A", note, (0.7, max(100.0, 3 * high)), rounded)


def _errors(report: CostReport) -> Spec:
    """Draw the rounding errors of the inverses against the observations."""
    t = np.array([c.t for c in report.conditions], dtype=np.float64)
    smallest = float(np.finfo(float).eps)
    data: list[Spec] = []
    for kind, method in LINEAR_METHODS.items() if len(t) else ():
        label, colour, symbol = method.title, method.colour, method.symbol
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
    data: list[Spec],
    title: str,
    note: str,
    y_range: tuple[float, float],
    format_value: Callable[[float], str],
    every: int = 1,
) -> Spec:
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
