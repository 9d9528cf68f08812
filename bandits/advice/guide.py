"""The questions, the rules that answer them, and rules of thumb, as data (``guide.json``)."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Note(_Data):
    """A sentence with measured numbers, and what holds."""

    text: str
    holds: str


class Question(_Data):
    """A question with its options by name.

    Attributes
    ----------
    text : str
    options : dict of str to str
    ordered : bool
        Neighbouring options resemble each other most.
    weight : int
        How much a step to another option, or another option at all, makes a measured line differ.
    default : str
        The option that the page begins with; empty for the first.
    apart : str
        An option that resembles no other: a step to or from it counts twice.
    notes : dict of str to Note
        What holds beside every answer, by option.
    """

    text: str
    options: dict[str, str]
    ordered: bool = False
    weight: int = 1
    default: str = ""
    apart: str = ""
    notes: dict[str, Note] = {}

    def distance(self, option: str, measured: tuple[str, ...]) -> int:
        """Return how far an answer is from the nearest of the options that were measured."""
        places = list(self.options)
        if self.ordered:
            steps = (abs(places.index(option) - places.index(other)) for other in measured)
            return self.weight * min(steps)
        if option in measured:
            return 0
        return self.weight * (2 if self.apart in (option, *measured) else 1)


class Rule(_Data):
    """An answer, and what holds.

    Attributes
    ----------
    when : dict of str to tuple of str
        The options that it answers; all of a question that it does not name.
    measured : dict of str to tuple of str
        Those of its runs, where they are others.
    """

    when: dict[str, tuple[str, ...]]
    measured: dict[str, tuple[str, ...]] = {}
    agent: dict[str, Any]
    text: str
    holds: str


class Finding(_Data):
    """What was measured of a rule of thumb under one condition."""

    condition: str
    verdict: Literal["agrees", "differs", "undecided", "not tested"]
    text: str
    holds: str = ""


class Case(_Data):
    """A rule of thumb, and what was measured of it."""

    says: str
    findings: tuple[Finding, ...]


class Setting(_Data):
    """A parameter with its usual range and starting value, beside what was measured here."""

    parameter: str
    usual: str
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
