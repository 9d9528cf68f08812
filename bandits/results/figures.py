"""Draw bands as plain plotly dictionaries; `figure` turns one into a plotly figure.

Dictionaries are cheap enough to be made every second. The caller sets the colours of text and grid, for light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History

from . import metrics
from .metrics import Band
from .style import REFERENCE, Spec, Style, faint, styles, styles_of_runs

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .result import Result

Bands = dict[str, dict[str, Band]]  # by plot and label
XAxis = Literal["step", "log step", "earned"]
Fourth = Literal["spectrum", "calibration"]
MAX_POINTS = 400  # points of a drawn line


def curves(
    bands: dict[str, Band],
    looks: dict[str, Style],
    *,
    title: str,
    note: str,
    x_title: str = "step",
    y_title: str = "",
    references: dict[str, Band] | None = None,
    before: dict[str, Band] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    y_range: Sequence[float] | None = None,
    empty: str = "No data yet.",
) -> Spec:
    """Draw curves with confidence bands, dashed reference lines and dotted curves of the previous run.

    Without any curve the figure is empty and shows the sentence ``empty``.
    """
    data: list[Spec] = []
    for label, band in (before or {}).items() if any(len(band.x) for band in bands.values()) else ():
        if label in looks and len(band.x) > 1:  # a much longer run may have too few points in this range
            data.append(_ghost(label, thin(band, MAX_POINTS // 2), looks[label]))
    for label, band in bands.items():
        if len(band.x):
            data.extend(_drawn(label, thin(band), looks[label]))
    for label, band in (references or {}).items() if data else ():
        kept, line = thin(band, MAX_POINTS // 2), {"color": REFERENCE, "width": 1.2, "dash": "dash"}
        trace = {"type": "scatter", "mode": "lines", "name": label, "x": kept.x, "y": kept.mid, "line": line}
        data.append({**trace, "meta": "reference"})
    layout: Spec = {
        "title": {"text": title},
        "meta": {"note": note},
        "xaxis": {"title": {"text": x_title}},
        "yaxis": {"title": {"text": y_title}, "type": "log" if log_y else "linear"},
        "showlegend": False,
    }
    if log_x:
        layout["xaxis"] |= {"type": "log", **_ticks([band.x for band in bands.values()])}
    if log_y:
        drawn = [*bands.values(), *(references or {}).values()]
        layout["yaxis"] |= _ticks([edge for band in drawn for edge in (band.low, band.high)])
    if y_range is not None:
        layout["yaxis"]["range"] = list(y_range)
    return {"data": data, "layout": layout} if data else empty_figure(layout, empty)


def _ticks(values: Sequence[FloatArray]) -> Spec:
    """Choose the ticks of a logarithmic axis: powers of ten, or also 2 and 5 times them on a short axis."""
    seen = np.concatenate([v[v > 0] for v in values]) if values else np.empty(0)
    if not len(seen):
        return {}
    low, high = float(seen.min()), float(seen.max())
    if np.floor(np.log10(high)) - np.ceil(np.log10(low)) >= 1:
        return {"dtick": 1}
    powers = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 2)
    ticks = [m * 10.0**e for e in powers for m in (1, 2, 5)]  # Plotly's own labels would read 1, 2, 5
    if sum(low <= tick <= high for tick in ticks) < 2:
        return {}
    return {"tickvals": ticks, "ticktext": [f"{tick:,.10g}" for tick in ticks]}


def empty_figure(layout: Spec, why: str) -> Spec:
    """Make a figure without curves that shows the reason."""
    annotation = {"text": why, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    return {"data": [], "layout": {**layout, "annotations": [annotation]}}


def rate(experiment: Experiment, history: History, window: int) -> Band:
    """Compute the moving-average reward per step; where rewards are 0 or 1 the band is clipped to that range."""
    band = _settled(metrics.ctr(history, window), window)
    binary = "binary" in experiment.simulator_class().describe(experiment.simulator).capabilities
    return clip_band(band, 0.0, 1.0) if binary else band


def clip_band(band: Band, least: float, most: float) -> Band:
    """Clip a band to the range of its quantity."""
    return band._replace(low=np.maximum(band.low, least), high=np.minimum(band.high, most))


def _settled(band: Band, window: int) -> Band:
    """Drop the first points: averages over few steps have bands that dwarf the rest."""
    return _cut(band, band.x >= min(window, band.x[-1] if len(band.x) else 0) / 20)


def _cut(band: Band, kept: BoolArray) -> Band:
    return Band(band.x[kept], band.mid[kept], band.low[kept], band.high[kept], band.rows)


def thin(band: Band, points: int = MAX_POINTS) -> Band:
    """Keep every k-th point and the last; curves are averages or sums, so no information between them is lost."""
    every = -(-len(band.x) // points)
    if every <= 1:
        return band
    kept = np.unique(np.append(np.arange(0, len(band.x), every), len(band.x) - 1))
    return Band(band.x[kept], band.mid[kept], band.low[kept], band.high[kept], band.rows)


def _drawn(label: str, band: Band, style: Style) -> list[Spec]:
    line = {"color": style.color, "width": 2.2, "dash": style.dash}
    name = label.replace("<", "&lt;")
    common = {"type": "scatter", "mode": "lines", "name": name, "legendgroup": label}
    curve = {**common, "x": band.x, "y": band.mid, "line": line}
    if band.rows < 2:
        return [curve]
    edge = thin(band, MAX_POINTS // 2)
    outline = {
        **common, "hoverinfo": "skip", "fill": "toself",
        "x": np.concatenate([edge.x, edge.x[::-1]]), "y": np.concatenate([edge.high, edge.low[::-1]]),
        "line": {"width": 0, "color": style.color}, "fillcolor": faint(style.color),
    }  # fmt: skip
    return [outline, curve]


def _ghost(label: str, band: Band, style: Style) -> Spec:
    line = {"color": style.color, "width": 1.5, "dash": "dot"}
    return {
        "type": "scatter", "mode": "lines", "name": label.replace("<", "&lt;") + ", previous run", "legendgroup": label,
        "x": band.x, "y": band.mid, "line": line, "opacity": 0.65, "meta": "before",
    }  # fmt: skip


def board(
    result: Result,
    window: int = metrics.WINDOW,
    *,
    x: XAxis = "step",
    log_regret: bool = False,
    fourth: Fourth = "spectrum",
    level: float = 0.95,
    at: int | None = None,
    arm: int | None = None,
    before: Bands | None = None,
) -> list[Spec]:
    """Draw the four plots of the Arena: reward per step, regret, selection entropy, and spectrum or calibration.

    Parameters
    ----------
    result : Result
    window : int
        Steps of the moving averages of reward and entropy.
    x : {"step", "log step", "earned"}
        Horizontal axis of the first three plots; "earned" is the agent's mean cumulative reward.
    log_regret : bool
        Use a logarithmic axis for the regret.
    fourth : {"spectrum", "calibration"}
    level : float
        Nominal level of the calibration plot: one of `snapshots.LEVELS`.
    at, arm : int, optional
        Step and arm of the spectrum; by default the latest snapshot and all arms.
    before : dict, optional
        Curves of another run from `bands`; agents with the same label are drawn dotted.
    """
    looks, world = styles(result.experiment), result.experiment.simulator_class()
    noun, runs = world.reward_noun, result.experiment.replications
    best = "slate" if world.slate_size(result.experiment.simulator) > 1 else world.item_noun
    found = bands(result, window, x=x, level=level, at=at, arm=arm)
    ghosts = before or {}
    seen_before = any(label in looks for label in ghosts.get("rate", {}))
    first = max(result.histories.values(), key=lambda h: h.step, default=None)
    references, rate_window, count_window, taken, counted = {}, window, window, None, "arms"
    if first is not None:
        counted = first.counted
        rate_window = metrics.effective_window(first, window)
        count_window = metrics.effective_window(first, window, of_counts=True)
        for label, name in (("oracle", "best_value"), ("random choice", "random_value")):
            band = _settled(metrics.reference(first, name, window), window)
            references[label] = _against(band, first.grid, first.sums[name], x)
        taken = next((s.step for s in reversed(first.spectra) if at is None or s.step <= at), None)
    dotted = " Dotted: previous run." if seen_before else ""
    whole = all(h.alive.all() for h in result.histories.values())
    living = f"{runs} replications" if whole else "the remaining replications"
    banded = f" Bands: 95 % confidence interval of the mean over {living}." if runs > 1 else ""
    over = bool(result.histories) and all(h.step >= h.steps for h in result.histories.values())
    x_title = f"{noun} earned" if x == "earned" else "step"
    common: Spec = {"looks": looks, "x_title": x_title, "log_x": x == "log step"}
    wait = "Waiting for the first points."
    plots = [
        curves(
            found["rate"], title=world.rate_title, y_title=f"{noun} per step", references=references,
            before=ghosts.get("rate"), empty=wait, **common,
            note=f"Moving average over {rate_window:,} steps. Dashed: oracle (upper) and random choice (lower)."
            f"{banded}{dotted}",
        ),
        curves(
            found["regret"], title="Cumulative regret", y_title=f"{noun} lost", log_y=log_regret,
            before=ghosts.get("regret"), empty=wait, **common,
            note=f"Expected {noun} lost relative to always choosing the best {best}. A flat curve means that "
            "nothing is lost any more.",
        ),
        curves(
            found["entropy"], title="Selection entropy", y_title="normalised entropy", y_range=(0, 1.04),
            before=ghosts.get("entropy"), empty=wait, **common,
            note=f"Normalised entropy of the {counted} shown in the last {count_window:,} steps. 1: uniform; "
            "0: always the same.",
        ),
    ]  # fmt: skip
    for plot, name in zip(plots, ("rate", "regret", "entropy"), strict=True):
        plot["data"] += [_stop(label, *end, looks[label]) for label, end in _stops(result, found[name], name).items()]
    if fourth == "spectrum":
        return [*plots, _spectrum(found["spectrum"], looks, ghosts.get("spectrum"), taken, arm, over)]
    flat = {"x": np.array([0.0, result.experiment.steps]), "mid": np.full(2, level)}
    goal = Band(**flat, low=flat["mid"], high=flat["mid"], rows=0)
    if x != "step":  # the reference line spans the curves
        ends = [b.x for b in found["calibration"].values() if len(b.x) and np.isfinite(b.x).all()]
        goal = goal._replace(x=np.array([min(e[0] for e in ends), max(e[-1] for e in ends)]) if ends else goal.x)
    calibrated = curves(
        found["calibration"], title="Calibration", y_title="interval coverage", y_range=(0, 1.04),
        references={"nominal level": goal}, before=ghosts.get("calibration"), **common,
        note=f"Share of candidates whose true expected reward lies in the agent's own {100 * level:.0f} % interval. "
        "Dashed: nominal level (calibrated). Below: overconfident. Above: underconfident. Agents that do "
        "not estimate their uncertainty have no curve.",
        empty="None of these agents estimates its uncertainty." if over
        else "The first points appear after 5 % of the run.",
    )  # fmt: skip
    return [*plots, calibrated]


def _spectrum(
    found: dict[str, Band],
    looks: dict[str, Style],
    before: dict[str, Band] | None,
    taken: int | None,
    arm: int | None,
    over: bool,
) -> Spec:
    whose = "over replications" if arm is not None else "over replications and arms"
    plot = curves(
        found, looks, log_y=True, before=before,
        title="Eigenvalue spectrum", x_title="eigenvalue rank", y_title="eigenvalue of A",
        note="Eigenvalues of the design matrix A = λI + Σxx′: information collected in each direction of feature "
        f"space. A low tail: directions that are hardly explored. Line: median; band: middle 80 % {whose}"
        f"{'' if taken is None else f', at step {taken:,}'}.",
        empty="None of these agents has a design matrix (ridge model)." if over
        else "The first spectrum appears after 5 % of the run.",
    )  # fmt: skip
    if max((len(b.x) for b in found.values()), default=0) <= 10:  # there is no rank 1.5
        plot["layout"]["xaxis"]["dtick"] = 1
    return plot


def _stops(result: Result, drawn: dict[str, Band], name: str) -> dict[str, tuple[FloatArray, FloatArray, list[str]]]:
    """Locate the replications that diverged on each agent's curve: points and hover texts."""
    found = {}
    for label, history in result.histories.items():
        steps, counts = np.unique(metrics.stopped(history), return_counts=True)
        band = drawn[label]
        if not len(steps) or not len(band.x):
            continue
        of_counts = name == "entropy"
        grid, size = (history.count_grid, history.count_size) if of_counts else (history.grid, history.size)
        left_out = size - len(band.x)  # first points, which are not drawn
        at = np.clip(np.searchsorted(grid, steps) - left_out, 0, len(band.x) - 1)
        drawn_at = np.isfinite(band.mid[at])  # no curve where all replications have stopped
        if drawn_at.any():
            pairs = zip(counts[drawn_at], steps[drawn_at], strict=True)
            text = [f"{n} replication{'s' if n > 1 else ''} stopped near step {step:,}" for n, step in pairs]
            found[label] = (band.x[at][drawn_at], band.mid[at][drawn_at], text)
    return found


