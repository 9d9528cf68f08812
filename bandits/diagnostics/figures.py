"""Figures of the diagnostics, one per finding.

Plain plotly dictionaries, as in `results.figures`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.agents import AgentParams
from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.experiments.snapshots import BINS, LEVELS
from bandits.results import metrics
from bandits.results.figures.board import Bands
from bandits.results.figures.curves import clip_band, curves
from bandits.results.figures.parts import (
    axis,
    drawing,
    empty_figure,
    error_bars,
    line,
    points,
    reference,
)
from bandits.results.figures.style import RATE, REFERENCE, Spec, Style, distinct_styles, styles
from bandits.results.metrics import Band
from bandits.results.run import Run

from . import curves as quantities
from .finding import PENDING, Finding
from .references import LinearityCheck, OracleReference, PositionBias
from .rules.design_matrix import root_condition_limit
from .spectrum_figures import spectrum_map

MARKS = {"healthy": "✓", "watch": "!", "alarm": "✕", "none": "–"}
# the curve of R² is cut off below
MIN_R2 = -2.0
# the name of a line
WIDTH_BOUND = "√(1/λ min)"
_DASHES = ("dot", "dash", "solid")
_LEGENDS = {
    "exploration": (
        " Exploration rate: share of the decisions that are not the choice with the highest "
        "estimated mean."
    ),
    "exploration_bonus": (
        " Thin dashed line: √(1/λ min), the largest confidence width √(x′A⁻¹x) of features of "
        "norm 1. Times α and the norm of the features it bounds the bonus. Dotted: slope of 1/√t."
    ),
    "regret": " Dashed: the regret of uniformly random choice.",
    "position_bias": (
        " Filled points: estimated from clicks alone, on a few slates shown repeatedly in random "
        "order. The estimate assumes the cascade model (users scan downwards and stop at the "
        "first click) and that the click probability is a product of item and slot. Open points: "
        "clicks per examination, biased because users who reach a lower slot have rejected the "
        "items above it."
    ),
    "segment_coverage": " Solid: shown at least ten times; dotted: at least once.",
}


def panels(
    result: Run,
    label: str,
    found: dict[str, Finding],
    oracle: OracleReference | None = None,
    linearity: LinearityCheck | None = None,
    position_bias: PositionBias | None = None,
) -> dict[str, Spec]:
    """Draw one figure per finding, in the order of the findings, then the spectrum over time, by
    name.

    The title shows the verdict.
    """
    history, style = result.histories[label], styles(result.experiment)[label]
    params = result.experiment.agents[result.experiment.labels.index(label)]
    specs = {
        "exploration": _exploration_rate(history, label, style),
        "regret": _regret(history, label, style),
        "spectrum_map": spectrum_map(history),
        "smallest_eigenvalue": _smallest_eigenvalue(history, label, style),
        "condition_number": _condition_number(history, params, label, style, linearity),
        "effective_dimension": _effective_dimension(history, params, label, style),
        "exploration_bonus": _exploration_bonus(history, label, style),
        "premature_convergence": _selection_entropy(history, label, style, oracle),
        "calibration": _calibration(history, style),
        "pit_histogram": _pit_histogram(history, style),
        "predictive_r2": _predictive_r2(history, label, style),
        "linearity": _linearity(style, linearity if found["linearity"].verdict != "none" else None),
    }
    if segments := result.experiment.simulator_class().segment_names():
        specs["segment_coverage"] = _segment_coverage(history, segments)
        specs["segment_entropy"] = _segment_entropy(history, segments, oracle)
    if "position_bias" in found:
        specs["position_bias"] = _position_bias(style, position_bias)
    for name, finding in found.items():
        layout = specs[name]["layout"]
        layout["title"] = {"text": f"{MARKS[finding.verdict]} {finding.title}"}
        legend = _LEGENDS.get(name, "")
        if name == "predictive_r2" and "range" in layout["yaxis"]:
            legend = f" Values below −{-MIN_R2:g} are cut off."
        layout["meta"] = {"note": f"Healthy: {finding.healthy} This run: {finding.text}{legend}"}
        for annotation in layout.get("annotations", ()):
            annotation["text"] = finding.text if finding.text == PENDING else "Nothing to draw."
    return {name: specs[name] for name in (*found, "spectrum_map")}


def _band(x: FloatArray, y: FloatArray) -> Band:
    return Band(x, y, y, y, 0)


def _curve(
    band: Band | None,
    label: str,
    style: Style,
    y_title: str,
    *,
    references: dict[str, float] | None = None,
    **options: Any,
) -> Spec:
    bands = {} if band is None else {label: band}
    lines = (
        {}
        if band is None
        else {n: _band(band.x, np.full(len(band.x), y)) for n, y in (references or {}).items()}
    )
    return curves(
        bands, {label: style}, title="", note="", y_title=y_title, references=lines, **options
    )


def _through_middle(band: Band, growth: FloatArray) -> Band:
    """Scale a growth law so that it meets the middle of a curve, to compare slopes."""
    at = len(band.x) // 2
    return _band(band.x, growth * (band.mid[at] / growth[at]))


def _above_zero(band: Band | None) -> Band | None:
    """Cut an interval that reaches zero a factor of ten below the curve: a logarithmic axis has no
    zero.
    """
    if band is None or not (band.mid > 0).any():
        return band
    return band._replace(low=np.maximum(band.low, band.mid[band.mid > 0].min() / 10))


def _exploration_rate(history: History, label: str, style: Style) -> Spec:
    band = metrics.exploration_rate(history)
    band = band and clip_band(band, 0.0, 1.0)
    return _curve(band, label, style, "exploration rate", y_range=(-0.02, 1.04))


def _regret(history: History, label: str, style: Style) -> Spec:
    random = quantities.random_regret(history)
    spec = curves(
        {label: metrics.pseudo_regret(history)},
        {label: style},
        title="",
        note="",
        y_title="cumulative regret",
        references={"random choice": random},
    )
    return _with_names(spec, "top left")


def _condition_number(
    history: History,
    params: AgentParams,
    label: str,
    style: Style,
    linearity: LinearityCheck | None,
) -> Spec:
    band = _above_zero(quantities.root_condition_number(history))
    band = band and clip_band(band, 1.0, np.inf)
    limit, _ = root_condition_limit(params, linearity)
    spec = _curve(band, label, style, "√(λ max / λ min)", references={"limit": limit}, log_y=True)
    return _with_names(spec, "bottom left")


def _smallest_eigenvalue(history: History, label: str, style: Style) -> Spec:
    band = _above_zero(metrics.smallest_eigenvalue(history))
    laws: Bands = {}
    if band is not None and len(band.x) > 1:
        logarithm = np.log(np.maximum(band.x, 2))
        laws = {
            "": {
                "√t": _through_middle(band, np.sqrt(band.x)),
                "log t": _through_middle(band, logarithm),
            }
        }
    spec = curves(
        {} if band is None else {label: band},
        {label: style},
        title="",
        note="",
        y_title="smallest eigenvalue",
        references=laws.get(""),
        log_x=True,
        log_y=True,
    )
    return _with_names(spec, "top left", "bottom left")


def _with_names(spec: Spec, *positions: str) -> Spec:
    """Write the name of each reference line at its last point ("... left") or its first ("...
    right").
    """
    references = [trace for trace in spec["data"] if trace.get("meta") == "reference"]
    for trace, position in zip(references, positions, strict=False):
        # a line's height below
        name = f"<br>{trace['name']}" if position.startswith("bottom") else trace["name"]
        names = [""] * len(trace["x"])
        names[-1 if position.endswith("left") else 0] = name
        trace |= {
            "mode": "lines+text",
            "text": names,
            "textposition": position,
            "hoverinfo": "x+y+name",
        }
    return spec


def _effective_dimension(history: History, params: AgentParams, label: str, style: Style) -> Spec:
    band = quantities.effective_dimension(history, params)
    all_ = (
        float((~np.isnan(history.spectra[-1].eigenvalues)).sum(axis=2).max())
        if history.spectra
        else 0.0
    )
    band = band and clip_band(band, 0.0, all_)
    spec = _curve(band, label, style, "directions", references={"all directions": all_})
    return _with_names(spec, "bottom left")


def _exploration_bonus(history: History, label: str, style: Style) -> Spec:
    """Draw the bonus with the slope of 1/√t and the bound √(1/λ min), which a legend names."""
    band = quantities.exploration_bonus(history)
    lines = {}
    positive = band is not None and bool((band.mid > 0).all())
    if band is not None and len(band.x) > 1 and positive:
        lines["1/√t"] = _through_middle(band, band.x**-0.5)
    if band is not None and (bound := quantities.width_bound(history)) is not None:
        lines[WIDTH_BOUND] = bound
    spec = curves(
        {} if band is None else {label: band},
        {label: style},
        title="",
        note="",
        y_title="bonus of the chosen arm",
        references=lines,
        log_x=True,
        log_y=positive,
    )
    spec["layout"]["showlegend"] = bool(lines)
    for trace in spec["data"]:
        trace["showlegend"] = "fill" not in trace
        if trace["name"] == "1/√t":
            trace["line"] = trace["line"] | {"dash": "dot"}
    return spec


def _selection_entropy(
    history: History, label: str, style: Style, oracle: OracleReference | None
) -> Spec:
    levels = {} if oracle is None else {"oracle": oracle.entropy}
    band = metrics.entropy(history)
    spec = _curve(
        band,
        label,
        style,
        "normalised entropy",
        references=levels,
        y_range=(0, 1.04),
        y_format=RATE,
    )
    # a name above the line would be cut off
    high = oracle is not None and oracle.entropy > 0.9
    return _with_names(spec, "bottom left" if high else "top left")


def _by_segment(bands: list[Band] | None, segments: list[str], **options: Any) -> Spec:
    """Draw one line per segment, named in a legend."""
    named = dict(zip(segments, bands, strict=True)) if bands else {}
    spec = curves(
        named,
        distinct_styles(segments),
        title="",
        note="",
        y_range=(-0.02, 1.04),
        y_format=RATE,
        **options,
    )
    spec["layout"]["showlegend"] = True
    return spec


def _segment_coverage(history: History, segments: list[str]) -> Spec:
    spec = _by_segment(
        quantities.segment_coverage(history, 10), segments, y_title="share of the items shown"
    )
    for (name, style), band in zip(
        distinct_styles(segments).items(), quantities.segment_coverage(history) or [], strict=False
    ):
        once = line(
            f"{name}, once", band.x, band.mid, style.color, dash="dot", width=1.5, showlegend=False
        )
        spec["data"].append(once)
    return spec


def _segment_entropy(history: History, segments: list[str], oracle: OracleReference | None) -> Spec:
    bands = quantities.segment_entropy(history)
    levels = (
        sorted({round(level, 2) for level in oracle.segments})
        if oracle is not None and bands
        else []
    )
    x = bands[0].x if bands else np.empty(0)
    lines = {f"oracle: {level:.2f}": _band(x, np.full(len(x), level)) for level in levels}
    return _by_segment(bands, segments, y_title="normalised entropy", references=lines)


def _predictive_r2(history: History, label: str, style: Style) -> Spec:
    """Draw R²; very negative values are cut off, because they would leave no room for the rest."""
    band = quantities.predictive_r2(history)
    band = band and clip_band(band, -np.inf, 1.0)
    cut = band is not None and (band.low < MIN_R2).any() and (band.mid > MIN_R2).any()
    y_range = (MIN_R2, 1.1) if cut else None
    lines = {"perfect prediction": 1.0, "constant prediction": 0.0}
    spec = _curve(band, label, style, "R²", references=lines, y_range=y_range, y_format=RATE)
    return _with_names(spec, "bottom left", "top right")


def _calibration(history: History, style: Style) -> Spec:
    bands, dashed = {}, {}
    for level, dash in zip(LEVELS, _DASHES, strict=True):
        band = metrics.calibration(history, level)
        if band is not None:
            name = f"{100 * level:.0f} %"
            bands[name], dashed[name] = band, Style(style.color, dash)
    nominal = {}
    if bands:
        x = next(iter(bands.values())).x
        nominal = {
            f"nominal {100 * level:.0f} %": _band(x, np.full(len(x), level)) for level in LEVELS
        }
    spec = curves(
        bands,
        dashed,
        title="",
        note="",
        y_title="empirical coverage",
        references=nominal,
        y_range=(0, 1.04),
        y_format=RATE,
    )
    spec["layout"]["showlegend"] = True
    for trace in spec["data"]:
        trace["showlegend"] = trace.get("meta") != "reference" and "fill" not in trace
    for trace in [trace for trace in spec["data"] if trace.get("meta") == "reference"][:1]:
        trace |= {"name": "nominal", "showlegend": True}
    return spec


def _pit_histogram(history: History, style: Style) -> Spec:
    shares = quantities.pit_histogram(history)
    uniform = {"color": REFERENCE, "width": 1.2, "dash": "dash"}
    spec = drawing(
        [],
        "",
        x=axis("quantile of the predictive distribution", range=[0, 1]),
        y=axis("share of true rewards", rangemode="tozero"),
        bargap=0.08,
        shapes=[
            {"type": "line", "x0": 0, "x1": 1, "y0": 1 / BINS, "y1": 1 / BINS, "line": uniform}
        ],
    )
    if shares is None:
        return empty_figure({**spec["layout"], "shapes": []}, "")
    bars = {
        "type": "bar",
        "x": (np.arange(BINS) + 0.5) / BINS,
        "y": shares,
        "marker": {"color": style.color},
    }
    return {**spec, "data": [{**bars, "hovertemplate": f"%{{y:{RATE}}}<extra></extra>"}]}


def _linearity(style: Style, check: LinearityCheck | None) -> Spec:
    spec = drawing([], "", x=axis("prediction of a linear model"), y=axis("mean residual"))
    if check is None:
        return empty_figure(spec["layout"], "")
    residuals = points(
        "",
        check.fitted,
        check.residual,
        style.color,
        size=8,
        error_y=error_bars(1.96 * check.error, style.color),
        hovertemplate=f"%{{x:{RATE}}}: %{{y:{RATE}}}<extra></extra>",
    )
    zero = reference(
        "", np.array([check.fitted.min(), check.fitted.max()]), np.zeros(2), hoverinfo="skip"
    )
    return {**spec, "data": [residuals, zero]}


def _position_bias(style: Style, bias: PositionBias | None) -> Spec:
    spec = drawing(
        [], "", x=axis("slot"), y=axis("clicks relative to slot 1", rangemode="tozero"), legend=True
    )
    if bias is None:
        return empty_figure(spec["layout"], "")
    slots, errors = np.arange(1.0, len(bias.true) + 1), error_bars(1.96 * bias.error, style.color)
    if len(slots) <= 10:
        spec["layout"]["xaxis"]["dtick"] = 1
    data = [
        reference("true", slots, bias.true),
        points("estimated from clicks", slots, bias.estimated, style.color, size=8, error_y=errors),
        points(
            "clicks per examination", slots, bias.counted, style.color, size=7, symbol="circle-open"
        ),
    ]
    return {**spec, "data": data}
