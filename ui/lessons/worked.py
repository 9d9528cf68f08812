"""Draw a worked example with its controls."""

from __future__ import annotations

import streamlit as st

from bandits.lessons import Lesson
from bandits.lessons.lesson import RunStep
from bandits.lessons.worked import Table
from ui.params_form import form

from . import steps


def show(lesson: Lesson, step: RunStep) -> None:
    """Draw the controls of the parameters that a reader may change, the tables and the figures."""
    params = step.example.Params.model_validate(step.given)
    if step.shown:
        with st.container(horizontal=True, gap="medium"):
            entered = form(step.example.Params, list(step.shown), params.model_dump(), _key(lesson, step))
        params = step.example.Params.model_validate({**params.model_dump(), **entered})
    tables(step.example.tables(params))
    if drawn := step.example.figures(params):
        steps.draw(drawn, str(step.worked), f"{_key(lesson, step)}-figures")


def tables(found: list[Table]) -> None:
    """Draw tables, each below its title."""
    for table in found:
        st.markdown(f"**{table.title}**")
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        st.table(rows, hide_index=True)


def _key(lesson: Lesson, step: RunStep) -> str:
    return f"lesson-{lesson.name}-{step.id}"
