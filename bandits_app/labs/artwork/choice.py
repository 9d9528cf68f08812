"""The controls of the page Artwork: which run, and which title and agent of it."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment
from bandits.results.artwork import title as artwork
from bandits.runtime.pool import Job
from bandits_app.labs import experiment_choice


def choose(job: Job) -> Experiment:
    """Draw the choice of a preset, or of the last run; return its experiment."""
    return experiment_choice.choose(
        job, "artwork", fits, default="artwork", label="Experiment",
        help="Titles, visitors and agents. The Arena changes them: simulator Artwork.",
    )  # fmt: skip


def fits(experiment: Experiment) -> bool:
    """Return whether an experiment shows pictures of titles."""
    return experiment.simulator.kind == "artwork"


def title_and_agent(job: Job) -> tuple[int, str]:
    """Draw the choice of a title and of an agent."""
    experiment = job.experiment
    labels = [label for label in experiment.labels if label in job.result.histories]
    names = _titles(experiment, job.id)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        title = st.selectbox(
            "Title", list(names), key=f"artwork-title-{job.id[:12]}", width=320,
            format_func=names.__getitem__,
            help="Titles that are there at the end of the run, those that visitors like most first.",
        )  # fmt: skip
        label = st.selectbox("Agent", labels, key=f"artwork-agent-{job.id[:12]}", width=320)
    return title, label


@st.cache_data(ttl=3600, max_entries=16, show_spinner=False)
def _titles(_experiment: Experiment, key: str) -> dict[int, str]:  # noqa: ARG001 - the key
    return artwork.titles(_experiment)
