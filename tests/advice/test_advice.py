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

from bandits import read, run
from bandits.advice import advise, evidence, guide
from bandits.advice.evidence import filled, lines_of
from bandits.agents import REGISTRY
from bandits.experiments import url
from bandits.lessons.expressions import evaluate, parse
from bandits.lessons.texts import check_text
from benchmarks.defaults import TESTS
from benchmarks.reproduction import choosing

GUIDE = guide()
ALLOWED = ("α = 0.05", "α = 0.4", "α = 0.7", "α = 1.5", "α = 1", "UCB1")


def stated() -> Iterator[tuple[str, str]]:
    for rule in GUIDE.rules:
        yield rule.text, rule.holds
    for question in GUIDE.questions.values():
        for note in question.notes.values():
            yield note.text, note.holds
    for case in GUIDE.cases:
        for finding in case.findings:
            yield finding.text, finding.holds
    for setting in GUIDE.settings:
        yield setting.text, setting.holds


@pytest.mark.parametrize(("text", "holds"), list(stated()))
def test_every_sentence_holds_on_its_measured_lines(text: str, holds: str) -> None:
    # no number is typed
    check_text(text, evidence().lines, (), ALLOWED)
    assert holds or text == "Not tested."
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


def test_every_combination_names_an_agent_and_states_how_its_line_differs() -> None:
    exact = combinations = 0
    for options in itertools.product(*(q.options for q in GUIDE.questions.values())):
        answers = dict(zip(GUIDE.questions, options, strict=True))
        found = advise(answers)
        combinations += 1
        exact += not found[0].differs
        for each in found:
            assert each.lines
            measured = {**answers, **{name: known[0] for name, known in each.differs.items()}}
            # as stated, the line holds for the other answers
            assert any(other.text == each.text and not other.differs for other in advise(measured))
            assert bool(each.differs) == bool(found[0].differs)
            # no agent reads features that the user does not have
            assert "features" not in each.differs or answers["features"] != "none"
    assert combinations == 5184
    assert 108 < exact < combinations


def test_answers_that_nothing_was_measured_for_name_the_nearest_line() -> None:
    answers = {
        "arms": "few",
        "features": "sums",
        "new": "never",
        "rewards": "numbers",
        "change": "sudden",
        "decisions": "thousands",
        "cost": "low",
    }
    found = advise(answers)
    assert {each.agent.get("gamma", each.agent.get("window")) for each in found} == {0.9995, 5000}
    assert all(each.differs == {"rewards": ("often",)} for each in found)


def test_rare_clicks_take_a_smaller_bonus_and_many_arms_a_shared_model() -> None:
    usual = {name: q.default or next(iter(q.options)) for name, q in GUIDE.questions.items()}
    rare = advise({**usual, "rewards": "rare"})
    assert not rare[0].differs
    assert rare[0].agent["alpha"] == 0.05
    # whatever agent is named
    assert GUIDE.questions["rewards"].notes.keys() == {"seldom", "rare"}
    for rewards, features in itertools.product(("often", "rare"), ("sums", "pairs")):
        # as the rule of thumb about more than a thousand arms
        (many,) = advise({**usual, "arms": "more", "features": features, "rewards": rewards})
        # its runs had the combinations
        assert many.differs == ({"features": ("pairs",)} if features == "sums" else {})
        assert many.agent["sharing"] == "shared"


def test_no_line_without_features_is_named_to_those_who_have_some() -> None:
    usual = "few", "sums"
    for options in itertools.product(*(q.options for q in GUIDE.questions.values())):
        answers = dict(zip(GUIDE.questions, options, strict=True))
        for each in advise(answers):
            known = each.differs.get("features", (answers["features"],))
            assert ("none" in known) == (answers["features"] == "none"), answers
            # a change decides more than how rare clicks are
            if answers["change"] != "none" and (answers["arms"], answers["features"]) == usual:
                assert "change" not in each.differs, answers


def test_the_twelve_rules_of_thumb_have_verdicts_by_condition() -> None:
    assert len(GUIDE.cases) == 12
    for case in GUIDE.cases:
        for finding in case.findings:
            # names its evidence
            assert bool(lines_of(finding.text)) == (finding.verdict != "not tested")
    verdicts = {
        case.says.partition(":")[0]: [finding.verdict for finding in case.findings]
        for case in GUIDE.cases
    }
    for rule in ("Cold start is critical", "More than a thousand arms"):
        assert verdicts[rule] == ["agrees", "differs"]


def test_the_stored_lines_are_those_of_the_documents_and_of_the_code() -> None:
    data = json.loads(files("bandits.advice").joinpath("evidence.json").read_text(encoding="utf-8"))
    for name in choosing.TABLES:
        assert data["lines"][name]["values"] == choosing.table_values(name)
    for name in choosing.RUNS:
        assert data["lines"][name]["experiment"] == choosing.experiment(name)


@pytest.mark.slow
def test_a_line_measures_the_same_again() -> None:
    stored = evidence().lines["interaction_50"].values
    again = run(read(choosing.experiment("interaction_50")), workers=0)
    for name, value in choosing.run_values(again).items():
        assert stored[name] == pytest.approx(value, abs=2e-3)
