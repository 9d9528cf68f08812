"""The lists of the page Runs: running, unfinished and finished runs, and the actions on them."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Sequence
from html import escape

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.results import text as words
from bandits.results.style import RUN_DASHES
from bandits.runtime.pool import Job
from bandits.storage.run_store import StoredRun
from ui import session
from ui.arena import draft
from ui.owner import owner
from ui.run_view import board
from ui.text import escape_markdown, refuse, safe_cell

MAX_LENGTH = 80  # characters of a title, or of the tags of a run
MAX_COMPARED = len(RUN_DASHES)  # runs with distinct line styles in one figure
SCROLL_FROM = 5  # unfinished runs; more are shown in a box that scrolls
_MESSAGE, _ERROR, _COMPARED = "shelf-said", "shelf-refused", "shelf-compared"


def show_messages() -> None:
    """Show the errors of the last action."""
    if (error := st.session_state.pop(_ERROR, None)) is not None:
        refuse(error)
    if (message := st.session_state.pop(_MESSAGE, None)) is not None:
        st.error(escape_markdown(message), icon=":material/broken_image:")


def _heading(title: str, detail: str) -> str:
    """Return the title and a description of a run as escaped HTML."""
    name = f'<div style="font-weight:600;overflow-wrap:anywhere"><bdi>{escape(title)}</bdi></div>'
    return f'{name}<div style="font-size:.85rem;opacity:.75">{escape(detail)}</div>'


def display_title(run: StoredRun) -> str:
    """Return the title of a run; without one, its agents with their changed parameters."""
    default = one_line(", ".join(run.experiment.labels))
    return words.describe_agents(run.experiment) if one_line(run.title) == default else run.title


def _open_job(job: Job) -> None:
    session.follow(job)
    draft.load(job.experiment)
    st.switch_page("pages/arena.py")


# -- active and unfinished runs ------------------------------------------------------------------------------------


def running() -> None:
    """List the queued, running and paused runs, updated every second."""
    if jobs := session.pool().live_jobs():
        st.subheader("Running", anchor=False)
        st.fragment(_running, run_every=board.TICK)({job.id for job in jobs})


def _running(shown_ids: set[str]) -> None:
    jobs = session.pool().live_jobs()
    if {job.id for job in jobs} != shown_ids:  # one has started or ended: the lists below change too
        st.rerun()
    for job in sorted(jobs, key=lambda job: job.id):  # a fixed order while they run
        with st.container(border=True):
            left, right = st.columns([5, 1], vertical_alignment="center")
            left.html(_heading(words.describe_agents(job.experiment), words.describe_experiment(job.experiment)))
            left.progress(min(job.progress, 1.0), text=board.status(job))
            if right.button("Open", key=f"going-{job.id}", icon=":material/open_in_new:", width="stretch"):
                _open_job(job)


def unfinished() -> None:
    """List the runs that ended early, to resume or discard."""
    try:
        found = session.pool().unfinished()
    except OSError:  # reported by `finished_runs`
        return
    if not found:
        return
    st.subheader("Unfinished", anchor=False)
    scrolled = f" {len(found)} runs; scroll to see all." if len(found) >= SCROLL_FROM else ""
    st.caption(
        "Stopped, or interrupted when the app ended. **Resume** continues a run from its last checkpoint." + scrolled
    )
    with st.container(height=420 if len(found) >= SCROLL_FROM else "content", border=False):
        for experiment in found:
            with st.container(border=True):
                left, resume, drop = st.columns([4, 1, 1], vertical_alignment="center")
                run, name = experiment.hash, words.describe_agents(experiment)
                left.html(_heading(name, words.describe_experiment(experiment)))
                if resume.button("Resume", key=f"resume-{run}", icon=":material/resume:", width="stretch"):
                    try:
                        _open_job(session.pool().resume_unfinished(experiment, owner()))
                    except UserError as error:
                        refuse(error)
                if drop.button("Discard", key=f"discard-{run}", icon=":material/delete:", width="stretch"):
                    _confirm("Discard", [(run, name)], session.pool().discard, owner())


# -- finished runs -------------------------------------------------------------------------------------------------


def finished_runs() -> list[StoredRun]:
    """List the finished runs, newest first."""
    store = session.pool().store
    try:
        return store.runs() if store is not None else []
    except OSError as error:
        refuse(f"the stored runs cannot be read: {error.strerror or error}")
        return []


def search(found: Sequence[StoredRun], query: str) -> list[StoredRun]:
    """Return the runs that contain every word in title, tags, agents or simulator."""
    terms = query.casefold().split()

    def text(run: StoredRun) -> str:
        e = run.experiment
        return " ".join((run.title, run.tags, *e.labels, e.simulator_class().title, e.simulator.kind)).casefold()

    return [run for run in found if all(term in text(run) for term in terms)]


def table(found: Sequence[StoredRun]) -> list[StoredRun]:
    """Draw the runs as a table; returns the selected ones."""
    frame = pd.DataFrame(
        {
            "Title": [safe_cell(run.title) for run in found],
            "Simulator": [run.experiment.simulator_class().title for run in found],
            "Agents": [words.describe_agents(run.experiment) for run in found],
            "Steps": [run.experiment.steps for run in found],
            "Replications": [run.experiment.replications for run in found],
            "Tags": [[safe_cell(tag.strip()) for tag in run.tags.split(",") if tag.strip()] for run in found],
            "Finished": pd.to_datetime([run.created for run in found], unit="s", utc=True),
            "Date": pd.to_datetime([run.created for run in found], unit="s", utc=True),
            "Size": [run.bytes for run in found],
        }
    )
    column = st.column_config
    shown = {
        "Title": column.TextColumn(width="medium"),
        "Agents": column.TextColumn(width="medium"),
        "Steps": column.NumberColumn(format="localized"),
        "Replications": column.NumberColumn(help="Independent repetitions behind every confidence band."),
        "Tags": column.ListColumn(),
        "Finished": column.DatetimeColumn(format="distance"),
        "Date": column.DatetimeColumn(format="YYYY-MM-DD HH:mm", timezone=st.context.timezone),
        "Size": column.NumberColumn(format="bytes"),
    }
    event = st.dataframe(
        frame, hide_index=True, column_config=shown, key=table_key(found), on_select="rerun",
        selection_mode="multi-row", alt="Finished runs, newest first",
    )  # fmt: skip
    return [found[i] for i in event.selection.rows if i < len(found)]


def table_key(found: Sequence[StoredRun]) -> str:
    """Return a key that changes with the list: rows are selected by position, which must not move to another run."""
    return f"shelf-{hashlib.sha256(''.join(run.id for run in found).encode()).hexdigest()}"


def actions(selected: Sequence[StoredRun]) -> None:
    """Draw the buttons for the selected runs; those that do not apply are disabled."""
    one, several = len(selected) == 1, 2 <= len(selected) <= MAX_COMPARED
    if st.button("Open in the Arena", icon=":material/open_in_new:", type="primary", disabled=not one):
        _open(selected[0])
    if st.button("Compare", icon=":material/compare:", disabled=not several):
        st.session_state[_COMPARED] = [run.id for run in reversed(selected)]
        st.rerun()
    if st.button("Rename", icon=":material/edit:", disabled=not one):
        _edit("Rename", selected[0])
    if st.button("Tag", icon=":material/sell:", disabled=not one):
        _edit("Tag", selected[0])
    if st.button("Delete", icon=":material/delete:", disabled=not selected):
        named = [(run.id, f"{display_title(run)} ({words.describe_experiment(run.experiment)})") for run in selected]
        _confirm("Delete", named, session.pool().delete)


def compared_runs() -> list[StoredRun]:
    """Return the runs that are being compared, oldest first; empty if fewer than two are left."""
    by_id = {run.id: run for run in finished_runs()} if _COMPARED in st.session_state else {}
    found = [by_id[run] for run in st.session_state.get(_COMPARED, []) if run in by_id]
    return found if len(found) > 1 else []


def end_comparison() -> None:
    """End the comparison."""
    st.session_state.pop(_COMPARED, None)


def _open(run: StoredRun) -> None:
    job = session.pool().get(run.id)
    if job is not None:
        _open_job(job)
    draft.load(run.experiment)
    st.session_state[_MESSAGE] = (
        f"{unavailable_reason(run)} Its settings were loaded into the Arena; press Run there to compute it again."
    )
    st.rerun()


def unavailable_reason(run: StoredRun) -> str:
    """Explain why a listed run cannot be shown."""
    try:
        run.experiment.simulator_class().describe(run.experiment.simulator)
    except UserError as error:
        return f"This run cannot be shown: {error}."
    if run.evicted:
        return "The curves of this run were deleted to save space."
    return "The stored file of this run was damaged and has been set aside."


def _edit(action: str, run: StoredRun) -> None:
    """Open a dialog for the title or the tags of a run."""
    titled = action == "Rename"
    key = f"{action}-{run.id}"

    def save() -> None:
        text = one_line(st.session_state[key])
        store = session.pool().store
        if store is not None:
            if titled:
                store.rename(run.id, text or one_line(", ".join(run.experiment.labels)))
            else:
                store.tag(run.id, text)

    def ask() -> None:
        with st.form(f"form-{key}", border=False):
            st.html(_heading(run.title, words.describe_experiment(run.experiment)))
            label, value = ("Title", run.title) if titled else ("Tags, separated by commas", run.tags)
            st.text_input(label, value[:MAX_LENGTH], max_chars=MAX_LENGTH, key=key)
            if st.form_submit_button("Save", type="primary", on_click=save):
                st.rerun()

    st.dialog(f"{action} this run")(ask)()


def _confirm(action: str, named: Sequence[tuple[str, str]], remove: Callable[..., None], *more: str) -> None:
    """Ask for confirmation before runs are removed, with their titles."""

    def go() -> None:
        try:
            for run, _ in named:
                remove(run, *more)
        except UserError as error:
            st.session_state[_ERROR] = error
        except OSError as error:
            st.session_state[_ERROR] = f"the disk reports an error: {error.strerror or error}"

    def ask() -> None:
        items = "".join(f"<li><bdi>{escape(name)}</bdi></li>" for _, name in named[:10])
        rest = f"<p>and {len(named) - 10} more</p>" if len(named) > 10 else ""
        st.html(f'<ul style="overflow-wrap:anywhere;padding-left:1.2rem">{items}</ul>{rest}')
        st.markdown(f"This cannot be undone (you can rerun {'it' if len(named) == 1 else 'them'}).")
        with st.container(horizontal=True):
            if st.button(f"{action} permanently", type="primary", on_click=go, key=f"go-{action}"):
                st.rerun()
            if st.button("Cancel", key=f"keep-{action}"):
                st.rerun()

    st.dialog(f"{action} {'this run' if len(named) == 1 else f'these {len(named)} runs'}?")(ask)()


def one_line(text: str) -> str:
    """Return a text as one line of at most 80 characters, without control characters."""
    line = " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())
    return line[:MAX_LENGTH].strip()
