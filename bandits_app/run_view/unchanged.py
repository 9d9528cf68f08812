"""The same run without its changes: where it is at hand, and on request in the Arena."""

from __future__ import annotations

import streamlit as st

from bandits import UserError
from bandits.results.change import lost_clicks
from bandits.results.change.lost_clicks import without_changes
from bandits.results.result import Result
from bandits.runtime.pool import Job
from bandits_app.session import followed, workers
from bandits_app.widgets.text import bullets, escape_markdown, refuse
from bandits_app.widgets.until_end import until_end

from .status import status


def submit(job: Job) -> Job:
    """Start the run without changes."""
    return followed.submit(without_changes(job.experiment))


def find(job: Job) -> Job | None:
    """Return the run without changes, if it was ever started."""
    if not job.experiment.simulator.all_changes:
        return None
    return workers.pool().get(without_changes(job.experiment).hash)


def result_of(job: Job) -> Result:
    """Return the result of a run, together with that of the run without changes where both have
    ended.
    """
    unchanged = None if job.live else find(job)
    if unchanged is None or unchanged.status != "finished":
        return job.result
    return Result(job.experiment, job.result.histories, unchanged=unchanged.result)


def offer(job: Job) -> None:
    """State the clicks lost to the changes of a run that has ended, or offer to compute them."""
    if job.live or not job.experiment.simulator.all_changes or not job.result.histories:
        return
    unchanged = find(job)
    if unchanged is None or (not unchanged.active and unchanged.status != "finished"):
        noun = job.experiment.simulator_class().reward_noun
        about = "Computes the same run without its changes: as many steps again."
        if st.button(
            f"{noun.capitalize()} lost to the changes",
            icon=":material/bolt:",
            help=about,
            key="unchanged",
        ):
            try:
                unchanged = submit(job)
            except UserError as error:
                refuse(error)
    if unchanged is not None:
        until_end(_show, job, unchanged)


def _show(job: Job, unchanged: Job) -> None:
    if unchanged.active:
        st.progress(min(unchanged.progress, 1.0), text="The same run without its changes")
        return
    if unchanged.status != "finished":
        st.caption(escape_markdown(status(unchanged)))
        return
    bullets(lost_clicks.sentences(job.result, unchanged.result))
