"""Parts of figures, as plain plotly dictionaries: lines, points, axes, and the figure around them."""

from __future__ import annotations

from typing import Any

from bandits.base.types import FloatArray

from .style import REFERENCE, Spec


def line(name: str, x: Any, y: Any, color: str, dash: str = "solid", *, width: float = 2.2, **more: Any) -> Spec:
    """Draw a line; ``more`` are further entries of the trace, here and below."""
    look = {"color": color, "width": width, "dash": dash}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": look, **more}


def reference(name: str, x: Any, y: Any, *, dash: str = "dash", **more: Any) -> Spec:
    """Draw what curves are compared with: a thin grey line."""
    return line(name, x, y, REFERENCE, dash, width=1.2, meta="reference", **more)


def points(name: str, x: Any, y: Any, color: str, *, size: Any = 10, symbol: Any = "circle", **more: Any) -> Spec:
    """Draw points; sizes and symbols are those of all points or one each."""
    look = {"color": color, "size": size, "symbol": symbol}
    return {"type": "scatter", "mode": "markers", "name": name, "x": x, "y": y, "marker": look, **more}


def error_bars(above: FloatArray, color: str, *, below: FloatArray | None = None, thickness: float = 1.2) -> Spec:
    """Draw errors of points, of the same length on both sides unless ``below`` states the other one."""
    bars = {"type": "data", "array": above, "color": color, "thickness": thickness}
    return bars if below is None else {**bars, "symmetric": False, "arrayminus": below}


def axis(title: str, **more: Any) -> Spec:
    """Name an axis."""
    return {"title": {"text": title}, **more}


def chart(
    title: str,
    data: list[Spec],
    x: Spec,
    y: Spec,
    *,
    note: str = "",
    caption: str = "",
    legend: bool = True,
    **more: Any,
) -> Spec:
    """Put traces on two axes; the note explains the figure, the caption does so in a few words."""
    meta = {"note": note, **({"caption": caption} if caption else {})}
    layout = {"title": {"text": title}, "meta": meta, "showlegend": legend, "xaxis": x, "yaxis": y, **more}
    return {"data": data, "layout": layout}
