"""Runs: what is going on, what was interrupted, and every finished run to open, name, compare or delete."""

import streamlit as st

from ui import entry
from ui.runs import comparison, table
from ui.sweep import view

entry.through_app("pages/runs.py")

st.title("Runs", anchor=False)
table.say()
if chosen := table.compared():
    st.button("Back to all runs", icon=":material/arrow_back:", on_click=table.back)
    comparison.show(chosen)
    st.stop()

table.going_on()
table.unfinished()
view.shelf()
kept = table.kept()
if not kept:
    st.markdown("No run has been finished yet. Every race that reaches its end is kept here by itself.")
    if st.button("Start one in the Arena", type="primary", icon=":material/play_arrow:"):
        st.switch_page("pages/arena.py")
    st.stop()

st.subheader("Finished", anchor=False)
asked = st.text_input(
    "Search", key="shelf-search", icon=":material/search:", placeholder="Words of title, tags, agents or world",
    label_visibility="collapsed",
)  # fmt: skip
buttons = st.container(horizontal=True)
found = table.matching(kept, asked)
if not found:
    st.markdown("No run has all of these words.")
    st.stop()
st.caption(
    f"{len(found)} of {len(kept)} runs, newest first. Tick one on its left to open, rename, tag or delete it, "
    f"2 to {table.MOST} to compare."
)
picked = table.table(found)
with buttons:
    table.actions(picked)
