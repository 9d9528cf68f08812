"""Compare several runs: settings, results, paired differences, one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits import Estimate, Result
from bandits.base.formatting import count, percent
from bandits.results import text
from bandits.results.figures import overlay
from bandits.results.run_comparison import outcomes, paired, reasons, settings
from bandits.results.style import styles_of_runs
from bandits.storage.run_store import StoredRun
from ui import session
from ui.live_panel.panel import live_panel
from ui.text import escape_markdown

from .table import display_title, unavailable_reason

MAX_ROWS = 15  # of a table; longer ones scroll, so that what follows stays in sight
_LINES = {
    "solid": "solid lines", "dash": "dashes", "dot": "dots", "dashdot": "dashes and dots", "longdash": "long dashes",
    "longdashdot": "long dashes and dots",
}  # fmt: skip


def show(found: Sequence[StoredRun]) -> None:
    """Compare runs, labelled A, B, C in the order given."""
    results: dict[str, Result] = {}
    legend = []
    for name, run in zip("ABCDEF", found, strict=False):
        job = session.pool().get(run.id)
        if job is None or job.status != "finished":
            st.error(f"Run {name}: {escape_markdown(unavailable_reason(run))}", icon=":material/broken_image:")
            continue
        results[name] = job.result
        legend.append((name, display_title(run), text.describe_experiment(run.experiment)))
    experiments = {name: r.experiment for name, r in results.items()}
    looks = styles_of_runs(experiments)
    st.html(_legend(legend, {n: _LINES[next(iter(looks[n].values())).dash] for n in looks}))
    if len(results) < 2:
        st.markdown("A comparison needs at least two runs whose curves are stored.")
        return

    colors = {label: look.color for run in looks.values() for label, look in run.items()}
    st.html(_colors(colors))
    spec = overlay(results)
    spec["layout"]["uirevision"] = "".join(e.hash for e in experiments.values())
    live_panel([spec], key="comparison", alt=["Click-through rates of all agents of the compared runs"], height=420)

    left, right = st.columns(2)
    left.subheader("Settings that differ", anchor=False)
    differences = [
        {"Setting": d.path, **dict(zip(results, d.values, strict=True))} for d in settings(list(experiments.values()))
    ]
    _table(left, differences, "None: the settings are equal, except for labels or the order of the agents.")
    right.subheader("Results", anchor=False)
    rows = [
        {
            "Agent": o.label,
            "Metric": o.metric,
            **dict(zip(results, (_format(o.metric, v) for v in o.values), strict=True)),
        }
        for o in outcomes(list(results.values()))
    ]
    _table(right, rows, "No results yet.")
    right.caption("Means over replications with 95 % confidence intervals, each over all steps of its run.")

    st.subheader("Paired differences", anchor=False)
    pairs = [
        {
            "Agent": p.label, "Runs": f"{p.a} − {p.b}", "Up to step": count(p.step),
            "Difference in clicks": _signed(p.difference.mean),
            "95 % CI": f"{_signed(p.difference.low)} to {_signed(p.difference.high)}", "Replications": p.rows,
            "Significant": "yes" if p.p_value < 0.05 else "no",
        }
        for p in paired(results)
    ]  # fmt: skip
    notes = reasons(experiments)
    if pairs:
        st.dataframe(pd.DataFrame(pairs), hide_index=True, height="content")
        notes.append(
            "Paired runs share visitors and random numbers (common random numbers), so the difference is taken per "
            "replication. Each interval is for its pair alone; *significant* (5 % level) is corrected for all pairs "
            "shown (Holm)."
        )
    elif not notes:
        notes.append("These runs can be paired, but no agent has the same label in two of them.")
    st.markdown("\n".join(f"- {sentence}" for sentence in notes))


def _table(place: DeltaGenerator, rows: Sequence[Mapping[str, object]], empty: str) -> None:
    if rows:
        place.dataframe(pd.DataFrame(rows), hide_index=True, height="content" if len(rows) <= MAX_ROWS else 560)
    else:
        place.markdown(empty)


def _format(metric: str, value: Estimate | None) -> str:
    if value is None:
        return "–"
    if metric == "click-through rate":
        mean, low, high = (f"{v:.3f}" for v in value)
    elif metric == "share of the oracle's gain":
        mean, low, high = (percent(v) for v in value)
    else:
        mean, low, high = (count(v) for v in value)
    return f"{mean} ({low} to {high})" if value.low == value.low else mean


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{count(abs(value))}"


def _legend(named: Sequence[tuple[str, str, str]], lines: Mapping[str, str]) -> str:
    items = "".join(
        f'<div style="overflow-wrap:anywhere"><b>{name}</b> <bdi>{escape(title)}</bdi> '
        f'<span style="font-size:.85rem;opacity:.75">{escape(about)} · {lines[name]}</span></div>'
        for name, title, about in named
    )
    return f"<div>{items}</div>"


def _colors(colors: Mapping[str, str]) -> str:
    items = "".join(
        f'<span style="margin-right:1rem"><span style="color:{color}">●</span> {escape(label)}</span>'
        for label, color in colors.items()
    )
    return f'<div style="font-size:.9rem">{items}</div>'
