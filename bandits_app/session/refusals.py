"""Explain why an experiment cannot be run, in the names that the controls show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import streamlit as st

from bandits import Experiment, UserError, read
from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.repair import repair
from bandits.simulators import REGISTRY as SIMULATORS
from bandits_app.widgets.text import escape_markdown, refuse

from . import draft as drafts
from .draft import Draft

_PATH = re.compile(
    r"(agents\.(?P<place>\d+)|simulator)(?:\.(?P<field>\w+))?(?P<rest>[\w.]*)(?: \((?P<label>[^()]*)\))?(?P<colon>: )?"  # noqa: E501
)

EDITED = "This link was edited or comes from another version: its checksum does not match."


class Refusal(NamedTuple):
    """Why something cannot be done, and the plain data of the experiment that was refused, if it
    was one.
    """

    message: str
    data: dict[str, Any] | None = None


def show(refusal: Refusal) -> None:
    """Show a refusal; one button repairs an impossible combination."""
    refuse(name_fields(refusal.message, refusal.data))
    repaired = None if refusal.data is None else repair(refusal.data)
    if repaired is None:
        return
    label, only_removed = "Repair and run", not repaired.changed and not repaired.added
    if only_removed and len(repaired.left_out) == 1:
        label = f"Remove {escape_markdown(repaired.left_out[0][0])} and run"
    else:
        st.caption(f":material/build: **The repair.** {escape_markdown(repaired.describe())}")
    st.button(
        label,
        icon=":material/build:",
        key="repair-and-run",
        on_click=_load_and_run,
        args=(repaired.experiment,),
    )


def of_draft(draft: Draft) -> list[Refusal]:
    """Return why the controls' experiment cannot be run; empty if it can."""
    try:
        read(draft.data())
    except UserError as error:
        return [Refusal(str(error), draft.data())]
    return []


def refuse_link(refusal: Refusal) -> None:
    """Remember that the link in the address cannot be opened, until the user opens
    something else.
    """
    st.session_state[drafts.REFUSED_LINK] = refusal


def mark_edited_link(job: str) -> None:
    """Remember that the run with this identifier comes from a link whose checksum does not
    match.
    """
    st.session_state[drafts.EDITED_LINK] = job


def show_edited_link(job: str) -> None:
    """Say so as long as this run is shown: a message that goes away by itself is missed, or never
    drawn.
    """
    if st.session_state.get(drafts.EDITED_LINK) == job:
        st.caption(f":material/edit: {EDITED}")


def show_link(instead: str) -> bool:
    """Show why the link cannot be opened, and return whether there is such a link.

    Parameters
    ----------
    instead : str
        Title of the experiment that can be opened instead.
    """
    refusal: Refusal | None = st.session_state.get(drafts.REFUSED_LINK)
    if refusal is None:
        return False
    st.markdown("**This link cannot be opened**")
    show(refusal)
    st.button(f"Show {escape_markdown(instead)}", key="forget-link", on_click=drafts.forget_link)
    return True


def name_fields(message: str, data: dict[str, Any] | None = None) -> str:
    """Replace the path at the beginning of a message by the label of the agent and the title of the
    field.

    "agents.3.alpha (LinUCB) is 11; ..." becomes "LinUCB, Exploration bonus is 11; ...".
    """
    path = _PATH.match(message)
    if path is None:
        return message.removeprefix("agents: ")
    place, tail = path["place"], message[path.end() :].lstrip()
    try:
        part: Any = (
            {}
            if data is None
            else data["simulator"]
            if place is None
            else data["agents"][int(place)]
        )
        kinds: Mapping[str, Any] = SIMULATORS if place is None else AGENTS
        cls = kinds.get(part.get("kind"))
    except (KeyError, IndexError, TypeError, AttributeError):
        # not the shape of an experiment
        cls = None
    label = path["label"] or (
        f"Agent {int(place) + 1}" if place else cls.title if cls else "Simulator"
    )
    if path["field"] is None:
        return f"{label}{path['colon'] or ' '}{tail}"
    field = cls.Params.model_fields.get(path["field"]) if cls else None
    title = field.title if field and field.title else path["field"]
    # A control shows null as an empty field.
    tail = re.sub(r" or null$", " or empty", tail)
    return f"{label}, {title}{path['rest']}{path['colon'] or ' '}{tail}"


def _load_and_run(experiment: Experiment) -> None:
    drafts.forget_link()
    drafts.replace(experiment)
    drafts.request_run()
