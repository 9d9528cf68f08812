"""The first of two stages on the page Diagnostics: what its index finds, costs and loses."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment
from bandits.diagnostics import retrieval
from bandits.diagnostics.retrieval import Audit
from bandits.runtime.pool import Job
from ui.run_view import board


def show(job: Job) -> None:
    """One table, if the world of the run retrieves by an index."""
    found = _audited(job.experiment, job.experiment.hash)
    if found is None:
        return
    with job.lock:
        told = retrieval.lines(found, job.histories)
    st.subheader("The retriever", anchor=False)
    st.markdown(
        "Candidates come from an approximate index. What it misses no agent can show, and is lost before the bandit "
        "begins; what an agent loses among the candidates it is given comes on top."
    )
    table = {"": [board.safe_cell(what) for what, _ in told], "measured (95 % interval)": [value for _, value in told]}
    st.dataframe(table, hide_index=True, key="retriever")


@st.cache_data(ttl=3600, max_entries=32, show_spinner="Comparing the index with exact search ...")
def _audited(_experiment: Experiment, run: str) -> Audit | None:  # noqa: ARG001 - the key
    return retrieval.of(_experiment)
