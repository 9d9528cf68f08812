"""Draw the lesson that is open: its progress, one step, and the buttons between steps."""

from __future__ import annotations

import streamlit as st

from bandits.lessons import Lesson
from bandits.lessons.lesson import PredictStep, TryStep
from bandits_app.run_view import options

from . import finish, place, runs, steps


def show(lesson: Lesson) -> None:
    """Draw the step that the reader has reached, or the card at the end.

    Raises
    ------
    UserError
    """
    jobs = runs.start(lesson)
    at, all_steps = place.step(lesson), lesson.data.steps
    _head(lesson, at)
    if at >= len(all_steps):
        finish.show(lesson, jobs)
        row = st.container(horizontal=True, gap="small")
        row.button("Back", icon=":material/arrow_back:", on_click=place.go_to, args=(lesson, len(all_steps) - 1))
        row.button("Start again", icon=":material/restart_alt:", on_click=place.restart, args=(lesson,))
        row.button("All lessons", icon=":material/list:", type="primary", key="lesson-list", on_click=place.close)
        return
    step = all_steps[at]
    with st.container(key="lesson-step"):
        steps.show(lesson, step, jobs)
    row = st.container(horizontal=True, gap="small", key="lesson-buttons")
    row.button("Back", icon=":material/arrow_back:", disabled=at == 0, on_click=place.go_to, args=(lesson, at - 1))
    onwards = (lesson, at + 1)
    if isinstance(step, TryStep):  # its own button is the main one
        row.button("Next", icon=":material/arrow_forward:", on_click=place.go_to, args=onwards)
    elif not isinstance(step, PredictStep) or step.id in place.predictions(lesson):
        row.button(
            "Next", type="primary", icon=":material/arrow_forward:", shortcut="Ctrl+Enter", on_click=place.go_to,
            args=onwards,
        )  # fmt: skip


def _head(lesson: Lesson, at: int) -> None:
    """Draw the way back to the list, the title, and how far the reader is."""
    total, presenting = len(lesson.data.steps), options.presenting()
    head = st.container(key="lesson-head")  # where its text changes, shell/focus.js goes to the top of the page
    row = head.container(horizontal=True, vertical_alignment="center", gap="small")
    row.button("All lessons", icon=":material/list:", type="tertiary", on_click=place.close)
    row.markdown(f"**{lesson.data.title}**", width="stretch")
    row.button(
        "Exit presentation" if presenting else "Present", icon=":material/cast_for_education:", key="present",
        type="tertiary", on_click=options.present, args=(not presenting,),
        help="Larger type, for a projector; **Esc** leaves it",
    )  # fmt: skip
    head.progress(min(at / total, 1.0), text=f"Step {at + 1} of {total}" if at < total else "Finished")
