"""Several runs beside each other: settings, outcomes, paired differences, one figure."""

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

from .table import gone, spoken

_LINES = {
    "solid": "solid lines", "dash": "dashes", "dot": "dots", "dashdot": "dashes and dots", "longdash": "long dashes",
    "longdashdot": "long dashes and dots",
}  # fmt: skip


def show(found: Sequence[StoredRun]) -> None:
    """Compare runs, named A, B, C in the order given."""
    results: dict[str, Result] = {}
    legend = []
    for name, run in zip("ABCDEF", found, strict=False):
        job = session.pool().get(run.id)
        if job is None or job.status != "finished":
            st.error(f"Run {name}: {escape_markdown(gone(run))}", icon=":material/broken_image:")
            continue
        results[name] = job.result
        legend.append((name, spoken(run), text.describe_experiment(run.experiment)))
    experiments = {name: r.experiment for name, r in results.items()}
    looks = styles_of_runs(experiments)
    st.html(_legend(legend, {n: _LINES[next(iter(looks[n].values())).dash] for n in looks}))
    if len(results) < 2:
        return

    colors = {label: look.color for run in looks.values() for label, look in run.items()}
    st.html(_colors(colors))
    spec = overlay(results)
    spec["layout"]["uirevision"] = "".join(e.hash for e in experiments.values())
    live_panel([spec], key="comparison", alt=["Click rates of all agents of the compared runs"], height=420)

    left, right = st.columns(2)
    left.subheader("What differs", anchor=False)
    differences = [
        {"Setting": d.path, **dict(zip(results, d.values, strict=True))} for d in settings(list(experiments.values()))
    ]
    _table(left, differences, "Nothing: these runs were set alike, but for the names or the order of their agents.")
    right.subheader("What came out", anchor=False)
    rows = [
        {
            "Agent": o.label,
            "Measure": o.metric,
            **dict(zip(results, (_told(o.metric, v) for v in o.values), strict=True)),
        }
        for o in outcomes(list(results.values()))
    ]
    _table(right, rows, "Nothing yet.")
    right.caption("Means over the replications with their 95 % intervals, each over its run's own steps.")

    st.subheader("With the same luck", anchor=False)
    pairs = [
        {
            "Agent": p.label, "Runs": f"{p.a} − {p.b}", "Up to step": count(p.step),
            "Clicks more": _signed(p.difference.mean),
            "95 % interval": f"{_signed(p.difference.low)} to {_signed(p.difference.high)}", "Rows": p.rows,
            "Told apart": "yes" if p.p_value < 0.05 else "no",
        }
        for p in paired(results)
    ]  # fmt: skip
    said = reasons(experiments)
    if pairs:
        st.dataframe(pd.DataFrame(pairs), hide_index=True, height="content")
        said.append(
            "Rows of paired runs met the same visitors with the same luck. Each interval speaks for its pair alone; "
            "*told apart* allows for all pairs that are shown (Holm's correction)."
        )
    elif not said:
        said.append("These runs pair, but no agent takes part in two of them under the same name.")
    st.markdown("\n".join(f"- {sentence}" for sentence in said))


def _table(place: DeltaGenerator, rows: Sequence[Mapping[str, object]], empty: str) -> None:
    if rows:
        place.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    else:
        place.markdown(empty)


def _told(metric: str, value: Estimate | None) -> str:
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
