"""Compare several runs: settings, results, paired differences, figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import pandas as pd
import streamlit as st

from bandits import Estimate, Result
from bandits.base.formatting import count, number
from bandits.results import words
from bandits.results.comparison.overlay import overlay, scales, styles_of_runs
from bandits.results.comparison.paired_tests import differs
from bandits.results.comparison.run_comparison import (
    PairedDifference,
    compared_pairs,
    conclusions,
    describe_settings,
    metric_titles,
    outcomes,
    paired,
    reasons,
    settings,
)
from bandits.results.describe import describe_experiment
from bandits.results.figures.style import Style
from bandits.results.metric_registry import METRICS, Metric, gain_metric, main_metric
from bandits.storage.run_store import StoredRun
from bandits_app.session import workers
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown, glued

from .run_lists import display_title, unavailable_reason

# of a table; longer ones scroll, so that what follows stays in sight
MAX_ROWS = 15


def show(found: Sequence[StoredRun]) -> None:
    """Compare runs, labelled A, B, C in the order given."""
    results: dict[str, Result] = {}
    legend = []
    for name, run in zip("ABCDEF", found, strict=False):
        job = workers.pool().get(run.id)
        if job is None or job.status != "finished":
            st.error(
                f"Run {name}: {escape_markdown(unavailable_reason(run))}",
                icon=":material/broken_image:",
            )
            continue
        results[name] = job.result
        legend.append((name, display_title(run), describe_experiment(run.experiment)))
    st.html(_legend(legend))
    if len(results) < 2:
        st.markdown("A comparison needs at least two runs whose curves are stored.")
        return
    experiments, pairs = {name: r.experiment for name, r in results.items()}, paired(results)
    stated = [
        f"**{escape_markdown(sentence)}**" for sentence in conclusions(results, pairs)
    ] + reasons(experiments)
    stated = stated or [
        "These runs can be paired, but no agent has the same label or the same parameters in two "
        "of them."
    ]
    lines = stated[0] if len(stated) == 1 else "\n".join(f"- {sentence}" for sentence in stated)
    st.markdown(glued(lines))

    st.subheader("Settings that differ", anchor=False)
    differences = settings(list(experiments.values()))
    if not differences:
        st.markdown("None: the settings are equal, except for labels or the order of the agents.")
    elif len(results) == 2:
        sentences = map(escape_markdown, describe_settings(experiments))
        a, b = results
        st.markdown(
            f"{b} compared with {a}:\n" + "\n".join(f"- {sentence}" for sentence in sentences)
        )
    else:
        _table(
            [{"Setting": d.name, **dict(zip(results, d.values, strict=True))} for d in differences]
        )

    _figures(results)

    st.subheader("Results", anchor=False)
    titles = metric_titles(list(experiments.values()))
    rows = [
        {
            "Agent": o.label,
            "Metric": titles[o.metric],
            **dict(zip(results, (_format(o.metric, v) for v in o.values), strict=True)),
        }
        for o in outcomes(list(results.values()))
    ]
    _table(rows)
    st.caption(
        "Means over replications with 95 % confidence intervals, each over all steps of its run."
    )

    st.subheader("Paired differences", anchor=False)
    # paired runs have one simulator
    units = {p.a: gain_metric(results[p.a].experiment) for p in pairs}
    differing = [
        {
            "Agent": _matched(p),
            "Runs": f"{p.b} − {p.a}",
            "Up to step": count(p.step),
            f"Difference in {units[p.a].unit}": words.mean(-p.difference, _signed(units[p.a])),
            "95 % CI": words.ends(-p.difference, _signed(units[p.a])),
            "Replications": p.rows,
            "Significant": "yes" if differs(p.difference, p.p_value) else "no",
        }
        for p in pairs
        if math.isfinite(p.difference.mean)
        and (p.difference.mean != 0 or p.difference.low < p.difference.high)
    ]
    if differing:
        st.dataframe(pd.DataFrame(differing), hide_index=True, height="content")
        family = compared_pairs({name: run.experiment for name, run in results.items()})
        corrected = (
            f"Intervals and *significant* (5 % level) are corrected for the {family} comparisons "
            "of agents that differ (Bonferroni). "
            if family > 1
            else ""
        )
        st.markdown(
            "Paired runs have the same random numbers and, unless the traffic changes, the same "
            "visitors (common random numbers), so the difference is taken per replication. "
            f"{corrected}Agents that earn the same in both runs are left out. An agent is compared "
            "with the one of the same label and kind in the other run; if no agent there has its "
            "label, with one that has the same parameters."
        )
    else:
        st.markdown(
            "None: see the top of this page."
            if not pairs
            else "None: the agents that can be compared earn the same."
        )


def _figures(results: Mapping[str, Result]) -> None:
    """Draw what agents are ranked by and the regret of all runs, with a tile for each line."""
    dark = st.context.theme.type == "dark"
    figures = overlay(results, dark=dark)
    looks = styles_of_runs({name: r.experiment for name, r in results.items()}, dark=dark)
    panel.draw(
        figures,
        key="comparison",
        revision="".join(r.experiment.hash for r in results.values()),
        alt=[f"{spec['layout']['title']['text']} of the runs" for spec in figures],
        height=360,
        legend=_tiles(results, looks),
        note="Reward per step and cumulative regret over the whole run, or per visit. One "
        "colour per agent; each run has its own line style and shade.",
    )


def _tiles(
    results: Mapping[str, Result], looks: Mapping[str, Mapping[str, Style]]
) -> list[dict[str, str]]:
    """Make a tile for each agent of each run, best first.

    Those of which no event counts yet come last.

    Rates of different simulators are not comparable: those of each are ranked for themselves, as
    they are drawn."""
    tiles: list[tuple[int, float, dict[str, str]]] = []
    groups = list(scales({name: result.experiment for name, result in results.items()}))
    alike = len({result.experiment.steps for result in results.values()}) == 1
    for name, result in results.items():
        group = groups.index(result.experiment.simulator_class())
        metric, visits = main_metric(result.experiment), result.experiment.offers("visits")
        for label, history in result.histories.items():
            estimate = metric.estimate(history)
            rate = estimate.mean
            lost = METRICS["visit_regret" if visits else "pseudo_regret"].estimate(history).mean
            regret = f"regret {number(lost)} per visit" if visits else f"regret {count(lost)}"
            look = looks[name][label]
            order = -rate if math.isfinite(rate) else math.inf
            tiles.append(
                (
                    group,
                    order,
                    {
                        "label": f"{name} · {label}",
                        "color": look.color,
                        "dash": look.dash,
                        "rate": words.plain(estimate, metric.form),
                        "spread": words.spread(estimate, metric.form),
                        "detail": (regret if math.isfinite(lost) else "regret not known")
                        + ("" if alike else f", {count(result.experiment.steps)} steps"),
                    },
                )
            )
    tiles.sort(key=lambda tile: tile[:2])
    return [tile for *_, tile in tiles]


def _signed(metric: Metric) -> words.Form:
    return "signed" if metric.form == "count" else metric.form


def _matched(pair: PairedDifference) -> str:
    """Name an agent, with both labels where it was matched by equal parameters."""
    return f"{pair.label} = {pair.other} (equal parameters)" if pair.other else pair.label


def _table(rows: Sequence[Mapping[str, object]]) -> None:
    st.dataframe(
        pd.DataFrame(rows), hide_index=True, height="content" if len(rows) <= MAX_ROWS else 560
    )


def _format(metric: str, value: Estimate | None) -> str:
    return "–" if value is None else words.cell(value, METRICS[metric].form)


def _legend(named: Sequence[tuple[str, str, str]]) -> str:
    items = "".join(
        f'<div style="overflow-wrap:anywhere"><b>{name}</b> <bdi>{escape(title)}</bdi> '
        f'<span style="font-size:.85rem;opacity:.75">{escape(about)}</span></div>'
        for name, title, about in named
    )
    return f"<div>{items}</div>"
