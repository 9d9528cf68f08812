"""The one pool of workers that all sessions share, and the run that this session looks at."""

from __future__ import annotations

import gc
import hashlib
import itertools
import os
import secrets
import threading
import time
from contextlib import suppress

import streamlit as st

from bandits import Experiment, UserError
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.runtime.pool import Job, Pool
from bandits.storage.run_store import Store

from .arena import draft


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """Warm workers, started once per server."""
    made = Pool(workers=max(2, min(4, (os.cpu_count() or 2) - 1)), store=Store())
    _collector()
    return made


@st.cache_resource(show_spinner=False)
def _collector() -> threading.Thread:
    """One thread per server, however often its pool is made anew."""
    thread = threading.Thread(target=_settle, daemon=True)
    thread.start()
    return thread


def _settle() -> None:
    """Keep the garbage collector away from what stays.

    Streamlit has it go through all objects after every script run: 25 ms each time, which thirty viewers cannot have.
    What has survived for a minute is set apart; all of it is looked at once a minute, so that nothing is kept for ever.
    """
    for pause in itertools.chain((3, 6, 12, 24), itertools.repeat(60)):
        time.sleep(pause)
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def owner() -> str:
    """This browser, without saying which: the same after F5, in a second tab and on the next visit.

    Streamlit gives every browser a random token against cross-site requests, under a mask that changes.
    """
    with suppress(ValueError):
        version, mask, token, _ = st.context.cookies.get("_streamlit_xsrf", "").split("|")
        key = bytes.fromhex(mask)
        plain = bytes(byte ^ key[i % len(key)] for i, byte in enumerate(bytes.fromhex(token)))
        return hashlib.sha256(version.encode() + plain).hexdigest()
    return str(st.session_state.setdefault("owner", secrets.token_hex(16)))


def look_at(experiment: Experiment) -> Job:
    """Run an experiment, or join its run, and keep looking at it; what was looked at becomes the run before.

    Raises
    ------
    UserError
    """
    seen = st.session_state.get("job")
    job = keep(pool().submit(experiment, owner()))
    if seen not in (None, job.id):
        st.session_state.before = seen
    return job


def keep(job: Job) -> Job:
    """Look at a job from now on, here and by the address, which holds the whole experiment."""
    st.session_state.job = job.id
    said = url.to_query(job.experiment)
    if {name: text for name, text in st.query_params.items() if name in said} != said:
        st.query_params.from_dict(said)
    return job


def before(job: Job) -> Job | None:
    """The run that this session looked at before this one, if both can be drawn in one plot."""
    seen = pool().get(st.session_state.get("before", ""))
    if seen is None:  # deleted or forgotten: not asked for again at every look
        st.session_state.pop("before", None)
        return None
    if seen is job or seen.experiment.simulator.kind != job.experiment.simulator.kind:
        return None
    return seen if seen.result.histories else None


def current() -> Job:
    """The run this session looks at: the one it began, the one its address tells, or the first preset.

    An address is judged like an upload; what it tells is run if it is not here already.
    """
    seen = st.session_state.pop("job", None)
    if seen is not None and (job := pool().get(seen)) is not None:
        return keep(job)
    if seen is not None:  # deleted meanwhile: what its address tells is not begun again by itself
        st.toast("That run is no longer here. Press Run to compute it again.", icon=":material/search_off:")
    try:
        if seen is None and url.holds_experiment(st.query_params):
            shared = url.parse_query(st.query_params.to_dict())
            if not shared.same:
                said = "This link was edited, or comes from another version: its check does not match."
                st.toast(said, icon=":material/edit:", duration="long")
            job = keep(pool().get(shared.experiment.hash) or pool().submit(shared.experiment, owner()))
            draft.load(job.experiment)
            return job
    except UserError as sentence:
        st.session_state.refused = [str(sentence)]
    try:  # shown to everybody who has not asked for anything: nobody's own
        return keep(pool().submit(next(iter(presets().values())).experiment))
    except UserError as sentence:
        st.error(f"Nothing can be run: {sentence}.", icon=":material/block:")
        st.stop()
