"""Have the sliders of agents answer while they move: the part of the Arena that runs in the browser."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import streamlit as st

from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.experiment import Experiment
from bandits.results.instant import too_slow
from bandits.runtime.job import Job
from ui import session
from ui.arena import draft as drafts
from ui.params_form import fields, slider_values
from ui.run_view.options import View

from .channel import PATH

KEY = "instant"
_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "bandit_instant_sliders",
    js="\n".join((_HERE / name).read_text(encoding="utf-8") for name in ("pad.js", "slider.js")),
    css=(_HERE / "slider.css").read_text(encoding="utf-8"),
    isolate_styles=False,  # what it draws stands below Streamlit's sliders
)


def follow(job: Job, view: View) -> None:
    """Follow the sliders of the agents, where nothing but their parameters differs from the run that is shown."""
    draft = drafts.current()
    experiment = draft.experiment()
    found: dict[str, dict[str, Any]] = {}
    if experiment is not None and _frame(experiment) == _frame(job.experiment):
        found = sliders(draft, experiment, job)
    _mount(
        key=KEY, data={"path": PATH, "experiment": "" if experiment is None else experiment.model_dump_json(),
        "sliders": found, "view": {name: getattr(view, name) for name in ("window", "x", "log_regret", "fourth")}},
        on_released_change=lambda: None, on_chosen_change=choose, on_taken_back_change=take_back,
    )  # fmt: skip


def _frame(experiment: Experiment) -> tuple[Any, list[str]]:
    return experiment.model_dump(exclude={"agents"}), [agent.kind for agent in experiment.agents]


def released() -> bool:
    """Return whether a slider or pad has just been released: its value is run without another press."""
    state = st.session_state.get(KEY)
    return bool(state is not None and (state.get("released") or state.get("chosen")))


def choose() -> None:
    """Give two sliders the values that were chosen on a pad."""
    for key, value in (st.session_state[KEY].get("chosen") or {}).items():
        if key in st.session_state and key.startswith(f"{drafts.current().version}-agent"):
            st.session_state[key] = float(value)


def take_back() -> None:
    """Give the controls the values of the run that is shown: those before a slider was moved."""
    job = session.pool().get(st.session_state.get("job", ""))
    if job is not None:
        drafts.replace(job.experiment)


def sliders(draft: drafts.Draft, experiment: Experiment, job: Job) -> dict[str, dict[str, Any]]:
    """List the sliders of all agents by their keys.

    Each has the name of its agent and parameter, its values where they are not evenly spaced, why it cannot be
    followed, and a digest of everything but its own value.
    """
    found = {}
    for (number, agent), label in zip(draft.agents.items(), experiment.labels, strict=True):
        model = AGENTS[agent["kind"]].Params
        slow = too_slow(experiment, label, _seconds_per_decision(experiment, label, job))
        for name in fields(model, basic=True) + fields(model, basic=False):
            field = model.model_fields[name]
            if field.annotation is not float:
                continue
            rest = experiment.model_dump(mode="json")
            rest["agents"][experiment.labels.index(label)] |= {name: None, "label": None}
            found[f"{draft.version}-agent{number}-{name}"] = {
                "label": label, "name": name, "title": str(field.title), "slow": slow,
                "options": slider_values(model, name, float(agent.get(name, field.default))),
                "frame": hashlib.blake2b(json.dumps(rest).encode(), digest_size=8).hexdigest(),
            }  # fmt: skip
            if slow:
                break  # one statement per agent is enough
    return found


def _seconds_per_decision(experiment: Experiment, label: str, job: Job) -> float | None:
    """Return what a decision of an agent has taken in the run that is shown, if it is the same kind there."""
    history = job.histories.get(label)
    if history is None or not history.step or job.experiment.simulator != experiment.simulator:
        return None
    return history.seconds / (history.step * job.experiment.replications)
