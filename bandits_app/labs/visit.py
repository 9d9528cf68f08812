"""One visit: what each agent shows to a visitor, what it costs later, and what planning earns."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from bandits import Experiment, UserError, read
from bandits.base.formatting import percent
from bandits.base.processes import ChildTask
from bandits.experiments.presets import presets
from bandits.results import visit
from bandits.results.decision import EXPLANATIONS
from bandits.results.figures.board import plot
from bandits.results.visit import Frame
from bandits.runtime.pool import Job
from bandits_app.labs import lab
from bandits_app.run_view.status import status
from bandits_app.session.owner import address
from bandits_app.session.results import shared
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.params_form import form
from bandits_app.widgets.text import bullets, escape_markdown, glued, refuse
from bandits_app.widgets.until_end import until_end

PRESET = "one-visit"


def choose(job: Job) -> Experiment:  # noqa: ARG001
    """Draw the sliders of consequence and discount; return the experiment with them."""
    base = presets()[PRESET].experiment
    data = base.model_dump(mode="json", by_alias=True)
    with st.container(width=320):
        world = form(type(base.simulator), ["consequence"], data["simulator"], "visit")
    with st.container(width=320):
        plans = form(type(base.agents[0]), ["discount"], data["agents"][0], "visit")
    agents = [{**data["agents"][0], **plans}, *data["agents"][1:]]
    return read({**data, "simulator": {**data["simulator"], **world}, "agents": agents})


def _lacks(experiment: Experiment) -> str:
    if experiment.simulator.kind != "sessions":
        return "The Arena's run has no visits. Press **Run**."
    if len(visit.watched(experiment)) < 2:
        return "The Arena's run has fewer than two agents that learn. Press **Run**."
    return ""


def show(job: Job) -> None:
    """Draw a run; update while it is computed. At its end, one visit can be watched."""
    until_end(_show, job)
    if not job.live and job.result.histories:
        _watch(job)


def _show(job: Job) -> None:
    st.caption(escape_markdown(status(job)))
    if not job.result.histories:
        return
    with job.lock:
        specs = [plot(job.result, "per_visit"), plot(job.result, "visit_length")]
        stated = [] if job.live else visit.per_visit(job.result)
    for text in stated[:1]:
        st.markdown(f"**{escape_markdown(text)}**")
    bullets([escape_markdown(text) for text in stated[1:]])
    panel.draw(specs, key="visit-board", revision=job.id, height=280)


def _watch(job: Job) -> None:
    """Draw one visit of each agent, and one step of it."""
    st.subheader("Watch one visit", anchor=False)
    steps = min(history.step for history in job.result.histories.values())
    try:
        with st.spinner("Replaying the agents"):
            found = _replay(job.experiment, steps, job.id)
    except UserError as error:
        refuse(error)
        return
    st.caption(
        glued(
            "The first whole visit after the run, in the first replication. Share of treats: "
            + "; ".join(
                f"{escape_markdown(label)} {percent(visit.treats(frames))} of {len(frames)} steps"
                for label, frames in found.items()
            )
            + "."
        )
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label = st.selectbox("Visit of", list(found), key="visit-label", width=220)
        frames = found[label]
        step = 1
        if len(frames) > 1:
            step = st.slider(
                "Step", 1, len(frames), key=f"visit-step-{job.id[:12]}-{label}", width=320
            )
    frame = frames[step - 1]
    names = visit.kinds(job.experiment)
    specs = [
        visit.mood_figure(job.experiment, found),
        visit.value_figure(job.experiment, label, frame, names),
    ]
    st.markdown(glued(escape_markdown(_state(frame, label, names))))
    digits = {"this step": "%.2f", "rest of the visit, Q*": "%.2f"}
    st.dataframe(
        _choices(frame, names),
        hide_index=True,
        key="visit-choices",
        column_config={name: st.column_config.NumberColumn(format=f) for name, f in digits.items()},
    )
    panel.draw(specs, key="visit-steps", revision=f"{job.id}-{label}", height=360)


def _state(frame: Frame, label: str, names: list[str]) -> str:
    visitor, paid = frame.persona.capitalize(), "paid" if frame.earned else "did not pay"
    return f"{visitor}, mood {frame.mood}. {label} showed {names[frame.shown]}: it {paid}."


def _choices(frame: Frame, names: list[str]) -> pd.DataFrame:
    """Make the table of what each agent would show in this state."""
    best = {
        "Best policy": int(frame.optimal.argmax()),
        "Best next click": int(frame.immediate.argmax()),
    }
    shown = {**frame.others, **best}
    return pd.DataFrame(
        {
            "agent": list(shown),
            "shows": [names[kind] for kind in shown.values()],
            "this step": [float(frame.immediate[kind]) for kind in shown.values()],
            "rest of the visit, Q*": [float(frame.optimal[k]) for k in shown.values()],
        }
    )


@shared(number=64, seconds=3600)
def _replay(_experiment: Experiment, _steps: int, key: str) -> dict[str, list[Frame]]:  # noqa: ARG001
    """Replay once per run, for all users, in a process of its own."""
    found: dict[str, list[Frame]] = ChildTask(
        EXPLANATIONS, visit.watch, _experiment, _steps, address=address()
    ).wait()
    return found


VISIT = lab.Lab(
    "One visit",
    "A visit has many clicks, and what is shown now decides how long the visitor stays: treats are "
    "clicked more often than staples and spoil the mood, in which the visitor leaves sooner. What "
    "does an agent earn that plans for the visit (DQN), beside one that learns the next click "
    "alone (LinUCB)? Choose how much treats spoil the mood and how far DQN looks ahead, and press "
    "**Run**.",
    key="visit",
    above="sliders",
    choose=choose,
    show=show,
    lacks=_lacks,
)
