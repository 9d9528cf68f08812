"""Choose the agent to sweep, in the sidebar of the page Sweep."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bandits import Experiment
from bandits.experiments.labels import labels_of
from bandits.sweeps import Sweep
from bandits_app.session import draft as drafts
from bandits_app.session.draft import Draft

_CHOSEN = "sweep-agent"


def choose(draft: Draft) -> int:
    """Draw the choice of the agent to sweep; returns its id in the draft."""
    labels = _labels(draft)
    st.selectbox(
        "Agent to sweep",
        labels,
        key=_CHOSEN,
        help=(
            "Its parameters are varied; other agents are left out. **Add agent** offers all kinds."
        ),
    )
    return chosen(draft)


def add(kind: str) -> None:
    """Add an agent of another kind and choose it."""
    draft = drafts.current()
    draft.add(kind)
    st.session_state[_CHOSEN] = _labels(draft)[-1]


def chosen(draft: Draft) -> int:
    """Return the id in the draft of the agent to sweep."""
    labels = _labels(draft)
    label = st.session_state.get(_CHOSEN)
    return list(draft.agents)[labels.index(label) if label in labels else 0]


def restore(sweep: Sweep) -> bool:
    """Choose the agent of a sweep after a visit to another page.

    Returns whether the sidebar still fits the sweep.
    """
    if (
        _CHOSEN in st.session_state
        or (label := _swept(drafts.current().experiment(), sweep)) is None
    ):
        return False
    st.session_state[_CHOSEN] = label
    return True


def _labels(draft: Draft) -> list[str]:
    labels = labels_of(list(draft.agents.values()))
    # names that were entered twice
    if len(set(labels)) < len(labels):
        return [f"{i}. {label}" for i, label in enumerate(labels, 1)]
    return list(labels)


def _swept(experiment: Experiment | None, sweep: Sweep) -> str | None:
    """Return the label of the agent that equals the swept one up to swept parameters.

    None without one.
    """
    of_simulator = {
        name for axis in sweep.axes if axis.path.startswith("simulator.") for name in axis.names
    }
    of_agent: dict[str, Any] = {}
    for axis in sweep.axes:
        if axis.guard is not None:
            of_agent.setdefault("guards", {}).setdefault(axis.guard, set()).update(axis.names)
        elif axis.path.startswith("agents."):
            of_agent |= dict.fromkeys(axis.names, True)
    rest = {"agents": True} | ({"simulator": of_simulator} if of_simulator else {})
    if experiment is None or experiment.model_dump(exclude=rest) != sweep.experiment.model_dump(
        exclude=rest
    ):
        return None
    fixed = sweep.experiment.agents[0].model_dump(exclude=of_agent)
    matches = (agent.model_dump(exclude=of_agent) == fixed for agent in experiment.agents)
    return next(
        (label for label, same in zip(experiment.labels, matches, strict=True) if same), None
    )
