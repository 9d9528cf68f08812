"""Show the first of two stages in the view Diagnostics: recall, cost and regret of the approximate index."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment
from bandits.diagnostics.retrieval import RetrievalReport, evaluate_retrieval, summary_rows
from bandits.runtime.pool import Job
from bandits_app.widgets.text import safe_cell


def show(job: Job) -> None:
    """Show one table, if the run's simulator retrieves candidates by an index."""
    report = _report(job.experiment, job.experiment.hash)
    if report is None:
        return
    with job.lock:
        rows = summary_rows(report, job.histories)
    st.subheader("Candidate retrieval", anchor=False)
    st.markdown(
        "How much reward is lost before an agent chooses? An approximate index retrieves the candidates, and no agent "
        "can show an item that it misses. The regret of the agents among the retrieved candidates comes on top."
    )
    table = {"": [safe_cell(name) for name, _ in rows], "estimate (95 % CI)": [value for _, value in rows]}
    st.dataframe(table, hide_index=True, key="retriever")


@st.cache_data(ttl=3600, max_entries=32, show_spinner="Comparing the index with exact search ...")
def _report(_experiment: Experiment, run: str) -> RetrievalReport | None:  # noqa: ARG001 - the key
    return evaluate_retrieval(_experiment)
