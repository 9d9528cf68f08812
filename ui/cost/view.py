"""The parts of the page Cost of confidence: a question, its measurement, pictures, tables, sentences."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.base.formatting import count, duration, size
from bandits.profiling import WAYS, CostReport, ProfileRequest, read
from bandits.profiling import text as cost_words
from bandits.profiling.background import Measurement, machine_memory
from bandits.profiling.figures import board as plots
from bandits.profiling.figures import way_color
from ui.live_panel import panel
from ui.params_form import fields, form
from ui.run_view import board

PATIENCE = {0.01: "10 ms", 0.1: "100 ms", 1.0: "1 s", 10.0: "10 s"}
_ASKED = "cost-asked"


@st.cache_resource(max_entries=32, show_spinner=False)
def _measurement(text: str) -> Measurement:
    """One per question and server: a class that asks alike shares it."""
    return Measurement(ProfileRequest.model_validate_json(text))


def choose() -> dict[str, Any]:
    """Draw the controls; plain data that `bandits.profiling.read` will judge."""
    names, usual = fields(ProfileRequest, basic=True), ProfileRequest().model_dump(mode="json")
    values: dict[str, Any] = {}
    for column, name in zip(st.columns(len(names)), names, strict=True):
        with column:
            values |= form(ProfileRequest, [name], usual, "cost")
    return values


def patience() -> float:
    """Seconds that a decision may take."""
    chosen = st.segmented_control(
        "A decision may take", list(PATIENCE), default=1.0, required=True, format_func=PATIENCE.__getitem__,
        key="cost-patience", help="Where a line passes this, the way is called infeasible.",
    )  # fmt: skip
    return float(chosen)


def ask(data: dict[str, Any]) -> None:
    """Look at the measurement of what the controls say; asked again it is measured again, for times are of a moment.

    Raises
    ------
    UserError
        This cannot be measured.
    """
    question = read(data).model_dump_json()
    if st.session_state.get(_ASKED) == question and not _measurement(question).active:
        _measurement.clear(question)
    st.session_state[_ASKED] = question


def current() -> Measurement:
    """The measurement that was asked for, or the usual one.

    Raises
    ------
    UserError
        Too many wait.
    """
    return _measurement(st.session_state.setdefault(_ASKED, ProfileRequest().model_dump_json()))


def changed(found: Measurement, data: dict[str, Any]) -> bool:
    """Whether the controls ask for something else than what is shown."""
    try:
        return read(data) != found.costs.question
    except UserError:  # said when it is asked for
        return True


def show(found: Measurement, limit: float) -> None:
    """Draw a measurement, again every half second while it goes on; the page is redrawn once when it ends."""
    st.fragment(_show, run_every=0.5 if found.active else None)(found, limit, found.active)


def _show(found: Measurement, limit: float, was_active: bool) -> None:
    costs, memory = found.costs, machine_memory()
    st.progress(min(found.share, 1.0), text=status(found))
    frame = _frame(costs, limit, memory, hash(costs))
    panel.mount(frame.packed, key="cost")
    if frame.sentences:
        st.markdown("\n".join(f"- {sentence}" for sentence in frame.sentences))
        _tables(costs, frame.rows)
    if was_active and not found.active:
        st.rerun()


class Frame(NamedTuple):
    """One moment of a measurement, ready to be sent; the same for everybody who looks at it with equal patience."""

    packed: bytes
    sentences: list[str]
    rows: list[dict[str, str]]


@st.cache_resource(max_entries=64, show_spinner=False)
def _frame(_costs: CostReport, limit: float, memory: float, moment: int) -> Frame:  # noqa: ARG001 - the key
    specs = plots(_costs, patience=limit, memory=memory)
    for spec in specs:
        spec["layout"]["uirevision"] = f"{_costs.question}{limit}"
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    packed = panel.pack(specs, alt, 300, _tiles(_costs), _note(_costs))
    sentences = cost_words.verdict(_costs, limit, memory)
    return Frame(packed, sentences, _rows(_costs, limit, memory) if sentences else [])


def status(found: Measurement) -> str:
    """How far a measurement is, in one line."""
    if found.status == "waiting":
        return "Waiting for another measurement to end: two at once would slow each other down"
    if found.status == "failed":
        return f"Failed: {board.plain(found.error)}"
    if found.status == "finished":
        return f"Measured: {len(found.costs.points)} points"
    return f"Measuring: {found.doing}" if found.doing else "Warming up"


def _note(costs: CostReport) -> str:
    q = costs.question
    sizes = f"p = {count(q.sizes.p)}, K = {count(q.n_candidates)}, t = {count(q.past)}"
    return f"One decision with its update at {sizes}. Press a way to hide it in all plots."


def _tiles(costs: CostReport) -> list[dict[str, str]]:
    tiles = []
    for kind, way in WAYS.items():
        point, measured = costs.here(kind), costs.measured(kind)
        rate = "–" if point is None else f"{'' if measured else '≈ '}{duration(point.seconds)}"
        held = size(way.held(costs.question.sizes))
        detail = f"{'exact' if way.exact else 'not exact'} · {held}"
        tiles.append({"label": way.title, "color": way_color(kind), "dash": "solid", "rate": rate, "spread": "",
                      "detail": detail})  # fmt: skip
    return tiles


def _rows(costs: CostReport, limit: float, memory: float) -> list[dict[str, str]]:
    rows = []
    for kind, way in WAYS.items():
        point = costs.here(kind)
        about = "" if costs.measured(kind) else "≈ "
        times = [f"{about}{duration(s)}" for s in (point.decide, point.update)] if point else ["–", "–"]
        ends = {f"Infeasible from {a}": cost_words.limits(costs, kind, a, limit, memory) for a in ("p", "t", "K")}
        held = size(way.held(costs.question.sizes))
        rows.append({"Way": way.title, "Decision": times[0], "Update": times[1], "Memory": held, **ends})
    return rows


def _tables(costs: CostReport, rows: list[dict[str, str]]) -> None:
    st.subheader("In numbers", anchor=False)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    st.caption(
        "Processor time of one thread, median of a few repetitions; where others compute beside it, it comes out "
        "somewhat longer. ≈: measured on smaller sizes and carried on by theory."
    )
    if not costs.agreements:
        return
    st.subheader("Do they agree with the exact width?", anchor=False)
    columns = ("Rank correlation", "Same choice", "Width, times the exact")
    compared = [
        {"World": a.world, "Way": WAYS[a.kind].title, "Weights": count(a.p),
         "Observations": count(a.past), "Decisions": count(a.decisions),
         **dict(zip(columns, cost_words.agreed(a), strict=True))}
        for a in costs.agreements
    ]  # fmt: skip
    st.dataframe(pd.DataFrame(compared), hide_index=True, height="content")
    st.caption(
        "NeuralUCB with exact widths races; after some observations, at every decision the other ways say theirs for "
        "the same candidates, the same network and the same past. Rank correlation: Spearman's, over the "
        "candidates. Same choice: by mean plus width. This is one agent in one world; elsewhere it will be otherwise."
    )


def explain() -> None:
    """Each way in a sentence and a formula."""
    for kind, way in WAYS.items():
        with st.container(border=True):
            st.html(f'<div style="font-weight:600"><span style="color:{way_color(kind)}">●</span> {way.title}</div>')
            st.markdown(way.about)
            st.caption(f"Time of a decision with its update grows as ${way.growth}$.")
    st.caption(
        "$K$: candidates. $p$: weights of the network. $t$: past observations. $f$: numbers in the factors of one "
        "gradient. $d$: weights of the last layer. Training the network costs the same under all ways and is not "
        "counted."
    )
