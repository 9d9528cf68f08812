"""Have the sliders of agents answer while they move: the part of the Arena that runs in the
browser.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import streamlit as st

from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.experiment import Experiment
from bandits.results.figures.board import SPECTRUM
from bandits.results.instant import can_follow, too_slow
from bandits.runtime.job import Job
from bandits_app.run_view.options import View
from bandits_app.session import draft as drafts
from bandits_app.session import workers
from bandits_app.widgets.params_form import fields, slider_values

from .channel import PATH

KEY = "instant"
_HERE, _SCRIPTS = Path(__file__).parent, ("line.js", "strip.js", "pad.js", "slider.js")
_mount = st.components.v2.component(
    "bandit_instant_sliders",
    js="\n".join((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS),
    css=(_HERE / "slider.css").read_text(encoding="utf-8"),
    # what it draws stands below Streamlit's sliders
    isolate_styles=False,
)


def follow(job: Job, view: View, *, refused: bool = False) -> None:
    """Follow the sliders of the agents that are as in the run that is shown, where nothing but
    agents differs from it.

    Parameters
    ----------
    refused : bool
        What was released last was not run.
    """
    draft = drafts.current()
    experiment = draft.experiment()
    found: dict[str, dict[str, Any]] = {}
    moved: list[str] = []
    if experiment is not None and _frame(experiment) == _frame(job.experiment):
        found, moved = sliders(draft, experiment, job), moved_sliders(draft, experiment, job)
    _mount(
        key=KEY,
        data={
            "path": PATH,
            "experiment": "" if experiment is None else experiment.model_dump_json(),
            "sliders": found,
            "moved": moved,
            "refused": refused,
            "view": {
                "window": view.window,
                "x": view.x,
                "log_regret": view.log_regret,
                # the others are not computed while a slider moves
                "spectrum": view.fourth == SPECTRUM
                and view.at is None
                and view.arm is None
                and not view.whole,
            },
        },
        on_released_change=release,
        on_chosen_change=choose,
        on_taken_back_change=take_back,
    )


def _frame(experiment: Experiment) -> dict[str, Any]:
    return experiment.model_dump(exclude={"agents"})


def release() -> None:
    """Run the value of the slider that was released, without another press."""
    drafts.request_run("slider")


def choose() -> None:
    """Give two sliders the values that were chosen on a pad, and run them."""
    for key, value in (st.session_state[KEY].get("chosen") or {}).items():
        if key in st.session_state and key.startswith(f"{drafts.current().version}-agent"):
            st.session_state[key] = float(value)
    drafts.request_run("slider")


def take_back() -> None:
    """Give the controls that were moved the values that they had before, and draw all of
    them anew.
    """
    draft = drafts.current()
    for key, value in (st.session_state[KEY].get("taken_back") or {}).items():
        version, agent, name = key.split("-", 2)
        number = int(agent.removeprefix("agent"))
        if version == str(draft.version) and number in draft.agents:
            draft.agents[number] = {**draft.agents[number], name: float(value)}
    if (experiment := draft.experiment()) is not None:
        opened = [number in draft.open_cards for number in draft.agents]
        drafts.replace(experiment)
        drafts.current().open_cards = {
            number
            for number, is_open in zip(drafts.current().agents, opened, strict=True)
            if is_open
        }


def sliders(draft: drafts.Draft, experiment: Experiment, job: Job) -> dict[str, dict[str, Any]]:
    """List the sliders of all agents by their keys.

    Each has the name of its agent and parameter, its value, all values where they are not evenly
    spaced, why it cannot be followed and the values that stored runs have instead, a note on these,
    and a digest of everything but its value."""
    found, shown = {}, dict(zip(job.labels, job.experiment.agents, strict=True))
    for (number, agent), label in zip(draft.agents.items(), experiment.labels, strict=True):
        model = AGENTS[agent["kind"]].Params
        if label not in shown or shown[label] != experiment.agents[experiment.labels.index(label)]:
            # its curves are those of other values
            continue
        slow = too_slow(experiment, label, _seconds_per_decision(experiment, label, job))
        names = [
            name
            for name in fields(model, basic=True) + fields(model, basic=False)
            if can_follow(model, name)
        ]
        kept = workers.pool().stored_values(experiment, label, names) if slow else {}
        for name in names:
            field, key = model.model_fields[name], f"{draft.version}-agent{number}-{name}"
            values = [one.value for one in kept.get(name, ())]
            rest = experiment.model_dump(mode="json")
            rest["agents"][experiment.labels.index(label)] |= {name: None, "label": None}
            found[key] = {
                "label": label,
                "name": name,
                "title": str(field.title),
                "slow": slow,
                "kept": values,
                "value": float(getattr(experiment.agents[experiment.labels.index(label)], name)),
                "note": " ".join(
                    [slow] * (name == names[0]) + [_on_kept(len(values))] * bool(values)
                ),
                "options": slider_values(model, name, float(agent.get(name, field.default)), key),
                "frame": hashlib.blake2b(json.dumps(rest).encode(), digest_size=8).hexdigest(),
            }
    return found


def moved_sliders(draft: drafts.Draft, experiment: Experiment, job: Job) -> list[str]:
    """List the keys of sliders that are elsewhere than in the run shown, of agents that differ in
    nothing else.
    """
    found, shown = list[str](), dict(zip(job.labels, job.experiment.agents, strict=True))
    for number, label, agent in zip(
        draft.agents, experiment.labels, experiment.agents, strict=True
    ):
        before = shown.get(label)
        if before is None or before.kind != agent.kind:
            continue
        differing = [
            name
            for name in type(agent).model_fields
            if getattr(agent, name) != getattr(before, name)
        ]
        if all(can_follow(type(agent), name) for name in differing):
            found += [f"{draft.version}-agent{number}-{name}" for name in differing]
    return found


def _on_kept(many: int) -> str:
    """State that stored runs are shown instead of a preview."""
    if many == 1:
        return "Until then: the one stored run with another value (mark)."
    return f"Until then: the nearest of {many} stored runs with other values (marks)."


def _seconds_per_decision(experiment: Experiment, label: str, job: Job) -> float | None:
    """Return what a decision of an agent has taken in the run that is shown, if it is the same kind
    there.
    """
    history = job.histories.get(label)
    if history is None or not history.step or job.experiment.simulator != experiment.simulator:
        return None
    return history.seconds / (history.step * job.experiment.replications)
