"""Colours and dashes of agents, and how numbers are written in all figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from bandits.agents import REGISTRY as AGENTS
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment

# a figure as plotly's plain dictionary
Spec = dict[str, Any]

# Okabe and Ito (2008), safe for colour-blind readers; an agent's class names its own of them
# (`Agent.colour`)
_OKABE_ITO = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#B8A500",
    "#7F7F7F",
)
# dotted: the previous run, and no agent's own style
_DASHES = ("solid", "dash", "dashdot", "longdash")
# of agents beyond the first of their kind: neighbours differ in lightness and dash
_SERIES = ("#9C5B2E", "#7B68EE", "#C2185B", "#2A9D8F", "#6B8E23", "#FF7F6E", "#A1887F")
_SERIES_DASHES = ("dash", "dashdot", "longdash")
REFERENCE = "#8A8A8A"

# Numbers in hover texts, as d3 formats. Ticks are written in full with thousands separators: 5,000
# and never 5k. steps and other whole numbers: 12,000
STEP = ",.9~r"
# clicks, regret: 1,234.5
COUNT = ",.1f"
# rates, shares, entropies, coverage: 0.413
RATE = ".3f"
# everything else, with three significant digits
NUMBER = ",.3~r"
# by `Metric.form`
FORMATS = {"rate": RATE, "share": RATE, "count": COUNT, "number": NUMBER}
# what every axis starts from
AXIS: Spec = {"exponentformat": "none", "separatethousands": True, "hoverformat": NUMBER}


def log_ticks(values: Sequence[FloatArray]) -> Spec:
    """Choose the ticks of a logarithmic axis: powers of ten, or also 2 and 5 times them on a short
    axis.
    """
    seen = np.concatenate([v[v > 0] for v in values]) if values else np.empty(0)
    if not len(seen):
        return {}
    low, high = float(seen.min()), float(seen.max())
    powers = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 2)
    short = np.floor(np.log10(high)) - np.ceil(np.log10(low)) < 1
    ticks = [m * 10.0**e for e in powers for m in ((1, 2, 5) if short else (1,))]
    if sum(low <= tick <= high for tick in ticks) < 2:
        return {}
    return {"tickvals": ticks, "ticktext": [tick_text(tick) for tick in ticks]}


def tick_text(value: float) -> str:
    """Write the number at a tick: 0.001, 5,000.

    Beyond a million and below 1/1,000 as a power of ten.
    """
    if value <= 0 or 1e-3 <= value <= 1e6:
        return f"{value:,.10g}"
    power = math.floor(math.log10(value) + 1e-9)
    factor = f"{value / 10.0**power:.3g}"
    return f"10<sup>{power}</sup>" if factor == "1" else f"{factor}·10<sup>{power}</sup>"


class Style(NamedTuple):
    """Colour and dash of one agent's curves."""

    color: str
    dash: str


def palette(kinds: Sequence[str]) -> list[Style]:
    """Assign a style to each agent: its class's own.

    A second of a kind, and a kind without a style, get the next of a series that no agent has own:
    an agent that is added later changes no colour.
    """
    looks: list[Style] = []
    series = (
        Style(color, dash)
        for start in range(len(_SERIES_DASHES))
        for color, dash in zip(_SERIES, cycle(_SERIES_DASHES[start:] + _SERIES_DASHES[:start]))
    )
    for kind in kinds:
        own = _own_style(kind)
        looks.append(next(series) if own is None or own in looks else own)
    return looks


def _own_style(kind: str) -> Style | None:
    cls = AGENTS.get(kind)
    if cls is None or cls.colour is None:
        return None
    # a plug-in may still name it
    return Style(cls.colour, "longdash" if cls.dash == "dot" else cls.dash)


def styles(experiment: Experiment) -> dict[str, Style]:
    """Assign a style to every agent of an experiment, by label."""
    return dict(zip(experiment.labels, palette([a.kind for a in experiment.agents]), strict=True))


def distinct_styles(names: Sequence[str]) -> dict[str, Style]:
    """Assign a style to each of a few curves that do not belong to agents, by name."""
    n = len(_OKABE_ITO)
    return {
        name: Style(_OKABE_ITO[i % n], _DASHES[i // n % len(_DASHES)])
        for i, name in enumerate(names)
    }


def faint(color: str, alpha: float = 0.16) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
