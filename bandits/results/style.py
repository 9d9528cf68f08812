"""Colours and dashes of agents and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.experiment import Experiment

Spec = dict[str, Any]  # a figure as plotly's plain dictionary

# Okabe and Ito (2008), safe for colour-blind readers; an agent's class names its own of them (`Agent.colour`)
_OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A500", "#7F7F7F")
_DASHES = ("solid", "dash", "dot", "dashdot")
RUN_DASHES = (*_DASHES, "longdash", "longdashdot")  # one per run where several share a figure
REFERENCE = "#8A8A8A"


class Style(NamedTuple):
    """Colour and dash of one agent's curves."""

    color: str
    dash: str


def palette(kinds: Sequence[str]) -> list[Style]:
    """Assign a style to each agent: its class's own; a second of a kind gets a free colour, then a free dash."""
    free_styles = [Style(color, dash) for dash in _DASHES for color in _OKABE_ITO]
    own = [_own_style(kind) for kind in kinds]
    looks: list[Style] = []
    for i, home in enumerate(own):
        taken = {*looks, *(later for later in own[i + 1 :] if later)}  # others keep their own
        if home is None or home in looks:
            free = [style for style in free_styles if style not in taken] or free_styles
            colors = {style.color for style in taken}
            home = next((style for style in free if style.color not in colors), free[0])
        looks.append(home)
    return looks


def _own_style(kind: str) -> Style | None:
    cls = AGENTS.get(kind)
    return None if cls is None or cls.colour is None else Style(cls.colour, cls.dash)


def styles(experiment: Experiment) -> dict[str, Style]:
    """Assign a style to every agent of an experiment, by label."""
    return dict(zip(experiment.labels, palette([a.kind for a in experiment.agents]), strict=True))


def distinct_styles(names: Sequence[str]) -> dict[str, Style]:
    """Assign a style to each of a few curves that do not belong to agents, by name."""
    n = len(_OKABE_ITO)
    return {name: Style(_OKABE_ITO[i % n], _DASHES[i // n % len(_DASHES)]) for i, name in enumerate(names)}


def styles_of_runs(experiments: Mapping[str, Experiment]) -> dict[str, dict[str, Style]]:
    """Assign a style to every agent of every run: a colour per label, a dash per run."""
    kinds = {label: agent.kind for e in experiments.values() for label, agent in zip(e.labels, e.agents, strict=True)}
    colors = dict(zip(kinds, palette(list(kinds.values())), strict=True))
    return {
        name: {label: Style(colors[label].color, RUN_DASHES[i % len(RUN_DASHES)]) for label in e.labels}
        for i, (name, e) in enumerate(experiments.items())
    }


def faint(color: str, alpha: float = 0.16) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
