"""The one pool of workers that all sessions share, and the run that this session looks at."""

from __future__ import annotations

import gc
import os

import streamlit as st

from bandits import Experiment
from bandits.jobs import Job, Pool
from bandits.presets import presets

from . import draft


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """Warm workers, started once per server."""
    made = Pool(workers=max(2, min(4, (os.cpu_count() or 2) - 1)))
    # Streamlit collects garbage after every script run: what was imported need not be looked at again
    gc.collect()
    gc.freeze()
    return made


def look_at(experiment: Experiment) -> Job:
    """Run an experiment, or join its run, and keep looking at it."""
    job = pool().submit(experiment)
    st.session_state.job = job.id
    return job


def current() -> Job:
    """The run this session looks at; the address names it, so that F5 and a second tab find it again."""
    asked = st.session_state.get("job") or st.query_params.get("run", "")
    job = pool().get(asked)
    if job is None:
        job = look_at(next(iter(presets().values())).experiment)
    elif "job" not in st.session_state:
        st.session_state.job = job.id
        draft.load(job.experiment)
    st.query_params["run"] = job.id
    return job
