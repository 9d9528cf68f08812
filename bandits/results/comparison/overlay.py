"""Draw several runs in one figure: a hue per agent, a line style and a lightness per run, an axis
per simulator.
"""

from __future__ import annotations

from collections.abc import Mapping

from bandits.experiments.experiment import Experiment
from bandits.results import metrics
from bandits.results.figures.board import drawn_band
from bandits.results.figures.curves import curves
from bandits.results.figures.style import FORMATS, Spec, Style, palette
from bandits.results.metric_registry import METRICS, first_three
from bandits.results.run import Run
from bandits.simulators.base import Simulator

_DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot", "dot")
# share of black (white on dark pages) mixed into the colour of an agent
_SHADES = (0.0, 0.4, 0.2, 0.55, 0.3, 0.1)
MAX_RUNS = len(_DASHES)


def styles_of_runs(
    experiments: Mapping[str, Experiment], *, dark: bool = False
) -> dict[str, dict[str, Style]]:
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
    kinds = {
        label: agent.kind
        for e in experiments.values()
        for label, agent in zip(e.labels, e.agents, strict=True)
    }
    colors = dict(zip(kinds, palette(list(kinds.values())), strict=True))
    return {
        name: {
            label: Style(shade(colors[label].color, _SHADES[i], dark=dark), _DASHES[i])
            for label in e.labels
        }
        for i, (name, e) in enumerate(experiments.items())
    }


def shade(color: str, share: float, *, dark: bool = False) -> str:
    """Mix a colour ``#RRGGBB`` with black, or with white where the page is dark."""
    goal = 255 if dark else 0
    parts = (round(int(color[i : i + 2], 16) * (1 - share) + goal * share) for i in (1, 3, 5))
    return "#" + "".join(f"{part:02X}" for part in parts)


def scales(experiments: Mapping[str, Experiment]) -> dict[type[Simulator], list[str]]:
    """Group runs by their simulators: rewards of different ones have different scales and share no
    axis.
    """
    groups: dict[type[Simulator], list[str]] = {}
    for name, experiment in experiments.items():
        groups.setdefault(experiment.simulator_class(), []).append(name)
    return groups


def overlay(
    results: Mapping[str, Run], window: int = metrics.WINDOW, *, dark: bool = False
) -> list[Spec]:
    """Draw reward per step, or visit, and regret of all agents of several runs: two figures for
    each simulator.

    Lines are named by run and agent: "A · LinUCB".
    """
    experiments = {name: r.experiment for name, r in results.items()}
    looks, groups, figures = (
        styles_of_runs(experiments, dark=dark),
        scales(experiments),
        list[Spec](),
    )
    for names in groups.values():
        agents = [(n, label, h) for n in names for label, h in results[n].histories.items()]
        shown = {f"{n} · {label}": looks[n][label] for n, label, _ in agents}
        which = (
            f", {'runs' if len(names) > 1 else 'run'} {', '.join(names)}" if len(groups) > 1 else ""
        )
        drawn = sorted({metrics.effective_window(h, window) for _, _, h in agents} or {window})
        # Long runs have coarser grids
        steps = " to ".join(f"{n:,}" for n in drawn[:: max(len(drawn) - 1, 1)])
        first, second, _ = first_three(experiments[names[0]])
        for name in (first, second):
            metric = METRICS[name].of(experiments[names[0]], window=steps)
            bands = {
                f"{n} · {label}": drawn_band(experiments[n], h, name, window)
                for n, label, h in agents
            }
            figures.append(
                curves(
                    {line: band for line, band in bands.items() if band is not None},
                    shown,
                    title=f"{metric.title}{which}",
                    y_title=metric.unit,
                    y_format=FORMATS[metric.form],
                    end_labels=True,
                    note=(
                        f"{metric.note} Bands: 95 % confidence interval of the mean over the "
                        "replications."
                    ),
                )
            )
    return figures
