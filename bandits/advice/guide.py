"""The questions, the rules that answer them, and the chapter's cases, as data (``guide.json``)."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Question(_Data):
    """A question with its options by name."""

    text: str
    options: dict[str, str]


class Rule(_Data):
    """An answer: for which options it was measured (all of a question that it does not name), and
    what holds.
    """

    when: dict[str, tuple[str, ...]]
    agent: dict[str, Any]
    text: str
    holds: str


class Case(_Data):
    """A recommendation of chapter 16, the answers that describe its case, and what was measured
    here.
    """

    says: str
    where: str
    answers: dict[str, str]
    verdict: Literal["agrees", "differs", "not measured here"]
    text: str
    holds: str = ""


class Setting(_Data):
    """A row of the chapter's table of hyperparameters, beside what was measured here."""

    parameter: str
    chapter: str
    start: str
    text: str
    holds: str = ""


class Guide(_Data):
    """Everything that the page shows."""

    titles: dict[str, str]
    questions: dict[str, Question]
    rules: tuple[Rule, ...]
    cases: tuple[Case, ...]
    settings: tuple[Setting, ...]
    opens: dict[str, str | dict[str, Any]]


@lru_cache(maxsize=1)
def guide() -> Guide:
    """Return the guide of this package."""
    return Guide.model_validate(
        json.loads(files("bandits.advice").joinpath("guide.json").read_text(encoding="utf-8"))
    )
