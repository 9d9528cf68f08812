"""Draw a cost report as plotly specifications."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from bandits.base.formatting import duration, rounded, size
from bandits.results.figures.curves import empty_figure
from bandits.results.figures.style import NUMBER, REFERENCE, Spec, tick_text

from .complexity import METHODS
from .request import CostAxis
from .results import CostCurve, CostReport, Quantity

# colour (Okabe and Ito) and marker of each method
_STYLES = {
    "passes": ("#D55E00", "circle"), "jacobian": ("#E69F00", "square"), "dual": ("#0072B2", "diamond"),
    "diagonal": ("#009E73", "triangle-up"), "last": ("#CC79A7", "cross"),
    "ensemble": ("#56B4E9", "triangle-down"), "dropout": ("#7A5FD0", "star"),
}  # fmt: skip


class MethodStyle(NamedTuple):
    """Name, colour and marker of a method in all plots."""

    title: str
    colour: str
    symbol: str


_LABELLED = {kind: MethodStyle(METHODS[kind].title, *style) for kind, style in _STYLES.items()}
_TICKS = [m * 10.0**e for e in range(-6, 4) for m in (1, 2, 5)]
_FEW_TICKS = {"type": "log", "tickmode": "array", "tickvals": _TICKS, "ticktext": [tick_text(t) for t in _TICKS]}


def method_colour(kind: str) -> str:
    """Return the colour of a method."""
    return _STYLES[kind][0]


def cost_figures(report: CostReport, *, max_seconds: float, max_bytes: float) -> list[Spec]:
    """Draw time and memory against the sizes, and the agreement of the widths.

    Parameters
    ----------
    report : CostReport
    max_seconds : float
        Limit of the time of a decision with its update.
    max_bytes : float
        Memory of the machine.
    """
    base = report.request.sizes
    values = {"p": f"p = {base.p:,.0f}", "t": f"t = {base.t:,.0f}", "K": f"K = {base.K:,.0f}"}
    axes: dict[CostAxis, tuple[str, str, float, float]] = {
        "p": ("network size", "weights p", 60, max(3e6, 30 * base.p)),
        "t": ("observations", "observations t", 40, 1e5),
        "K": ("candidates", "candidates K", 4, 3e6),
    }
    shown: tuple[tuple[CostAxis, Quantity], ...] = (
        ("p", "seconds"), ("p", "bytes"), ("t", "seconds"), ("t", "bytes"), ("K", "seconds"), ("K", "bytes"),
    )  # fmt: skip
    specs = []
    for axis, quantity in shown:
        name, x_title, low, high = axes[axis]
        fixed = " and ".join(text for other, text in values.items() if other != axis)
        of_time = quantity == "seconds"
        limit = max_seconds if of_time else max_bytes
        curves = {kind: report.curve(kind, axis, quantity, limit, until=high) for kind in METHODS}
        dotted = f"the limit of {duration(max_seconds)}" if of_time else f"the {size(max_bytes)} of this machine"
        specs.append(
            scaling_figure(
                curves, limit, quantity, styles=_LABELLED, x_title=x_title, x_range=(low, high),
                title=f"{'Time' if of_time else 'Memory'} vs. {name}",
                note=f"{'One decision with its update' if of_time else 'Memory without the network'}, at {fixed}. "
                f"Points: measured. Dashed: extrapolated. Dotted: {dotted}. ×: infeasible from here.",
            )
        )  # fmt: skip
    return [*specs, _agreement(report)]


def scaling_figure(
    curves: Mapping[str, CostCurve],
    limit: float,
    quantity: Quantity,
    *,
    styles: Mapping[str, MethodStyle],
    title: str,
    note: str,
    x_title: str,
    x_range: tuple[float, float],
    fastest: float = 1e-5,
) -> Spec:
    """Draw measured points, dashed extrapolations, the dotted limit, crossings as ×; times from ``fastest`` seconds."""
    seconds = quantity == "seconds"
    format_value, low, high = (duration, fastest, 50 * limit) if seconds else (size, 1e3, max(20 * limit, 1e12))
    data: list[Spec] = []
    for kind, curve in curves.items():
        label, colour, symbol = styles[kind]
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
        (colour, symbol), label = _STYLES[a.kind], METHODS[a.kind].title
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
    weights = next((f" (p = {a.p:,})" for a in compared if METHODS[a.kind].exact), "")
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
