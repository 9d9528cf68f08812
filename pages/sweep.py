"""Sweep: vary parameters of an agent and show which values are best."""

import streamlit as st

from bandits import UserError
from bandits.results.metric_registry import OBJECTIVES, objectives
from bandits.sweeps import read
from bandits_app.arena.controls import controls
from bandits_app.session import draft
from bandits_app.session.owner import owner
from bandits_app.sweep import agent, axes, conclusions, selection, view
from bandits_app.widgets.text import refuse


def fold_settings() -> None:
    """Fold the settings once a sweep runs, so that the map is in sight."""
    st.session_state["sweep-settings"] = False


errors = []
try:
    job = selection.current()
except UserError as error:
    job = None
    errors.append(str(error))
with st.sidebar:
    controls(draft.current(), agent.choose, agent.add)
head = st.container(
    horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small"
)
head.title("Sweep", anchor=False, width="content")
tools = head.container(horizontal=True, gap="xsmall", width="content")
st.markdown(
    "Which parameter values are best for an agent, and how much do they matter? Choose "
    "**Settings** and press **Run**."
)
row = st.container(horizontal=True, vertical_alignment="center", gap="small")
example_row = st.container()
settings = st.expander("Settings", job is None, key="sweep-settings", on_change="rerun")
with settings:
    data = axes.choose(errors)
preset = selection.choose_preset(row, data)
message, valid = selection.check(data) if data is not None else ("", False)
run_pressed = row.button(
    "Run",
    type="primary",
    icon=":material/play_arrow:",
    shortcut="Ctrl+Enter",
    disabled=not valid,
    on_click=fold_settings,
)
stop_pressed = row.button("Stop", icon=":material/stop:", disabled=job is None or not job.active)
known = objectives(None if job is None else job.sweep.experiment)
if st.session_state.get("sweep-metric") not in known:
    # of a sweep with another simulator
    st.session_state.pop("sweep-metric", None)
metric = row.selectbox(
    "Metric",
    known,
    format_func=lambda name: OBJECTIVES[name].of().title,
    key="sweep-metric",
    width=220,
    label_visibility="collapsed",
)
slot = row.container(width="stretch").empty()
try:
    if job is None and example_row.button(
        "Try a small example",
        icon=":material/science:",
        help=selection.EXAMPLE.about,
        on_click=fold_settings,
    ):
        selection.start_example()
        st.rerun()
    if run_pressed and data is not None:
        selection.start(read(data))
        draft.current().notice = ""
        # enables the Stop button
        st.rerun()
    if stop_pressed and job is not None:
        selection.manager().stop(job, owner())
    if job is not None:
        conclusions.refine_button(row, job, metric)
except UserError as error:
    errors.append(str(error))
if preset is not None:
    st.caption(preset.about)
for sentence in errors:
    refuse(sentence)
if data is not None and valid:
    (slot if job is None else settings).caption(message)
elif data is not None:
    st.warning(message, icon=":material/error:")
if job is None and valid:
    order = (
        "Points are proposed in batches"
        if data and data["search"] == "optuna"
        else "The map is computed coarse to fine"
    )
    st.caption(f":material/touch_app: Press **Run**. {order}.")
if job is not None:
    with tools.popover("Export", icon=":material/download:", type="tertiary"):
        view.files(job, metric)
    view.show(job, metric, slot)
