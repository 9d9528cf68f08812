"""Figures of the design matrix's spectrum over time: a map, and an animation.

Plain plotly dictionaries.
"""

from __future__ import annotations

import numpy as np

from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.figures.curves import curves
from bandits.results.figures.parts import axis, drawing, empty_figure, reference
from bandits.results.figures.style import Spec, Style, log_ticks
from bandits.results.metrics import Band

from .finding import NO_DESIGN_MATRIX

# ranks up to which each has a tick of its own
MAX_TICKS = 10
# legible on light and dark, and on a button's grey under the pointer
_INK = "#787878"
_FAINT = "rgba(128,128,128,0.25)"
_STILL = {
    "frame": {"duration": 0, "redraw": False},
    "transition": {"duration": 0},
    "mode": "immediate",
}


def spectrum_map(history: History) -> Spec:
    """Draw eigenvalues by rank and step as a heat map; median over replications and arms."""
    note = (
        "Eigenvalues of the design matrix A by rank (rank 1: the largest) over time, on a "
        "logarithmic scale; median "
    )
    note += (
        "over replications and arms. An upper edge that stays dark: directions that are never "
        "explored."
    )
    spec = drawing([], "Spectrum over time", x=axis("step"), y=axis("eigenvalue rank"), note=note)
    snapshots = _positive_spectra(history)
    if not snapshots:
        return empty_figure(spec["layout"], NO_DESIGN_MATRIX)
    ranks = max(len(band.mid) for _, band in snapshots)
    z = np.full((ranks, len(snapshots)), np.nan)
    for i, (_, band) in enumerate(snapshots):
        z[: len(band.mid), i] = np.log10(band.mid)
    if ranks <= MAX_TICKS:
        spec["layout"]["yaxis"]["dtick"] = 1
    # colours span a power of ten at least, or they would show rounding errors
    least = round(float(np.nanmin(z)), 6)
    steps = np.array([step for step, _ in snapshots], float)
    trace = {
        "type": "heatmap",
        "x": steps,
        "y": np.arange(1.0, ranks + 1),
        "z": z,
        "zmin": least,
        "zmax": max(float(np.nanmax(z)), least + 1),
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": "log₁₀ λ"}, "thickness": 10},
        "hovertemplate": "step %{x:,}, rank %{y}: λ = 10^%{z:.2f}<extra></extra>",
    }
    return {**spec, "data": [trace]}


def _positive_spectra(history: History) -> list[tuple[int, Band]]:
    """Return eigenvalues by rank at every snapshot at which all are above zero."""
    snapshots = [(s.step, metrics.spectrum(history, s.step)) for s in history.spectra]
    return [(step, band) for step, band in snapshots if band is not None and (band.mid > 0).all()]


def spectrum_animation(history: History, label: str, style: Style) -> Spec | None:
    """Animate the spectrum from snapshot to snapshot, with a play button and a slider.

    None from fewer than two.

    Axes are the same in all frames; the dotted line is the first snapshot. A plotly figure with
    frames."""
    snapshots = _positive_spectra(history)
    if len(snapshots) < 2:
        return None
    bands = [band for _, band in snapshots]
    specs = [curves({label: band}, {label: style}, title="", note="", log_y=True) for band in bands]
    edges = [edge[edge > 0] for band in bands for edge in (band.low, band.high)]
    logs, ticks = np.log10(np.concatenate(edges)), log_ticks(edges)
    # half a power of ten at least
    margin = max(0.05 * float(np.ptp(logs)), (0.5 - float(np.ptp(logs))) / 2) + 0.02
    frames = [
        {"name": f"{step:,}", "data": spec["data"], "traces": list(range(len(spec["data"])))}
        for (step, _), spec in zip(snapshots, specs, strict=True)
    ]
    first = reference(f"step {snapshots[0][0]:,}", bands[0].x, bands[0].mid, dash="dot")
    ranks = max(len(band.x) for band in bands)
    layout: Spec = {
        "showlegend": False,
        "hovermode": "x unified",
        "margin": {"l": 60, "r": 12, "t": 8, "b": 10},
        "xaxis": {
            "title": {"text": "eigenvalue rank"},
            "range": [0.7, ranks + 0.3],
            **({"dtick": 1} if ranks <= MAX_TICKS else {}),
        },
        "yaxis": {
            **specs[-1]["layout"]["yaxis"],
            **ticks,
            "title": {"text": "eigenvalue of the design matrix A"},
            "range": [float(logs.min()) - margin, float(logs.max()) + margin],
        },
        "updatemenus": [_buttons()],
        "sliders": [_slider([frame["name"] for frame in frames])],
    }
    return {"data": [*specs[-1]["data"], first], "layout": layout, "frames": frames}


def _buttons() -> Spec:
    play = {
        "frame": {"duration": 300, "redraw": False},
        "transition": {"duration": 0},
        "mode": "immediate",
    }
    return {
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "x": 0,
        "xanchor": "left",
        "y": -0.3,
        "yanchor": "top",
        "pad": {"t": 4},
        "font": {"color": _INK, "size": 12},
        "bgcolor": "rgba(0,0,0,0)",
        "bordercolor": _FAINT,
        "buttons": [
            {"label": "▶ Play", "method": "animate", "args": [None, play]},
            {"label": "❚❚", "method": "animate", "args": [[None], _STILL]},
        ],
    }


def _slider(names: list[str]) -> Spec:
    steps = [{"label": name, "method": "animate", "args": [[name], _STILL]} for name in names]
    return {
        "active": len(names) - 1,
        "x": 0,
        "len": 1,
        "y": -0.3,
        "yanchor": "top",
        "pad": {"t": 8, "b": 0},
        "steps": steps,
        "ticklen": 0,
        "minorticklen": 0,
        "font": {"color": "rgba(0,0,0,0)", "size": 1},
        "currentvalue": {
            "prefix": "step ",
            "xanchor": "right",
            "offset": 22,
            "font": {"color": _INK, "size": 12},
        },
        "bgcolor": _FAINT,
        "bordercolor": _FAINT,
        "activebgcolor": _INK,
    }
