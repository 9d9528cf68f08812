"""The runs of a lesson: started one after the other before they are shown, shared by all
readers.
"""

from __future__ import annotations

import streamlit as st

from bandits.lessons import Lesson
from bandits.results.result import Result
from bandits.runtime.pool import Job
from bandits_app.run_view.status import status
from bandits_app.session import workers
from bandits_app.widgets.text import escape_markdown
from bandits_app.widgets.until_end import until_end


def start(lesson: Lesson) -> dict[str, Job]:
    """Return the jobs of the lesson by step.

    The first that has not ended is started, the others wait for it.

    Raises
    ------
    UserError
    """
    jobs: dict[str, Job] = {}
    for name, step in lesson.runs.items():
        if step.worked is not None:
            continue
        job = workers.pool().get(step.resolved.hash)
        # it has no owner: one run for all readers
        if job is None or job.status in ("stopped", "paused", "failed"):
            job = workers.pool().submit(step.resolved)
        jobs[name] = job
        if job.status != "finished":
            break
    return jobs


def finished(jobs: dict[str, Job]) -> dict[str, Result]:
    """Return the results of the runs that have ended."""
    return {name: job.result for name, job in jobs.items() if job.status == "finished"}


def needed(lesson: Lesson) -> set[str]:
    """Return the steps whose runs are computed; worked examples are not."""
    return {name for name, step in lesson.runs.items() if step.worked is None}


def at_hand(lesson: Lesson) -> dict[str, Result]:
    """Return the results of the runs that have ended, in this session or before; none is
    started.
    """
    jobs = {name: workers.pool().get(lesson.runs[name].resolved.hash) for name in needed(lesson)}
    return finished({name: job for name, job in jobs.items() if job is not None})


def wait(job: Job) -> None:
    """Draw the progress of a run; the page is drawn again when it ends."""
    until_end(_progress, job, every=0.5)


def wait_for_text(jobs: dict[str, Job]) -> None:
    """Say that a text waits for a run, and draw the run's progress."""
    st.caption("This text is filled with the numbers of the run, which is still being computed.")
    wait_for_any(jobs)


def wait_for_any(jobs: dict[str, Job]) -> None:
    """Draw the progress of the run that the others wait for.

    Where it has just ended, draw the page again.
    """
    left = [job for job in jobs.values() if job.status != "finished"]
    if not left:
        st.rerun()
    wait(left[0])


def _progress(job: Job) -> None:
    if job.active:
        st.progress(job.progress, text=escape_markdown(status(job)))
    else:
        st.caption(escape_markdown(status(job)))
