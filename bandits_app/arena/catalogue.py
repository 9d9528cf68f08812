"""Menus of simulators and agents: grouped by family, with one line of description each."""

from __future__ import annotations

import re
from collections.abc import Callable

import streamlit as st

from bandits.agents import REGISTRY as AGENTS
from bandits.base.formatting import description
from bandits.experiments.kinds import LONGEST, agent_kinds
from bandits.simulators import REGISTRY as SIMULATORS
from bandits_app.session import draft as drafts
from bandits_app.session.draft import Draft
from bandits_app.widgets import menu
from bandits_app.widgets.text import escape_markdown


def choose_simulator(draft: Draft) -> None:
    """Draw the menu of simulators."""
    current = draft.simulator["kind"]
    families: dict[str, list[str]] = {}
    for kind, cls in SIMULATORS.items():
        families.setdefault(cls.family, []).append(kind)

    def draw() -> None:
        texts = {kind: (cls.title, description(cls)) for kind, cls in SIMULATORS.items()}
        menu.entries(families, texts, "simulator", drafts.choose_simulator, current=current)

    with st.container(gap="xxsmall"):
        st.markdown("Simulator")
        # another key for every draft: a menu in which something was chosen is closed
        menu.popover(
            SIMULATORS[current].title, draw, width="stretch", key=f"{draft.version}-simulators"
        )


def add_agent(draft: Draft, add: Callable[[str], None] | None = None) -> None:
    """Draw the menu of agents; those that cannot be run in this simulator are named below it.

    ``add``: called with the kind that is chosen, instead of `Draft.add`.
    """
    key = f"{draft.version}-add-{len(draft.agents)}-{sorted(draft.open_cards)}"

    def draw() -> None:
        available, families = draft.available_kinds(), dict[str, list[str]]()
        query = st.text_input(
            "Search",
            key=f"{key}-search",
            icon=":material/search:",
            placeholder="no features, trees, as in VW …",
            label_visibility="collapsed",
            max_chars=LONGEST,
        )
        found = agent_kinds().search(query)
        for row in found:
            if row.kind in available:
                families.setdefault(row.family, []).append(row.kind)
        if not found:
            st.caption("No agent has these words.")
        menu.entries(
            families,
            {kind: (AGENTS[kind].title, summary(kind)) for kind in available},
            "add",
            add or draft.add,
        )
        others = [row.title for row in found if row.kind not in available]
        if others:
            simulator = SIMULATORS[draft.simulator["kind"]].title
            st.caption(escape_markdown(f"Not available in {simulator}: {', '.join(others)}."))

    menu.popover(
        "Add agent",
        draw,
        icon=":material/add:",
        width="stretch",
        disabled=len(draft.agents) >= 12,
        key=key,
    )


def summary(kind: str) -> str:
    """Return the first sentence of an agent's docstring without the marks of references."""
    return re.sub(r",? \[\d+\]_", "", description(AGENTS[kind]))
