"""To take along: a link that makes the same numbers anywhere, files, and experiments that come back in."""

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

from . import draft


def share(job: Job) -> None:
    """The link to a run, and the way in for an experiment's file."""
    here = urlsplit(st.context.url or "http://127.0.0.1:8501/arena")
    st.markdown("**Link to this experiment**")
    st.code(f"{here.scheme}://{here.netloc}{here.path}?{url.query(job.experiment)}", language=None, wrap_lines=True)
    note = "It holds the whole experiment: whoever opens it gets the same numbers, also when this run is gone."
    if not job.experiment.simulator_class().portable(job.experiment.simulator):
        note = "It holds the experiment, but not the data that were brought: the same CSV must be brought there too."
    if here.hostname in ("127.0.0.1", "localhost", "::1"):
        note += (
            " This address works on this machine only; on another one, put its own address before the question mark."
        )
    st.caption(note)
    st.markdown("**Open an experiment file**")
    brought = st.file_uploader("Experiment (JSON)", "json", max_upload_size=1, label_visibility="collapsed")
    if brought is not None and st.session_state.get("opened") != brought.file_id:
        st.session_state.opened = brought.file_id
        draft.load(read(brought.getvalue()[: MAX_TEXT + 1]))
        st.toast("The experiment is in the controls now. Press Run.", icon=":material/input:")
        st.rerun()


def files(job: Job) -> None:
    """Downloads, made when they are asked for."""
    result, name = job.result, f"bandits-{job.id[:8]}"
    if not result.histories:
        st.caption("There is nothing to export yet.")
        return
    offered: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("Report (HTML, works offline)", "html", "text/html", lambda: export.report(result)),
        ("Curves (CSV)", "csv", "text/csv", lambda: export.table_csv(result)),
        ("Curves (Parquet)", "parquet", "application/octet-stream", lambda: export.table_parquet(result)),
        ("Experiment (JSON)", "json", "application/json", lambda: job.experiment.model_dump_json(indent=2)),
        ("Python script", "py", "text/x-python", lambda: export.script(job.experiment)),
    ]

    def at_rest(make: Callable[[], str | bytes]) -> str | bytes:
        with job.lock:  # while it is written down, a live run does not grow
            return make()

    for label, ending, mime, make in offered:
        st.download_button(
            label, partial(at_rest, make), f"{name}.{ending}", mime, key=f"export-{ending}", on_click="ignore",
            icon=":material/download:", width="stretch",
        )  # fmt: skip
    st.caption("Pictures: **PNG** and **SVG** stand at the upper right of every plot.")
