"""The main parameter of each agent, for presentations: one slider per agent in a row."""

from __future__ import annotations

import streamlit as st

from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import metadata
from bandits_app.session import draft as drafts
from bandits_app.session.draft import Draft
from bandits_app.widgets.params_form import form


def main_parameter(kind: str) -> str | None:
    """Return the name of an agent's main parameter, the first with a symbol that its card shows, or None."""
    fields = AGENTS[kind].Params.model_fields
    shown = [name for name, field in fields.items() if metadata(field, "basic") and metadata(field, "symbol")]
    own = AGENTS[kind].Params.__annotations__
    return next(iter(sorted(shown, key=lambda name: name not in own)), None)


def main_sliders(draft: Draft) -> None:
    """Draw the sliders and write their values into the draft."""
    adjustable = [(number, agent) for number, agent in draft.agents.items() if main_parameter(agent["kind"])]
    labels = dict(zip(draft.agents, _labels(draft), strict=True))
    if not adjustable:
        return
    with st.container(key="main-sliders", horizontal=True, gap="medium"):
        for number, agent in adjustable:
            name = main_parameter(agent["kind"])
            assert name is not None
            with st.container(gap=None):
                st.caption(labels[number])
                params = AGENTS[agent["kind"]].Params
                draft.change(number, {**agent, **form(params, [name], agent, f"{draft.version}-agent{number}")})
    drafts.remember()


def _labels(draft: Draft) -> list[str]:
    experiment = draft.experiment()
    if experiment is not None:
        return list(experiment.labels)
    return [agent.get("label") or AGENTS[agent["kind"]].title for agent in draft.agents.values()]
