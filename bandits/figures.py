"""Bands -> figures. Plain plotly dictionaries, cheap enough to make every second; `figure` makes a graph object.

Colours of text and grid are left to whoever shows them, so that light and dark both work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import metrics
from .experiment import Experiment
from .metrics import Band
from .result import Result

if TYPE_CHECKING:
    import plotly.graph_objects as go

Spec = dict[str, Any]
MAX_POINTS = 400  # points a line is drawn with

# Okabe and Ito (2008), safe for colour-blind readers; each kind of agent keeps its own
_OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A500", "#7F7F7F")
_HOME = {
    "linucb": 0, "lints": 1, "epsilon_greedy": 2, "static_mlp": 3, "ucb1": 4, "beta_ts": 5, "popularity": 6,
    "random": 7,
}  # fmt: skip
_DASHES = ("solid", "dash", "dot", "dashdot")
RUN_DASHES = (*_DASHES, "longdash", "longdashdot")  # one per run where several share a figure
REFERENCE = "#8A8A8A"


class Style(NamedTuple):
    """How one agent is drawn, everywhere."""

    color: str
    dash: str


def palette(kinds: Sequence[str]) -> list[Style]:
    """A look per agent: its kind's own colour while it is free, then the next free one; dashes when all are taken."""
    size = len(_OKABE_ITO)
    used: list[int] = []
    out: list[Style] = []
    wanted = [_HOME.get(kind) for kind in kinds]
    for i, home in enumerate(wanted):
        lap = i // size
        free = [slot for slot in range(size) if slot not in used[lap * size :]]
        unclaimed = [slot for slot in free if slot not in wanted[i + 1 :]] or free  # leave others their own
        slot = home if home is not None and home in free else unclaimed[0]
        used.append(slot)
        out.append(Style(_OKABE_ITO[slot], _DASHES[lap % len(_DASHES)]))
    return out


def styles(experiment: Experiment) -> dict[str, Style]:
    """The look of every agent of an experiment, by label."""
    return dict(zip(experiment.labels, palette([a.kind for a in experiment.agents]), strict=True))


