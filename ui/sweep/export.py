"""A sweep to take along: its points as files, the sweep itself for the command line."""

from __future__ import annotations

import json
from collections.abc import Callable

import streamlit as st

from bandits.results.export import csv_of, parquet_of
from bandits.sweeps.manager import SweepJob


def files(found: SweepJob, metric: str) -> None:
    """Downloads, made when they are asked for."""
    name = f"sweep-{found.id[:8]}"

    def at_rest(make: Callable[[], str | bytes]) -> Callable[[], str | bytes]:
        def made() -> str | bytes:
            with found.lock:
                return make()

        return made

    landscape = found.landscape
    offered: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("Points (CSV)", "csv", "text/csv", lambda: csv_of(landscape.table(metric))),
        ("Points (Parquet)", "parquet", "application/octet-stream", lambda: parquet_of(landscape.table(metric))),
        ("Summary (JSON)", "summary.json", "application/json",
         lambda: json.dumps(landscape.summary(metric), indent=2, ensure_ascii=False, allow_nan=False)),
        ("Sweep (JSON)", "json", "application/json", lambda: found.sweep.model_dump_json(indent=2)),
    ]  # fmt: skip
    for label, ending, mime, make in offered:
        st.download_button(
            label, at_rest(make), f"{name}.{ending}", mime, key=f"sweep-export-{ending}", on_click="ignore",
            icon=":material/download:", width="stretch", disabled=not landscape.completed.any(),
        )  # fmt: skip
    st.caption(
        "Pictures: **PNG** and **SVG** stand at the upper right of every plot. The address of this page holds the "
        "whole sweep. On the command line: `python -m bandits sweep FILE.json`."
    )
