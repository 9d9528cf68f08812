"""Pictures of the diagnostics, one for each finding; plain plotly dictionaries, as in `figures`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.agents import AgentParams
from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.experiments.snapshots import BINS, LEVELS
from bandits.results import metrics
from bandits.results.figures import Bands, clip_band, curves, empty_figure
from bandits.results.metrics import Band
from bandits.results.result import Result
from bandits.results.style import REFERENCE, Spec, Style, distinct_styles, styles

from .curves import doubt, effective_dimension, foresight, places, segment_coverage, segment_entropy
from .findings import COMING, Finding, most_times, times_as_well
from .references import Line, Oracle, Slots

MARKS = {"healthy": "✓", "watch": "!", "alarm": "✕", "none": "–"}
DEEP = -2.0  # foresight is not drawn below
_DASHES = ("dot", "dash", "solid")
_LEGENDS = {
    "slots": " Full dots need no truth: from the clicks on a few slates, each shown to its user again and again in "
    "random order. They assume that users look down and stop at the first click, and that an item's chance is its own "
    "times the slot's. Clicks per look mislead: who gets far down was not tempted above, so other items are left.",
    "segments": " Solid: at least ten times; dotted: at least once.",
}


def panels(
    result: Result,
    label: str,
    found: dict[str, Finding],
    oracle: Oracle | None = None,
    line: Line | None = None,
    slots: Slots | None = None,
) -> dict[str, Spec]:
    """One figure per finding, and the spectrum over time, by name; each says its verdict in the title."""
    history, look = result.histories[label], styles(result.experiment)[label]
    params = result.experiment.agents[result.experiment.labels.index(label)]
    specs = {
        "heat": heat(history),
        "smallest": _smallest(history, label, look),
        "condition": _condition(history, params, label, look, line),
        "dimension": _dimension(history, params, label, look),
        "doubt": _doubt(history, label, look),
        "lock_in": _lock_in(history, label, look, oracle),
        "calibration": _calibration(history, look),
        "places": _places(history, look),
        "foresight": _foresight(history, label, look),
        "line": _line(look, line if found["line"].verdict != "none" else None),
    }
    if names := result.experiment.simulator_class().segment_names():
        specs["segments"] = _coverage(history, names)
        specs["segment_entropy"] = _segment_entropy(history, names, oracle)
    if "slots" in found:
        specs["slots"] = _slots(look, slots)
    for name, finding in found.items():
        specs[name]["layout"]["title"] = {"text": f"{MARKS[finding.verdict]} {finding.title}"}
        more = _LEGENDS.get(name, "")
        if name == "foresight" and "range" in specs[name]["layout"]["yaxis"]:
            more = f" Not drawn below −{-DEEP:g}."
        specs[name]["layout"]["meta"] = {"note": f"Healthy: {finding.healthy} This run: {finding.told}{more}"}
        for told in specs[name]["layout"].get("annotations", ()):
            told["text"] = finding.told if finding.told == COMING else "Nothing to draw."
    return specs


def heat(history: History) -> Spec:
    """Eigenvalues over time: rank against step, the brighter the more evidence; median over runs and arms."""
    note = (
        "How much evidence there is in each direction (rank 1: the most), over time. A dark edge at the top that stays "
    )
    note += "dark: directions that are never explored."
    layout: Spec = {
        "title": {"text": "Spectrum over time"}, "meta": {"note": note}, "showlegend": False,
        "xaxis": {"title": {"text": "step"}}, "yaxis": {"title": {"text": "rank of the eigenvalue"}},
    }  # fmt: skip
    known = _spectra(history)
    if not known:
        return empty_figure(layout, "This agent keeps no covariance.")
    ranks = max(len(band.mid) for _, band in known)
    z = np.full((ranks, len(known)), np.nan)
    for i, (_, band) in enumerate(known):
        z[: len(band.mid), i] = np.log10(band.mid)
    if ranks <= 10:
        layout["yaxis"]["dtick"] = 1
    least = round(float(np.nanmin(z)), 6)  # colours span a power of ten at least: rounding is no difference
    trace = {
        "type": "heatmap", "x": np.array([step for step, _ in known], float), "y": np.arange(1.0, ranks + 1), "z": z,
        "zmin": least, "zmax": max(float(np.nanmax(z)), least + 1), "colorscale": "Cividis",
        "colorbar": {"title": {"text": "log10"}, "thickness": 10},
        "hovertemplate": "step %{x}, rank %{y}: 10^%{z:.2f}<extra></extra>",
    }  # fmt: skip
    return {"data": [trace], "layout": layout}


def _spectra(history: History) -> list[tuple[int, Band]]:
    """Eigenvalues by rank at every snapshot at which all are above zero."""
    shown = [(s.step, metrics.spectrum(history, s.step)) for s in history.spectra]
    return [(step, band) for step, band in shown if band is not None and (band.mid > 0).all()]


def growth(history: History, label: str, look: Style) -> Spec | None:
    """The spectrum at one snapshot after the other, with a button that plays them and a slider; None of fewer than two.

    Both axes stay as they are; dotted: the first snapshot. A plotly figure with frames, for whoever draws such.
    """
    known = _spectra(history)
    if len(known) < 2:
        return None
    bands = [band for _, band in known]
    specs = [curves({label: band}, {label: look}, title="", note="", log_y=True) for band in bands]
    seen = np.log10(np.concatenate([edge[edge > 0] for band in bands for edge in (band.low, band.high)]))
    margin = max(0.05 * float(np.ptp(seen)), (0.5 - float(np.ptp(seen))) / 2) + 0.02  # half a power of ten at least
    frames = [
        {"name": f"{step:,}", "data": spec["data"], "traces": list(range(len(spec["data"])))}
        for (step, _), spec in zip(known, specs, strict=True)
    ]
    first = {"type": "scatter", "mode": "lines", "name": f"step {known[0][0]:,}", "x": bands[0].x, "y": bands[0].mid,
             "line": {"color": REFERENCE, "width": 1.2, "dash": "dot"}}  # fmt: skip
    ranks = max(len(band.x) for band in bands)
    layout: Spec = {
        "showlegend": False, "hovermode": "x unified", "margin": {"l": 60, "r": 12, "t": 8, "b": 10},
        "xaxis": {"title": {"text": "rank of the eigenvalue"}, "range": [0.7, ranks + 0.3],
                  **({"dtick": 1} if ranks <= 10 else {})},
        "yaxis": {**specs[-1]["layout"]["yaxis"], "title": {"text": "evidence (eigenvalue)"},
                  "range": [float(seen.min()) - margin, float(seen.max()) + margin]},
        "updatemenus": [_buttons()], "sliders": [_slider([frame["name"] for frame in frames])],
    }  # fmt: skip
    return {"data": [*specs[-1]["data"], first], "layout": layout, "frames": frames}


_INK = "#787878"  # readable on light and dark, and on the light grey of a button under the pointer
_FAINT = "rgba(128,128,128,0.25)"
_STILL = {"frame": {"duration": 0, "redraw": False}, "transition": {"duration": 0}, "mode": "immediate"}


def _buttons() -> Spec:
    play = {"frame": {"duration": 300, "redraw": False}, "transition": {"duration": 0}, "mode": "immediate"}
    return {
        "type": "buttons", "direction": "left", "showactive": False, "x": 0, "xanchor": "left", "y": -0.3,
        "yanchor": "top", "pad": {"t": 4}, "font": {"color": _INK, "size": 12}, "bgcolor": "rgba(0,0,0,0)",
        "bordercolor": _FAINT,
        "buttons": [
            {"label": "▶ Play", "method": "animate", "args": [None, play]},
            {"label": "❚❚", "method": "animate", "args": [[None], _STILL]},
        ],
    }  # fmt: skip


def _slider(names: list[str]) -> Spec:
    steps = [{"label": name, "method": "animate", "args": [[name], _STILL]} for name in names]
    return {
        "active": len(names) - 1, "x": 0, "len": 1, "y": -0.3, "yanchor": "top", "pad": {"t": 8, "b": 0},
        "steps": steps, "ticklen": 0, "minorticklen": 0, "font": {"color": "rgba(0,0,0,0)", "size": 1},
        "currentvalue": {"prefix": "step ", "xanchor": "right", "offset": 22, "font": {"color": _INK, "size": 12}},
        "bgcolor": _FAINT, "bordercolor": _FAINT, "activebgcolor": _INK,
    }  # fmt: skip


def _band(x: FloatArray, y: FloatArray) -> Band:
    return Band(x, y, y, y, 0)


def _curve(
    band: Band | None, label: str, look: Style, y_title: str, *, references: dict[str, float] | None = None, **more: Any
) -> Spec:
    bands = {} if band is None else {label: band}
    lines = {} if band is None else {n: _band(band.x, np.full(len(band.x), y)) for n, y in (references or {}).items()}
    return curves(bands, {label: look}, title="", note="", y_title=y_title, references=lines, **more)


def _through(band: Band, growth: FloatArray) -> Band:
    """A law of growth through the middle of a curve, to compare slopes with."""
    at = len(band.x) // 2
    return _band(band.x, growth * (band.mid[at] / growth[at]))


def _above_zero(band: Band | None) -> Band | None:
    """For a logarithmic axis: an interval that reaches down to zero ends well below the curve, not in a hole."""
    if band is None or not (band.mid > 0).any():
        return band
    return band._replace(low=np.maximum(band.low, band.mid[band.mid > 0].min() / 10))


def _condition(history: History, params: AgentParams, label: str, look: Style, line: Line | None) -> Spec:
    band = _above_zero(times_as_well(history))
    band = band and clip_band(band, 1.0, np.inf)
    limit, _ = most_times(params, line)
    spec = _curve(band, label, look, "times as well known: √(λ max / λ min)", references={"limit": limit}, log_y=True)
    return _named(spec, "bottom left")


def _smallest(history: History, label: str, look: Style) -> Spec:
    band = _above_zero(metrics.smallest_eigenvalue(history))
    lines: Bands = {}
    if band is not None and len(band.x) > 1:
        lines = {"": {"√t": _through(band, np.sqrt(band.x)), "log t": _through(band, np.log(np.maximum(band.x, 2)))}}
    spec = curves(
        {} if band is None else {label: band}, {label: look}, title="", note="", y_title="smallest eigenvalue",
        references=lines.get(""), log_x=True, log_y=True,
    )  # fmt: skip
    return _named(spec, "top left", "bottom left")


def _named(spec: Spec, *places: str) -> Spec:
    """With the names of its dashed lines: "left" of a line's last point, or "right" of its first."""
    references = [trace for trace in spec["data"] if trace.get("meta") == "reference"]
    for trace, place in zip(references, places, strict=False):
        name = f"<br>{trace['name']}" if place.startswith("bottom") else trace["name"]  # a line's height below
        names = [""] * len(trace["x"])
        names[-1 if place.endswith("left") else 0] = name
        trace |= {"mode": "lines+text", "text": names, "textposition": place, "hoverinfo": "x+y+name"}
    return spec


