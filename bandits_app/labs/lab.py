"""The skeleton of a lab: choose an experiment, run it, and show what is drawn of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from bandits import Experiment, UserError
from bandits.experiments.presets import presets
from bandits.results.caveats import stopped_notes
from bandits.runtime.pool import Job
from bandits_app.session import draft, followed
from bandits_app.widgets.text import escape_markdown, glued, refuse


def equal(experiment: Experiment, job: Job) -> bool:
    """Return whether a run is that of the controls."""
    return experiment.hash == job.experiment.hash


class Lab(NamedTuple):
    """A lab of the page Labs.

    Attributes
    ----------
    title, question : str
        The question is Markdown.
    key : str
        Begins the keys of the controls that `choose_base` draws.
    above : str
        What the controls choose, in one word: launches.
    choose : callable
        Draws the controls; returns the experiment that they describe, or None while they describe
        none.
    show : callable
        Draws a run.
    lacks : callable
        States why nothing can be drawn of an experiment of the Arena; empty where it can.
    about : callable, optional
        Describes the experiment of the controls.
    start : callable
        Starts a run.
    drawn : callable
        Returns whether a run is that of the controls.
    """

    title: str
    question: str
    key: str
    above: str
    choose: Callable[[Job], Experiment | None]
    show: Callable[[Job], None]
    lacks: Callable[[Experiment], str]
    about: Callable[[Experiment], str] | None = None
    start: Callable[..., Job] = followed.submit_and_follow
    drawn: Callable[[Experiment, Job], bool] = equal


def page(lab: Lab) -> None:
    """Draw a lab."""
    st.title(lab.title, anchor=False)
    st.markdown(lab.question)
    job, experiment, refused = followed.current(), None, None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        try:
            experiment = lab.choose(job)
        except UserError as error:
            refused = error
        st.button(
            "Run",
            type="primary",
            icon=":material/play_arrow:",
            shortcut="Ctrl+Enter",
            disabled=experiment is None,
            on_click=draft.request_run,
        )
    if lab.about is not None and experiment is not None:
        st.caption(glued(escape_markdown(lab.about(experiment))))
    if experiment is not None and (source := draft.requested_run()):
        try:
            started = lab.start(experiment, by_slider=source == "slider")
            draft.forget_request()
            # The controls stay as they are beside the run.
            st.session_state[f"{lab.key}-given"] = started.id
            st.rerun()
        except UserError as error:
            draft.forget_request()
            refused = error
    if refused is not None:
        refuse(refused)
    if missing := lab.lacks(job.experiment):
        st.caption(f":material/touch_app: {missing}")
        return
    if experiment is not None and not lab.drawn(experiment, job):
        st.caption(
            f":material/touch_app: Shown below: the last run. Press **Run** for the {lab.above} "
            "above."
        )
    if job.status == "paused":
        st.caption(":material/pause: Paused: conclusions follow at the end of the run.")
    if job.status in ("stopped", "failed"):
        for note in stopped_notes(job.result):
            st.caption(f":material/stop_circle: {note}")
    lab.show(job)


def choose_base(
    job: Job, key: str, fits: Callable[[Experiment], bool], *, default: str, label: str, help: str
) -> Experiment:
    """Draw the choice among the presets that fit.

    The run viewed last is chosen, unless the page has started it.
    """
    offered = {name: (p.title, p.experiment) for name, p in presets().items() if fits(p.experiment)}
    # A run of the Arena, or of a link.
    if st.session_state.get(f"{key}-given") != job.id and fits(job.experiment):
        st.session_state[f"{key}-given"] = job.id
        st.session_state[f"{key}-base"] = job.experiment
        st.session_state[f"{key}-name"] = next(
            (n for n, (_, e) in offered.items() if e.hash == job.id), "own"
        )
    if (base := st.session_state.get(f"{key}-base")) is not None:
        offered = {"own": ("The last run", base), **offered}
    name = st.selectbox(
        label,
        list(offered),
        key=f"{key}-name",
        width=320,
        index=list(offered).index(default),
        help=help,
        format_func=lambda n: offered[n][0],
    )
    return offered[name][1]
