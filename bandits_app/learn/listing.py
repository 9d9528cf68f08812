"""The list of lessons, with minutes and progress."""

from __future__ import annotations

import streamlit as st

from bandits.lessons import Lesson, lessons
from bandits.lessons.handout import handout

from . import place


def show() -> None:
    """Draw one row per lesson."""
    for number, lesson in enumerate(lessons().values(), start=1):
        with st.container(border=True):
            _row(number, lesson)


def _row(number: int, lesson: Lesson) -> None:
    data, steps = lesson.data, len(lesson.data.steps)
    st.subheader(f"{number}. {data.title}", anchor=False)
    st.markdown(data.about)
    st.caption(f"{data.minutes} minutes · {steps} steps · You need: {data.needs}")
    at = place.step(lesson)
    if place.started(lesson):
        done = "Finished" if at >= steps else f"Step {at + 1} of {steps}"
        st.progress(at / steps, text=done)
    row = st.container(horizontal=True, gap="small")
    row.button(
        "Continue" if place.started(lesson) and at else "Start", icon=":material/play_arrow:",
        type="primary" if number == 1 else "secondary", key=f"lesson-open-{lesson.name}",
        on_click=place.open_lesson, args=(lesson.name,),
        help=f"Open the lesson {data.title}",
    )  # fmt: skip
    row.download_button(
        "Handout", lambda: handout(lesson, {}, answers=False), f"{lesson.name}.html", "text/html",
        icon=":material/print:", type="tertiary", key=f"lesson-handout-{lesson.name}", on_click="ignore",
        help="One page to print, with blanks for predictions and numbers; the teacher's copy: python -m bandits lesson "
        "handout, with --answers",
    )  # fmt: skip
