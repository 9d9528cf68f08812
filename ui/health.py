"""Diagnostics on the page: one table of verdicts, and one agent's pictures."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment, Refused, health, words
from bandits.figures import Spec, styles
from bandits.health.figures import MARKS, growth, panels
from bandits.health.process import Compared
from bandits.jobs import Job

from . import board, live

_DIAGNOSTIC = "Diagnostic / agent"  # no agent can be called so


def show(job: Job) -> None:
    """All verdicts on a run; anew every two seconds while it goes on, or what it is compared with is being computed."""
    try:
        beside = _compared(job.experiment, _world_of(job.experiment))
    except Refused as sentence:
        st.error(f"Not yet: {board.plain(str(sentence))}.", icon=":material/hourglass:")
        return
    going = job.active or beside.active
    st.fragment(_show, run_every=2.0 if going else None)(job, beside, going)


def _show(job: Job, beside: Compared, was_going: bool) -> None:
    coming = beside.coming
    with job.lock:
        result = job.result
        seen = {label: h for label, h in result.histories.items() if h.step}
    if was_going and not (job.active or beside.active):
        st.rerun()
    st.caption(f"{board.status(job)}. {words.described(job.experiment)}{_state(beside)}")
    if beside.error:
        world = _world_of(job.experiment)
        st.button("Compare again", key="health-again", on_click=_compared.clear, args=(job.experiment, world))
    if not seen:
        st.markdown("There is nothing to judge yet.")
        return
    compared = beside.oracle, beside.line, beside.slots
    with job.lock:
        found = {label: health.findings(result, label, *compared, coming=coming) for label in seen}
    titles = [finding.title for finding in next(iter(found.values())).values()]
    table: dict[str, list[str]] = {_DIAGNOSTIC: titles}
    for label, findings in found.items():
        cells = (f"{MARKS[f.verdict]} {f.verdict}" if f.verdict != "none" else MARKS["none"] for f in findings.values())
        table[board.safe_cell(label)] = list(cells)
    pinned = {_DIAGNOSTIC: st.column_config.TextColumn(pinned=True)}
    st.dataframe(table, hide_index=True, key="health-verdicts", height="content", column_config=pinned)
    label = st.selectbox("Agent", list(seen), key=f"health-agent-{job.id[:12]}", width=320)
    look = styles(job.experiment)[label]
    with job.lock:
        moving = growth(seen[label], label, look)
        specs = panels(result, label, found[label], *compared)
        for spec in specs.values():
            spec["layout"]["uirevision"] = f"{job.id}{label}"
        alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs.values()]
        packed = live.pack(list(specs.values()), alt, 280)
    if moving is not None:
        _play(moving, label)
    live.mount(packed, key="health")


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
        st.plotly_chart(moving, key=f"health-growth-{label}", **chart)


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
