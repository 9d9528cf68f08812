"""Runs: list running, unfinished and finished runs, to open, name, compare or delete."""

import streamlit as st

from ui import entry
from ui.runs import comparison, sweeps, table

entry.through_app("pages/runs.py")

st.title("Runs", anchor=False)
table.show_messages()
if compared := table.compared_runs():
    st.markdown(
        "How do these runs differ in settings and results? Start with the figure; paired differences are at the end."
    )
    st.button("Back to all runs", icon=":material/arrow_back:", on_click=table.end_comparison)
    comparison.show(compared)
    st.stop()

st.markdown(
    "Which runs and sweeps are stored, and how do they compare? Select one finished run to open it, or "
    f"2 to {table.MAX_COMPARED} to compare them."
)
table.running()
table.unfinished()
sweeps.show()
runs = table.finished_runs()
if not runs:
    st.markdown("There are no finished runs yet. Every run that reaches its last step is stored here.")
    if st.button("Start a run in the Arena", type="primary", icon=":material/play_arrow:"):
        st.switch_page("pages/arena.py")
    st.stop()

st.subheader("Finished", anchor=False)
query = st.text_input(
    "Search", key="shelf-search", icon=":material/search:", placeholder="Search titles, tags, agents or simulators",
    label_visibility="collapsed",
)  # fmt: skip
buttons = st.container(horizontal=True)
found = table.search(runs, query)
if not found:
    st.markdown("No run contains all of these words.")
    st.stop()
st.caption(
    f"{len(found)} of {len(runs)} runs, newest first. Tick the box at the left of a row to open, rename, tag or "
    f"delete the run; tick 2 to {table.MAX_COMPARED} boxes to compare runs."
)
selected = table.table(found)
with buttons:
    table.actions(selected)
