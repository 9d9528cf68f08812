"""Explain why an experiment cannot be run, in the names that the controls show."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import streamlit as st

from bandits.agents import REGISTRY as AGENTS
from bandits.simulators import REGISTRY as SIMULATORS
from ui.text import escape_markdown, refuse

from .draft import Draft

_RUN = "run-requested"


class Refusal(NamedTuple):
    """Why something cannot be done, and the draft that was refused, if it was one."""

    message: str
    data: dict[str, Any] | None = None


def show(refusal: Refusal | str, draft: Draft) -> None:
    """Show a refusal; an agent that does not fit the simulator can be removed with one button."""
    message, data = refusal if isinstance(refusal, Refusal) else (refusal, None)  # a link's fields keep their paths
    refuse(message if data is None else name_fields(message, data))
    place = re.match(r"agents\.(\d+): \S.* requires ", message)
    if place and data == draft.data() and len(draft.agents) > 1:
        number = list(draft.agents)[int(place[1])]
        st.button(f"Remove {escape_markdown(_label(data, int(place[1])))} and run", icon=":material/delete:",
                  key="remove-and-run", on_click=_remove_and_run, args=(draft, number))  # fmt: skip


def name_fields(message: str, data: dict[str, Any]) -> str:
    """Replace the path at the beginning of a message by the label of the agent and the title of the field.

    "agents.3.alpha is 11; ..." becomes "LinUCB, Exploration bonus is 11; ...".
    """
    path = re.match(r"(agents\.(?P<place>\d+)|simulator)(?:\.(?P<field>\w+))?(?P<rest>[\w.]*)(?P<colon>: )?", message)
    if path is None:
        return message.removeprefix("agents: ")
    place, tail = path["place"], message[path.end() :]
    if place is not None and int(place) >= len(data["agents"]):
        return message
    part = data["agents"][int(place)] if place is not None else data["simulator"]
    cls = (AGENTS if place is not None else SIMULATORS)[part["kind"]]
    label = _label(data, int(place)) if place is not None and path["field"] != "label" else cls.title
    if path["field"] is None:
        return tail if tail.startswith(label) else f"{label}: {tail}"
    field = cls.Params.model_fields.get(path["field"])
    return f"{label}, {field.title if field else path['field']}{path['rest']}{path['colon'] or ''}{tail}"


def run_requested() -> bool:
    """Return whether the user has asked to run the draft without the agent that did not fit; once per request."""
    return bool(st.session_state.pop(_RUN, False))


def _label(data: dict[str, Any], place: int) -> str:
    agent = data["agents"][place]
    return str(agent.get("label") or AGENTS[agent["kind"]].title)


def _remove_and_run(draft: Draft, number: int) -> None:
    draft.remove(number)
    st.session_state[_RUN] = True
