"""Diagnostics on the page: one table of verdicts, and one agent's pictures."""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import streamlit as st

from bandits import Experiment, UserError, diagnostics
from bandits.diagnostics.background import Compared
from bandits.diagnostics.figures import MARKS, growth, panels
from bandits.results import text
from bandits.results.style import Spec, styles
from bandits.runtime.pool import Job
from ui.live_panel import panel
from ui.run_view import board

_DIAGNOSTIC = "Diagnostic / agent"  # no agent can be called so


def show(job: Job) -> None:
    """All verdicts on a run; anew every two seconds while it goes on, or what it is compared with is being computed."""
    try:
        beside = _compared(job.experiment, _world_of(job.experiment))
    except UserError as sentence:
        st.error(f"Not yet: {board.plain(str(sentence))}.", icon=":material/hourglass:")
        return
    going = job.active or beside.active
    st.fragment(_show, run_every=2.0 if going else None)(job, beside, going)


def _show(job: Job, beside: Compared, was_going: bool) -> None:
    moment = (job.id, board.version(job), tuple(sorted(beside.coming)), *(found is None for found in beside.found))
    judged = _judged(job, beside, moment)
    if was_going and not (job.active or beside.active):
        st.rerun()
    st.caption(f"{board.status(job)}. {text.describe_experiment(job.experiment)}{_state(beside)}")
    if beside.error:
        world = _world_of(job.experiment)
        st.button("Compare again", key="health-again", on_click=_compared.clear, args=(job.experiment, world))
    if not judged.findings:
        st.markdown("There is nothing to judge yet.")
        return
    pinned = {_DIAGNOSTIC: st.column_config.TextColumn(pinned=True)}
    st.dataframe(judged.table, hide_index=True, key="health-verdicts", height="content", column_config=pinned)
    label = st.selectbox("Agent", list(judged.findings), key=f"health-agent-{job.id[:12]}", width=320)
    pictures = _pictures(job, beside, judged.findings[label], label, moment)
    if pictures.moving is not None:
        _play(pictures.moving, label)
    panel.mount(pictures.packed, key="health")


class Judged(NamedTuple):
    """One moment's findings by agent, and the table of their verdicts."""

    findings: dict[str, dict[str, diagnostics.Finding]]
    table: dict[str, list[str]]


class Pictures(NamedTuple):
    """One moment of one agent, ready to be sent; ``moving`` is its spectrum, if it has one."""

    moving: Spec | None
    packed: bytes


@st.cache_resource(max_entries=32, show_spinner=False)
def _judged(_job: Job, _beside: Compared, moment: object) -> Judged:  # noqa: ARG001 - the key
    """The same for everybody who looks at that run."""
    coming = _beside.coming
    with _job.lock:
        result = _job.result
        seen = [label for label, history in result.histories.items() if history.step]
        found = {label: diagnostics.findings(result, label, *_beside.found, coming=coming) for label in seen}
    if not seen:
        return Judged({}, {})
    table: dict[str, list[str]] = {_DIAGNOSTIC: [finding.title for finding in found[seen[0]].values()]}
    for label, findings in found.items():
        cells = (f"{MARKS[f.verdict]} {f.verdict}" if f.verdict != "none" else MARKS["none"] for f in findings.values())
        table[board.safe_cell(label)] = list(cells)
    return Judged(found, table)


@st.cache_resource(max_entries=64, show_spinner=False)
def _pictures(
    _job: Job,
    _beside: Compared,
    _findings: dict[str, diagnostics.Finding],
    label: str,
    moment: object,  # noqa: ARG001 - the key
) -> Pictures:
    with _job.lock:
        result = _job.result
        moving = growth(result.histories[label], label, styles(_job.experiment)[label])
        specs = panels(result, label, _findings, *_beside.found)
        for spec in specs.values():
            spec["layout"]["uirevision"] = f"{_job.id}{label}"
        alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs.values()]
        return Pictures(moving, panel.pack(list(specs.values()), alt, 280))


def _play(moving: Spec, label: str) -> None:
    """The spectrum as it grows, above the map of it."""
    with st.container(border=True):
        st.markdown("**The spectrum as it grows**")
        st.caption(
            "Directions of feature space, sorted: the higher, the more evidence. Healthy: the whole curve rises, its "
            "right end too. Press Play or move the slider. Dotted: the first snapshot. Band: middle 80 % over runs and "
            "arms."
        )
        chart = {"config": {"displayModeBar": False, "scrollZoom": False}, "height": 380}
        st.plotly_chart(deepcopy(moving), key=f"health-growth-{label}", **chart)


def _state(beside: Compared) -> str:
    if beside.active:
        return ". What the agents are compared with is being computed"
    return f". Compared with nothing: {board.plain(beside.error)}" if beside.error else ""


@st.cache_resource(ttl=3600, max_entries=32, show_spinner=False)
def _compared(_experiment: Experiment, world: str) -> Compared:  # noqa: ARG001 - the key
    """One per world and server: all who look at it share it."""
    return Compared(_experiment)


def _world_of(experiment: Experiment) -> str:
    """What it depends on: all but the agents."""
    return experiment.model_dump_json(exclude={"agents"})
