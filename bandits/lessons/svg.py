"""Draw a figure of lines and points as SVG, for paper."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from bandits.base.formatting import number
from bandits.base.types import FloatArray
from bandits.results.figures.style import Spec

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 640, 300, 64, 24, 44, 12
_DASHES = {"dash": "8 4", "dashdot": "8 3 2 3", "longdash": "14 5", "dot": "2 3"}


def figure(spec: Spec, *, empty: bool = False) -> str:
    """Draw a figure.

    Parameters
    ----------
    spec : dict
        A figure of lines and points as plain plotly data.
    empty : bool
        Draw the axes without curves: a place to draw one's own. An axis has numbers where the
        figure has data, or its layout a range.
    """
    layout = spec["layout"]
    traces = [trace for trace in spec["data"] if len(trace["x"]) and trace.get("fill") is None]
    x_range, y_range = (
        _range([np.asarray(trace[axis], dtype=float) for trace in traces])
        if traces
        else tuple(layout[f"{axis}axis"].get("range") or ())
        for axis in ("x", "y")
    )
    if layout["yaxis"].get("scaleanchor") == "x":
        x_range, y_range = _one_scale(x_range, y_range)
    parts = [_axes(layout, x_range, y_range)]
    if not empty:
        parts += [_trace(trace, x_range, y_range) for trace in traces]
    title = html.escape(str(layout["title"]["text"]))
    legend = "" if empty else _legend(traces)
    return (
        f'<figure><figcaption>{title}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'  # noqa: E501
        f"{''.join(parts)}</svg>{legend}</figure>"
    )


def _range(values: Sequence[FloatArray]) -> tuple[float, float]:
    finite = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.empty(0)
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    room = 0.04 * (high - low) or 0.5
    return low - (room if low < 0 or low > 0.2 * high else low), high + room


def _one_scale(
    x_range: tuple[float, float], y_range: tuple[float, float]
) -> tuple[tuple[float, float], ...]:
    """Extend one of two ranges, on both sides, so that a unit is as long across as it is up."""
    sizes = (WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM - TOP)
    unit = max(
        (high - low) / size for (low, high), size in zip((x_range, y_range), sizes, strict=True)
    )
    middles = [(low + high) / 2 for low, high in (x_range, y_range)]
    return tuple(
        (m - unit * size / 2, m + unit * size / 2) for m, size in zip(middles, sizes, strict=True)
    )


def _place(
    x: FloatArray, y: FloatArray, x_range: tuple[float, float], y_range: tuple[float, float]
) -> list[str]:
    across = LEFT + (x - x_range[0]) / (x_range[1] - x_range[0]) * (WIDTH - LEFT - RIGHT)
    down = HEIGHT - BOTTOM - (y - y_range[0]) / (y_range[1] - y_range[0]) * (HEIGHT - BOTTOM - TOP)
    return [
        f"{a:.1f},{d:.1f}"
        for a, d in zip(across, down, strict=True)
        if np.isfinite(a) and np.isfinite(d)
    ]


def _trace(trace: Spec, x_range: tuple[float, float], y_range: tuple[float, float]) -> str:
    x, y = (np.asarray(trace[axis], dtype=float) for axis in ("x", "y"))
    points = _place(x, y, x_range, y_range)
    if trace["mode"] == "markers":
        color = trace["marker"]["color"]
        centres = (point.split(",") for point in points)
        return "".join(f'<circle cx="{a}" cy="{d}" r="5" fill="{color}"/>' for a, d in centres)
    line = trace.get("line", {})
    dash = _DASHES.get(line.get("dash", ""), "")
    return (
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{line.get("color", "#666")}" '
        f'stroke-width="{line.get("width", 2)}"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""}/>'  # noqa: E501
    )


def _axes(layout: Spec, x_range: tuple[float, ...], y_range: tuple[float, ...]) -> str:
    """Draw both axes; one without a range has no numbers."""
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<path d="M{LEFT},{TOP}V{floor}H{right}" fill="none" stroke="#444"/>']
    for x in _ticks(*x_range) if x_range else ():
        across = LEFT + (x - x_range[0]) / (x_range[1] - x_range[0]) * (right - LEFT)
        parts.append(f'<path d="M{across:.1f},{floor}v5" stroke="#444"/>')
        parts.append(
            f'<text x="{across:.1f}" y="{floor + 18}" text-anchor="middle">{number(x)}</text>'
        )
    for y in _ticks(*y_range) if y_range else ():
        down = floor - (y - y_range[0]) / (y_range[1] - y_range[0]) * (floor - TOP)
        parts.append(f'<path d="M{LEFT},{down:.1f}h-5" stroke="#444"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{down + 4:.1f}" text-anchor="end">{number(y)}</text>'
        )
    x_title, y_title = (
        html.escape(str(layout[axis]["title"]["text"])) for axis in ("xaxis", "yaxis")
    )
    middle = (floor + TOP) / 2
    return (
        f'{"".join(parts)}<text x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x_title}</text>'  # noqa: E501
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{y_title}</text>'  # noqa: E501
    )


def _ticks(low: float, high: float) -> FloatArray:
    """Return round numbers between two ends, about five."""
    rough = (high - low) / 5
    power = 10 ** np.floor(np.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda m: abs(m * power - rough))
    return np.asarray(np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step)


def _legend(traces: Sequence[Spec]) -> str:
    """Name each line once, with its colour."""
    seen: dict[str, str] = {}
    for trace in traces:
        if trace.get("showlegend", True) is False and trace.get("legendgroup") == "error":
            continue
        style = trace.get("line") or trace.get("marker") or {}
        seen.setdefault(str(trace.get("name", "")), str(style.get("color", "#666")))
    safe = {html.escape(name): html.escape(color) for name, color in seen.items()}
    items = "".join(
        f'<li><span style="background:{color}"></span>{name}</li>' for name, color in safe.items()
    )
    return f'<ul class="legend">{items}</ul>'