def _stop(label: str, x: FloatArray, y: FloatArray, text: list[str], style: Style) -> Spec:
    return {
        "type": "scatter", "mode": "markers", "name": label.replace("<", "&lt;"), "legendgroup": label, "x": x, "y": y,
        "text": text, "hovertemplate": "%{text}<extra>%{fullData.name}</extra>", "showlegend": False,
        "marker": {"symbol": "x", "size": 11, "color": style.color, "line": {"width": 1}},
    }  # fmt: skip


def bands(
    result: Result,
    window: int = metrics.WINDOW,
    *,
    x: XAxis = "step",
    level: float = 0.95,
    at: int | None = None,
    arm: int | None = None,
    until: int | None = None,
) -> Bands:
    """Compute the curves of each plot of `board` by label, up to the step ``until``."""
    histories = result.histories
    out: Bands = {
        "rate": {label: rate(result.experiment, h, window) for label, h in histories.items()},
        "regret": {label: metrics.pseudo_regret(h) for label, h in histories.items()},
        "entropy": {label: metrics.entropy(h, window) for label, h in histories.items()},
        "calibration": {
            label: band for label, h in histories.items() if (band := metrics.calibration(h, level)) is not None
        },
    }
    for curve in out.values():
        for label in curve:
            h = histories[label]
            kept = _cut(curve[label], curve[label].x <= (until or h.steps))
            curve[label] = _against(kept, h.grid, h.sums["clicks"], x)
    spectra = {label: metrics.spectrum(h, at or until, arm) for label, h in histories.items()}
    out["spectrum"] = {label: band for label, band in spectra.items() if band is not None}
    return out


