"""Cost of confidence: time and memory of the confidence widths of neural bandits and of LinUCB."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.base.formatting import count, duration, size
from bandits.base.memory import machine_memory
from bandits.width_cost import CostReport, CostRequest, LinearRequest, NeuralRequest, read
from bandits.width_cost import text as cost_text
from bandits.width_cost.figures import cost_figures
from bandits.width_cost.measurement import Measurement
from bandits_app.session.results import shared
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.params_form import fields, form
from bandits_app.widgets.text import escape_markdown, refuse
from bandits_app.widgets.until_end import until_end

TIME_LIMITS = {0.01: "10 ms", 0.1: "100 ms", 1.0: "1 s", 10.0: "10 s"}
KEYS: dict[type[CostRequest], str] = {NeuralRequest: "cost", LinearRequest: "cost-linear"}
# what the widths are, and what the symbols mean
EXPLANATIONS: dict[type[CostRequest], tuple[str, str]] = {
    NeuralRequest: (
        (
            "NeuralUCB chooses the arm with the highest mean plus exploration bonus. The bonus is proportional to the "  # noqa: E501
            r"width $\sqrt{g^\top A^{-1}g}$, where $g$ is the gradient of the network's output with respect to its $p$ "  # noqa: E501
            r"weights and $A=\lambda I+\sum gg^\top$ over past choices. A naive implementation stores and inverts a "  # noqa: E501
            r"$p\times p$ matrix. "
            "This page compares seven methods that compute the width, or an approximation of it."
        ),
        (
            "$K$: candidates. $p$: weights of the network. $t$: past observations. $f$: numbers "
            "in the factors of one gradient. $d$: weights of the last layer. $M$: networks of the "
            "ensemble. $T$: passes of dropout. Training the (first) network takes the same time "
            "with all methods and is not included."
        ),
    ),
    LinearRequest: (
        (
            r"LinUCB has a matrix $A=\lambda I+\sum xx^\top$ per arm and chooses the arm with the highest "  # noqa: E501
            r"$x^\top A^{-1}b+\alpha\sqrt{x^\top A^{-1}x}$. The condition number of $A$, its largest eigenvalue "  # noqa: E501
            "divided by its smallest, multiplies the rounding errors of an inversion: with a condition number of "  # noqa: E501
            "$10^k$, about $k$ of the 16 digits of double precision are lost. Correlated features raise it and "  # noqa: E501
            "regularisation lowers it."
        ),
        ("$K$: arms. $d$: features. The number of observations does not affect the times."),
    ),
}


def draw() -> None:
    """Draw the lab."""
    st.title("Cost of confidence", anchor=False)
    st.markdown(
        "The time and memory that confidence widths need on this machine, for the sizes of your "
        "problem."
    )
    neural, linear = st.tabs(["Neural networks", "LinUCB"], key="cost-tab", on_change="rerun")
    # the measurement of a tab waits for a press: it keeps a core busy
    if neural.open:
        with neural:
            _tab(NeuralRequest)
    if linear.open:
        with linear:
            _tab(LinearRequest)


@shared(number=64)
def measurement(kind: type[CostRequest], text: str) -> Measurement:
    """Return the measurement of a request, shared by all sessions of the server."""
    return Measurement(kind.model_validate_json(text))


def _tab(kind: type[CostRequest]) -> None:
    key = KEYS[kind]
    data = _choose(kind)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    pressed = row.button(
        "Measure",
        type="primary",
        icon=":material/timer:",
        shortcut="Ctrl+Enter",
        key=f"{key}-measure",
    )
    with row:
        if kind is NeuralRequest:
            data |= _more()
        limit = _time_limit(f"{key}-time-limit")
    try:
        if pressed:
            _start(kind, data)
    except UserError as error:
        refuse(error)
    try:
        found = _current(kind)
        if found is None:
            st.caption(
                ":material/touch_app: Press **Measure**: it takes about a minute, and fills plots "
                "and tables while it goes on."
            )
        elif _changed(found, data):
            st.caption(
                ":material/edit: The controls have changed. Press **Measure** to update the "
                "results."
            )
        if found is not None:
            until_end(_show, found, limit, every=0.5)
    except UserError as error:
        refuse(error)
    with st.expander("How the methods work", icon=":material/function:"):
        _explain(kind)


def _choose(kind: type[CostRequest]) -> dict[str, Any]:
    """Draw the controls; return plain data for `bandits.width_cost.read`."""
    names, defaults, key = fields(kind, basic=True), kind().model_dump(mode="json"), KEYS[kind]
    values: dict[str, Any] = {}
    with st.container(key=f"pairs-{key}"):
        for column, name in zip(st.columns(len(names)), names, strict=True):
            with column:
                values |= form(kind, [name], defaults, key)
    return values


def _time_limit(key: str) -> float:
    chosen = st.segmented_control(
        "Time limit",
        list(TIME_LIMITS),
        default=1.0,
        required=True,
        format_func=TIME_LIMITS.__getitem__,
        key=key,
        help=(
            "Longest acceptable time of one decision with its update. A method is marked as "
            "infeasible where it exceeds the limit; larger values allow larger models (usually "
            "100 ms to 1 s)."
        ),
    )
    return float(chosen)


def _more() -> dict[str, Any]:
    """Draw what is seldom changed, behind a click: sizes of two methods, and a button for a large
    catalogue.
    """
    with st.popover("More", icon=":material/tune:", type="tertiary"):
        values = form(
            NeuralRequest, ["members", "passes"], NeuralRequest().model_dump(mode="json"), "cost"
        )
        st.button(
            "Large catalogue",
            icon=":material/inventory_2:",
            on_click=_enter_catalogue,
            help=(
                "Enters K = 1,000,000 candidates and hidden layers with about p = 100,000 "
                "weights. The gradients of all candidates then need about 400 GB, so that times "
                "are extrapolated."
            ),
        )
    return values


def _enter_catalogue() -> None:
    st.session_state["cost-n_candidates"] = 1_000_000
    st.session_state["cost-hidden"] = "300, 320"


def _start(kind: type[CostRequest], data: dict[str, Any]) -> None:
    """Measure what the controls state.

    A repeated request is measured again, because times depend on the moment.

    Raises
    ------
    UserError
        The request is invalid.
    """
    request, key = read(data, kind).model_dump_json(), f"{KEYS[kind]}-request"
    if st.session_state.get(key) == request and not measurement(kind, request).active:
        measurement.forget(kind, request)
    st.session_state[key] = request


def _current(kind: type[CostRequest]) -> Measurement | None:
    """Return the measurement of the last request; None before the first.

    Raises
    ------
    UserError
        Too many measurements are waiting.
    """
    request = st.session_state.get(f"{KEYS[kind]}-request")
    return None if request is None else measurement(kind, request)


def _changed(found: Measurement, data: dict[str, Any]) -> bool:
    """Tell whether the controls state a request other than the one shown."""
    request = found.report.request
    try:
        return read(data, type(request)) != request
    except UserError:
        # reported when the user presses Measure
        return True


def _show(found: Measurement, max_seconds: float) -> None:
    report = found.report
    st.progress(min(found.fraction, 1.0), text=status(found))
    version = (
        id(found),
        str(report.request),
        len(report.timings),
        len(report.agreements),
        len(report.conditions),
        report.timed,
    )
    snapshot = _snapshot(report, max_seconds, machine_memory(), version)
    # its height is reserved: no plot moves when the conclusion comes
    first = st.container(key="conclusion")
    if snapshot.conclusion:
        first.markdown(f"**{snapshot.conclusion}**")
    panel.mount(snapshot.packed, key=KEYS[type(report.request)])
    if snapshot.conclusion:
        st.markdown("\n".join(f"- {sentence}" for sentence in snapshot.summary))
        _tables(report, snapshot.rows)


class CostSnapshot(NamedTuple):
    """State of a measurement as it is sent to all sessions with one time limit."""

    packed: bytes
    conclusion: str
    summary: list[str]
    rows: list[dict[str, str]]


@shared(number=64)
def _snapshot(
    _report: CostReport,
    max_seconds: float,
    memory: float,
    version: object,  # noqa: ARG001
) -> CostSnapshot:
    """Draw a report; ``version`` identifies it in the cache."""
    specs = cost_figures(_report, max_seconds=max_seconds, max_bytes=memory)
    revision = f"{_report.request}{max_seconds}"
    packed = panel.pack(specs, 300, _tiles(_report), _note(_report), revision=revision)
    summary = cost_text.summary(_report, max_seconds, memory)
    conclusion = cost_text.conclusion(_report, max_seconds, memory)
    return CostSnapshot(
        packed, conclusion, summary, _rows(_report, max_seconds, memory) if conclusion else []
    )


def status(found: Measurement) -> str:
    """Describe the progress of a measurement in one line."""
    if found.status == "waiting":
        return "Waiting for another measurement to end: two at once would slow each other down"
    if found.status == "failed":
        return f"Failed: {escape_markdown(found.error)}"
    if found.status == "finished":
        return f"Measured: {len(found.report.timings)} sizes"
    return f"Measuring: {found.activity}" if found.activity else "Warming up"


def _note(report: CostReport) -> str:
    sizes = [
        f"{axis.symbol} = {count(report.request.sizes.along(k))}"
        for k, axis in report.request.axes.items()
    ]
    at = ", ".join(sizes)
    return f"Time of one decision with its update at {at}. Press a method to hide it in all plots."


def _tiles(report: CostReport) -> list[dict[str, str]]:
    tiles = []
    for kind, method in report.methods.items():
        timing, about = report.at_request(kind), "" if report.is_measured(kind) else "≈ "
        time = "–" if timing is None else f"{about}{duration(timing.seconds)}"
        detail = (
            f"{'exact' if method.exact else 'approximate'} · "
            f"{size(method.memory(report.request.sizes))}"
        )
        tile = {
            "label": method.title,
            "color": method.colour,
            "dash": "solid",
            "rate": time,
            "spread": "",
        }
        tiles.append(tile | {"detail": detail})
    return tiles


def _rows(report: CostReport, max_seconds: float, memory: float) -> list[dict[str, str]]:
    rows = []
    for kind, method in report.methods.items():
        timing, about = report.at_request(kind), "" if report.is_measured(kind) else "≈ "
        times = (
            [f"{about}{duration(s)}" for s in (timing.decide, timing.update)]
            if timing
            else ["–", "–"]
        )
        limits = {
            f"Infeasible from {axis.symbol}": cost_text.infeasible_cell(
                report, kind, k, max_seconds, memory
            )
            for k, axis in report.request.axes.items()
        }
        needed = size(method.memory(report.request.sizes))
        rows.append(
            {
                "Method": method.title,
                "Decision": times[0],
                "Update": times[1],
                "Memory": needed,
                **limits,
            }
        )
    return rows


def _tables(report: CostReport, rows: list[dict[str, str]]) -> None:
    st.subheader("Times and limits", anchor=False)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    double = ", in double precision" if isinstance(report.request, LinearRequest) else ""
    st.caption(
        f"Processor time of one thread, median of several repetitions{double}; other load on the "
        "machine makes it slightly longer. ≈: extrapolated from measurements at smaller sizes."
    )
    if not report.agreements:
        return
    st.subheader("Agreement with exact widths", anchor=False)
    columns = ("Rank correlation", "Same choice", "Width ratio")
    compared = [
        {
            "Simulator": a.simulator,
            "Method": report.methods[a.kind].title,
            "Weights": count(a.p),
            "Observations": count(a.past),
            "Decisions": count(a.decisions),
            **dict(zip(columns, cost_text.agreement_cells(a), strict=True)),
        }
        for a in report.agreements
    ]
    st.dataframe(pd.DataFrame(compared), hide_index=True, height="content")
    st.caption(
        "NeuralUCB runs with exact widths. After the given number of observations, the other "
        "methods compute their widths at every decision, for the same candidates, network and "
        "observations. Rank correlation: Spearman's, over the candidates. Same choice: share of "
        "decisions with the same arm by mean plus bonus. Width ratio: geometric mean, relative to "
        "the exact width. These are results of one run per simulator; others will differ."
    )


def _explain(kind: type[CostRequest]) -> None:
    """Draw what a confidence width is, and the description and the complexity of each method."""
    about, symbols = EXPLANATIONS[kind]
    st.markdown(about)
    for method in kind.methods.values():
        with st.container(border=True):
            dot = f'<span style="color:{method.colour}">●</span>'
            st.html(f'<div style="font-weight:600">{dot} {method.title}</div>')
            st.markdown(method.description)
            st.caption(f"The time of one decision with its update grows as ${method.growth}$.")
    st.caption(symbols)
