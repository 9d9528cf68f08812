"""The parts of figures as plain plotly dictionaries: lines, points, intervals, axes, and the layout
around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import REFERENCE, Spec


def line(
    name: str,
    x: Any,
    y: Any,
    color: str = REFERENCE,
    dash: str = "solid",
    *,
    width: float = 2.2,
    **more: Any,
) -> Spec:
    """Draw a line; ``more`` are other attributes of plotly's trace."""
    look = {"color": color, "width": width, "dash": dash}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": look, **more}


def reference(name: str, x: Any, y: Any, dash: str = "dash", **more: Any) -> Spec:
    """Draw a thin grey line that curves are compared with."""
    return line(name, x, y, dash=dash, width=1.2, meta="reference", **more)


def points(
    name: str, x: Any, y: Any, color: str, size: Any = 8, symbol: Any = "circle", **more: Any
) -> Spec:
    """Draw points; sizes and symbols may differ."""
    marker = {"color": color, "size": size, "symbol": symbol}
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": x,
        "y": y,
        "marker": marker,
        **more,
    }


def ring(
    name: str,
    x: Any,
    y: Any,
    color: str,
    size: float = 14,
    symbol: str = "circle-open",
    edge: float = 2,
) -> Spec:
    """Mark points with an outlined symbol."""
    trace = points(name, x, y, color, size, symbol, hoverinfo="skip")
    trace["marker"]["line"] = {"width": edge, "color": color}
    return trace


def hover(text: Any, template: str = "%{text}") -> Spec:
    """Show a text for each point under the pointer."""
    return {"text": text, "hovertemplate": f"{template}<extra></extra>"}


def error_bars(above: Any, color: str, *, below: Any = None, **look: Any) -> Spec:
    """Draw errors of points, of the same length on both sides unless ``below`` states the other
    one.
    """
    bars = {"type": "data", "array": above, "color": color, "thickness": 1.2, **look}
    return bars if below is None else {**bars, "symmetric": False, "arrayminus": below}


def axis(title: str, **more: Any) -> Spec:
    """Return an axis with its title."""
    return {"title": {"text": title}, **more}


def named_rows(names: Sequence[str], ends: Sequence[float], **more: Any) -> Spec:
    """Return a vertical axis with a name at 0, 1, 2, ..."""
    ticks = {"tickvals": list(range(len(names))), "ticktext": list(names)}
    return {**ticks, "automargin": True, "range": list(ends), **more}


def drawing(
    data: list[Spec],
    title: str = "",
    note: str = "",
    *,
    caption: str = "",
    x: Spec | None = None,
    y: Spec | None = None,
    legend: bool = False,
    empty: str = "",
    meta: Spec | None = None,
    **more: Any,
) -> Spec:
    """Lay out a figure; without data it shows the sentence ``empty``, if there is one.

    Parameters
    ----------
    note, caption : str
        Explanation of the figure, and a few words for places where the note is shown on request
        only.
    meta : dict, optional
        Further facts of the figure for the page.
    """
    told = {"note": note, **({"caption": caption} if caption else {}), **(meta or {})}
    layout: Spec = {"title": {"text": title}, "meta": told, "showlegend": legend, **more}
    layout |= {name: one for name, one in (("xaxis", x), ("yaxis", y)) if one is not None}
    return empty_figure(layout, empty) if empty and not data else {"data": data, "layout": layout}


def empty_figure(layout: Spec, why: str) -> Spec:
    """Make a figure without curves that shows the reason."""
    annotation = {
        "text": why,
        "showarrow": False,
        "xref": "paper",
        "yref": "paper",
        "x": 0.5,
        "y": 0.5,
    }
    return {"data": [], "layout": {**layout, "annotations": [annotation]}}
