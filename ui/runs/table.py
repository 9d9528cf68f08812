"""The shelf of runs: which are going on, which ended early, which are kept, and what can be done with them."""

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

LENGTH = 80  # characters of a title, or of a run's tags
MOST = len(RUN_DASHES)  # runs that can be told apart in one figure
_SAID, _REFUSED, _COMPARED = "shelf-said", "shelf-refused", "shelf-compared"


def say() -> None:
    """What the last action could not do."""
    if (sentence := st.session_state.pop(_REFUSED, None)) is not None:
        refuse(sentence)
    if (told := st.session_state.pop(_SAID, None)) is not None:
        st.error(escape_markdown(told), icon=":material/broken_image:")


def _named(title: str, detail: str) -> str:
    """A run's name and what there is to say about it, as HTML in which both are text."""
    name = f'<div style="font-weight:600;overflow-wrap:anywhere"><bdi>{escape(title)}</bdi></div>'
    return f'{name}<div style="font-size:.85rem;opacity:.75">{escape(detail)}</div>'


def spoken(run: StoredRun) -> str:
    """Its title; a run that was given none goes by its agents with their settings."""
    unnamed = tidy(", ".join(run.experiment.labels))
    return words.describe_agents(run.experiment) if tidy(run.title) == unnamed else run.title


def _look(job: Job) -> None:
    session.follow(job)
    draft.load(job.experiment)
    st.switch_page("pages/arena.py")


# -- what is not finished ----------------------------------------------------------------------------------------


def going_on() -> None:
    """Runs that are queued, running or paused, with their progress, again every second."""
    if jobs := session.pool().live_jobs():
        st.subheader("Going on now", anchor=False)
        st.fragment(_going_on, run_every=board.TICK)({job.id for job in jobs})


def _going_on(known: set[str]) -> None:
    jobs = session.pool().live_jobs()
    if {job.id for job in jobs} != known:  # one has begun or ended: the lists below change too
        st.rerun()
    for job in sorted(jobs, key=lambda job: job.id):  # their places do not change while they run
        with st.container(border=True):
            left, right = st.columns([5, 1], vertical_alignment="center")
            left.html(_named(words.describe_agents(job.experiment), words.describe_experiment(job.experiment)))
            left.progress(min(job.progress, 1.0), text=board.status(job))
            if right.button("Open", key=f"going-{job.id}", icon=":material/open_in_new:", width="stretch"):
                _look(job)


def unfinished() -> None:
    """Runs that ended early, to be resumed or dropped."""
    try:
        found = session.pool().unfinished()
    except OSError:  # said where the finished ones are listed
        return
    if not found:
        return
    st.subheader("Unfinished", anchor=False)
    st.caption("Interrupted when the app ended, or stopped on the way. **Resume** goes on from where each was saved.")
    with st.container(height=420 if len(found) > 4 else "content", border=False):  # many are scrolled
        for experiment in found:
            with st.container(border=True):
                left, resume, drop = st.columns([4, 1, 1], vertical_alignment="center")
                run, name = experiment.hash, words.describe_agents(experiment)
                left.html(_named(name, words.describe_experiment(experiment)))
                if resume.button("Resume", key=f"resume-{run}", icon=":material/resume:", width="stretch"):
                    try:
                        _look(session.pool().resume_unfinished(experiment, owner()))
                    except UserError as sentence:
                        refuse(sentence)
                if drop.button("Discard", key=f"discard-{run}", icon=":material/delete:", width="stretch"):
                    _confirm("Discard", [(run, name)], session.pool().discard, owner())


# -- what is kept ------------------------------------------------------------------------------------------------


def kept() -> list[StoredRun]:
    """Finished runs, newest first."""
    store = session.pool().store
    try:
        return store.runs() if store is not None else []
    except OSError as error:
        refuse(f"the stored runs are out of reach: {error.strerror or error}")
        return []


def matching(found: Sequence[StoredRun], asked: str) -> list[StoredRun]:
    """Runs that contain every word, in title, tags, agents or world."""
    wanted = asked.casefold().split()

    def text(run: StoredRun) -> str:
        e = run.experiment
        return " ".join((run.title, run.tags, *e.labels, e.simulator_class().title, e.simulator.kind)).casefold()

    return [run for run in found if all(word in text(run) for word in wanted)]


