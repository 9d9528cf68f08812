"""The running and stored sweeps on the page Runs: the columns of runs, and the same actions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from bandits.results.describe import describe_changes, describe_simulator
from bandits.storage.owners import EDIT_REFUSED
from bandits.sweeps import Sweep
from bandits.sweeps.figures import grid
from bandits.sweeps.storage.catalogue import CatalogueEntry
from bandits_app.session import workers
from bandits_app.session.owner import deleter, may_delete, refusal
from bandits_app.sweep import selection
from bandits_app.widgets import buttons

from . import listing
from .dialogs import attempt, confirm, edit, heading
from .listing import Row


def show() -> None:
    """List all running and stored sweeps, with their actions."""
    entries = selection.manager().stored_sweeps()
    if not entries:
        return
    st.subheader("Sweeps", anchor=False)
    buttons = st.container(horizontal=True)
    rows = [row(entry) for entry in entries]
    selected = [entries[i] for i in listing.draw(rows, kind="sweep")]
    if len(selected) == 1:
        sweep = selected[0].sweep
        about = f"{describe_simulator(sweep.experiment)}, {selection.describe_size(sweep)}"
        rate = sweep.experiment.simulator_class().rate_title.lower()
        listing.details(row(selected[0]), about, describe(sweep), rate)
    with buttons:
        _actions(selected)


def row(entry: CatalogueEntry) -> Row:
    """Return the row of a sweep in the table."""
    e = entry.sweep.experiment
    done = "" if entry.progress >= 1 else f" ({100 * entry.progress:.0f} % done)"
    return Row(
        entry.sweep.hash,
        entry.starred,
        f"{describe(entry.sweep)}{done}",
        entry.best,
        listing.simulator_name(e),
        describe_changes(e),
        e.steps,
        e.replications,
        entry.modified,
        "",
        entry.notes,
    )


def describe(sweep: Sweep) -> str:
    """Name the agent and the swept parameters: LinUCB: Exploration bonus, Ridge."""
    parameters = ", ".join(grid.parameter_title(sweep, i) for i in range(len(sweep.axes)))
    return f"{sweep.experiment.labels[0]}: {parameters}"


def _actions(selected: Sequence[CatalogueEntry]) -> None:
    one, manager = len(selected) == 1, selection.manager()
    if st.button("Open in Sweep", icon=":material/open_in_new:", type="primary", disabled=not one):
        selection.select(selected[0].sweep)
        st.switch_page("sweep.py")
    starred = bool(selected) and all(entry.starred for entry in selected)
    owners = workers.pool().owners
    editable = all(owners.may_edit(entry.sweep.hash, deleter()) for entry in selected)
    if st.button(
        "Unstar" if starred else "Star",
        key="star-sweeps",
        icon=":material/star:",
        disabled=not (selected and editable),
        help=refusal(editable, EDIT_REFUSED),
    ):
        attempt(lambda: _star(selected, not starred))
        st.rerun()
    if st.button(
        "Notes",
        key="edit-sweep",
        icon=":material/edit:",
        disabled=not (one and editable),
        help=refusal(editable, EDIT_REFUSED),
    ):
        sweep, notes = selected[0].sweep, selected[0].notes
        about = heading(describe(sweep), selection.describe_size(sweep))
        edit(
            "sweep",
            sweep.hash,
            about,
            {"Notes": notes},
            partial(_note, sweep.hash),
        )
    allowed = may_delete([entry.sweep.hash for entry in selected], workers.pool().owners)
    if buttons.delete(
        "Delete", key="sweeps", disabled=not (selected and allowed), help=refusal(allowed)
    ):
        named = [
            (e.sweep.hash, f"{describe(e.sweep)}, {selection.describe_size(e.sweep)}")
            for e in selected
        ]
        confirm("Delete", "sweep", named, lambda sweep: manager.delete(sweep, deleter()))


def _note(sweep: str, texts: dict[str, str]) -> None:
    workers.pool().owners.require_editor(sweep, deleter())
    selection.manager().note(sweep, texts["Notes"])


def _star(entries: Sequence[CatalogueEntry], starred: bool) -> None:
    for entry in entries:
        workers.pool().owners.require_editor(entry.sweep.hash, deleter())
        selection.manager().star(entry.sweep.hash, starred)
