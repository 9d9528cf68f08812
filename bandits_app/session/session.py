"""The pool of workers that all sessions share, and the run that this session follows."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import sys
import threading
import time
from contextlib import suppress

import streamlit as st

from bandits import Experiment, UserError
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.results.figures.previous_run import parameter_changes
from bandits.runtime.pool import Job, Pool
from bandits.runtime.scheduler import SHORT_RUN, decisions
from bandits.storage.run_store import Store
from bandits_app.widgets.text import escape_markdown

from . import draft, kept_files, refusals, run_requests
from .owner import address, owner


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """Start the workers, once per server."""
    workers = Pool(workers=max(2, min(16, (os.cpu_count() or 2) - 1)), store=Store())
    _garbage_collector()
    return workers


@st.cache_resource(show_spinner=False)
def _garbage_collector() -> threading.Thread:
    """Start one thread per server, however often its pool is replaced."""
    thread = threading.Thread(target=_keep_memory_small, daemon=True)
    thread.start()
    return thread


def _keep_memory_small() -> None:
    """Collect garbage once a minute, exempt long-lived objects meanwhile, and return freed memory to the system.

    Streamlit runs a full collection after every script run: 25 ms each time, too much for thirty viewers. Objects that
    have survived for a minute are frozen; once a minute all objects are collected, so that nothing leaks. glibc keeps
    what many threads have freed: hundreds of MiB after a few dozen runs.
    """
    for pause in itertools.chain((3, 6, 12, 24), itertools.repeat(60)):
        time.sleep(pause)
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
            trim(0)


def open_page(path: str) -> None:
    """Remember which page is shown, and forget what belongs to the one that was left: notices, presses, uploads."""
    editing: draft.Draft | None = st.session_state.get("draft")
    if editing is not None and st.session_state.get("shown-page") != path:
        editing.notice = ""
        run_requests.forget()
    if st.session_state.get("shown-page") in kept_files.PAGES and st.session_state["shown-page"] != path:
        kept_files.give_back()
    st.session_state["shown-page"] = path


def submit_and_follow(experiment: Experiment, *, by_slider: bool = False) -> Job:
    """Submit an experiment, or join its run, and follow it; the run followed until now becomes the previous one.

    Parameters
    ----------
    by_slider : bool
        A slider was released: the next run replaces this one if it has not ended.

    Raises
    ------
    UserError
    """
    followed = st.session_state.get("job")
    before = pool().get(followed) if followed else None
    known = pool().get(experiment.hash) is not None
    replaced = before is not None and before.active and st.session_state.get("by-slider") == before.id
    if before is not None and replaced:
        replaced = before.owner == owner() and before.id != experiment.hash
        if replaced:
            pool().stop(before, owner())
    job = pool().submit_changed(experiment, owner(), before=before, address=address())
    if before is not None and replaced:
        pool().discard(before.id, owner())
    st.session_state["by-slider"] = job.id if by_slider and not known else None
    draft.forget_link()
    if followed not in (None, job.id):
        st.session_state.previous = followed
    elif followed and job.status == "finished" and not by_slider:
        st.toast("Already computed: the same settings give the same numbers. Another seed gives other users.")
    return follow(job)  # last: where another event interrupts the page, the request is repeated from the run before


def follow(job: Job) -> Job:
    """Show a job on this session's pages and put its whole experiment into the page's address."""
    st.session_state.job = job.id
    query = url.to_query(job.experiment)
    if {name: text for name, text in st.query_params.items() if name in query} != query:
        st.query_params.from_dict(query)
    return job


def previous(job: Job) -> Job | None:
    """Return the run that this session followed before ``job``, if the two differ in parameters of agents alone."""
    candidate = pool().get(st.session_state.get("previous", ""))
    if candidate is None:  # deleted or evicted: not looked up again at every update
        st.session_state.pop("previous", None)
        return None
    if candidate is job or not parameter_changes(candidate.experiment, job.experiment):
        return None
    return candidate if candidate.result.histories else None


def _open(experiment: Experiment) -> Job:
    """Submit the experiment of an address; a long one is only offered: no link occupies the server by itself."""
    if decisions(experiment) <= SHORT_RUN:
        return pool().submit(experiment, owner(), address=address())
    st.session_state.offered = job = Job(experiment, status="offered")
    return job


def current() -> Job:
    """Return the run that this session follows: the one it submitted, the one in the page's address, or a preset.

    An address is validated like an upload; its experiment is run unless its results are stored already, or it is long.
    """
    followed, offered = st.session_state.get("job"), st.session_state.get("offered")
    if followed is not None and (job := pool().get(followed)) is not None:
        return follow(job)
    if offered is not None and followed == offered.id:
        return follow(offered)
    if followed is not None:  # deleted meanwhile: the experiment in the address is not started again by itself
        del st.session_state.job
        st.toast("This run was deleted. Press Run to compute it again.", icon=":material/search_off:")
    try:
        if followed is None and url.holds_experiment(st.query_params):
            shared = url.parse_query(st.query_params.to_dict())
            job = pool().get(shared.experiment.hash) or _open(shared.experiment)
            draft.load(job.experiment)
            if not shared.same:
                refusals.mark_edited_link(job.id)
                if st.session_state.get("shown-page") != "arena":  # there, it stays as long as the run
                    st.toast(refusals.EDITED, icon=":material/edit:", duration="long")
            return follow(job)  # last: where another event interrupts the page, the link is opened again
    except UserError as error:
        data = None
        with suppress(UserError):
            data = url.plain_data(st.query_params.to_dict())
        refusals.refuse_link(refusals.Refusal(str(error), data))
    try:  # the same for all users who have not started a run: it has no owner
        return follow(pool().submit(next(iter(presets().values())).experiment))
    except UserError as error:
        st.error(f"No run can be started: {escape_markdown(str(error))}.", icon=":material/block:")
        st.stop()
