"""Find the rules that were measured for a user's answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from bandits.lessons.expressions import parse, quantities
from bandits.lessons.texts import PLACEHOLDER, fill, split_format

from .evidence import Line, evidence
from .guide import Rule, guide

Answers = Mapping[str, str]


class Advice(NamedTuple):
    """An agent with settings, a sentence with measured numbers, and the lines that it rests on, by name."""

    agent: dict[str, Any]
    text: str
    lines: Mapping[str, Line]

    @property
    def settings(self) -> str:
        """The settings, as ``--set`` names them."""
        own = {name: value for name, value in self.agent.items() if name != "kind"}
        return ", ".join(
            f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in own.items()
        )


def advise(answers: Answers) -> list[Advice]:
    """Return what was measured for these answers; empty if nothing was.

    Parameters
    ----------
    answers : dict of str to str
        An option for each question of the guide.
    """
    return [
        Advice(rule.agent, filled(rule.text), lines_of(rule.text)) for rule in guide().rules if _fits(rule, answers)
    ]


def measured_changes(answers: Answers) -> dict[str, list[str]]:
    """Return the options that lead to an answer if this question alone were answered otherwise."""
    found = {}
    for name, question in guide().questions.items():
        others = [option for option in question.options if advise({**answers, name: option})]
        if others:
            found[name] = others
    return found


def filled(text: str) -> str:
    """Fill the numbers into a text."""
    return fill(text, evidence().lines)


def lines_of(text: str) -> dict[str, Line]:
    """Return the lines whose numbers a text holds, in the order in which it names them."""
    named = (each.source for inner in PLACEHOLDER.findall(text) for each in quantities(parse(split_format(inner)[0])))
    return {name: evidence().lines[name] for name in named}


def _fits(rule: Rule, answers: Answers) -> bool:
    return all(answers[name] in options for name, options in rule.when.items())