def _dimension(history: History, params: AgentParams, label: str, look: Style) -> Spec:
    band = effective_dimension(history, params)
    most = float((~np.isnan(history.spectra[-1].eigenvalues)).sum(axis=2).max()) if history.spectra else 0.0
    band = band and clip_band(band, 0.0, most)
    return _named(_curve(band, label, look, "directions", references={"all directions": most}), "bottom left")


def _doubt(history: History, label: str, look: Style) -> Spec:
    band = doubt(history)
    lines = None
    if band is not None and len(band.x) > 1 and (band.mid > 0).all():
        lines = {"1/√t": _through(band, band.x**-0.5)}
    spec = curves(
        {} if band is None else {label: band}, {label: look}, title="", note="", y_title="doubt in the first choice",
        references=lines, log_x=True, log_y=lines is not None,
    )  # fmt: skip
    return _named(spec, "bottom right")


def _lock_in(history: History, label: str, look: Style, oracle: Oracle | None) -> Spec:
    levels = {} if oracle is None else {"oracle": oracle.entropy}
    spec = _curve(metrics.entropy(history), label, look, "selection entropy", references=levels, y_range=(0, 1.04))
    return _named(spec, "top left")


def _per_segment(bands: list[Band] | None, names: list[str], **more: Any) -> Spec:
    """One line per segment, named in a legend."""
    named = dict(zip(names, bands, strict=True)) if bands else {}
    spec = curves(named, distinct_styles(names), title="", note="", y_range=(-0.02, 1.04), **more)
    spec["layout"]["showlegend"] = True
    return spec


