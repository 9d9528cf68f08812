"""Draw the tab LinUCB of the page Cost of confidence."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.base.formatting import count, duration, rounded, size
from bandits.width_cost.background import machine_memory
from bandits.width_cost.linear import LINEAR_METHODS, LinearReport, LinearRequest, read, text
from bandits.width_cost.linear.background import LinearMeasurement
from bandits.width_cost.linear.figures import linear_colour, linear_figures
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.params_form import fields, form

from .view import status

_REQUEST = "cost-linear-request"  # key of the session


@st.cache_resource(max_entries=32, show_spinner=False)
def _measurement(request: str) -> LinearMeasurement:
    """Return the measurement of a request, shared by all sessions of the server."""
    return LinearMeasurement(LinearRequest.model_validate_json(request))


def choose() -> dict[str, Any]:
    """Draw the controls; return plain data for `bandits.width_cost.linear.read`."""
    names, defaults = fields(LinearRequest, basic=True), LinearRequest().model_dump(mode="json")
    values: dict[str, Any] = {}
    with st.container(key="pairs-cost-linear"):
        for column, name in zip(st.columns(len(names)), names, strict=True):
            with column:
                values |= form(LinearRequest, [name], defaults, "cost-linear")
    return values


def more() -> dict[str, Any]:
    """Draw nothing: every size is in the row of controls."""
    return {}


def start(data: dict[str, Any]) -> None:
    """Measure what the controls state; a repeated request is measured again.

    Raises
    ------
    UserError
        The request is invalid.
    """
    request = read(data).model_dump_json()
    if st.session_state.get(_REQUEST) == request and not _measurement(request).active:
        _measurement.clear(request)
    st.session_state[_REQUEST] = request


def current() -> LinearMeasurement:
    """Return the measurement of the last request, or of the default.

    Raises
    ------
    UserError
        Too many measurements are waiting.
    """
    return _measurement(st.session_state.setdefault(_REQUEST, LinearRequest().model_dump_json()))


def changed(measurement: LinearMeasurement, data: dict[str, Any]) -> bool:
    """Tell whether the controls state a request other than the one shown."""
    try:
        return read(data) != measurement.report.request
    except UserError:  # reported when the user presses Measure
        return True


def show(measurement: LinearMeasurement, max_seconds: float) -> None:
    """Draw a measurement, every half second while it runs; the page is redrawn once when it ends."""
    run_every = 0.5 if measurement.active else None
    st.fragment(_show, run_every=run_every)(measurement, max_seconds, measurement.active)


def _show(measurement: LinearMeasurement, max_seconds: float, was_active: bool) -> None:
    report = measurement.report
    st.progress(min(measurement.fraction, 1.0), text=status(measurement))
    key = (str(report.request), len(report.timings), len(report.conditions), report.timed, id(measurement))
    snapshot = _snapshot(report, max_seconds, machine_memory(), key)
    panel.mount(snapshot.packed, key="cost-linear")
    if snapshot.conclusion:
        st.markdown(f"**{snapshot.conclusion}**")
        st.markdown("\n".join(f"- {sentence}" for sentence in snapshot.summary))
        st.subheader("Times and limits", anchor=False)
        st.dataframe(pd.DataFrame(snapshot.rows), hide_index=True, height="content")
        st.caption(
            "Processor time of one thread, median of several repetitions, in double precision. ≈: extrapolated from "
            "measurements at smaller sizes."
        )
    if was_active and not measurement.active:
        st.rerun()


class LinearSnapshot(NamedTuple):
    """State of a measurement as it is sent to all sessions with one time limit."""

    packed: bytes
    conclusion: str
    summary: list[str]
    rows: list[dict[str, str]]


@st.cache_resource(max_entries=64, show_spinner=False)
def _snapshot(_report: LinearReport, max_seconds: float, memory: float, key: object) -> LinearSnapshot:  # noqa: ARG001
    """Draw a report; ``key`` identifies it in the cache."""
    specs = linear_figures(_report, max_seconds=max_seconds, max_bytes=memory)
    for spec in specs:
        spec["layout"]["uirevision"] = f"{_report.request}{max_seconds}"
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    sizes = _report.request.sizes
    note = (
        f"Time of one decision with its update at d = {count(sizes.d)} and K = {count(sizes.K)}. Press a method to "
        "hide it in all plots."
    )
    packed = panel.pack(specs, alt, 300, _tiles(_report), note)
    return LinearSnapshot(packed, text.conclusion(_report), text.summary(_report), _rows(_report, max_seconds, memory))


def _tiles(report: LinearReport) -> list[dict[str, str]]:
    tiles = []
    for kind, method in LINEAR_METHODS.items():
        timing, about = report.at_request(kind), "" if report.is_measured(kind) else "≈ "
        time = "–" if timing is None else f"{about}{duration(timing.seconds)}"
        tiles.append({"label": method.title, "color": linear_colour(kind), "dash": "solid", "rate": time, "spread": "",
                      "detail": f"exact · {size(method.memory(report.request.sizes))}"})  # fmt: skip
    return tiles


def _rows(report: LinearReport, max_seconds: float, memory: float) -> list[dict[str, str]]:
    rows = []
    for kind, method in LINEAR_METHODS.items():
        timing, about = report.at_request(kind), "" if report.is_measured(kind) else "≈ "
        times = [f"{about}{duration(s)}" for s in (timing.decide, timing.update)] if timing else ["–", "–"]
        row = {"Method": method.title, "Decision": times[0], "Update": times[1]}
        row["Memory"] = size(method.memory(report.request.sizes))
        for axis, name in (("p", "d"), ("K", "K")):
            limit = report.infeasible_from(kind, axis, max_seconds, memory)  # type: ignore[arg-type]
            why = "" if limit is None else "time" if limit[1] == "seconds" else "memory"
            cell = "–" if limit is None else f"{'everywhere' if limit[0] == 0 else rounded(limit[0])} ({why})"
            row[f"Infeasible from {name}"] = cell
        rows.append(row)
    return rows


def explain() -> None:
    """Draw what LinUCB computes, the condition number, and the description of each method."""
    st.markdown(
        r"LinUCB has a matrix $A=\lambda I+\sum xx^\top$ per arm and chooses the arm with the highest "
        r"$x^\top A^{-1}b+\alpha\sqrt{x^\top A^{-1}x}$. The condition number of $A$, its largest eigenvalue divided by "
        "its smallest, multiplies the rounding errors of an inversion: with a condition number of $10^k$, about $k$ of "
        "the 16 digits of double precision are lost. Correlated features raise it and regularisation lowers it."
    )
    for kind, method in LINEAR_METHODS.items():
        with st.container(border=True):
            dot = f'<span style="color:{linear_colour(kind)}">●</span>'
            st.html(f'<div style="font-weight:600">{dot} {method.title}</div>')
            st.markdown(method.description)
            st.caption(f"The time of one decision with its update grows as ${method.growth}$.")
    st.caption("$K$: arms. $d$: features. The number of observations does not affect the times.")
