"""The sidebar of the Arena: world, length, agents."""

from __future__ import annotations

import re
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


def controls(draft: Draft) -> None:
    """Draw the controls and keep what they say in the draft."""
    back = st.container(horizontal=True, gap="small")  # filled last: it knows what was changed below
    _world(draft)
    _length(draft)
    st.subheader("Agents", anchor=False)
    looks = palette([agent["kind"] for agent in draft.agents.values()])
    for (number, agent), look in zip(list(draft.agents.items()), looks, strict=True):
        with st.container(border=True):
            _agent(draft, number, agent, look.color)
    with st.popover("Add agent", icon=":material/add:", width="stretch", disabled=len(draft.agents) >= 12):
        for kind in draft.fitting():
            about = (AGENTS[kind].__doc__ or "").split("\n")[0].replace(" [1]_", "")
            st.button(
                AGENTS[kind].title, key=f"add-{kind}", help=about, on_click=draft.add, args=(kind,), width="stretch"
            )
    drafts.remember()
    _back(back)


def _back(row: DeltaGenerator) -> None:
    trail = drafts.trail()
    row.button("Undo", icon=":material/undo:", key="undo", type="tertiary", on_click=drafts.move,
               args=(-1,), disabled=not trail.can_move(-1))  # fmt: skip
    row.button("Redo", icon=":material/redo:", key="redo", type="tertiary", on_click=drafts.move,
               args=(1,), disabled=not trail.can_move(1))  # fmt: skip
    row.button("Reset", icon=":material/restart_alt:", key="reset", type="tertiary", on_click=drafts.reset,
               help="Back to the preset, link, file or run that was loaded last.")  # fmt: skip


def _world(draft: Draft) -> None:
    kinds = list(SIMULATORS)
    key = f"{draft.version}-world"
    kind = st.selectbox(
        "World", kinds, index=kinds.index(draft.simulator["kind"]), key=key, format_func=lambda k: SIMULATORS[k].title
    )
    if kind != draft.simulator["kind"]:
        draft.switch(kind)
    model = SIMULATORS[kind].Params
    values = form(model, fields(model, basic=True), draft.simulator, f"{key}-{kind}")
    if more := fields(model, basic=False):
        with st.expander("More about this world"):
            values |= form(model, more, draft.simulator, f"{key}-{kind}")
    draft.simulator = {"kind": kind, **values}
    with suppress(ValueError):  # said in full when it is run
        if credit := SIMULATORS[kind].attribution(model.model_validate(draft.simulator)):
            st.caption(f"Data: {credit}")


def _length(draft: Draft) -> None:
    described = Experiment.model_fields
    left, right = st.columns(2)
    draft.steps = left.number_input(
        "Steps $T$", 1, 10_000_000, draft.steps, 1000, key=f"{draft.version}-steps", help=described["steps"].description
    )
    draft.replications = right.number_input(
        "Runs $R$", 1, 4096, draft.replications, key=f"{draft.version}-runs",
        help=described["replications"].description,
    )  # fmt: skip
    draft.seed = st.number_input(
        "Seed", 0, 2**53 - 1, draft.seed, key=f"{draft.version}-seed", help=described["seed"].description
    )


def _agent(draft: Draft, number: int, agent: dict[str, Any], color: str) -> None:
    cls = AGENTS[agent["kind"]]
    key = f"{draft.version}-agent{number}"
    heading = st.empty()  # filled last: it says the name that is typed below
    world = draft.spec()
    slates = world is None or world.slate > 1
    values = form(cls.Params, fields(cls.Params, basic=True), agent, key)
    with st.popover("More", icon=":material/tune:", type="tertiary", width="stretch"):
        st.caption(re.sub(r",? \[\d+\]_", "", (cls.__doc__ or "").split("\n")[0]))
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
