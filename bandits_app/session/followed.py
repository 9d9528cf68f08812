"""The run that this session follows: the one it submitted, the one in the page's address, or a
preset.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import NoReturn

import streamlit as st

from bandits import Experiment, UserError
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.results.describe import parameter_changes
from bandits.runtime.pool import Job
from bandits.runtime.scheduler import SHORT_RUN, decisions
from bandits_app.widgets import views
from bandits_app.widgets.text import escape_markdown

from . import draft, page, refusals
from .owner import address, owner
from .workers import pool

# seconds that a result is shown before it counts as read
LOOK = 3.0


def submit_and_follow(experiment: Experiment, *, by_slider: bool = False) -> Job:
    """Submit an experiment, or join its run, follow it, and load it into the Arena's controls.

    The run followed until now becomes the previous one.

    Parameters
    ----------
    by_slider : bool
        A slider was released: the next run replaces this one if it has not ended, or follows
        within `LOOK`, before the user has read it.

    Raises
    ------
    UserError
    """
    followed = st.session_state.get("job")
    before = pool().get(followed) if followed else None
    known = pool().get(experiment.hash) is not None
    dropped = before if before is not None and _unseen(before, experiment) else None
    if dropped is not None:
        pool().stop(dropped, owner())
    job = pool().submit_changed(experiment, owner(), before=before, address=address())
    if dropped is not None:
        pool().discard(dropped.id, owner())
    begun = (job.id, time.monotonic()) if by_slider and not known else None
    st.session_state["by-slider"] = begun
    draft.forget_link()
    # started on another page: the controls describe the run that the Arena will show
    if draft.current().experiment() != experiment:
        draft.load(experiment)
    if dropped is None and followed not in (None, job.id):
        st.session_state.previous = followed
    elif followed and job.status == "finished" and not by_slider:
        st.toast(
            "Already computed: the same settings give the same numbers. Another seed gives other "
            "users."
        )
    # last: where another event interrupts the page, the request is repeated from the run before
    return follow(job)


def _unseen(job: Job, following: Experiment) -> bool:
    """Return whether a slider of this session began a run that the user has not looked at."""
    begun, released = st.session_state.get("by-slider") or ("", 0.0)
    return (
        job.id == begun != following.hash
        and job.owner == owner()
        and (job.active or (job.status == "finished" and time.monotonic() - released < LOOK))
    )


def submit(experiment: Experiment) -> Job:
    """Submit an experiment in the name of this browser."""
    return pool().submit(experiment, owner(), address=address())


def open_in_arena(job: Job) -> NoReturn:
    """Load the experiment of a run into the controls, and open the Arena on it."""
    follow(job)
    draft.load(job.experiment)
    st.switch_page("arena.py")


def run_in_arena(experiment: Experiment) -> NoReturn:
    """Load an experiment into the controls, run it, and open the Arena on it."""
    draft.load(experiment)
    submit_and_follow(experiment)
    st.switch_page("arena.py")


def follow(job: Job) -> Job:
    """Show a job on this session's pages and put its whole experiment into the page's address."""
    st.session_state.job = job.id
    query = url.to_query(job.experiment)
    if {name: text for name, text in st.query_params.items() if name in query} != query:
        view = {name: text for name, text in st.query_params.items() if name == views.FIELD}
        st.query_params.from_dict({**query, **view})
    return job


def previous(job: Job) -> Job | None:
    """Return the run that this session followed before ``job``, if the two differ in parameters of
    agents alone.
    """
    candidate = pool().get(st.session_state.get("previous", ""))
    # deleted or evicted: not looked up again at every update
    if candidate is None:
        st.session_state.pop("previous", None)
        return None
    if candidate is job or not parameter_changes(candidate.experiment, job.experiment):
        return None
    return candidate if candidate.result.histories else None


def current() -> Job:
    """Return the run that this session follows: the one it submitted, the one in the page's
    address, or a preset.
    """
    followed, offered = st.session_state.get("job"), st.session_state.get("offered")
    if followed is not None and (job := pool().get(followed)) is not None:
        return follow(job)
    if offered is not None and followed == offered.id:
        return follow(offered)
    # Deleted meanwhile: the experiment in the address is not started again by itself.
    if followed is not None:
        del st.session_state.job
        st.toast(
            "This run was deleted. Press Run to compute it again.", icon=":material/search_off:"
        )
    elif (opened := _opened_link()) is not None:
        # Followed last: where another event interrupts the page, the link is opened again.
        return follow(opened)
    # The same for all users who have not started a run: it has no owner.
    try:
        return follow(pool().submit(next(iter(presets().values())).experiment))
    except UserError as error:
        st.error(f"No run can be started: {escape_markdown(str(error))}.", icon=":material/block:")
        st.stop()


def _opened_link() -> Job | None:
    """Return the run of the address.

    None if it holds no experiment, or one that is refused, which is remembered.

    An address is validated like an upload; its experiment is run unless its results are stored
    already, or it is long."""
    if not url.holds_experiment(st.query_params):
        return None
    try:
        shared = url.parse_query(st.query_params.to_dict())
        job = pool().get(shared.experiment.hash) or _submit_or_offer(shared.experiment)
    except UserError as error:
        data = None
        with suppress(UserError):
            data = url.plain_data(st.query_params.to_dict())
        refusals.refuse_link(refusals.Refusal(str(error), data))
        return None
    draft.load(job.experiment)
    if not shared.same:
        refusals.mark_edited_link(job.id)
        # On the Arena, a sentence stays as long as the run.
        if page.shown() != "arena":
            st.toast(refusals.EDITED, icon=":material/edit:", duration="long")
    return job


def _submit_or_offer(experiment: Experiment) -> Job:
    """Submit the experiment of an address.

    A long one is only offered: no link occupies the server by itself. A paused one stays paused.
    """
    known = pool().get(experiment.hash)
    if known is not None and known.status == "paused":
        return known
    if decisions(experiment) <= SHORT_RUN:
        return submit(experiment)
    st.session_state.offered = job = Job(experiment, status="offered")
    return job