def table(found: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs as a table; returns those whose rows are chosen."""
    frame = pd.DataFrame(
        {
            "Title": [safe_cell(run.title) for run in found],
            "World": [run.experiment.simulator_class().title for run in found],
            "Agents": [words.describe_agents(run.experiment) for run in found],
            "Steps": [run.experiment.steps for run in found],
            "Runs": [run.experiment.replications for run in found],
            "Tags": [[safe_cell(tag.strip()) for tag in run.tags.split(",") if tag.strip()] for run in found],
            "When": pd.to_datetime([run.created for run in found], unit="s", utc=True),
            "Date": pd.to_datetime([run.created for run in found], unit="s", utc=True),
            "Size": [run.bytes for run in found],
        }
    )
    column = st.column_config
    shown = {
        "Title": column.TextColumn(width="medium"),
        "Agents": column.TextColumn(width="medium"),
        "Steps": column.NumberColumn(format="localized"),
        "Runs": column.NumberColumn(help="Independent runs behind every band."),
        "Tags": column.ListColumn(),
        "When": column.DatetimeColumn(format="distance"),
        "Date": column.DatetimeColumn(format="YYYY-MM-DD HH:mm", timezone=st.context.timezone),
        "Size": column.NumberColumn(format="bytes"),
    }
    event = st.dataframe(
        frame, hide_index=True, column_config=shown, key=table_key(found), on_select="rerun",
        selection_mode="multi-row", alt="Finished runs, newest first",
    )  # fmt: skip
    return [found[i] for i in event.selection.rows if i < len(found)]


def table_key(found: Sequence[StoredRun]) -> str:
    """Rows are chosen by place: another list is another table, so that no choice slips to another run."""
    return f"shelf-{hashlib.sha256(''.join(run.id for run in found).encode()).hexdigest()}"


def actions(chosen: Sequence[StoredRun]) -> None:
    """Buttons for the chosen runs; they keep their places, and those that do not suit are off."""
    one, several = len(chosen) == 1, 2 <= len(chosen) <= MOST
    if st.button("Open in the Arena", icon=":material/open_in_new:", type="primary", disabled=not one):
        _open(chosen[0])
    if st.button("Compare", icon=":material/compare:", disabled=not several):
        st.session_state[_COMPARED] = [run.id for run in reversed(chosen)]
        st.rerun()
    if st.button("Rename", icon=":material/edit:", disabled=not one):
        _write("Rename", chosen[0])
    if st.button("Tag", icon=":material/sell:", disabled=not one):
        _write("Tag", chosen[0])
    if st.button("Delete", icon=":material/delete:", disabled=not chosen):
        named = [(run.id, f"{spoken(run)} ({words.describe_experiment(run.experiment)})") for run in chosen]
        _confirm("Delete", named, session.pool().delete)


def compared() -> list[StoredRun]:
    """The runs that are being compared, oldest first; empty if none are, or if fewer than two are left."""
    by_id = {run.id: run for run in kept()} if _COMPARED in st.session_state else {}
    found = [by_id[run] for run in st.session_state.get(_COMPARED, []) if run in by_id]
    return found if len(found) > 1 else []


def back() -> None:
    """Compare no longer."""
    st.session_state.pop(_COMPARED, None)


def _open(run: StoredRun) -> None:
    job = session.pool().get(run.id)
    if job is not None:
        _look(job)
    draft.load(run.experiment)
    st.session_state[_SAID] = f"{gone(run)} Its settings are in the Arena now; press Run there to compute it again."
    st.rerun()


def gone(run: StoredRun) -> str:
    """Why a listed run cannot be shown."""
    try:
        run.experiment.simulator_class().describe(run.experiment.simulator)
    except UserError as sentence:
        return f"This run cannot be shown: {sentence}."
    if run.evicted:
        return "The curves of this run were given up to save space."
    return "The stored file of this run is damaged: it was set aside."


def _write(what: str, run: StoredRun) -> None:
    """Ask for a title or tags."""
    titled = what == "Rename"
    key = f"{what}-{run.id}"

    def save() -> None:
        text = tidy(st.session_state[key])
        store = session.pool().store
        if store is not None:
            if titled:
                store.rename(run.id, text or tidy(", ".join(run.experiment.labels)))
            else:
                store.tag(run.id, text)

    def ask() -> None:
        with st.form(f"form-{key}", border=False):
            st.html(_named(run.title, words.describe_experiment(run.experiment)))
            label, value = ("Title", run.title) if titled else ("Tags, separated by commas", run.tags)
            st.text_input(label, value[:LENGTH], max_chars=LENGTH, key=key)
            if st.form_submit_button("Save", type="primary", on_click=save):
                st.rerun()

    st.dialog(f"{what} this run")(ask)()


def _confirm(what: str, named: Sequence[tuple[str, str]], act: Callable[..., None], *more: str) -> None:
    """Ask once more before anything is lost, by name."""

    def go() -> None:
        try:
            for run, _ in named:
                act(run, *more)
        except UserError as sentence:
            st.session_state[_REFUSED] = sentence
        except OSError as error:
            st.session_state[_REFUSED] = f"the disk: {error.strerror or error}"

    def ask() -> None:
        items = "".join(f"<li><bdi>{escape(name)}</bdi></li>" for _, name in named[:10])
        rest = f"<p>and {len(named) - 10} more</p>" if len(named) > 10 else ""
        st.html(f'<ul style="overflow-wrap:anywhere;padding-left:1.2rem">{items}</ul>{rest}')
        st.markdown(f"{'It' if len(named) == 1 else 'They'} cannot be brought back, only computed again.")
        with st.container(horizontal=True):
            if st.button(f"{what} for good", type="primary", on_click=go, key=f"go-{what}"):
                st.rerun()
            if st.button("Cancel", key=f"keep-{what}"):
                st.rerun()

    st.dialog(f"{what} {'this run' if len(named) == 1 else f'these {len(named)} runs'}?")(ask)()


def tidy(text: str) -> str:
    """One line of at most 80 characters, without control characters."""
    line = " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())
    return line[:LENGTH].strip()
