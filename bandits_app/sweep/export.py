"""Download buttons of a sweep: its points as files, and the sweep itself for the command line."""

from __future__ import annotations

import json
from collections.abc import Callable

import streamlit as st

from bandits.results.export import csv_of, parquet_of
from bandits.sweeps.manager import SweepJob


def files(job: SweepJob, metric: str) -> None:
    """Draw the download buttons; files are made when they are clicked."""
    name = f"sweep-{job.id[:8]}"

    def locked(make: Callable[[], str | bytes]) -> Callable[[], str | bytes]:
        def make_file() -> str | bytes:
            with job.lock:
                return make()

        return make_file

    landscape = job.landscape
    offered: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("Points (CSV)", "csv", "text/csv", lambda: csv_of(landscape.table(metric))),
        ("Points (Parquet)", "parquet", "application/octet-stream", lambda: parquet_of(landscape.table(metric))),
        ("Summary (JSON)", "summary.json", "application/json",
         lambda: json.dumps(landscape.summary(metric), indent=2, ensure_ascii=False, allow_nan=False)),
        ("Sweep (JSON)", "json", "application/json", lambda: job.sweep.model_dump_json(indent=2)),
    ]  # fmt: skip
    for label, ending, mime, make in offered:
        st.download_button(
            label, locked(make), f"{name}.{ending}", mime, key=f"sweep-export-{ending}", on_click="ignore",
            icon=":material/download:", width="stretch", disabled=not landscape.completed.any(),
        )  # fmt: skip
    st.caption(
        "Figures: the menu **⋮** at the upper right of every plot saves it as PNG or SVG. The address of this page "
        "contains the whole sweep. On the command line, run `python -m bandits sweep FILE.json`."
    )
