"""Runs: list running, unfinished and finished runs, to open, name, compare or delete."""

import streamlit as st

from bandits_app.runs import comparison, dialogs, run_lists, sweeps
from bandits_app.widgets import buttons

st.title("Runs", anchor=False)
buttons.style()
dialogs.show_messages()
if compared := run_lists.compared_runs():
    st.markdown(
        "In which of these runs does each agent earn more, and in which settings do they differ? "
        "Begin with what is bold; figures and tables below show what it rests on."
    )
    st.button("Back to all runs", icon=":material/arrow_back:", on_click=run_lists.end_comparison)
    comparison.show(compared)
    st.stop()

st.markdown(
    "Which runs and sweeps are stored, and how do they compare? Select one finished run to open "
    f"it, or 2 to {run_lists.MAX_COMPARED} to compare them."
)
run_lists.notice()
run_lists.running()
run_lists.unfinished()
runs = run_lists.finished_runs()
if not runs:
    st.markdown(
        "There are no finished runs yet. Every run that reaches its last step is stored here."
    )
    if st.button("Start a run in the Arena", type="primary", icon=":material/play_arrow:"):
        st.switch_page("arena.py")
    sweeps.show()
    st.stop()

st.subheader("Finished", anchor=False)
left, right = st.columns([5, 1], vertical_alignment="center")
query = left.text_input(
    "Search",
    key="shelf-search",
    max_chars=run_lists.LONGEST,
    icon=":material/search:",
    label_visibility="collapsed",
    placeholder="Search titles, tags, notes, agents, simulators or changes",
)
starred = right.toggle("Starred only", key="shelf-starred")
buttons = st.container(horizontal=True)
found = run_lists.search(runs, query, starred=starred)
if found:
    st.caption(
        f"{len(found)} of {len(runs)} runs. Tick the boxes at the left to select runs; press a "
        "header to sort."
    )
    selected = run_lists.table(found)
    with buttons:
        run_lists.actions(selected)
else:
    st.markdown("No run contains all of these words." if query.strip() else "No run is starred.")
sweeps.show()
run_lists.usage()
