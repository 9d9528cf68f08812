"""Open the experiment that a page's address holds."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from bandits import Experiment, UserError
from bandits.experiments import url
from bandits.runtime.pool import Job
from bandits.runtime.scheduler import SHORT_RUN, decisions

from . import draft, page, refusals
from .owner import address, owner
from .workers import pool


def opened() -> Job | None:
    """Return the run of the address; None if it holds no experiment, or one that is refused, which is remembered.

    An address is validated like an upload; its experiment is run unless its results are stored already, or it is long.
    """
    if not url.holds_experiment(st.query_params):
        return None
    try:
        shared = url.parse_query(st.query_params.to_dict())
        job = pool().get(shared.experiment.hash) or _submit(shared.experiment)
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


def _submit(experiment: Experiment) -> Job:
    """Submit the experiment of an address; a long one is only offered: no link occupies the server by itself."""
    if decisions(experiment) <= SHORT_RUN:
        return pool().submit(experiment, owner(), address=address())
    st.session_state.offered = job = Job(experiment, status="offered")
    return job