def _coverage(history: History, names: list[str]) -> Spec:
    spec = _per_segment(segment_coverage(history, 10), names, y_title="share of the items shown")
    for (name, look), band in zip(distinct_styles(names).items(), segment_coverage(history) or [], strict=False):
        line = {"color": look.color, "width": 1.5, "dash": "dot"}
        once = {"type": "scatter", "mode": "lines", "name": f"{name}, once", "x": band.x, "y": band.mid, "line": line}
        spec["data"].append({**once, "showlegend": False})
    return spec


def _segment_entropy(history: History, names: list[str], oracle: Oracle | None) -> Spec:
    bands = segment_entropy(history)
    goals = sorted({round(goal, 2) for goal in oracle.segments}) if oracle is not None and bands else []
    x = bands[0].x if bands else np.empty(0)
    lines = {f"oracle: {goal:.2f}": _band(x, np.full(len(x), goal)) for goal in goals}
    return _per_segment(bands, names, y_title="selection entropy", references=lines)


def _foresight(history: History, label: str, look: Style) -> Spec:
    """Between nothing and all; how far below nothing is no matter, and would leave no room for the rest."""
    band = foresight(history)
    band = band and clip_band(band, -np.inf, 1.0)
    cut = band is not None and (band.low < DEEP).any() and (band.mid > DEEP).any()
    y_range = (DEEP, 1.1) if cut else None
    spec = _curve(band, label, look, "share foreseen", references={"all": 1.0, "none": 0.0}, y_range=y_range)
    return _named(spec, "bottom left", "top left")


