"""Draw a run of the artwork simulator: what its agents earned, then one title."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment
from bandits.results import artwork_sharing as sharing
from bandits.results.change.marks import description
from bandits.results.comparison.conclusion import leader_comparisons
from bandits.results.figures.board import board
from bandits.runtime.pool import Job
from bandits_app.labs import lab
from bandits_app.run_view.status import status
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import bullets, escape_markdown
from bandits_app.widgets.until_end import until_end

from . import title


def show(job: Job) -> None:
    """Draw a run; update while it is computed. At its end, one title can be looked at."""
    until_end(_show, job)
    if not job.active and job.result.histories:
        title.show(job)


def _show(job: Job) -> None:
    st.caption(escape_markdown(f"{status(job)}. {description(job.experiment)}"))
    if not job.result.histories:
        return
    with job.lock:
        specs = board(job.result)[:2]
        first = [] if job.active else sharing.conclusions(job.result)
        sentences = [] if job.active else leader_comparisons(job.result)
    bullets(first)
    panel.draw(specs, key="artwork-board", revision=job.id, height=320)
    bullets(sentences)


def _choose(job: Job) -> Experiment:
    return lab.choose_base(
        job,
        "artwork",
        lambda experiment: not _lacks(experiment),
        default="artwork",
        label="Experiment",
        help="Titles, visitors and agents. The Arena changes them: simulator Artwork.",
    )


def _lacks(experiment: Experiment) -> str:
    return "" if experiment.simulator.kind == "artwork" else "The Arena's run shows no pictures. Press **Run**."


ARTWORK = lab.Lab(
    "Artwork",
    "Which picture of a title is shown to whom, and what does that earn against one picture for all? Choose an "
    "experiment and press **Run**; then choose a title.",
    key="artwork",
    above="experiment",
    choose=_choose,
    show=show,
    lacks=_lacks,
)
