"""Where a reader is: lesson, step, predictions, attempts and changed values, in the session; in the
address too,
except for changed values.
"""

from __future__ import annotations

import secrets
from typing import Any

import streamlit as st

from bandits.lessons import Lesson, lessons
from bandits.lessons.answers import (
    Prediction,
    attempts_from_link,
    attempts_to_link,
    from_link,
    pulls_from_link,
    pulls_to_link,
    to_link,
)

_OPEN = "lesson-open"
# numbers of levers have six digits
_FIRST, _LAST = 100_000, 999_999


def current() -> Lesson | None:
    """Return the lesson that is open: of the session, or of a link that opened it.

    None on the list.
    """
    if _OPEN not in st.session_state:
        _follow_link()
    return lessons().get(st.session_state[_OPEN])


def _follow_link() -> None:
    name = st.query_params.get("lesson", "")
    lesson = lessons().get(name)
    st.session_state[_OPEN] = name if lesson else ""
    if lesson is None:
        return
    if name not in _of_lessons("predictions"):
        _of_lessons("predictions")[name] = from_link(lesson, st.query_params.get("predictions", ""))
        _of_lessons("attempts")[name] = attempts_from_link(lesson, st.query_params.get("tried", ""))
        _of_lessons("pulls")[name] = pulls_from_link(lesson, st.query_params.get("pulls", ""))
        number = st.query_params.get("levers", "")
        if number.isdecimal() and len(number) == len(str(_LAST)):
            _of_lessons("levers")[name] = int(number)
    step = st.query_params.get("step", "1")
    go_to(lesson, int(step) - 1 if step.isdecimal() and len(step) < 4 else 0)


def write_link(lesson: Lesson | None) -> None:
    """Put the place into the address, so that a reload or another reader continues here."""
    fields = {}
    if lesson is not None:
        fields = {"lesson": lesson.name, "step": str(step(lesson) + 1)}
        if made := to_link(predictions(lesson)):
            fields["predictions"] = made
        if tried := attempts_to_link(_of_lessons("attempts").get(lesson.name, {})):
            fields["tried"] = tried
        if lesson.games:
            fields["levers"] = str(levers(lesson))
        if pulled := pulls_to_link(_of_lessons("pulls").get(lesson.name, {})):
            fields["pulls"] = pulled
    if st.query_params.to_dict() != fields:
        st.query_params.from_dict(fields)


def step(lesson: Lesson) -> int:
    """Return the position of the step that is shown; the number of steps on the card at the end."""
    return int(_of_lessons("steps").get(lesson.name, 0))


def started(lesson: Lesson) -> bool:
    """Tell whether this reader has been in the lesson."""
    return lesson.name in _of_lessons("steps")


def predictions(lesson: Lesson) -> dict[str, Prediction]:
    """Return the predictions that this reader has made."""
    found: dict[str, Prediction] = _of_lessons("predictions").setdefault(lesson.name, {})
    return found


def open_lesson(name: str) -> None:
    """Open a lesson where the reader left it."""
    st.session_state[_OPEN] = name
    _of_lessons("steps").setdefault(name, 0)


def close() -> None:
    """Return to the list."""
    st.session_state[_OPEN] = ""


def go_to(lesson: Lesson, position: int) -> None:
    """Go to a step, or to the card at the end: predictions can be skipped."""
    _of_lessons("steps")[lesson.name] = max(0, min(position, len(lesson.data.steps)))


def restart(lesson: Lesson) -> None:
    """Forget the predictions and begin again."""
    for name in ("predictions", "attempts", "entered", "pulls"):
        _of_lessons(name)[lesson.name] = {}
    _of_lessons("steps")[lesson.name] = 0
    _of_lessons("rounds")[lesson.name] = round_number(lesson) + 1


def levers(lesson: Lesson) -> int:
    """Return the number that determines the levers of all games: of the link, or drawn."""
    drawn = _FIRST + secrets.randbelow(_LAST - _FIRST + 1)
    return int(_of_lessons("levers").setdefault(lesson.name, drawn))


def new_levers(lesson: Lesson) -> None:
    """Draw other levers for all games, and forget the pulls."""
    _of_lessons("levers").pop(lesson.name, None)
    _of_lessons("pulls").pop(lesson.name, None)


def pulls(lesson: Lesson, step: str) -> list[int]:
    """Return the levers that were pulled in a game, from 0, the last one at the end."""
    found: list[int] = _of_lessons("pulls").setdefault(lesson.name, {}).setdefault(step, [])
    return found


def attempts(lesson: Lesson, step: str) -> list[float]:
    """Return the values that were tried in a task, the last one at the end."""
    found: list[float] = _of_lessons("attempts").setdefault(lesson.name, {}).setdefault(step, [])
    return found


def entered(lesson: Lesson, step: str) -> dict[str, Any]:
    """Return what was entered in the controls of a step, by name; it outlives the controls."""
    found: dict[str, Any] = _of_lessons("entered").setdefault(lesson.name, {}).setdefault(step, {})
    return found


def round_number(lesson: Lesson) -> int:
    """Return how often the lesson was started again: it has new widgets after each time."""
    return int(_of_lessons("rounds").get(lesson.name, 0))


def _of_lessons(name: str) -> dict[str, Any]:
    """Return what the session holds of all lessons, by the names of the lessons."""
    found: dict[str, Any] = st.session_state.setdefault(f"lesson-{name}", {})
    return found
