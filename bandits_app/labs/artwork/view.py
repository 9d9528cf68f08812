"""Draw a run of the artwork simulator: what its agents earned, then one title."""

from __future__ import annotations

import streamlit as st

from bandits.results import text
from bandits.results.artwork import one_model as sharing
from bandits.results.change.marks import description
from bandits.results.figures.board import board
from bandits.runtime.pool import Job
from bandits_app.run_view.status import status
from bandits_app.widgets.text import escape_markdown

from . import title
from .parts import bullets, draw


def show(job: Job) -> None:
    """Draw a run; update while it is computed. At its end, one title can be looked at."""
    st.fragment(_show, run_every=1.0 if job.active else None)(job, job.active)
    if not job.active and job.result.histories:
        title.show(job)


def _show(job: Job, was_active: bool) -> None:
    if was_active and not job.active:
        st.rerun()
    st.caption(escape_markdown(f"{status(job)}. {description(job.experiment)}"))
    if not job.result.histories:
        return
    with job.lock:
        specs = board(job.result)[:2]
        first = [] if job.active else sharing.conclusions(job.result)
        sentences = [] if job.active else text.leader_comparisons(job.result)
    bullets(first)
    draw(specs, job.id, "artwork-board", 320)
    bullets(sentences)
