"""Draw the sidebar of the Arena: simulator, length and agents.

In a presentation, one slider per agent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import AgentParams
from bandits.base.params import declaration
from bandits.experiments.experiment import Experiment
from bandits.experiments.labels import following_label, labels_of, main_parameter, states
from bandits.results.figures.style import palette
from bandits.simulators import REGISTRY as SIMULATORS
from bandits_app.session import draft as drafts
from bandits_app.session.draft import Draft
from bandits_app.widgets.folded import is_open
from bandits_app.widgets.params_form import fields, form, shown_value
from bandits_app.widgets.text import escape_markdown, plain_symbol

from . import catalogue


def controls(
    draft: Draft,
    choose_agent: Callable[[Draft], int] | None = None,
    add_agent: Callable[[str], None] | None = None,
) -> None:
    """Draw the controls and write their values into the draft.

    Parameters
    ----------
    draft : Draft
    choose_agent : callable, optional
        Draws the choice of one agent and returns its id; only this agent is shown.
    add_agent : callable, optional
        Adds an agent of a kind, instead of `Draft.add`.
    """
    # filled last: what is changed below can be undone
    undo_row = st.container(horizontal=True, gap="small")
    # drawn first, because agents follow what the simulator offers; it stands below them
    agents, simulator = st.container(gap="xsmall"), st.container()
    with simulator:
        _simulator(draft)
        _length(draft)
    if choose_agent is None:
        with agents:
            st.subheader("Agents", anchor=False)
            _agents(draft)
            catalogue.add_agent(draft, add_agent)
    else:
        number = choose_agent(draft)
        with st.container(border=True):
            _agent(draft, number, draft.agents[number])
        catalogue.add_agent(draft, add_agent)
    drafts.remember()
    _undo_buttons(undo_row)


def main_sliders(draft: Draft) -> None:
    """Draw the main parameter of each agent in a row, for presentations, and write their values
    into the draft.
    """
    adjustable = [
        (number, agent) for number, agent in draft.agents.items() if main_parameter(agent["kind"])
    ]
    labels = dict(zip(draft.agents, _labels_in(draft), strict=True))
    if not adjustable:
        return
    with st.container(key="main-sliders", horizontal=True, gap="medium"):
        for number, agent in adjustable:
            name = main_parameter(agent["kind"])
            assert name is not None
            with st.container(gap=None):
                st.caption(labels[number])
                params = AGENTS[agent["kind"]].Params
                draft.change(
                    number,
                    {**agent, **form(params, [name], agent, f"{draft.version}-agent{number}")},
                )
    drafts.remember()


def _labels_in(draft: Draft) -> list[str]:
    experiment = draft.experiment()
    if experiment is not None:
        return list(experiment.labels)
    return [agent.get("label") or AGENTS[agent["kind"]].title for agent in draft.agents.values()]


def _undo_buttons(row: DeltaGenerator) -> None:
    history = drafts.history()
    row.button(
        "Undo",
        icon=":material/undo:",
        key="undo",
        type="tertiary",
        on_click=drafts.move,
        args=(-1,),
        disabled=not history.can_move(-1),
    )
    row.button(
        "Redo",
        icon=":material/redo:",
        key="redo",
        type="tertiary",
        on_click=drafts.move,
        args=(1,),
        disabled=not history.can_move(1),
    )
    row.button(
        "Reset",
        icon=":material/restart_alt:",
        key="reset",
        type="tertiary",
        on_click=drafts.reset,
        help="Restore the preset, link, file or run that was loaded last.",
    )


def _simulator(draft: Draft) -> None:
    catalogue.choose_simulator(draft)
    if draft.notice:
        st.caption(f":material/info: {escape_markdown(draft.notice)}")
    kind = draft.simulator["kind"]
    model, key = SIMULATORS[kind].Params, f"{draft.version}-simulator-{kind}"
    first, others = st.container(), {}
    if more := fields(model, basic=False):
        others = {name: draft.simulator[name] for name in more if name in draft.simulator}
        # stays open in every draft
        place = f"simulator-{kind}-more"
        card = st.expander("More parameters", key=place, on_change="rerun")
        if is_open(card, place):
            with card:
                others = form(
                    model,
                    more,
                    draft.simulator,
                    key,
                    lambda change: dict(change.suggested(draft.steps)),
                    bounded=False,
                )
    # drawn last: what an empty field means may depend on the others
    with first:
        values = form(
            model, fields(model, basic=True), {**draft.simulator, **others}, key, bounded=False
        )
    draft.simulator = {"kind": kind, **values, **others}
    # explained in full when it is run
    with suppress(ValueError):
        if source := SIMULATORS[kind].attribution(model.model_validate(draft.simulator)):
            st.caption(f"Data: {source}")


def _length(draft: Draft) -> None:
    """Draw the numbers of the run.

    A browser keeps to itself what is out of bounds, so that the page checks them.
    """
    field = Experiment.model_fields
    left, right = st.columns(2)
    draft.steps = left.number_input(
        "Steps T",
        value=draft.steps,
        step=1000,
        key=f"{draft.version}-steps",
        help=field["steps"].description,
    )
    draft.replications = right.number_input(
        "Replications R",
        value=draft.replications,
        key=f"{draft.version}-replications",
        help=field["replications"].description,
    )
    draft.seed = st.number_input(
        "Seed", value=draft.seed, key=f"{draft.version}-seed", help=field["seed"].description
    )


def _agents(draft: Draft) -> None:
    """Draw one line per agent; lines that are open show their settings."""
    agents = {number: _entered(draft, number, agent) for number, agent in draft.agents.items()}
    labels = labels_of(list(agents.values()))
    styles = palette([agent["kind"] for agent in agents.values()])
    dots = "".join(
        f".st-key-{_key(draft, number)}-card "
        "summary::before{content:'';flex:none;width:.75em;height:.75em;"
        f"border-radius:50%;margin-right:.5em;background:{style.color}}}"
        for number, style in zip(agents, styles, strict=True)
    )
    one_line = "[class*=-card] summary p{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}"
    st.html(f"<style>{dots}{one_line}</style>")
    for (number, agent), label in zip(agents.items(), labels, strict=True):
        st.session_state[f"{_key(draft, number)}-card"] = number in draft.open_cards
        card = st.expander(
            _line(agent, label),
            key=f"{_key(draft, number)}-card",
            on_change=_open_card,
            args=(draft, number),
        )
        if is_open(card, f"{_key(draft, number)}-card"):
            with card:
                _agent(draft, number, draft.agents[number])


def _key(draft: Draft, number: int) -> str:
    return f"{draft.version}-agent{number}"


def _entered(draft: Draft, number: int, agent: dict[str, Any]) -> dict[str, Any]:
    """Return an agent with the values of its widgets, which are drawn after the line that shows
    them.
    """
    start, label = f"{_key(draft, number)}-", _label_key(draft, number, agent)
    shown = fields(AGENTS[agent["kind"]].Params, basic=True)
    entered = {
        **agent,
        **{
            name: st.session_state[start + name]
            for name in shown
            if start + name in st.session_state
        },
    }
    return {
        **entered,
        "label": following_label(st.session_state.get(label, agent.get("label")), agent, entered),
    }


def _label_key(draft: Draft, number: int, agent: dict[str, Any]) -> str:
    """Return the key of the box with the name.

    A name that has followed a parameter needs another box.
    """
    return "-".join([_key(draft, number), "label", *filter(None, [agent.get("label")])])


def _line(agent: dict[str, Any], label: str) -> str:
    """Return the name of an agent and its main parameter, unless the name states it: LinUCB, alpha
    1.5.
    """
    model = AGENTS[agent["kind"]].Params
    line = f"**{escape_markdown(label)}**"
    for name in fields(model, basic=True)[:1]:
        field = model.model_fields[name]
        value, symbol = agent.get(name, field.default), declaration(field)["symbol"]
        if states(label, name, value):
            continue
        title = plain_symbol(str(symbol)) if symbol else str(field.title).split()[0].lower()
        line += f" :gray[{escape_markdown(title)} {shown_value(value)}]"
    return line


def _open_card(draft: Draft, number: int) -> None:
    opened = st.session_state[f"{_key(draft, number)}-card"]
    draft.open_cards = draft.open_cards | {number} if opened else draft.open_cards - {number}


def _main_form(model: type[AgentParams], agent: dict[str, Any], key: str) -> dict[str, Any]:
    """Draw the parameters that are shown at first; two sliders stand beside each other."""
    names = fields(model, basic=True)
    if len(names) != 2 or not all(
        declaration(model.model_fields[name])["symbol"] for name in names
    ):
        return form(model, names, agent, key, bounded=False)
    values: dict[str, Any] = {}
    with st.container(key=f"{key}-pair"):
        columns = st.columns([3, 2], gap="small")
        for column, name in zip(columns, names, strict=True):
            with column:
                values |= form(model, [name], agent, key, bounded=False)
    return values


def _agent(draft: Draft, number: int, agent: dict[str, Any]) -> None:
    cls, key = AGENTS[agent["kind"]], _key(draft, number)
    values = {**agent, **_main_form(cls.Params, agent, key)}
    more = st.popover(
        "More",
        icon=":material/tune:",
        type="tertiary",
        width="stretch",
        key=f"{key}-more",
        on_change="rerun",
    )
    if is_open(more, f"{key}-more"):
        with more:
            values |= _more(draft, number, agent)
    draft.change(number, values)


def _more(draft: Draft, number: int, agent: dict[str, Any]) -> dict[str, Any]:
    """Draw the other parameters of an agent and what can be done with it; return their values."""
    cls, key = AGENTS[agent["kind"]], _key(draft, number)
    spec = draft.spec()
    slates = spec is None or spec.slate > 1
    st.caption(catalogue.summary(agent["kind"]))
    st.latex(cls.formula)
    label = st.text_input(
        "Name",
        agent.get("label") or "",
        key=_label_key(draft, number, agent),
        max_chars=40,
        placeholder=cls.title,
        help=cls.Params.model_fields["label"].description,
    )
    values = form(
        cls.Params,
        fields(cls.Params, basic=False, slates=slates),
        agent,
        key,
        lambda guard: dict(guard.suggested(draft.steps)),
        bounded=False,
    )
    st.button(
        "Duplicate",
        key=f"{key}-copy",
        icon=":material/content_copy:",
        on_click=draft.duplicate,
        args=(number,),
        disabled=len(draft.agents) >= 12,
        width="stretch",
    )
    st.button(
        "Remove",
        key=f"{key}-remove",
        icon=":material/delete:",
        on_click=draft.remove,
        args=(number,),
        disabled=len(draft.agents) == 1,
        width="stretch",
    )
    return {**values, "label": label.strip() or None}