def _against(band: Band, grid: IntArray, earned: FloatArray, x: XAxis) -> Band:
    """Replace the horizontal axis of a curve: log step, or the mean of ``earned (G, R)`` instead of the step."""
    if x == "log step":  # log 0 is undefined
        return _cut(band, band.x > 0)
    if x == "earned" and len(band.x):
        at = np.searchsorted(grid, band.x)
        alive = ~np.isnan(earned[at[-1]])
        mean = earned[at][:, alive].mean(axis=1) if alive.any() else np.full(len(at), np.nan)
        return band._replace(x=mean)
    return band


def overlay(results: Mapping[str, Result], window: int = metrics.WINDOW) -> Spec:
    """Draw the reward per step of all agents of several runs in one figure."""
    looks = styles_of_runs({name: r.experiment for name, r in results.items()})
    agents = [(n, label, r.histories[label]) for n, r in results.items() for label in r.histories]
    worlds = [r.experiment.simulator_class() for r in results.values()]
    nouns, rates = dict.fromkeys(w.reward_noun for w in worlds), dict.fromkeys(w.rate_title for w in worlds)
    drawn = sorted({metrics.effective_window(h, window) for _, _, h in agents} or {window})
    steps = " to ".join(f"{n:,}" for n in drawn[:: max(len(drawn) - 1, 1)])  # long runs are stored on coarser grids
    return curves(
        {f"{name} · {label}": rate(results[name].experiment, h, window) for name, label, h in agents},
        {f"{name} · {label}": looks[name][label] for name, label, _ in agents},
        title=" or ".join(rates), y_title=f"{' or '.join(nouns)} per step",
        note=f"Moving average over {steps} steps. Bands: 95 % confidence interval of the mean over the replications.",
    )  # fmt: skip


def figure(spec: Spec, *, dark: bool = False) -> go.Figure:
    """Turn a plain dictionary into a plotly figure, for notebooks, exports and reports."""
    import plotly.graph_objects as go

    made = go.Figure(spec)
    made.update_layout(template="plotly_dark" if dark else "plotly_white", font={"size": 14})
    return made