def _calibration(history: History, look: Style) -> Spec:
    bands, looks = {}, {}
    for level, dash in zip(LEVELS, _DASHES, strict=True):
        band = metrics.calibration(history, level)
        if band is not None:
            name = f"{100 * level:.0f} %"
            bands[name], looks[name] = band, Style(look.color, dash)
    goals = {}
    if bands:
        x = next(iter(bands.values())).x
        goals = {f"goal {100 * level:.0f} %": _band(x, np.full(len(x), level)) for level in LEVELS}
    spec = curves(
        bands, looks, title="", note="", y_title="share of truths inside", references=goals, y_range=(0, 1.04)
    )
    spec["layout"]["showlegend"] = True
    for trace in spec["data"]:
        trace["showlegend"] = trace.get("meta") != "reference" and "fill" not in trace
    return spec


def _places(history: History, look: Style) -> Spec:
    layout: Spec = {
        "title": {"text": ""}, "meta": {"note": ""}, "showlegend": False, "bargap": 0.08,
        "xaxis": {"title": {"text": "place in its beliefs, from lowest to highest"}, "range": [0, 1]},
        "yaxis": {"title": {"text": "share of the truths"}, "rangemode": "tozero"},
        "shapes": [{"type": "line", "x0": 0, "x1": 1, "y0": 1 / BINS, "y1": 1 / BINS,
                    "line": {"color": REFERENCE, "width": 1.2, "dash": "dash"}}],
    }  # fmt: skip
    found = places(history)
    if found is None:
        return empty_figure({**layout, "shapes": []}, "")
    bars = {"type": "bar", "x": (np.arange(BINS) + 0.5) / BINS, "y": found, "marker": {"color": look.color}}
    return {"data": [{**bars, "hovertemplate": "%{y:.1%}<extra></extra>"}], "layout": layout}


def _line(look: Style, line: Line | None) -> Spec:
    layout: Spec = {
        "title": {"text": ""}, "meta": {"note": ""}, "showlegend": False,
        "xaxis": {"title": {"text": "what a line foresees"}}, "yaxis": {"title": {"text": "mean residual"}},
    }  # fmt: skip
    if line is None:
        return empty_figure(layout, "")
    points = {
        "type": "scatter", "mode": "markers", "x": line.fitted, "y": line.residual,
        "marker": {"color": look.color, "size": 8}, "hovertemplate": "%{x:.3f}: %{y:.3f}<extra></extra>",
        "error_y": {"type": "data", "array": 1.96 * line.error, "color": look.color, "thickness": 1.2},
    }  # fmt: skip
    ends = np.array([line.fitted.min(), line.fitted.max()])
    zero = {"type": "scatter", "mode": "lines", "x": ends, "y": np.zeros(2), "meta": "reference", "hoverinfo": "skip",
            "line": {"color": REFERENCE, "width": 1.2, "dash": "dash"}}  # fmt: skip
    return {"data": [points, zero], "layout": layout}


def _slots(look: Style, slots: Slots | None) -> Spec:
    layout: Spec = {
        "title": {"text": ""}, "meta": {"note": ""}, "showlegend": True, "xaxis": {"title": {"text": "slot"}},
        "yaxis": {"title": {"text": "clicked, against the first slot"}, "rangemode": "tozero"},
    }  # fmt: skip
    if slots is None:
        return empty_figure(layout, "")
    k = np.arange(1.0, len(slots.true) + 1)
    line = {"color": REFERENCE, "width": 1.2, "dash": "dash"}
    common = {"type": "scatter", "x": k}
    data = [
        {**common, "y": slots.true, "mode": "lines", "name": "true", "meta": "reference", "line": line},
        {**common, "y": slots.estimated, "mode": "markers", "name": "estimated from clicks",
         "marker": {"color": look.color, "size": 8},
         "error_y": {"type": "data", "array": 1.96 * slots.error, "color": look.color, "thickness": 1.2}},
        {**common, "y": slots.counted, "mode": "markers", "name": "clicks per look",
         "marker": {"color": look.color, "size": 7, "symbol": "circle-open"}},
    ]  # fmt: skip
    if len(k) <= 10:
        layout["xaxis"]["dtick"] = 1
    return {"data": data, "layout": layout}
