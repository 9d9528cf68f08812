"""Share a run: its link, its files, and experiments to open."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from bandits import read
from bandits.experiments import url
from bandits.experiments.experiment import MAX_TEXT
from bandits.results import export
from bandits.runtime.pool import Job
from bandits_app.run_view import unchanged
from bandits_app.session import draft


def share(job: Job) -> None:
    """Draw the link to a run, and the upload of an experiment file."""
    here = urlsplit(st.context.url or "http://127.0.0.1:8501/arena")
    st.markdown("**Link to this experiment**")
    st.code(f"{here.scheme}://{here.netloc}{here.path}?{url.query(job.experiment)}", language=None, wrap_lines=True)
    note = "The link contains the whole experiment: it gives the same numbers, even after this run has been deleted."
    if not job.experiment.simulator_class().portable(job.experiment.simulator):
        note = "The link contains the experiment, but not the uploaded data: upload the same file on the other server."
    if here.hostname in ("127.0.0.1", "localhost", "::1"):
        note += " This link works only on this computer; elsewhere replace the host name."
    st.caption(note)
    st.markdown("**Open an experiment file**")
    uploaded = st.file_uploader("Experiment (JSON)", "json", max_upload_size=1, label_visibility="collapsed")
    if uploaded is not None and st.session_state.get("opened") != uploaded.file_id:
        st.session_state.opened = uploaded.file_id
        draft.load(read(uploaded.getvalue()[: MAX_TEXT + 1]))
        st.toast("The experiment is loaded into the controls. Press Run.", icon=":material/input:")
        st.rerun()


def files(job: Job) -> None:
    """Draw the downloads; each file is made when its button is pressed."""
    result, name = unchanged.result_of(job), f"bandits-{job.id[:8]}"
    if not result.histories:
        st.caption("This run has no results to export yet.")
        return
    exports: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("Report (HTML, works offline)", "html", "text/html", lambda: export.report(result)),
        ("Curves (CSV)", "csv", "text/csv", lambda: export.table_csv(result)),
        ("Curves (Parquet)", "parquet", "application/octet-stream", lambda: export.table_parquet(result)),
        ("Experiment (JSON)", "json", "application/json", lambda: job.experiment.model_dump_json(indent=2)),
        ("Python script", "py", "text/x-python", lambda: export.script(job.experiment)),
    ]

    def make_locked(make: Callable[[], str | bytes]) -> str | bytes:
        with job.lock:  # an active run adds no points meanwhile
            return make()

    for label, ending, mime, make in exports:
        st.download_button(
            label, partial(make_locked, make), f"{name}.{ending}", mime, key=f"export-{ending}", on_click="ignore",
            icon=":material/download:", width="stretch",
        )  # fmt: skip
    st.caption(
        "The script explains in its first lines how to run it. To save a plot as PNG or SVG, open the menu **⋮** at "
        "its upper right."
    )
