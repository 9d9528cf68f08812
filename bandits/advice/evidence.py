"""The measured lines, as ``python -m benchmarks.reproduction.choosing --write`` stored them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.experiments import url
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.presets import presets
from bandits.lessons.expressions import parse, quantities
from bandits.lessons.texts import PLACEHOLDER, fill, split_format
from bandits.results.metrics import Estimate

from .guide import guide


class Line(NamedTuple):
    """One measurement: numbers by name, and what a reader can open.

    Attributes
    ----------
    title : str
    values : dict of str to Estimate
        Mean and 95 % interval; three times the same number where a document states none.
    origin : str
        The document and its section, or the command that ran it.
    experiment : Experiment
        The run, or the experiment closest to the document's.
    ran : bool
        Whether the numbers are those of this experiment.
    """

    title: str
    values: Mapping[str, Estimate]
    origin: str
    experiment: Experiment
    ran: bool

    @property
    def decisions(self) -> int:
        """Decisions of the longest run behind the numbers."""
        stated = [
            self.values[name].mean
            for name in ("decisions", "linear_decisions")
            if name in self.values
        ]
        return int(stated[0]) if stated else self.experiment.steps

    @property
    def link(self) -> str:
        """The Arena with this experiment: the end of an address."""
        return f"arena?{url.query(self.experiment)}"

    def check(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Check that a number has been measured."""
        if arguments or name not in (*self.values, "steps"):
            raise UserError(
                f"'{short(name)}' was not measured; known are steps, {', '.join(self.values)}"
            )

    def given(self, name: str) -> bool:  # noqa: ARG002
        """Tell that every number is known."""
        return True

    def quantity(self, name: str, arguments: tuple[Any, ...]) -> float | Estimate:  # noqa: ARG002
        """Return a number."""
        return float(self.experiment.steps) if name == "steps" else self.values[name]


class Evidence(NamedTuple):
    """All lines by name, and how they were made."""

    lines: Mapping[str, Line]
    command: str
    machine: str
    code: str


@lru_cache(maxsize=1)
def evidence() -> Evidence:
    """Return the stored measurements."""
    data = json.loads(files("bandits.advice").joinpath("evidence.json").read_text(encoding="utf-8"))
    lines = {}
    for name, line in data["lines"].items():
        values = {key: Estimate(*ends) for key, ends in line["values"].items()}
        origin = (
            f"{line['document']} of the project, {line['section']}"
            if "document" in line
            else "run for this page"
        )
        opened = line.get("experiment") or guide().opens[name]
        run = presets()[opened].experiment if isinstance(opened, str) else read(opened)
        lines[name] = Line(guide().titles[name], values, origin, run, "document" not in line)
    return Evidence(lines, data["command"], data["machine"], data["code"])


Answers = Mapping[str, str]


class Advice(NamedTuple):
    """An agent with settings, a sentence with measured numbers, and the lines that it rests on.

    Attributes
    ----------
    agent : dict
    text : str
    lines : mapping of str to Line
    differs : mapping of str to tuple of str
        The questions whose answers were not measured, and the options that were.
    """

    agent: dict[str, Any]
    text: str
    lines: Mapping[str, Line]
    differs: Mapping[str, tuple[str, ...]]

    @property
    def settings(self) -> str:
        """The settings, as ``--set`` names them."""
        own = {name: value for name, value in self.agent.items() if name != "kind"}
        return ", ".join(
            f"{name} {value if isinstance(value, str) else json.dumps(value)}"
            for name, value in own.items()
        )


def advise(answers: Answers) -> list[Advice]:
    """Return the rules for these answers, or those nearest to them, with what was measured; never
    empty.

    Parameters
    ----------
    answers : dict of str to str
        An option for each question of the guide.
    """
    rules, questions = guide().rules, guide().questions
    away = [
        sum(questions[name].distance(answers[name], known) for name, known in rule.when.items())
        for rule in rules
    ]
    return [
        Advice(
            rule.agent,
            filled(rule.text),
            lines_of(rule.text),
            {
                name: known
                for name, known in {**rule.when, **rule.measured}.items()
                if answers[name] not in known
            },
        )
        for rule, distance in zip(rules, away, strict=True)
        if distance == min(away)
    ]


def filled(text: str) -> str:
    """Fill the numbers into a text."""
    return fill(text, evidence().lines)


def lines_of(text: str) -> dict[str, Line]:
    """Return the lines whose numbers a text holds, in the order in which it names them."""
    named = (
        each.source
        for inner in PLACEHOLDER.findall(text)
        for each in quantities(parse(split_format(inner)[0]))
    )
    return {name: evidence().lines[name] for name in named}
