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
    chosen = SIMULATORS[draft.simulator["kind"]]
    with st.container(gap="xxsmall"):
        st.markdown("Simulator")
        # another key for every draft: a menu in which something was chosen is closed
        opened = st.popover(chosen.title, width="stretch", key=f"{draft.version}-simulators")
    with opened:
        families: dict[str, list[str]] = {}
        for kind, cls in SIMULATORS.items():
            families.setdefault(cls.family, []).append(kind)
        menu.entries(
            families,
            {k: (c.title, description(c)) for k, c in SIMULATORS.items()},
            "simulator",
            drafts.choose_simulator,
            current=draft.simulator["kind"],
        )


def add_agent(draft: Draft, add: Callable[[str], None] | None = None) -> None:
    """Draw the menu of agents; those that cannot be run in this simulator are named below it.

    ``add``: called with the kind that is chosen, instead of `Draft.add`.
    """
    available, families = draft.available_kinds(), dict[str, list[str]]()
    key = f"{draft.version}-add-{len(draft.agents)}-{sorted(draft.open_cards)}"
    with st.popover(
        "Add agent",
        icon=":material/add:",
        width="stretch",
        disabled=len(draft.agents) >= 12,
        key=key,
    ):
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


def summary(kind: str) -> str:
    """Return the first sentence of an agent's docstring without the marks of references."""
    return re.sub(r",? \[\d+\]_", "", description(AGENTS[kind]))
