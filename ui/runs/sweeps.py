"""List the running and stored sweeps on the page Runs, to open or delete."""

from __future__ import annotations

import streamlit as st

from bandits import UserError
from bandits.sweeps import Sweep
from bandits.sweeps.figures import grid
from ui.owner import owner
from ui.sweep import selection
from ui.text import escape_markdown

SCROLL_FROM = 5  # sweeps; more are shown in a box that scrolls


def show() -> None:
    """List all running and stored sweeps."""
    entries = selection.manager().stored_sweeps()
    if not entries:
        return
    st.subheader("Sweeps", anchor=False)
    if len(entries) >= SCROLL_FROM:
        st.caption(f"{len(entries)} sweeps, newest first; scroll to see all.")
    with st.container(height=420 if len(entries) >= SCROLL_FROM else "content", border=False):
        for entry in entries:
            sweep = entry.sweep
            with st.container(border=True):
                left, opened, deleted = st.columns([4, 1, 1], vertical_alignment="center")
                unfinished = "" if entry.progress >= 1 else f", {100 * entry.progress:.0f} % done"
                size = escape_markdown(selection.describe_size(sweep))
                left.markdown(f"**{escape_markdown(describe(sweep))}**  \n{size}{unfinished}")
                if opened.button("Open", key=f"sweep-{sweep.hash}", icon=":material/open_in_new:", width="stretch"):
                    selection.select(sweep)
                    st.switch_page("pages/sweep.py")
                if deleted.button("Delete", key=f"drop-{sweep.hash}", icon=":material/delete:", width="stretch"):
                    st.dialog("Delete this sweep?")(_confirm)(sweep)


def describe(sweep: Sweep) -> str:
    """Name the agent and the swept parameters: LinUCB: Exploration bonus, Ridge."""
    parameters = ", ".join(grid.parameter_title(sweep, i) for i in range(len(sweep.axes)))
    return f"{sweep.experiment.labels[0]}: {parameters}"


def _confirm(sweep: Sweep) -> None:
    size = selection.describe_size(sweep)
    st.markdown(f"{escape_markdown(describe(sweep))}, {size}. This cannot be undone (you can rerun it).")
    with st.container(horizontal=True):
        if st.button("Delete permanently", type="primary", on_click=_delete, args=(sweep,), key="go-sweep"):
            st.rerun()
        if st.button("Cancel", key="keep-sweep"):
            st.rerun()


def _delete(sweep: Sweep) -> None:
    try:
        selection.manager().delete(sweep.hash, owner())
    except UserError as error:
        st.toast(escape_markdown(str(error)), icon=":material/block:")
