"""The running, unfinished and finished runs on the page Runs, with search and actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial

import streamlit as st

from bandits import Experiment, UserError
from bandits.base.formatting import spelled
from bandits.experiments.presets import presets
from bandits.lessons import lessons
from bandits.results.comparison.overlay import MAX_RUNS
from bandits.results.comparison.run_title import nearest_title, preset_title
from bandits.results.describe import (
    describe_agents,
    describe_changes,
    describe_experiment,
    describe_rarest_first,
    describe_simulator,
)
from bandits.storage import eviction
from bandits.storage.owners import EDIT_REFUSED
from bandits.storage.run_store import Store, StoredRun
from bandits_app.run_view.board import TICK
from bandits_app.run_view.status import status
from bandits_app.session import draft, followed, workers
from bandits_app.session.owner import deleter, may_delete, owner, refusal
from bandits_app.sweep.selection import manager
from bandits_app.widgets import buttons
from bandits_app.widgets.text import refuse

from . import listing
from .dialogs import attempt, confirm, edit, heading, one_line, report_error
from .listing import Row

# unfinished runs; more are shown in a box that scrolls
SCROLL_FROM = 5
MAX_COMPARED = MAX_RUNS
# characters of a search
LONGEST = 200

_COMPARED = "shelf-compared"


def running() -> None:
    """List the queued, running and paused runs, updated every second."""
    if jobs := workers.pool().live_jobs():
        st.subheader("Running", anchor=False)
        st.fragment(_running, run_every=TICK)({job.id for job in jobs})


def _running(shown_ids: set[str]) -> None:
    jobs = workers.pool().live_jobs()
    # one has started or ended: the lists below change too
    if {job.id for job in jobs} != shown_ids:
        st.rerun()
    # a fixed order while they run
    for job in sorted(jobs, key=lambda job: job.id):
        with st.container(border=True):
            left, right = st.columns([5, 1], vertical_alignment="center")
            left.html(heading(_untitled(job.experiment), describe_experiment(job.experiment)))
            left.progress(min(job.progress, 1.0), text=status(job))
            if right.button(
                "Open", key=f"going-{job.id}", icon=":material/open_in_new:", width="stretch"
            ):
                followed.open_in_arena(job)


def unfinished() -> None:
    """List the runs that ended early, to resume or discard."""
    try:
        found = workers.pool().unfinished()
    except OSError:
        # reported by `finished_runs`
        return
    if not found:
        return
    st.subheader("Unfinished", anchor=False)
    scrolled = f" {len(found)} runs; scroll to see all." if len(found) >= SCROLL_FROM else ""
    st.caption(
        "Stopped, or interrupted when the app ended. **Resume** continues a run from its last "
        "checkpoint." + scrolled
    )
    with st.container(height=420 if len(found) >= SCROLL_FROM else "content", border=False):
        for experiment in found:
            with st.container(border=True):
                left, resume, drop = st.columns([4, 1, 1], vertical_alignment="center")
                run, name = experiment.hash, _untitled(experiment)
                left.html(heading(name, describe_experiment(experiment)))
                if resume.button(
                    "Resume", key=f"resume-{run}", icon=":material/resume:", width="stretch"
                ):
                    try:
                        followed.open_in_arena(
                            workers.pool().resume_unfinished(experiment, owner())
                        )
                    except UserError as error:
                        refuse(error)
                allowed = may_delete([run], workers.pool().owners)
                # a pointer that rests on the button shows it too; a finger cannot
                if not allowed:
                    left.caption(f"Discard: {refusal(allowed)}")
                if buttons.delete(
                    "Discard",
                    key=f"discard-{run}",
                    place=drop,
                    width="stretch",
                    disabled=not allowed,
                    help=refusal(allowed),
                ):
                    confirm(
                        "Discard",
                        "run",
                        [(run, name)],
                        lambda run: workers.pool().discard(run, deleter()),
                    )


def display_title(run: StoredRun) -> str:
    """Return the title of a run; without one, what `_untitled` names."""
    return run.title if _titled(run) else _untitled(run.experiment)


def _untitled(experiment: Experiment) -> str:
    """Name a run by its lesson or its preset and what is changed in it, or by its agents and
    theirs.
    """
    return lesson_title(experiment) or preset_title(experiment) or describe_agents(experiment)


@lru_cache(maxsize=4096)
def lesson_title(experiment: Experiment) -> str:
    """Name the lesson that has this run, and the step where it has several; or the task that was
    attempted, with its value.

    Empty for other runs, and for one that is a preset.
    """
    known = {preset.experiment.hash for preset in presets().values()}
    if experiment.hash in known:
        return ""
    named = []
    for number, lesson in enumerate(lessons().values()):
        runs = {name: step for name, step in lesson.runs.items() if step.worked is None}
        for name, step in runs.items():
            own = f": {lesson.texts[name].title}" if len(runs) > 1 else f", {lesson.data.title}"
            # what resembles a preset is named by it
            if step.resolved.hash not in known:
                named.append((f"Lesson {number}{own}", step.resolved))
        named += [
            (f"Lesson {number}, task", task.changed(runs[task.run], task.start))
            for task in lesson.tasks.values()
            if task.run in runs
        ]
    return nearest_title(experiment, named, 1)


def _titled(run: StoredRun) -> bool:
    return one_line(run.title) != one_line(", ".join(run.experiment.labels))


def finished_runs() -> list[StoredRun]:
    """List the finished runs, newest first."""
    store = workers.pool().store
    try:
        if store is None:
            return []
        return store.runs()
    except OSError as error:
        refuse(f"the stored runs cannot be read: {error.strerror or error}")
        return []


def notice() -> None:
    """State why stored runs can be read but not changed, if they cannot."""
    store = workers.pool().store
    if store is not None and store.notice:
        st.warning(store.notice, icon=":material/lock:")


def usage() -> None:
    """State how much of the disk budget is used."""
    store = workers.pool().store
    if store is None:
        return
    try:
        used, limit = eviction.usage(store, manager().evictable())
    except (OSError, UserError) as error:
        refuse(str(error))
        return
    st.caption(
        f"Files that can be recomputed take {used / 1e6:,.0f} MB of {limit / 1e6:,.0f} MB. Beyond "
        "that, checkpoints of finished runs go first, then the curves of the oldest runs and "
        f"sweeps without a star. {eviction.VARIABLE} sets the limit."
    )


def search(found: Sequence[StoredRun], query: str, *, starred: bool = False) -> list[StoredRun]:
    """Return the runs that contain every word in title, preset, tags, notes, agents, their values,
    simulator or changes.
    """
    # a browser may send more than its box takes
    wanted = [_pattern(term) for term in spelled(query[:LONGEST]).split()]

    def matches(run: StoredRun) -> bool:
        e = run.experiment
        places = (
            run.title,
            run.tags,
            run.notes,
            lesson_title(e),
            preset_title(e),
            describe_agents(e),
            describe_simulator(e),
            e.simulator.kind,
        )
        text = spelled(" ".join(places))
        return all(term.search(text) for term in wanted)

    return [run for run in found if run.starred >= starred and matches(run)]


def _pattern(term: str) -> re.Pattern[str]:
    """Match a word anywhere, and a number as a whole: 1 is not in 1.5."""
    number = re.fullmatch(r"[\d.]+", term) is not None
    return re.compile(rf"(?<![\d.]){re.escape(term)}(?![\d.])" if number else re.escape(term))


def rows_of(runs: Sequence[StoredRun]) -> list[Row]:
    """Return the rows of the table: the title of a run that has none begins with what
    others lack.
    """
    return list(map(_row, runs, describe_rarest_first([run.experiment for run in runs])))


def _row(run: StoredRun, agents: str) -> Row:
    e = run.experiment
    return Row(
        run.id,
        run.starred,
        run.title if _titled(run) else preset_title(e) or agents,
        run.headline,
        listing.simulator_name(e),
        describe_changes(e),
        e.steps,
        e.replications,
        run.created,
        run.tags,
        run.notes,
    )


def table(found: Sequence[StoredRun]) -> list[StoredRun]:
    """Draw the runs as a table, and the details of a single selected one.

    Returns the selected ones.
    """
    rows = rows_of(found)
    selected = listing.draw(rows, kind="run")
    if len(selected) == 1:
        run = found[selected[0]]
        size = "curves deleted" if run.evicted else describe_experiment(run.experiment)
        agents = describe_agents(run.experiment)
        listing.details(
            _row(run, agents), size, agents, run.experiment.simulator_class().rate_title.lower()
        )
    return [found[i] for i in selected]


def actions(selected: Sequence[StoredRun]) -> None:
    """Draw the buttons for the selected runs; those that do not apply are disabled."""
    one, several = len(selected) == 1, 2 <= len(selected) <= MAX_COMPARED
    if st.button(
        "Open in the Arena", icon=":material/open_in_new:", type="primary", disabled=not one
    ):
        _open(selected[0])
    if st.button("Compare", icon=":material/compare:", disabled=not several):
        st.session_state[_COMPARED] = [run.id for run in reversed(selected)]
        st.rerun()
    starred = bool(selected) and all(run.starred for run in selected)
    owners = workers.pool().owners
    editable = all(owners.may_edit(run.id, deleter()) for run in selected)
    if st.button(
        "Unstar" if starred else "Star",
        key="star-runs",
        icon=":material/star:",
        disabled=not (selected and editable),
        help=refusal(editable, EDIT_REFUSED),
    ):
        attempt(lambda: _star(selected, not starred))
        st.rerun()
    if st.button(
        "Edit",
        key="edit-run",
        icon=":material/edit:",
        disabled=not (one and editable),
        help=refusal(editable, EDIT_REFUSED) or "Title, tags and notes",
    ):
        run = selected[0]
        about = heading(display_title(run), describe_experiment(run.experiment))
        fields = {"Title": run.title, "Tags": run.tags, "Notes": run.notes}
        edit("run", run.id, about, fields, partial(_save, run))
    allowed = may_delete([run.id for run in selected], workers.pool().owners)
    if buttons.delete(
        "Delete", key="runs", disabled=not (selected and allowed), help=refusal(allowed)
    ):
        named = [
            (run.id, f"{display_title(run)} ({describe_experiment(run.experiment)})")
            for run in selected
        ]
        confirm("Delete", "run", named, lambda run: workers.pool().delete(run, deleter()))


def _store() -> Store:
    store = workers.pool().store
    if store is None:
        raise UserError("no runs are stored on this server")
    return store


def _star(runs: Sequence[StoredRun], starred: bool) -> None:
    for run in runs:
        workers.pool().owners.require_editor(run.id, deleter())
        _store().star(run.id, starred)


def _save(run: StoredRun, texts: dict[str, str]) -> None:
    store = _store()
    workers.pool().owners.require_editor(run.id, deleter())
    store.rename(run.id, texts["Title"] or one_line(", ".join(run.experiment.labels)))
    store.tag(run.id, texts["Tags"])
    store.note(run.id, texts["Notes"])


def compared_runs() -> list[StoredRun]:
    """Return the runs that are being compared, oldest first; empty if fewer than two are left."""
    by_id = {run.id: run for run in finished_runs()} if _COMPARED in st.session_state else {}
    found = [by_id[run] for run in st.session_state.get(_COMPARED, []) if run in by_id]
    return found if len(found) > 1 else []


def end_comparison() -> None:
    """End the comparison; no run is selected any more."""
    st.session_state.pop(_COMPARED, None)
    st.session_state[listing.DRAWN_ANEW] = st.session_state.get(listing.DRAWN_ANEW, 0) + 1


def _open(run: StoredRun) -> None:
    job = workers.pool().get(run.id)
    if job is not None:
        followed.open_in_arena(job)
    draft.load(run.experiment)
    report_error(
        f"{unavailable_reason(run)} Its settings were loaded into the Arena; press Run there to "
        "compute it again."
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
