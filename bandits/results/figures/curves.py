"""Draw curves with bands as plain plotly dictionaries; `figure` turns one into a plotly figure.

Dictionaries are cheap enough to be made every second. The caller sets the colours of text and grid,
for light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bandits.base.formatting import listed
from bandits.base.types import BoolArray, FloatArray
from bandits.results import metrics
from bandits.results.comparison.run_title import compared_with
from bandits.results.describe import ParameterChange
from bandits.results.figures.parts import axis, drawing, line, reference
from bandits.results.figures.style import AXIS, NUMBER, STEP, Spec, Style, faint, log_ticks
from bandits.results.metrics import Band
from bandits.results.run import Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bandits.experiments.experiment import Experiment

# points of a drawn line
MAX_POINTS = 400


def curves(
    bands: dict[str, Band],
    looks: dict[str, Style],
    *,
    title: str,
    note: str,
    caption: str = "",
    x_title: str = "step",
    y_title: str = "",
    x_format: str = STEP,
    y_format: str = NUMBER,
    references: dict[str, Band] | None = None,
    before: Mapping[str, Band] | None = None,
    changes: Mapping[str, ParameterChange] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    y_range: Sequence[float] | None = None,
    end_labels: bool = False,
    empty: str = "No data yet.",
) -> Spec:
    """Draw curves with confidence bands, dashed reference lines and dotted curves of the previous
    run.

    Without any curve the figure is empty and shows the sentence ``empty``.

    Parameters
    ----------
    bands : dict of str to Band
        Curves by label.
    looks : dict of str to Style
    note : str
        Explanation of the figure.
    caption : str
        A few words for places where the note is shown on request only.
    x_format, y_format : str
        How numbers are written in hover texts: ``STEP``, ``COUNT``, ``RATE`` or ``NUMBER`` of
        `style`.
    before : dict of str to Band, optional
        Curves of the previous run, of labels in ``looks``.
    changes : dict of str to ParameterChange, optional
        By label, the parameters that have changed since the previous run.
    end_labels : bool
        Ask for the name of each line at its end, where the drawing supports it
        (``layout["meta"]["ends"]``).
    """
    data: list[Spec] = []
    ends: dict[str, str] = {}
    for label, band in (
        (before or {}).items() if any(len(band.x) for band in bands.values()) else ()
    ):
        # a much longer run may have too few points in this range
        if label in looks and len(band.x) > 1:
            change = (changes or {}).get(label)
            ghost = _ghost(label, thin(band, MAX_POINTS // 2), looks[label], change)
            ends[ghost["name"]] = "previous run" if change is None else f"before: {change.before}"
            data.append(ghost)
    for label, band in bands.items():
        if len(band.x):
            data.extend(agent_curve(label, thin(band), looks[label]))
            ends[data[-1]["name"]] = label
    for label, band in (references or {}).items() if data else ():
        kept = thin(band, MAX_POINTS // 2)
        data.append(reference(label, kept.x, kept.mid))
        ends[label] = label
    x, y = (
        axis(x_title, hoverformat=x_format),
        axis(y_title, hoverformat=y_format, type="log" if log_y else "linear"),
    )
    if log_x:
        x |= {"type": "log", **log_ticks([band.x for band in bands.values()])}
    if log_y:
        drawn = [*bands.values(), *(references or {}).values()]
        y |= log_ticks([edge for band in drawn for edge in (band.low, band.high)])
    if y_range is not None:
        y["range"] = list(y_range)
    meta = {"ends": ends} if end_labels else None
    return drawing(data, title, note, caption=caption, meta=meta, x=x, y=y, empty=empty)


def clip_band(band: Band, least: float, most: float) -> Band:
    """Clip a band to the range of its quantity."""
    return band._replace(low=np.maximum(band.low, least), high=np.minimum(band.high, most))


def settled(band: Band, window: int) -> Band:
    """Drop the first points: averages over few steps have bands that dwarf the rest."""
    return cut(band, band.x >= min(window, band.x[-1] if len(band.x) else 0) / 20)


def cut(band: Band, kept: BoolArray) -> Band:
    return Band(band.x[kept], band.mid[kept], band.low[kept], band.high[kept], band.rows)


def thin(band: Band, points: int = MAX_POINTS) -> Band:
    """Keep every k-th point and the last.

    Curves are averages or sums, so no information between them is lost.
    """
    every = -(-len(band.x) // points)
    if every <= 1:
        return band
    kept = np.unique(np.append(np.arange(0, len(band.x), every), len(band.x) - 1))
    return Band(band.x[kept], band.mid[kept], band.low[kept], band.high[kept], band.rows)


def agent_curve(label: str, band: Band, style: Style) -> list[Spec]:
    """Draw one curve: the outline of its band, if it has one, and its line."""
    name = label.replace("<", "&lt;")
    curve = line(name, band.x, band.mid, style.color, style.dash, legendgroup=label)
    if band.rows < 2:
        return [curve]
    edge = thin(band, MAX_POINTS // 2)
    x, y = np.concatenate([edge.x, edge.x[::-1]]), np.concatenate([edge.high, edge.low[::-1]])
    filled = {
        "fill": "toself",
        "fillcolor": faint(style.color),
        "hoverinfo": "skip",
        "legendgroup": label,
    }
    return [line(name, x, y, style.color, width=0, **filled), curve]


def _ghost(label: str, band: Band, style: Style, change: ParameterChange | None) -> Spec:
    name = (f"{label}, previous run" + (f" ({change.text})" if change else "")).replace("<", "&lt;")
    more = {"legendgroup": label, "meta": "before", "opacity": 0.65}
    return line(name, band.x, band.mid, style.color, "dot", width=1.5, **more)


def figure(spec: Spec, *, dark: bool = False) -> go.Figure:
    """Turn a plain dictionary into a plotly figure, for notebooks, exports and reports."""
    import plotly.graph_objects as go

    layout = spec["layout"]
    axes = {name: AXIS | layout.get(name, {}) for name in ("xaxis", "yaxis")}
    made = go.Figure({**spec, "layout": layout | axes})
    made.update_layout(template="plotly_dark" if dark else "plotly_white", font={"size": 14})
    return made


# share of the oracle's gain over random choice
LEADING = 0.5
# share of the steps that is left out: at first all agents are far below
FIRST = 0.1
MARGIN = 0.04  # of the height
# agents outside a zoomed plot that are named in it
MOST_NAMED = 2


def upper_reference(experiment: Experiment) -> str:
    """Name the dashed line of the best choice at each step; it is no optimum of a whole visit."""
    return "best next click" if experiment.offers("visits") else "oracle"


def zoom(plots: list[Spec], result: Run) -> list[Spec]:
    """Fit the vertical axes of the first two plots of `figures.board` to the leading agents, and to
    the one that the run is about (`compared_with`).

    An agent is leading if it closed at least half of the gap between random choice and the oracle.
    The notes name the agents that end outside. Plots stay as they are if all agents are leading, or
    none, and for visits of many steps, where this oracle is no optimum.

    Parameters
    ----------
    plots : list of dict
        Reward per step and regret against the step, then others.
    """
    if result.experiment.offers("visits"):
        return plots
    leading = {
        name
        for name, history in result.histories.items()
        if metrics.oracle_share(history).mean() >= LEADING
    }
    # the learning agent that the first conclusion is about is in sight
    about = compared_with(result.experiment)
    if leading and about in result.histories and _learns(result, about):
        leading.add(about)
    names = result.experiment.names
    others = {name: names.get(name, name) for name in result.histories if name not in leading}
    if not leading or not others:
        return plots
    rate, regret, *rest = plots
    # also where the axis shows the reward that was earned
    begun = FIRST * max(_last(rate, name) for name in leading)
    late = np.concatenate([_values(rate, name, begun) for name in (*leading, "oracle")])
    # a logarithmic axis has no zero
    lost = np.concatenate([[0.0], *(_values(regret, name, 0) for name in leading)])
    return [
        _fitted(rate, late, others, 0),
        _fitted(regret, lost, others, 1),
        *rest,
    ]


def _learns(result: Run, label: str) -> bool:
    return result.experiment.agent_class(result.experiment.labels.index(label)).learns


def _lines(plot: Spec, name: str) -> list[Spec]:
    """Return the lines of an agent's curve and band, or a reference line."""
    return [
        trace
        for trace in plot["data"]
        if trace["mode"] == "lines" and name in (trace.get("legendgroup"), trace["name"])
    ]


