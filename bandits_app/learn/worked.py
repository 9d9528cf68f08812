"""Draw a worked example with its controls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import streamlit as st
from pydantic import ValidationError

from bandits.experiments.validation import refusal
from bandits.lessons import Lesson
from bandits.lessons.lesson import RunStep
from bandits.lessons.worked import Table
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.params_form import form
from bandits_app.widgets.text import refuse

from . import place


def show(lesson: Lesson, step: RunStep) -> None:
    """Draw the controls of the parameters that a reader may change, the tables and the figures."""
    entered, model = _enter(lesson, step), step.example.Params
    try:
        params = model.model_validate({**step.given, **entered})
    except ValidationError as error:
        name, space, rest = refusal(error, model).partition(" ")
        titles = {n: field.title for n, field in model.model_fields.items()}
        refuse(f"{titles.get(name) or name}{space}{rest}")
        return
    place.entered(lesson, step.id).update(entered)
    tables(step.example.tables(params))
    if drawn := step.example.figures(params):
        panel.draw(drawn, key=f"{_key(lesson, step)}-figures", revision=str(step.worked))


def _enter(lesson: Lesson, step: RunStep) -> dict[str, Any]:
    """Draw the controls, and return their values; those of an earlier visit to the step are where they begin."""
    if not step.shown:
        return {}
    entered: dict[str, Any] = {}
    key = _key(lesson, step)
    if f"{key}-{step.shown[0]}" not in st.session_state:  # the step has just been opened
        st.session_state[f"{key}-began"] = dict(place.entered(lesson, step.id))
    began = step.example.Params.model_validate({**step.given, **st.session_state[f"{key}-began"]}).model_dump()
    for names, place_of_group in _places(step):
        with place_of_group:
            entered.update(form(step.example.Params, names, began, key, bounded=False))
    return entered


def _places(step: RunStep) -> Iterator[tuple[list[str], Any]]:
    """Return the groups of controls with their places: columns for those that belong together, one row for the rest."""
    groups = [[name for name in group if name in step.shown] for group in step.example.groups]
    columns = st.columns(len(groups)) if groups else []
    yield from zip(groups, columns, strict=True)
    if rest := [name for name in step.shown if not any(name in group for group in groups)]:
        yield rest, st.container(horizontal=True, gap="medium")


def tables(found: list[Table]) -> None:
    """Draw tables, each below its title."""
    for table in found:
        st.markdown(f"**{table.title}**")
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        st.table(rows, hide_index=True)


def _key(lesson: Lesson, step: RunStep) -> str:
    return f"lesson-{lesson.name}-{step.id}-{place.round_number(lesson)}"
