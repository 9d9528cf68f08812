"""Diagnostics on the page: one table of verdicts, and one agent's pictures."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment, Refused, health, words
from bandits.health import Line, Oracle, Slots
from bandits.health.figures import MARKS, panels
from bandits.jobs import Job
from bandits.result import Result

from . import board, live

Beside = tuple[Oracle | None, Line | None, Slots | None]  # what an agent is compared with


def show(job: Job) -> None:
    """All verdicts on a run; anew every two seconds while it goes on."""
    st.fragment(_show, run_every=2.0 if job.active else None)(job, job.active)


def _show(job: Job, was_active: bool) -> None:
    with job.lock:
        result = job.result
        seen = {label: h for label, h in result.histories.items() if h.step}
    if was_active and not job.active:
        st.rerun()
    st.caption(f"{board.status(job)}. {words.described(job.experiment)}")
    if not seen:
        st.markdown("There is nothing to judge yet.")
        return
    beside = _compared(job.experiment, job.experiment.hash)
    with job.lock:
        found = {label: health.findings(result, label, *beside) for label in seen}
    titles = [finding.title for finding in next(iter(found.values())).values()]
    table: dict[str, list[str]] = {"Diagnostic": titles}
    for label, findings in found.items():
        cells = (f"{MARKS[f.verdict]} {f.verdict}" if f.verdict != "none" else MARKS["none"] for f in findings.values())
        table[board.safe_cell(label)] = list(cells)
    pinned = {"Diagnostic": st.column_config.TextColumn(pinned=True)}
    st.dataframe(table, hide_index=True, key="health-verdicts", height="content", column_config=pinned)
    label = st.selectbox("Agent", list(seen), key=f"health-agent-{job.id[:12]}", width=320)
    _one(job, result, label, found[label], beside)


def _one(job: Job, result: Result, label: str, found: dict[str, health.Finding], beside: Beside) -> None:
    with job.lock:
        specs = panels(result, label, found, *beside)
        for spec in specs.values():
            spec["layout"]["uirevision"] = f"{job.id}{label}"
        alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs.values()]
        packed = live.pack(list(specs.values()), alt, 280)
    live.mount(packed, key="health")


@st.cache_data(ttl=3600, max_entries=32, show_spinner="Asking the oracle, and fitting a line and a network ...")
def _compared(_experiment: Experiment, run: str) -> Beside:  # noqa: ARG001 - the key
    try:
        return health.oracle_of(_experiment), health.line_of(_experiment), health.slots_of(_experiment)
    except Refused:  # the data that the run was made on are no longer here: it is judged without
        return None, None, None
