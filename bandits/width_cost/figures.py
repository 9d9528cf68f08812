"""Draw a cost report as plotly specifications."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bandits.base.formatting import count, duration, rounded, size
from bandits.results.figures.parts import axis, drawing, line, points, reference
from bandits.results.figures.style import NUMBER, Spec, tick_text

from .complexity import LINEAR_METHODS, NEURAL_METHODS, Method
from .request import LinearRequest
from .results import CostCurve, CostReport, Quantity
from .text import error_text

_TICKS = [m * 10.0**e for e in range(-6, 4) for m in (1, 2, 5)]
_FEW_TICKS = {
    "type": "log",
    "tickmode": "array",
    "tickvals": _TICKS,
    "ticktext": [tick_text(t) for t in _TICKS],
}
_CONDITION = "#CC79A7"


def cost_figures(report: CostReport, *, max_seconds: float, max_bytes: float) -> list[Spec]:
    """Draw time and memory against each size.

    Then agreements, or condition numbers and errors of the inverse.

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
    for kind, size_axis in request.axes.items():
        high = max(size_axis.high, 30 * base.along(kind)) if kind == "p" else size_axis.high
        others = [
            f"{other.symbol} = {count(base.along(k))}"
            for k, other in request.axes.items()
            if k != kind
        ]
        for quantity, limit in limits.items():
            of_time = quantity == "seconds"
            dotted = (
                f"the limit of {duration(max_seconds)}"
                if of_time
                else f"the {size(max_bytes)} of this machine"
            )
            specs.append(
                scaling_figure(
                    {
                        method: report.curve(method, kind, quantity, limit, until=high)
                        for method in report.methods
                    },
                    limit,
                    quantity,
                    methods=report.methods,
                    x_title=size_axis.title,
                    x_range=(size_axis.low, high),
                    fastest=request.fastest,
                    title=f"{'Time' if of_time else 'Memory'} vs. {size_axis.name}",
                    note=(
                        f"{'One decision with its update' if of_time else request.held}, at "
                        f"{' and '.join(others)}. Points: measured. Dashed: extrapolated. Dotted: "
                        f"{dotted}. ×: infeasible from here."
                    ),
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
    """Draw measured points, dashed extrapolations, the dotted limit, crossings as ×.

    Times from ``fastest`` seconds.
    """
    seconds = quantity == "seconds"
    format_value, low, high = (
        (duration, fastest, 50 * limit) if seconds else (size, 1e3, max(20 * limit, 1e12))
    )
    data: list[Spec] = []
    for kind, curve in curves.items():
        label, colour, symbol = methods[kind].title, methods[kind].colour, methods[kind].symbol
        x, y = (
            values[curve.extrapolated_y <= high]
            for values in (curve.extrapolated_x, curve.extrapolated_y)
        )
        traces: list[Spec] = []
        if len(curve.extrapolated_x):
            text = [f"about {format_value(each)}" for each in y]
            traces.append(
                line(label, x, y, colour, "dash", width=1.8, text=text, hovertemplate="%{text}")
            )
            traces[0]["showlegend"] = not len(curve.x)
        if len(curve.x):
            text = [format_value(each) for each in curve.y]
            traces.append(_measured(label, curve.x, curve.y, colour, symbol, text=text, width=2.2))
        if curve.limit is not None and 0 < curve.limit[0] <= x_range[1]:
            cross = points(
                label, [curve.limit[0]], [curve.limit[1]], colour, 11, "x", showlegend=False
            )
            text = [f"from {rounded(curve.limit[0])}"]
            traces.append({**cross, "text": text, "hovertemplate": "infeasible %{text}"})
        data += [{**trace, "legendgroup": label} for trace in traces]
    if data:
        data.append(
            reference(format_value(limit), list(x_range), [limit, limit], "dot", hoverinfo="skip")
        )
    return drawing(
        data,
        title,
        note,
        x=axis(x_title, hoverformat=NUMBER, **decades(*x_range, lambda value: f"{value:,.0f}")),
        y=axis("", **decades(low, high, format_value, every=1 if seconds else 2)),
        empty="Waiting for the first measurement.",
    )


def _measured(
    name: str,
    x: Any,
    y: Any,
    color: str,
    symbol: str,
    text: list[str],
    *,
    width: float = 2,
    dash: str = "solid",
) -> Spec:
    """Draw measured values: points that are joined by a line."""
    marker = points(name, x, y, color, 7, symbol)["marker"]
    trace = line(
        name, x, y, color, dash, width=width, text=text, hovertemplate="%{text}", marker=marker
    )
    return {**trace, "mode": "lines+markers"}


def decades(low: float, high: float, format_value: Callable[[float], str], every: int = 1) -> Spec:
    """Return a logarithmic axis with a formatted label at the powers of ten."""
    tens = [
        10.0**e
        for e in range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1, every)
    ]
    return {
        "type": "log",
        "range": [float(np.log10(low)), float(np.log10(high))],
        "tickmode": "array",
        "tickvals": tens,
        "ticktext": [format_value(ten) for ten in tens],
    }


def _agreement(report: CostReport) -> Spec:
    """Draw the widths of other methods against the exact ones."""
    compared = [a for a in report.agreements if a.simulator.startswith("Pet shop")]
    data: list[Spec] = []
    for a in compared:
        method = NEURAL_METHODS[a.kind]
        look, said = (
            (method.colour, 6, method.symbol),
            f"exact %{{x:{NUMBER}}}, this method %{{y:{NUMBER}}}",
        )
        dots = points(
            method.title, np.array(a.exact), np.array(a.widths), *look, hovertemplate=said
        )
        dots["marker"]["opacity"] = 0.6
        data.append({**dots, "legendgroup": method.title})
    if data:
        ends = [float(side(np.concatenate([t["x"] for t in data]))) for side in (np.min, np.max)]
        data.append(reference("equal", ends, ends, hoverinfo="skip"))
    weights = next((f" (p = {a.p:,})" for a in compared if NEURAL_METHODS[a.kind].exact), "")
    return drawing(
        data,
        "Agreement with exact widths",
        "Widths of products in the pet shop at the same decisions. Horizontal: exact width "
        "(dual). Vertical: width by each method. Dashed: equal. Methods with a p × p matrix use "
        f"a small network{weights}.",
        x=axis("exact width", **_FEW_TICKS),
        y=axis("width by method", **_FEW_TICKS),
        hovermode="closest",
        empty="Agreement is measured last.",
    )


def _conditions(report: CostReport, request: LinearRequest) -> Spec:
    """Draw the condition number of A before inversion against the observations."""
    t = np.array([c.t for c in report.conditions], dtype=np.float64)
    lines = (("largest", "solid", "circle"), ("median", "dash", "circle-open"))
    data = []
    for name, dash, symbol in lines:
        values = [getattr(c, name) for c in report.conditions]
        text = [rounded(value) for value in values]
        title = f"{name} over the arms"
        data.append(_measured(title, t, np.array(values), _CONDITION, symbol, text, dash=dash))
    note = (
        "Ratio of the largest to the smallest eigenvalue, before inversion, with λ = "
        f"{request.ridge:g} and correlated features (ρ = {request.correlation:g}). Solid: largest "
        "of the arms. Dashed: median."
    )
    high = max((c.largest for c in report.conditions), default=1.0)
    return _over_time(
        data if len(t) else [], "Condition number of A", note, (0.7, max(100.0, 3 * high)), rounded
    )


def _errors(report: CostReport) -> Spec:
    """Draw the rounding errors of the inverses against the observations."""
    t = np.array([c.t for c in report.conditions], dtype=np.float64)
    smallest = float(np.finfo(float).eps)
    data: list[Spec] = []
    for kind, method in LINEAR_METHODS.items() if len(t) else ():
        errors = [c.errors[kind] for c in report.conditions]
        y, text = (
            np.array([max(error, smallest / 10) for error in errors]),
            [error_text(error) for error in errors],
        )
        trace = _measured(method.title, t, y, method.colour, method.symbol, text)
        data.append({**trace, "legendgroup": method.title})
    note = (
        "Largest entry of |A A⁻¹ − I| over the arms, in double precision. Sherman–Morrison "
        "updates add up their rounding errors; a fresh inverse has those of one inversion."
    )
    high = max((e for c in report.conditions for e in c.errors.values()), default=1e-12)
    return _over_time(
        data, "Error of the inverse", note, (1e-16, max(1e-12, 10 * high)), error_text, every=2
    )


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
    return drawing(
        data,
        title,
        note,
        x=axis("observations t", hoverformat=NUMBER, **decades(*ends, lambda v: f"{v:,.0f}")),
        y=axis("", **decades(*y_range, format_value, max(every, math.ceil(decades_shown / 8)))),
        empty="Condition numbers are computed last.",
    )
