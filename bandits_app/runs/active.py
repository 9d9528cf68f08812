"""The lists of running and unfinished runs on the page Runs."""

from __future__ import annotations

import streamlit as st

from bandits import UserError
from bandits.results.describe import describe_agents, describe_experiment
from bandits_app.run_view.board import TICK
from bandits_app.run_view.status import status
from bandits_app.session import workers
from bandits_app.session.owner import deleter, may_delete, owner, refusal
from bandits_app.widgets import buttons
from bandits_app.widgets.text import refuse

from .dialogs import confirm, heading, open_job

SCROLL_FROM = 5  # unfinished runs; more are shown in a box that scrolls


def running() -> None:
    """List the queued, running and paused runs, updated every second."""
    if jobs := workers.pool().live_jobs():
        st.subheader("Running", anchor=False)
        st.fragment(_running, run_every=TICK)({job.id for job in jobs})


def _running(shown_ids: set[str]) -> None:
    jobs = workers.pool().live_jobs()
    if {job.id for job in jobs} != shown_ids:  # one has started or ended: the lists below change too
        st.rerun()
    for job in sorted(jobs, key=lambda job: job.id):  # a fixed order while they run
        with st.container(border=True):
            left, right = st.columns([5, 1], vertical_alignment="center")
            left.html(heading(describe_agents(job.experiment), describe_experiment(job.experiment)))
            left.progress(min(job.progress, 1.0), text=status(job))
            if right.button("Open", key=f"going-{job.id}", icon=":material/open_in_new:", width="stretch"):
                open_job(job)


def unfinished() -> None:
    """List the runs that ended early, to resume or discard."""
    try:
        found = workers.pool().unfinished()
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
                run, name = experiment.hash, describe_agents(experiment)
                left.html(heading(name, describe_experiment(experiment)))
                if resume.button("Resume", key=f"resume-{run}", icon=":material/resume:", width="stretch"):
                    try:
                        open_job(workers.pool().resume_unfinished(experiment, owner()))
                    except UserError as error:
                        refuse(error)
                allowed = may_delete([run], workers.pool().owners)
                if buttons.button(
                    "Discard", key=f"discard-{run}", place=drop, width="stretch", disabled=not allowed,
                    help=refusal(allowed),
                ):  # fmt: skip
                    confirm("Discard", "run", [(run, name)], lambda run: workers.pool().discard(run, deleter()))