def curves(
    bands: dict[str, Band],
    looks: dict[str, Style],
    *,
    title: str,
    note: str,
    x_title: str = "step",
    y_title: str = "",
    references: dict[str, Band] | None = None,
    log_y: bool = False,
    y_range: Sequence[float] | None = None,
    empty: str = "Nothing to draw yet.",
) -> Spec:
    """Lines with their bands, and thin dashed reference lines; without any curve, an empty figure that says why."""
    data: list[Spec] = []
    for label, band in bands.items():
        if len(band.x):
            data.extend(_drawn(label, thin(band), looks[label]))
    for label, band in (references or {}).items() if data else ():
        kept, line = thin(band), {"color": REFERENCE, "width": 1.2, "dash": "dash"}
        trace = {"type": "scatter", "mode": "lines", "name": label, "x": kept.x, "y": kept.mid, "line": line}
        data.append({**trace, "meta": "reference"})
    layout: Spec = {
        "title": {"text": title},
        "meta": {"note": note},
        "xaxis": {"title": {"text": x_title}},
        "yaxis": {"title": {"text": y_title}, "type": "log" if log_y else "linear"},
        "showlegend": False,
    }
    if log_y:
        layout["yaxis"]["dtick"] = 1
    if y_range is not None:
        layout["yaxis"]["range"] = list(y_range)
    if not data:
        layout["annotations"] = [
            {"text": empty, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        ]
    return {"data": data, "layout": layout}


def _settled(band: Band, window: int) -> Band:
    """Without its first points: a rate over a handful of steps is noise whose band dwarfs all that follows."""
    kept = band.x >= min(window, band.x[-1] if len(band.x) else 0) / 20
    return Band(band.x[kept], band.mid[kept], band.low[kept], band.high[kept], band.rows)


def thin(band: Band, points: int = MAX_POINTS) -> Band:
    """Every k-th point and the last: curves are averages or sums, so nothing between them is lost."""
    every = -(-len(band.x) // points)
    if every <= 1:
        return band
    kept = np.unique(np.append(np.arange(0, len(band.x), every), len(band.x) - 1))
    return Band(band.x[kept], band.mid[kept], band.low[kept], band.high[kept], band.rows)


def _drawn(label: str, band: Band, look: Style) -> list[Spec]:
    line = {"color": look.color, "width": 2.2, "dash": look.dash}
    name = label.replace("<", "&lt;")
    curve = {"type": "scatter", "mode": "lines", "name": name, "x": band.x, "y": band.mid, "line": line}
    if band.rows < 2:
        return [curve]
    edge = thin(band, MAX_POINTS // 2)
    outline = {
        "type": "scatter", "mode": "lines", "name": name, "hoverinfo": "skip", "fill": "toself",
        "x": np.concatenate([edge.x, edge.x[::-1]]), "y": np.concatenate([edge.high, edge.low[::-1]]),
        "line": {"width": 0, "color": look.color}, "fillcolor": _faint(look.color),
    }  # fmt: skip
    return [outline, curve]


def _faint(color: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def board(result: Result, window: int = metrics.WINDOW) -> list[Spec]:
    """The four plots of the Arena: click rate, regret, selection entropy, eigenvalue spectrum."""
    looks, histories = styles(result.experiment), result.histories
    world = result.experiment.simulator_class()
    band = f"Bands: 95 % interval over {result.experiment.replications} runs."
    one = result.experiment.replications == 1
    rate = {label: _settled(metrics.ctr(h, window), window) for label, h in histories.items()}
    first = max(histories.values(), key=lambda h: h.step, default=None)
    references = {}
    rate_window = metrics.window_drawn(first, window) if first else window
    count_window = metrics.window_drawn(first, window, of_counts=True) if first else window
    if first is not None:
        references = {
            "oracle": _settled(metrics.reference(first, "best_value", window), window),
            "random choice": _settled(metrics.reference(first, "random_value", window), window),
        }
    spectra = {label: metrics.spectrum(h) for label, h in histories.items()}
    return [
        curves(
            rate, looks, title="Click rate", y_title=f"{world.reward_noun} per step", references=references,
            note=f"Average over the last {rate_window:,} steps. Dashed: oracle above, random below. "
            f"{'' if one else band}",
            empty="The first points are on their way.",
        ),
        curves(
            {label: metrics.pseudo_regret(h) for label, h in histories.items()}, looks,
            title="Cumulative regret", y_title=f"{world.reward_noun} lost",
            note=f"Expected {world.reward_noun} lost against always choosing the best {world.item_noun}. Flat means: "
            "nothing left to learn.",
            empty="The first points are on their way.",
        ),
        curves(
            {label: metrics.entropy(h, window) for label, h in histories.items()}, looks,
            title="Selection entropy", y_title="0 to 1", y_range=(0, 1.04),
            note=f"How evenly arms were chosen in the last {count_window:,} steps. 1: all alike, 0: always the same.",
            empty="The first points are on their way.",
        ),
        curves(
            {label: s for label, s in spectra.items() if s is not None}, looks, log_y=True,
            title="Eigenvalue spectrum", x_title="rank of the eigenvalue", y_title="evidence (eigenvalue)",
            note="Eigenvalues of A = λI + Σxx′: evidence gathered in each direction of feature space. A low tail: "
            "directions hardly explored. "
            "Line: median; band: middle 80 % over runs and arms.",
            empty="The first spectrum comes after a twentieth of the run; agents without a ridge model have none.",
        ),
    ]  # fmt: skip


def looks_of_runs(experiments: Mapping[str, Experiment]) -> dict[str, dict[str, Style]]:
    """The look of every agent of every run: the same label in the same colour, every run in a dash of its own."""
    kinds = {label: agent.kind for e in experiments.values() for label, agent in zip(e.labels, e.agents, strict=True)}
    colors = dict(zip(kinds, palette(list(kinds.values())), strict=True))
    return {
        name: {label: Style(colors[label].color, RUN_DASHES[i % len(RUN_DASHES)]) for label in e.labels}
        for i, (name, e) in enumerate(experiments.items())
    }


def overlay(results: Mapping[str, Result], window: int = metrics.WINDOW) -> Spec:
    """Click rates of all agents of several runs, by name, in one figure."""
    looks = looks_of_runs({name: r.experiment for name, r in results.items()})
    agents = [(n, label, r.histories[label]) for n, r in results.items() for label in r.histories]
    nouns = dict.fromkeys(r.experiment.simulator_class().reward_noun for r in results.values())
    drawn = max((metrics.window_drawn(h, window) for _, _, h in agents), default=window)
    return curves(
        {f"{name} · {label}": _settled(metrics.ctr(h, window), window) for name, label, h in agents},
        {f"{name} · {label}": looks[name][label] for name, label, _ in agents},
        title="Click rate", y_title=f"{' or '.join(nouns)} per step",
        note=f"Average over the last {drawn:,} steps. Bands: 95 % interval over the replications of each run.",
    )  # fmt: skip


def figure(spec: Spec, *, dark: bool = False) -> go.Figure:
    """A spec as a plotly graph object, for notebooks, export and reports."""
    import plotly.graph_objects as go

    made = go.Figure(spec)
    made.update_layout(template="plotly_dark" if dark else "plotly_white", font={"size": 14})
    return made
