"""The one pool of workers that all sessions share, and the run that this session looks at."""

from __future__ import annotations

import gc
import hashlib
import os
import secrets
from contextlib import suppress

import streamlit as st

from bandits import Experiment, Refused
from bandits.jobs import Job, Pool
from bandits.presets import presets
from bandits.store import Store

from . import draft


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """Warm workers, started once per server."""
    made = Pool(workers=max(2, min(4, (os.cpu_count() or 2) - 1)), store=Store())
    # Streamlit collects garbage after every script run: what was imported need not be looked at again
    gc.collect()
    gc.freeze()
    return made


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
    """Run an experiment, or join its run, and keep looking at it.

    Raises
    ------
    Refused
    """
    return keep(pool().submit(experiment, owner()))


def keep(job: Job) -> Job:
    """Look at a job from now on, here and by the address."""
    st.session_state.job = st.query_params["run"] = job.id
    return job


def current() -> Job:
    """The run this session looks at; the address names it, so that F5 and a second tab find it again."""
    asked = st.session_state.get("job") or st.query_params.get("run", "")
    job = pool().get(asked)
    if job is None:
        if asked:
            st.toast("That run is no longer here; this is the first preset.", icon=":material/search_off:")
        try:  # shown to everybody who has not asked for anything: nobody's own
            job = pool().submit(next(iter(presets().values())).experiment)
        except Refused as sentence:
            st.error(f"Nothing can be run: {sentence}.", icon=":material/block:")
            st.stop()
    elif "job" not in st.session_state:
        draft.load(job.experiment)
    return keep(job)
