"""Runs: what is going on, what was interrupted, and every finished run to open, name, compare or delete."""

import streamlit as st

from ui import comparison, entry, shelf, sweeping

entry.through_app("pages/runs.py")

st.title("Runs", anchor=False)
shelf.say()
if chosen := shelf.compared():
    st.button("Back to all runs", icon=":material/arrow_back:", on_click=shelf.back)
    comparison.show(chosen)
    st.stop()

shelf.going_on()
shelf.unfinished()
sweeping.shelf()
kept = shelf.kept()
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
found = shelf.matching(kept, asked)
if not found:
    st.markdown("No run has all of these words.")
    st.stop()
st.caption(
    f"{len(found)} of {len(kept)} runs, newest first. Tick one on its left to open, rename, tag or delete it, "
    f"2 to {shelf.MOST} to compare."
)
picked = shelf.table(found)
with buttons:
    shelf.actions(picked)