def _last(plot: Spec, name: str) -> float:
    """Return where the longest line of an agent ends on the horizontal axis."""
    return max(
        (float(np.max(line["x"])) for line in _lines(plot, name) if len(line["x"])), default=0
    )


def _values(plot: Spec, name: str, begun: float) -> FloatArray:
    """Return the finite values of an agent's curve and band, or of a reference line, from a place
    on the horizontal axis on.
    """
    values = [np.asarray(line["y"])[np.asarray(line["x"]) >= begun] for line in _lines(plot, name)]
    found: FloatArray = np.concatenate([np.empty(0), *values])
    return np.asarray(found[np.isfinite(found)])


def _ends_outside(plot: Spec, name: str, limit: float, edge: int) -> bool:
    """Whether the end of an agent's curve and band lies below (edge 0) or above (1) a limit."""
    end = _values(plot, name, _last(plot, name))
    return bool(len(end)) and bool((end > limit).all() if edge else (end < limit).all())


def _fitted(plot: Spec, values: FloatArray, others: Mapping[str, str], edge: int) -> Spec:
    """Fit the vertical axis to values, and name which of the other agents end outside: below
    (edge 0) or above (1).
    """
    layout = plot["layout"]
    # Plotly's ranges of a logarithmic axis are exponents
    logarithmic = layout["yaxis"].get("type") == "log"
    values = np.log10(values[values > 0]) if logarithmic else values
    if not len(values):
        return plot
    margin = MARGIN * (values.max() - values.min())
    low, high = float(values.min() - margin), float(values.max() + margin)
    axis = {**layout["yaxis"], "range": [low, high]}
    meta = {**layout["meta"]}
    if caption := meta.get("caption"):
        meta["caption"] = f"Zoomed. {caption}"
    limit = 10.0 ** np.array([low, high]) if logarithmic else np.array([low, high])
    outside = [
        name for label, name in others.items() if _ends_outside(plot, label, limit[edge], edge)
    ]
    if not outside:
        return {**plot, "layout": {**layout, "yaxis": axis, "meta": meta}}
    meta["note"] += f" Zoomed: {listed(outside)} {'ends' if len(outside) == 1 else 'end'} outside."
    shown = listed(outside) if len(outside) <= MOST_NAMED else f"{len(outside)} agents"
    named = {
        "text": f"{'↑' if edge else '↓'} {shown}",
        "showarrow": False,
        "xref": "paper",
        "yref": "paper",
        "x": 1 - edge,
        "y": edge,
        "xanchor": "left" if edge else "right",
        "yanchor": "top" if edge else "bottom",
    }
    annotations = [*layout.get("annotations", ()), named]
    return {
        **plot,
        "layout": {**layout, "yaxis": axis, "meta": meta, "annotations": annotations},
    }
