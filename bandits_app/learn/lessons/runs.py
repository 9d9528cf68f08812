"""The runs of a lesson: started one after the other before they are shown, shared by all readers."""

from __future__ import annotations

import streamlit as st

from bandits.lessons import Lesson
from bandits.results.result import Result
from bandits.runtime.pool import Job
from bandits_app.run_view.status import status
from bandits_app.session import session
from bandits_app.widgets.text import escape_markdown


def start(lesson: Lesson) -> dict[str, Job]:
    """Return the jobs of the lesson by step; the first that has not ended is started, the others wait for it.

    Raises
    ------
    UserError
    """
    jobs: dict[str, Job] = {}
    for name, step in lesson.runs.items():
        if step.worked is not None:
            continue
        job = session.pool().get(step.resolved.hash)
        if job is None or job.status in ("stopped", "paused", "failed"):  # it has no owner: one run for all readers
            job = session.pool().submit(step.resolved)
        jobs[name] = job
        if job.status != "finished":
            break
    return jobs


def finished(jobs: dict[str, Job]) -> dict[str, Result]:
    """Return the results of the runs that have ended."""
    return {name: job.result for name, job in jobs.items() if job.status == "finished"}


def wait(job: Job) -> None:
    """Draw the progress of a run; the page is drawn again when it ends."""
    st.fragment(_progress, run_every=0.5 if job.active else None)(job, job.active)


def wait_for_any(jobs: dict[str, Job]) -> None:
    """Draw the progress of the run that the others wait for; where it has just ended, draw the page again."""
    left = [job for job in jobs.values() if job.status != "finished"]
    if not left:
        st.rerun()
    wait(left[0])


def _progress(job: Job, was_active: bool) -> None:
    if was_active and not job.active:
        st.rerun()
    if job.active:
        st.progress(job.progress, text=escape_markdown(status(job)))
    else:
        st.caption(escape_markdown(status(job)))
