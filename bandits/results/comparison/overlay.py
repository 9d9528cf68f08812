"""Draw several runs in one figure: a hue per agent, a line style and a lightness per run, an axis per simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bandits.experiments.experiment import Experiment
from bandits.results import metrics
from bandits.results.figures.board import curves, rate
from bandits.results.figures.style import COUNT, RATE, Spec, Style, palette, rate_unit
from bandits.simulators.base import Simulator

if TYPE_CHECKING:
    from bandits.results.result import Result

_DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot", "dot")
_SHADES = (0.0, 0.4, 0.2, 0.55, 0.3, 0.1)  # share of black (white on dark pages) mixed into the colour of an agent
MAX_RUNS = len(_DASHES)


def styles_of_runs(experiments: Mapping[str, Experiment], *, dark: bool = False) -> dict[str, dict[str, Style]]:
    """Assign a style to every agent of every run.

    Parameters
    ----------
    experiments : mapping of str to Experiment
        At most ``MAX_RUNS`` by name.
    dark : bool
        The page is dark: the colours of later runs are lighter instead of darker.

    Returns
    -------
    dict
        Styles by name of the run and label of the agent.
    """
    kinds = {label: agent.kind for e in experiments.values() for label, agent in zip(e.labels, e.agents, strict=True)}
    colors = dict(zip(kinds, palette(list(kinds.values())), strict=True))
    return {
        name: {label: Style(shade(colors[label].color, _SHADES[i], dark=dark), _DASHES[i]) for label in e.labels}
        for i, (name, e) in enumerate(experiments.items())
    }


def shade(color: str, share: float, *, dark: bool = False) -> str:
    """Mix a colour ``#RRGGBB`` with black, or with white where the page is dark."""
    goal = 255 if dark else 0
    parts = (round(int(color[i : i + 2], 16) * (1 - share) + goal * share) for i in (1, 3, 5))
    return "#" + "".join(f"{part:02X}" for part in parts)


def scales(experiments: Mapping[str, Experiment]) -> dict[type[Simulator], list[str]]:
    """Group runs by their simulators: rewards of different ones have different scales and share no axis."""
    groups: dict[type[Simulator], list[str]] = {}
    for name, experiment in experiments.items():
        groups.setdefault(experiment.simulator_class(), []).append(name)
    return groups


def overlay(results: Mapping[str, Result], window: int = metrics.WINDOW, *, dark: bool = False) -> list[Spec]:
    """Draw reward per step and cumulative regret of all agents of several runs: two figures for each simulator.

    Lines are named by run and agent: "A · LinUCB".
    """
    experiments = {name: r.experiment for name, r in results.items()}
    looks, groups, figures = styles_of_runs(experiments, dark=dark), scales(experiments), list[Spec]()
    for simulator, names in groups.items():
        title, noun = simulator.rate_title, simulator.reward_noun
        agents = [(n, label, h) for n in names for label, h in results[n].histories.items()]
        shown = {f"{n} · {label}": looks[n][label] for n, label, _ in agents}
        which = f", {'runs' if len(names) > 1 else 'run'} {', '.join(names)}" if len(groups) > 1 else ""
        drawn = sorted({metrics.effective_window(h, window) for _, _, h in agents} or {window})
        steps = " to ".join(f"{n:,}" for n in drawn[:: max(len(drawn) - 1, 1)])  # long runs have coarser grids
        rates = {f"{n} · {label}": rate(experiments[n], h, window) for n, label, h in agents}
        banded = "Bands: 95 % confidence interval of the mean over the replications."
        figures += [
            curves(
                rates, shown, title=f"{title}{which}", y_title=rate_unit(experiments[names[0]]), y_format=RATE,
                end_labels=True, note=f"Moving average over {steps} steps. {banded}",
            ),
        ]  # fmt: skip
        if experiments[names[0]].offers("replay"):
            counted = {f"{n} · {label}": metrics.counted_decisions(h) for n, label, h in agents}
            figures.append(curves(
                counted, shown, title=f"Counted events{which}", y_title="events", y_format=COUNT, end_labels=True,
                note=f"Events in which the agent chose what the log shows. {banded}",
            ))  # fmt: skip
            continue
        regrets = {f"{n} · {label}": metrics.pseudo_regret(h) for n, label, h in agents}
        figures.append(curves(
            regrets, shown, title=f"Cumulative regret{which}", y_title=f"{noun} lost", y_format=COUNT, end_labels=True,
            note=f"Expected {noun} lost relative to always choosing the best. {banded}",
        ))  # fmt: skip
    return figures
