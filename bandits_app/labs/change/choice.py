"""The controls of the Shock lab: which change, and how quickly the agents forget."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment, read
from bandits.experiments.labels import following_label
from bandits.experiments.presets import presets
from bandits.results.change.marks import description
from bandits.results.change.price_of_forgetting import GAMMAS
from bandits.runtime.pool import Job
from bandits_app.labs import lab
from bandits_app.session import run_requests


def choose(job: Job) -> Experiment:
    """Draw the controls; return the experiment that they describe."""
    base = lab.choose_base(
        job, "change", lambda e: bool(e.simulator.all_changes), default="forgetting", label="Change",
        help="What changes during the run. In the Arena, *More parameters* of the simulator offers all kinds.",
    )  # fmt: skip
    return _forgetting(base)


def _forgetting(base: Experiment) -> Experiment:
    """Draw the choice of the discount factor; return the experiment with it."""
    forgetful = [i for i, agent in enumerate(base.agents) if getattr(agent, "gamma", 1.0) < 1]
    if not forgetful:
        st.caption("No agent of this run forgets by a discount factor.", width=320)
        return base
    now = getattr(base.agents[forgetful[0]], "gamma", 1.0)
    options = sorted({*GAMMAS, now}, reverse=True)
    gamma = st.selectbox(
        "Discount factor γ", options, options.index(now), key=f"change-gamma-{base.hash[:12]}", width=320,
        on_change=run_requests.request, args=("slider",),
        format_func=lambda value: "1 (no forgetting)" if value == 1 else f"{value:g}",
        help="Of the agents that discount past observations. Smaller values forget faster.",
    )  # fmt: skip
    if gamma == now:
        return base
    agents = [agent.model_dump(mode="json", by_alias=True) for agent in base.agents]
    for i in forgetful:
        after = {**agents[i], "gamma": gamma}
        agents[i] = {**after, "label": following_label(agents[i].get("label"), agents[i], after)}
    return read({**base.model_dump(mode="json", by_alias=True), "agents": agents})


def about(experiment: Experiment) -> str:
    """Describe the chosen preset, or the changes of the last run."""
    chosen = presets().get(st.session_state["change-name"])
    return description(experiment) if chosen is None else chosen.about
