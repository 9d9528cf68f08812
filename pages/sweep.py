"""Sweep: a parameter's every value at once, as a landscape."""

import streamlit as st

from bandits import UserError
from bandits.sweeps.analysis.run_metrics import METRICS
from ui import entry
from ui.arena import draft
from ui.arena.controls import controls
from ui.sweep import axes, export, view
from ui.text import refuse

entry.through_app("pages/sweep.py")

refused = []
try:
    found = view.current()
except UserError as sentence:
    found = None
    refused.append(str(sentence))
with st.sidebar:
    controls(draft.current())
head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small")
head.title("Sweep", anchor=False, width="content")
tools = head.container(horizontal=True, gap="xsmall", width="content")
st.markdown(
    "How much does it matter how an agent is set? Choose one or two parameters, or up to eight and have "
    "Optuna propose points; every value is run in the same world, with the same visitors and the same luck."
)
data = axes.choose()
asked, able = view.size(data) if data is not None else ("", False)
row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
pressed = row.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", disabled=not able)
stopped = row.button("Stop", icon=":material/stop:", disabled=found is None or not found.active)
metric = row.selectbox(
    "Show", list(METRICS), format_func=lambda name: METRICS[name].title, key="sweep-metric", width=240,
    help="What the landscape is made of; all of them are known for every run.",
)  # fmt: skip
try:
    if pressed and data is not None:
        view.start(data)
        st.rerun()  # the button beside it can be pressed now
    if stopped and found is not None:
        view.stop(found)
except UserError as sentence:
    refused.append(str(sentence))
for said in refused:
    refuse(said)
if data is not None and able:
    st.caption(asked)
elif data is not None:
    st.warning(asked, icon=":material/error:")
if found is None:
    fills = "Points come in batches" if data and data["search"] == "optuna" else "The map fills in, coarse to fine"
    st.caption(f":material/touch_app: Press **Run** (Ctrl+Enter). {fills}.")
else:
    with tools.popover("Export", icon=":material/download:", type="tertiary"):
        export.files(found, metric)
    view.show(found, metric)
