"""Draw the sidebar of the Arena: simulator, length and agents."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.experiment import Experiment
from bandits.results.style import palette
from bandits.simulators import REGISTRY as SIMULATORS
from ui.params_form import fields, form

from . import draft as drafts
from .draft import Draft


def controls(draft: Draft, choose_agent: Callable[[Draft], int] | None = None) -> None:
    """Draw the controls and write their values into the draft.

    Parameters
    ----------
    draft : Draft
    choose_agent : callable, optional
        Draws the choice of one agent and returns its id; only this agent is shown.
    """
    undo_row = st.container(horizontal=True, gap="small")  # filled last: what is changed below can be undone
    _simulator(draft)
    _length(draft)
    if choose_agent is None:
        st.subheader("Agents", anchor=False)
        only = None
    else:
        only = choose_agent(draft)
    styles = palette([agent["kind"] for agent in draft.agents.values()])
    for (number, agent), style in zip(list(draft.agents.items()), styles, strict=True):
        if only in (None, number):
            with st.container(border=True):
                _agent(draft, number, agent, style.color)
    if only is None:
        _add_agent(draft)
    drafts.remember()
    _undo_buttons(undo_row)


def _add_agent(draft: Draft) -> None:
    with st.popover("Add agent", icon=":material/add:", width="stretch", disabled=len(draft.agents) >= 12):
        for kind in draft.available_kinds():
            st.button(
                AGENTS[kind].title, key=f"add-{kind}", help=_summary(kind), on_click=draft.add, args=(kind,),
                width="stretch",
            )  # fmt: skip


def _summary(kind: str) -> str:
    """Return the first line of an agent's docstring without the marks of references."""
    return re.sub(r",? \[\d+\]_", "", (AGENTS[kind].__doc__ or "").split("\n")[0])


def _undo_buttons(row: DeltaGenerator) -> None:
    history = drafts.history()
    row.button("Undo", icon=":material/undo:", key="undo", type="tertiary", on_click=drafts.move,
               args=(-1,), disabled=not history.can_move(-1))  # fmt: skip
    row.button("Redo", icon=":material/redo:", key="redo", type="tertiary", on_click=drafts.move,
               args=(1,), disabled=not history.can_move(1))  # fmt: skip
    row.button("Reset", icon=":material/restart_alt:", key="reset", type="tertiary", on_click=drafts.reset,
               help="Restore the preset, link, file or run that was loaded last.")  # fmt: skip


def _simulator(draft: Draft) -> None:
    kinds = list(SIMULATORS)
    key = f"{draft.version}-simulator"
    kind = st.selectbox(
        "Simulator", kinds, index=kinds.index(draft.simulator["kind"]), key=key,
        format_func=lambda k: SIMULATORS[k].title,
    )  # fmt: skip
    if kind != draft.simulator["kind"]:
        draft.switch_simulator(kind)
    model = SIMULATORS[kind].Params
    values = form(model, fields(model, basic=True), draft.simulator, f"{key}-{kind}")
    if more := fields(model, basic=False):
        with st.expander("More parameters"):
            values |= form(model, more, draft.simulator, f"{key}-{kind}")
    draft.simulator = {"kind": kind, **values}
    with suppress(ValueError):  # explained in full when it is run
        if source := SIMULATORS[kind].attribution(model.model_validate(draft.simulator)):
            st.caption(f"Data: {source}")


def _length(draft: Draft) -> None:
    field = Experiment.model_fields
    left, right = st.columns(2)
    draft.steps = left.number_input(
        "Steps T", 1, 10_000_000, draft.steps, 1000, key=f"{draft.version}-steps", help=field["steps"].description
    )
    draft.replications = right.number_input(
        "Replications R", 1, 4096, draft.replications, key=f"{draft.version}-replications",
        help=field["replications"].description,
    )  # fmt: skip
    draft.seed = st.number_input(
        "Seed", 0, 2**53 - 1, draft.seed, key=f"{draft.version}-seed", help=field["seed"].description
    )


def _agent(draft: Draft, number: int, agent: dict[str, Any], color: str) -> None:
    cls = AGENTS[agent["kind"]]
    key = f"{draft.version}-agent{number}"
    heading = st.empty()  # filled last: it shows the name that is typed below
    spec = draft.spec()
    slates = spec is None or spec.slate > 1
    values = form(cls.Params, fields(cls.Params, basic=True), agent, key)
    with st.popover("More", icon=":material/tune:", type="tertiary", width="stretch"):
        st.caption(_summary(agent["kind"]))
        st.latex(cls.formula)
        label = st.text_input(
            "Name", agent.get("label") or "", key=f"{key}-label", max_chars=40, placeholder=cls.title,
            help=cls.Params.model_fields["label"].description,
        )  # fmt: skip
        values |= form(cls.Params, fields(cls.Params, basic=False, slates=slates), agent, key)
        st.button("Duplicate", key=f"{key}-copy", icon=":material/content_copy:", on_click=draft.duplicate,
                  args=(number,), disabled=len(draft.agents) >= 12, width="stretch")  # fmt: skip
        st.button("Remove", key=f"{key}-remove", icon=":material/delete:", on_click=draft.remove, args=(number,),
                  disabled=len(draft.agents) == 1, width="stretch")  # fmt: skip
    title = escape(label.strip() or cls.title)
    heading.html(f'<div style="font-weight:600"><span style="color:{color}">●</span> {title}</div>')
    draft.agents[number] = {"kind": agent["kind"], "label": label.strip() or None, **values}
