"""What was found as plotly dictionaries, as `bandits.results.figures` draws everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bandits.base.formatting import duration, rounded, size
from bandits.results.figures import empty_figure
from bandits.results.style import REFERENCE, Spec

from .complexity import WAYS
from .request import Axis
from .results import CostReport, Curve, Quantity

# Okabe and Ito's again, and a sign of its own for each
_WAYS = {
    "passes": ("#D55E00", "circle"), "jacobian": ("#E69F00", "square"), "dual": ("#0072B2", "diamond"),
    "diagonal": ("#009E73", "triangle-up"), "last": ("#CC79A7", "cross"),
}  # fmt: skip
_FEW_TICKS = {"type": "log", "tickmode": "array", "tickvals": [m * 10.0**e for e in range(-6, 4) for m in (1, 2, 5)]}


def way_color(kind: str) -> str:
    """The colour of one of the ways to a confidence width, everywhere."""
    return _WAYS[kind][0]


def board(costs: CostReport, *, patience: float, memory: float) -> list[Spec]:
    """Five plots of cost, of time and memory against network, past and candidates, and one of agreement.

    Parameters
    ----------
    costs : CostReport
    patience : float
        Seconds that a decision with its update may take.
    memory : float
        Bytes that this machine has.
    """
    base = costs.question.sizes
    at = {"p": f"p = {base.p:,.0f}", "t": f"t = {base.t:,.0f}", "K": f"K = {base.K:,.0f}"}
    along: dict[Axis, tuple[str, str, float, float]] = {
        "p": ("network", "weights p", 60, max(1e6, 30 * base.p)),
        "t": ("past", "observations t", 40, 1e5),
        "K": ("candidates", "candidates K", 4, 1e4),
    }
    shown: tuple[tuple[Axis, Quantity], ...] = (
        ("p", "seconds"), ("p", "bytes"), ("t", "seconds"), ("t", "bytes"), ("K", "seconds"),
    )  # fmt: skip
    specs = []
    for axis, quantity in shown:
        name, x_title, low, high = along[axis]
        fixed = " and ".join(text for other, text in at.items() if other != axis)
        of_time = quantity == "seconds"
        limit = patience if of_time else memory
        curves = {kind: costs.curve(kind, axis, quantity, limit, until=high) for kind in WAYS}
        says = f"Dotted: {duration(patience)}" if of_time else f"Dotted: the {size(memory)} of this machine"
        specs.append(
            _scaling(
                curves, limit, quantity, x_title=x_title, x_range=(low, high),
                title=f"{'Time' if of_time else 'Memory'} against the {name}",
                note=f"{'One decision with its update' if of_time else 'What is held beside the network'}, at {fixed}. "
                f"Points: measured. Dashed: theory. {says}; ×: infeasible from here.",
            )
        )  # fmt: skip
    return [*specs, _agreement(costs)]


def _scaling(
    curves: Mapping[str, Curve],
    limit: float,
    quantity: Quantity,
    *,
    title: str,
    note: str,
    x_title: str,
    x_range: tuple[float, float],
) -> Spec:
    """What was measured as points on solid lines, theory dashed, the limit dotted, a cross where a line passes it."""
    told, low, high = (duration, 1e-5, 50 * limit) if quantity == "seconds" else (size, 1e3, 20 * limit)
    data: list[Spec] = []
    for kind, curve in curves.items():
        (color, symbol), label = _WAYS[kind], WAYS[kind].title
        common = {"type": "scatter", "name": label, "legendgroup": label}
        seen = curve.theory_y <= high
        if len(curve.theory_x):
            data.append({
                **common, "mode": "lines", "showlegend": not len(curve.x), "x": curve.theory_x[seen],
                "y": curve.theory_y[seen], "line": {"color": color, "width": 1.8, "dash": "dash"},
                "text": [f"about {told(y)}" for y in curve.theory_y[seen]], "hovertemplate": "%{text}",
            })  # fmt: skip
        if len(curve.x):
            data.append({
                **common, "mode": "lines+markers", "x": curve.x, "y": curve.y, "line": {"color": color, "width": 2.2},
                "marker": {"color": color, "symbol": symbol, "size": 7}, "text": [told(y) for y in curve.y],
                "hovertemplate": "%{text}",
            })  # fmt: skip
        if curve.limit is not None and 0 < curve.limit[0] <= x_range[1]:
            data.append({
                **common, "mode": "markers", "showlegend": False, "x": [curve.limit[0]], "y": [curve.limit[1]],
                "marker": {"color": color, "symbol": "x", "size": 11}, "text": [f"from {rounded(curve.limit[0])} on"],
                "hovertemplate": "infeasible %{text}",
            })  # fmt: skip
    if data:
        line = {"color": REFERENCE, "width": 1.2, "dash": "dot"}
        data.append({
            "type": "scatter", "mode": "lines", "name": told(limit), "x": list(x_range), "y": [limit, limit],
            "line": line, "meta": "reference", "hoverinfo": "skip",
        })  # fmt: skip
    layout: Spec = {
        "title": {"text": title},
        "meta": {"note": note},
        "xaxis": {"title": {"text": x_title}, "hoverformat": ",.3~r"}
        | _decades(*x_range, lambda value: f"{value:,.0f}"),
        "yaxis": {"title": {"text": ""}, **_decades(low, high, told, every=2 if quantity == "bytes" else 1)},
        "showlegend": False,
    }
    return {"data": data, "layout": layout} if data else empty_figure(layout, "The first times are on their way.")


def _decades(low: float, high: float, told: Callable[[float], str], every: int = 1) -> Spec:
    """A logarithmic axis with a label in words at every power of ten."""
    tens = [10.0**e for e in range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1, every)]
    return {
        "type": "log", "range": [float(np.log10(low)), float(np.log10(high))], "tickmode": "array", "tickvals": tens,
        "ticktext": [told(ten) for ten in tens],
    }  # fmt: skip


def _agreement(costs: CostReport) -> Spec:
    """Widths by the other ways against the exact ones, candidate by candidate."""
    shop = [a for a in costs.agreements if a.world.startswith("Pet shop")]
    data: list[Spec] = []
    for a in shop:
        (color, symbol), label = _WAYS[a.kind], WAYS[a.kind].title
        data.append({
            "type": "scatter", "mode": "markers", "name": label, "legendgroup": label, "x": np.array(a.exact),
            "y": np.array(a.widths), "marker": {"color": color, "symbol": symbol, "size": 6, "opacity": 0.6},
            "hovertemplate": "exact %{x:.3g}, here %{y:.3g}",
        })  # fmt: skip
    if data:
        ends = [float(side(np.concatenate([t["x"] for t in data]))) for side in (np.min, np.max)]
        line = {"color": REFERENCE, "width": 1.2, "dash": "dash"}
        data.append({
            "type": "scatter", "mode": "lines", "name": "equal", "x": ends, "y": ends, "line": line,
            "meta": "reference", "hoverinfo": "skip",
        })  # fmt: skip
    few = next((f" (p = {a.p:,})" for a in shop if WAYS[a.kind].exact), "")
    layout: Spec = {
        "title": {"text": "Do they agree?"},
        "meta": {"note": "Widths of products in the pet shop, at decisions that all ways looked at. Across: exact, by "
                 f"the dual. Up: by another way. Dashed: equal. K passes and Jacobian: on a small network{few}."},
        "xaxis": {"title": {"text": "exact width"}, **_FEW_TICKS},
        "yaxis": {"title": {"text": "width by this way"}, **_FEW_TICKS},
        "hovermode": "closest",
        "showlegend": False,
    }  # fmt: skip
    return {"data": data, "layout": layout} if data else empty_figure(layout, "Once all is timed.")
