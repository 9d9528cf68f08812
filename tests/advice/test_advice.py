"""Which agent to use: every sentence rests on a measured line, and what was not measured
says so.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from importlib.resources import files
from urllib.parse import parse_qsl

import pytest

from bandits.advice import advise, evidence, guide, measured_changes
from bandits.advice.evidence import filled, lines_of
from bandits.agents import REGISTRY
from bandits.experiments import url
from bandits.lessons.expressions import evaluate, parse
from bandits.lessons.texts import check_text
from benchmarks.defaults import TESTS
from benchmarks.reproduction import choosing

GUIDE = guide()
ALLOWED = ("α = 0.4", "α = 1.5", "UCB1", "section 9")


def stated() -> Iterator[tuple[str, str]]:
    for rule in GUIDE.rules:
        yield rule.text, rule.holds
    for each in (*GUIDE.cases, *GUIDE.settings):
        yield each.text, each.holds


@pytest.mark.parametrize(("text", "holds"), list(stated()))
def test_every_sentence_holds_on_its_measured_lines(text: str, holds: str) -> None:
    # no number is typed
    check_text(text, evidence().lines, (), ALLOWED)
    assert holds or text == "Not measured here."
    if holds:
        assert lines_of(text)
        assert evaluate(parse(holds), evidence().lines)
    assert "{{" not in filled(text)


def test_agents_exist_and_links_open_the_experiment() -> None:
    for rule in GUIDE.rules:
        REGISTRY[rule.agent["kind"]].Params.model_validate(rule.agent)
    for line in evidence().lines.values():
        assert (
            url.parse_query(dict(parse_qsl(line.link.removeprefix("arena?")))).experiment
            == line.experiment
        )


def test_the_decisions_of_networks_and_linear_agents_are_stated_apart() -> None:
    for name, column in (("curved", "quadratic"), ("straight", "linear")):
        line = evidence().lines[name]
        assert line.values["linear_decisions"].mean == TESTS[column].size[0] == line.decisions
        assert line.values["network_decisions"].mean == TESTS[column].slow_size[0]
    compared = [
        text for text, _ in stated() if "curved.linucb" in text or "straight.linucb" in text
    ]
    assert len(compared) == 4
    for text in compared:
        assert "network_decisions" in text
        assert "linear_decisions" in text
    assert all(
        line.ran == (line.origin == "run for this page") for line in evidence().lines.values()
    )


def test_no_line_is_unused() -> None:
    used = {name for text, holds in stated() if holds for name in lines_of(text)}
    assert set(evidence().lines) == set(GUIDE.titles) == used


def test_every_combination_has_measured_advice_or_says_that_there_is_none() -> None:
    without = 0
    for options in itertools.product(*(q.options for q in GUIDE.questions.values())):
        answers = dict(zip(GUIDE.questions, options, strict=True))
        found = advise(answers)
        assert all(each.lines for each in found)
        without += not found
        if (
            answers["new"] == "often"
            or answers["rewards"] == "numbers"
            or answers["arms"] == "more"
        ):
            assert not found
    assert without > 0


def test_the_twelve_cases_of_the_chapter_are_answered() -> None:
    assert len(GUIDE.cases) == 12
    for case in GUIDE.cases:
        assert set(case.answers) == set(GUIDE.questions)
        # names its evidence
        assert lines_of(case.text)
        assert bool(advise(case.answers)) == (case.verdict != "not measured here")


def test_an_unmeasured_case_names_what_was_measured() -> None:
    answers = next(case.answers for case in GUIDE.cases if case.verdict == "not measured here")
    assert measured_changes(answers) == {"new": ["never", "sometimes"]}


def test_the_stored_lines_are_those_of_the_documents_and_of_the_code() -> None:
    data = json.loads(files("bandits.advice").joinpath("evidence.json").read_text(encoding="utf-8"))
    for name in choosing.TABLES:
        assert data["lines"][name]["values"] == choosing.table_values(name)
    for name in choosing.RUNS:
        assert data["lines"][name]["experiment"] == choosing.experiment(name)


@pytest.mark.slow
def test_a_line_measures_the_same_again() -> None:
    stored = evidence().lines["interaction_50"].values
    for name, value in choosing.run_values(choosing.experiment("interaction_50")).items():
        assert stored[name] == pytest.approx(value, abs=2e-3)
