"""Draw a task: a value to choose, a run with it, whether the goal is reached, and hints."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from bandits import UserError
from bandits.lessons import Lesson
from bandits.lessons.answers import attempt_in_words, reached_goal
from bandits.lessons.expressions import Source
from bandits.lessons.lesson import Section, TryStep
from bandits.lessons.progress import KEPT
from bandits.lessons.texts import fill
from bandits.results.result import Result
from bandits_app.session import workers
from bandits_app.session.owner import address, owner
from bandits_app.widgets.params_form import label
from bandits_app.widgets.text import refuse

from . import place, runs, texts

HINTS = ("First hint", "Second hint", "Third hint")


def show(lesson: Lesson, step: TryStep, section: Section, sources: Mapping[str, Source]) -> None:
    """Draw the slider, the last attempts and the hints."""
    run, key = lesson.runs[step.run], f"lesson-{lesson.name}-{step.id}-{place.round_number(lesson)}"
    attempts, began = place.attempts(lesson, step.id), f"{key}-began"
    if f"{key}-value" not in st.session_state:  # the step has just been opened
        st.session_state[began] = attempts[-1] if attempts else step.start
    value = st.slider(
        f"Your value: {label(step.field(run))}", float(step.low), float(step.high), float(st.session_state[began]),
        float(step.step), key=f"{key}-value", format="%g",
    )  # fmt: skip
    pressed = st.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", key=f"{key}-run")
    try:
        if pressed:
            if run.worked is None:
                workers.pool().submit(step.changed(run, value), owner(), address=address())
            attempts[:] = [*(each for each in attempts if each != value), value]
        for attempt in reversed(attempts[-KEPT:]):
            _result(lesson, step, attempt, sources)
    except UserError as error:
        refuse(error)
    for title, hint in zip(HINTS, section.hints, strict=True):
        with st.expander(title, icon=":material/lightbulb:"):
            texts.show(fill(hint, sources))


def _result(lesson: Lesson, step: TryStep, value: float, sources: Mapping[str, Source]) -> None:
    """State whether a value reaches the goal, once its run has ended."""
    run = lesson.runs[step.run]
    found: Result | None = None
    if run.worked is None:
        job = workers.pool().get(step.changed(run, value).hash)
        if job is None:
            return
        if job.status != "finished":
            runs.wait(job)
            return
        found = job.result
    text = attempt_in_words(step, run, value, sources, found)
    if reached_goal(step, run, value, sources, found):
        st.success(f"{text}. The goal is reached.", icon=":material/check_circle:")
    else:
        st.info(f"{text}. Not yet.", icon=":material/adjust:")


def results(lesson: Lesson, step: TryStep) -> dict[float, Result | None]:
    """Return the runs of the values that were tried and have a result; None for a worked example."""
    run = lesson.runs[step.run]
    if run.worked is not None:
        return dict.fromkeys(place.attempts(lesson, step.id))
    jobs = {v: workers.pool().get(step.changed(run, v).hash) for v in place.attempts(lesson, step.id)}
    return {v: job.result for v, job in jobs.items() if job is not None and job.status == "finished"}
