"""Draw the parts of the page Cost of confidence."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.base.formatting import count, duration, size
from bandits.width_cost import METHODS, CostReport, ProfileRequest, read
from bandits.width_cost import text as cost_text
from bandits.width_cost.background import Measurement, machine_memory
from bandits.width_cost.figures import cost_figures, method_colour
from bandits.width_cost.linear.background import LinearMeasurement
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.params_form import fields, form
from bandits_app.widgets.text import escape_markdown

TIME_LIMITS = {0.01: "10 ms", 0.1: "100 ms", 1.0: "1 s", 10.0: "10 s"}
_REQUEST = "cost-request"  # key of the session


@st.cache_resource(max_entries=32, show_spinner=False)
def _measurement(text: str) -> Measurement:
    """Return the measurement of a request, shared by all sessions of the server."""
    return Measurement(ProfileRequest.model_validate_json(text))


def choose() -> dict[str, Any]:
    """Draw the controls; return plain data for `bandits.width_cost.read`."""
    names, defaults = fields(ProfileRequest, basic=True), ProfileRequest().model_dump(mode="json")
    values: dict[str, Any] = {}
    with st.container(key="pairs-cost"):
        for column, name in zip(st.columns(len(names)), names, strict=True):
            with column:
                values |= form(ProfileRequest, [name], defaults, "cost")
    return values


def time_limit(key: str = "cost-time-limit") -> float:
    """Draw the control of the time limit; return seconds."""
    chosen = st.segmented_control(
        "Time limit", list(TIME_LIMITS), default=1.0, required=True, format_func=TIME_LIMITS.__getitem__,
        key=key, help="Longest acceptable time of one decision with its update. A method is marked as "
        "infeasible where it exceeds the limit; larger values allow larger models (usually 100 ms to 1 s).",
    )  # fmt: skip
    return float(chosen)


def more() -> dict[str, Any]:
    """Draw what is seldom changed, behind a click: sizes of two methods, and a button for a large catalogue."""
    with st.popover("More", icon=":material/tune:", type="tertiary"):
        values = form(ProfileRequest, ["members", "passes"], ProfileRequest().model_dump(mode="json"), "cost")
        st.button(
            "Large catalogue", icon=":material/inventory_2:", on_click=_enter_catalogue,
            help="Enters K = 1,000,000 candidates and hidden layers with about p = 100,000 weights. The gradients of "
            "all candidates then need about 400 GB, so that times are extrapolated.",
        )  # fmt: skip
    return values


def _enter_catalogue() -> None:
    st.session_state["cost-n_candidates"] = 1_000_000
    st.session_state["cost-hidden"] = "300, 320"


def start(data: dict[str, Any]) -> None:
    """Measure what the controls state.

    A repeated request is measured again, because times depend on the moment.

    Raises
    ------
    UserError
        The request is invalid.
    """
    request = read(data).model_dump_json()
    if st.session_state.get(_REQUEST) == request and not _measurement(request).active:
        _measurement.clear(request)
    st.session_state[_REQUEST] = request


def current() -> Measurement:
    """Return the measurement of the last request, or of the default.

    Raises
    ------
    UserError
        Too many measurements are waiting.
    """
    return _measurement(st.session_state.setdefault(_REQUEST, ProfileRequest().model_dump_json()))


def changed(measurement: Measurement, data: dict[str, Any]) -> bool:
    """Tell whether the controls state a request other than the one shown."""
    try:
        return read(data) != measurement.report.request
    except UserError:  # reported when the user presses Measure
        return True


def show(measurement: Measurement, max_seconds: float) -> None:
    """Draw a measurement, every half second while it runs.

    The page is redrawn once when it ends.
    """
    run_every = 0.5 if measurement.active else None
    st.fragment(_show, run_every=run_every)(measurement, max_seconds, measurement.active)


def _show(measurement: Measurement, max_seconds: float, was_active: bool) -> None:
    report, memory = measurement.report, machine_memory()
    st.progress(min(measurement.fraction, 1.0), text=status(measurement))
    snapshot = _snapshot(report, max_seconds, memory, hash(report))
    panel.mount(snapshot.packed, key="cost")
    if snapshot.summary:
        st.markdown(f"**{snapshot.conclusion}**")
        st.markdown("\n".join(f"- {sentence}" for sentence in snapshot.summary))
        _tables(report, snapshot.rows)
    if was_active and not measurement.active:
        st.rerun()


class CostSnapshot(NamedTuple):
    """State of a measurement as it is sent to all sessions with one time limit."""

    packed: bytes
    conclusion: str
    summary: list[str]
    rows: list[dict[str, str]]


@st.cache_resource(max_entries=64, show_spinner=False)
def _snapshot(_report: CostReport, max_seconds: float, memory: float, key: int) -> CostSnapshot:  # noqa: ARG001
    """Draw a report; ``key`` identifies it in the cache."""
    specs = cost_figures(_report, max_seconds=max_seconds, max_bytes=memory)
    for spec in specs:
        spec["layout"]["uirevision"] = f"{_report.request}{max_seconds}"
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    packed = panel.pack(specs, alt, 300, _tiles(_report), _note(_report))
    summary = cost_text.summary(_report, max_seconds, memory)
    conclusion = cost_text.conclusion(_report, max_seconds, memory)
    return CostSnapshot(packed, conclusion, summary, _rows(_report, max_seconds, memory) if summary else [])


def status(measurement: Measurement | LinearMeasurement) -> str:
    """Describe the progress of a measurement in one line."""
    if measurement.status == "waiting":
        return "Waiting for another measurement to end: two at once would slow each other down"
    if measurement.status == "failed":
        return f"Failed: {escape_markdown(measurement.error)}"
    if measurement.status == "finished":
        return f"Measured: {len(measurement.report.timings)} sizes"
    return f"Measuring: {measurement.activity}" if measurement.activity else "Warming up"


def _note(report: CostReport) -> str:
    request = report.request
    sizes = f"p = {count(request.sizes.p)}, K = {count(request.n_candidates)}, t = {count(request.past)}"
    return f"Time of one decision with its update at {sizes}. Press a method to hide it in all plots."


def _tiles(report: CostReport) -> list[dict[str, str]]:
    tiles = []
    for kind, method in METHODS.items():
        timing, measured = report.at_request(kind), report.is_measured(kind)
        time = "–" if timing is None else f"{'' if measured else '≈ '}{duration(timing.seconds)}"
        detail = f"{'exact' if method.exact else 'approximate'} · {size(method.memory(report.request.sizes))}"
        tiles.append({"label": method.title, "color": method_colour(kind), "dash": "solid", "rate": time, "spread": "",
                      "detail": detail})  # fmt: skip
    return tiles


def _rows(report: CostReport, max_seconds: float, memory: float) -> list[dict[str, str]]:
    rows = []
    for kind, method in METHODS.items():
        timing = report.at_request(kind)
        about = "" if report.is_measured(kind) else "≈ "
        times = [f"{about}{duration(s)}" for s in (timing.decide, timing.update)] if timing else ["–", "–"]
        limits = {
            f"Infeasible from {axis}": cost_text.infeasible_cell(report, kind, axis, max_seconds, memory)
            for axis in ("p", "t", "K")
        }
        needed = size(method.memory(report.request.sizes))
        rows.append({"Method": method.title, "Decision": times[0], "Update": times[1], "Memory": needed, **limits})
    return rows


def _tables(report: CostReport, rows: list[dict[str, str]]) -> None:
    st.subheader("Times and limits", anchor=False)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    st.caption(
        "Processor time of one thread, median of several repetitions; other load on the machine makes it slightly "
        "longer. ≈: extrapolated from measurements at smaller sizes."
    )
    if not report.agreements:
        return
    st.subheader("Agreement with exact widths", anchor=False)
    columns = ("Rank correlation", "Same choice", "Width ratio")
    compared = [
        {"Simulator": a.simulator, "Method": METHODS[a.kind].title, "Weights": count(a.p),
         "Observations": count(a.past), "Decisions": count(a.decisions),
         **dict(zip(columns, cost_text.agreement_cells(a), strict=True))}
        for a in report.agreements
    ]  # fmt: skip
    st.dataframe(pd.DataFrame(compared), hide_index=True, height="content")
    st.caption(
        "NeuralUCB runs with exact widths. After the given number of observations, the other methods compute their "
        "widths at every decision, for the same candidates, network and observations. Rank correlation: Spearman's, "
        "over the candidates. Same choice: share of decisions with the same arm by mean plus bonus. Width ratio: "
        "geometric mean, relative to the exact width. These are results of one run per simulator; others will differ."
    )


def explain() -> None:
    """Draw what a confidence width is, and the description and the complexity of each method."""
    st.markdown(
        "NeuralUCB chooses the arm with the highest mean plus exploration bonus. The bonus is proportional to the "
        r"width $\sqrt{g^\top A^{-1}g}$, where $g$ is the gradient of the network's output with respect to its $p$ "
        r"weights and $A=\lambda I+\sum gg^\top$ over past choices. A naive implementation stores and inverts a "
        r"$p\times p$ matrix. "
        "This page compares seven methods that compute the width, or an approximation of it."
    )
    for kind, method in METHODS.items():
        with st.container(border=True):
            dot = f'<span style="color:{method_colour(kind)}">●</span>'
            st.html(f'<div style="font-weight:600">{dot} {method.title}</div>')
            st.markdown(method.description)
            st.caption(f"The time of one decision with its update grows as ${method.growth}$.")
    st.caption(
        "$K$: candidates. $p$: weights of the network. $t$: past observations. $f$: numbers in the factors of one "
        "gradient. $d$: weights of the last layer. $M$: networks of the ensemble. $T$: passes of dropout. Training the "
        "(first) network takes the same time with all methods and is not included."
    )
