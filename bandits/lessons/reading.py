"""Read lessons from JSON and Markdown files, with the first error in one sentence."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import ValidationError

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.experiments.validation import parse, refusal

from .lesson import KINDS, Lesson, LessonData
from .rules import check_lesson
from .texts import sections

_READING = Lock()


def lessons() -> dict[str, Lesson]:
    """Return the lessons of this package by name, in the order of their files."""
    # a class that opens its first lesson at once reads them once
    with _READING:
        return _lessons()


@lru_cache(maxsize=1)
def _lessons() -> dict[str, Lesson]:
    folder = files("bandits.lessons")
    found = {}
    for path in sorted(folder.iterdir(), key=_place):
        if path.name.endswith(".json"):
            stem = path.name.removesuffix(".json")
            markdown = folder.joinpath(f"{stem}.md").read_text(encoding="utf-8")
            name = stem.partition("-")[2]
            found[name] = read_lesson(name, path.read_text(encoding="utf-8"), markdown)
    return found


def _place(path: Traversable) -> int:
    """Return the place of a file's lesson; -1 of other files."""
    number = path.name.partition("-")[0]
    return int(number) if number.isdecimal() else -1


def find(name: str) -> Lesson:
    """Return a lesson by its name, or read the lesson in a file ``NAME.json`` with ``NAME.md``
    beside it.
    """
    if name in lessons():
        return lessons()[name]
    if not name.endswith(".json"):
        raise UserError(f"there is no lesson '{short(name)}'; there are {', '.join(lessons())}")
    path = Path(name)
    texts = []
    for file in (path, path.with_suffix(".md")):
        try:
            texts.append(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise UserError(f"{file} is not a text in UTF-8") from None
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror}") from None
    return read_lesson(path.stem, *texts)


def read_lesson(name: str, text: str, markdown: str) -> Lesson:
    """Read and check a lesson; nothing is run.

    Parameters
    ----------
    text : str
        The JSON file.
    markdown : str
        The texts, one section per step.

    Raises
    ------
    UserError
        One sentence: which lesson and step, what is wrong, and what is allowed.
    """
    try:
        lesson = Lesson(name, parse(text, "lesson", LessonData, _validated), sections(markdown))
        check_lesson(lesson)
    except UserError as error:
        raise UserError(f"lesson {name}: {error}") from None
    return lesson


def _validated(data: Any) -> LessonData:
    try:
        return LessonData.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = first["loc"]
        if location[:1] != ("steps",) or len(location) < 2:
            raise UserError(refusal(error, LessonData)) from None
        step = f"step {int(location[1]) + 1}"
        if len(location) == 2 and first["type"] == "union_tag_invalid":
            tag = short(first["ctx"]["tag"])
            raise UserError(
                f"{step} is of the unknown kind '{tag}'; it must be one of {', '.join(KINDS)}"
            ) from None
        if len(location) == 2 and first["type"] == "union_tag_not_found":
            raise UserError(f"{step} has no kind; it must be one of {', '.join(KINDS)}") from None
        if first["type"] == "value_error":
            raise UserError(f"{step}: {first['ctx']['error']}") from None
        where = ".".join(str(part) for part in location[3:])
        message = first["msg"][0].lower() + first["msg"][1:]
        raise UserError(
            f"{step}: {where} is {short(json.dumps(first['input'], default=str))}; {message}"
        ) from None
