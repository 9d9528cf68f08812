"""Lesson files: each error is one sentence that names the lesson, the step and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from bandits import UserError
from bandits.lessons import find, lessons, read_lesson, reading
from bandits.lessons.worked.gradient_bonus import GradientBonus
from tests.lessons.support import MARKDOWN, data, lesson

Change = Callable[[dict[str, Any]], Any]


def step(changed: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in changed["steps"] if each["id"] == name)
    return found


def refusal(change: Change | None = None, markdown: str = MARKDOWN) -> str:
    changed = data()
    if change is not None:
        change(changed)
    with pytest.raises(UserError) as error:
        lesson(changed, markdown)
    return str(error.value)


def test_the_shipped_lessons_are_valid_and_in_order() -> None:
    assert list(lessons())[:4] == [
        "pull-the-levers",
        "a-shop-and-a-log",
        "explore-or-exploit",
        "ridge-regression-by-hand",
    ]
    for each in lessons().values():
        assert each.data.claims, each.name
        kinds = {s.kind for s in each.data.steps}
        assert kinds >= {"predict", "run", "explain"}, each.name
        assert kinds & {"try", "play"}, each.name
        assert 15 <= each.data.minutes <= 45


def test_readers_who_open_their_first_lesson_at_once_read_the_files_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []

    def read(name: str, *_: str) -> str:
        names.append(name)
        sleep(0.005)
        return name

    monkeypatch.setattr(reading, "read_lesson", read)
    reading._lessons.cache_clear()
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _: lessons(), range(4)))
    finally:
        reading._lessons.cache_clear()
    assert all(each is found[0] for each in found)
    assert sorted(names) == sorted(found[0])


def test_reading_a_lesson_does_not_run_its_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lesson 5 names numbers for which torch is loaded; only the texts that show them need it."""
    monkeypatch.setattr(GradientBonus, "slow_values", None)
    path = Path(reading.__file__).parent / "5-neuralucb-and-its-cost.json"
    texts = [each.read_text(encoding="utf-8") for each in (path, path.with_suffix(".md"))]
    sources = read_lesson("neuralucb", *texts).sources({})
    sources["bonus"].check("corrected_difference", ())
    with pytest.raises(TypeError):
        sources["bonus"].quantity("corrected_difference", ())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda d: d["steps"].append({"kind": "quiz", "id": "quiz"}),
            "step 10 is of the unknown kind 'quiz'; it must be one of text, predict, run, see, "
            "explain, try",
        ),
        (lambda d: d["steps"].append({"id": "quiz"}), "step 10 has no kind"),
        (lambda d: d["steps"].append({"kind": "text", "id": "Not allowed"}), "step 10: id is"),
        (
            lambda d: d["steps"].append({"kind": "text", "id": "welcome"}),
            "two steps are called 'welcome'",
        ),
        (lambda d: d["steps"].append({"kind": "text", "id": "more"}), "no section for step 'more'"),
        (lambda d: d["steps"].pop(0), "section for 'welcome', which is no step"),
        (
            lambda d: step(d, "shop").pop("experiment"),
            "must have one of experiment, preset and worked",
        ),
        (
            lambda d: step(d, "storm").update(worked="magic"),
            "there is no worked example 'magic'; there are ",
        ),
        (lambda d: step(d, "storm").update(shown=["beta"]), "rare_feature has no parameter 'beta'"),
        (lambda d: step(d, "shop")["experiment"].update(steps=0), "step 'shop': steps is 0"),
        (
            lambda d: step(d, "shop")["experiment"].update(steps=10_000_000, replications=4096),
            "step 'shop': the experiment would",
        ),
        (lambda d: step(d, "look").update(run="other"), "there is no run 'other' before it"),
        (
            lambda d: step(d, "look").update(agents=["Nobody", "Random"]),
            "there is no agent 'Nobody'",
        ),
        (
            lambda d: step(d, "look").update(agents=["Random"]),
            "the plot 'lead' compares two agents",
        ),
        (lambda d: step(d, "look").update(figures=[1]), "figures are those of a worked example"),
        (
            lambda d: d["steps"].append(
                {**d["steps"].pop(5), "run": "storm", "plots": ["worked"], "figures": [1, 3]}
            ),
            "step 'look': figure 3 does not exist: 'storm' is a worked example with 2 figures",
        ),
        (
            lambda d: step(d, "look").update(plots=["worked"]),
            "the plot 'worked' is for worked examples",
        ),
        (lambda d: step(d, "look").update(predictions=["other"]), "there is no prediction 'other'"),
        (
            lambda d: step(d, "tame").update(solution=30),
            "start and solution must lie between 0 and 20",
        ),
        (
            lambda d: step(d, "guess")["answer"].update(truth="shop.magic"),
            "'magic' is not a number of a run",
        ),
        (
            lambda d: step(d, "guess")["answer"].update(truth='shop.ctr("X")'),
            "there is no agent 'X'",
        ),
        (
            lambda d: step(d, "guess")["answer"].update(truth="other.ctr"),
            "names 'other'; there are shop, storm",
        ),
        (lambda d: step(d, "guess")["answer"].update(truth="0.5"), "names no run"),
        (lambda d: step(d, "guess")["answer"].update(low=2), "has no room"),
        (
            lambda d: d["claims"][0].update(holds="__import__('os').system('x')"),
            "claim 'The oracle wins':",
        ),
        (
            lambda d: d["claims"][0].update(holds='shop.p_value("Oracle")'),
            "'p_value' names 2 agents",
        ),
        (
            lambda d: d["claims"][0].update(holds='shop.parameter("Oracle", "alpha") > 0'),
            "not a numeric parameter",
        ),
        (
            lambda d: d["claims"][0].update(holds='shop.p_value("Oracle", "Oracle") > 0'),
            "is named twice",
        ),
        (lambda d: d["claims"][0].update(holds='min(shop.ctr("Oracle")) > 0'), "is not allowed"),
        (lambda d: d["claims"][0].update(holds='abs(shop.ctr("Oracle"), 1) > 0'), "is not allowed"),
        (
            lambda d: d["claims"][0].update(holds=f'shop.ctr("Oracle") < 1{"0" * 320}'),
            "is not allowed",
        ),
        (lambda d: step(d, "tame").update(low=-1), "ridge = -1 is not possible"),
        (
            lambda d: step(d, "pick")["answer"]["options"][0].update(text="{{shop.steps}}"),
            "titles and options",
        ),
        (lambda d: d.update(minutes=0), "minutes is 0"),
        (lambda d: d.update(colour="red"), "colour is not a known field"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(change: Change, words: str) -> None:
    text = refusal(change)
    assert text.startswith("lesson small: ")
    assert words in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "Move it.",
            "It earns 0.295 clicks.",
            "step 'storm': the number '0.295' is typed by hand: no run gives it",
        ),
        ("Move it.", "It is {{1 + 1}}.", "'1 + 1' names no run"),
        ("Move it.", "It is $x^2$.", "the number"),
        ("Move it.", "It is $x$.", "a formula is typed by hand"),
        ("Move it.", "{{formula nothing}}", "'nothing' has no formula"),
        ("Move it.", "{{storm.ridge | roman}}", "'roman' is not a format"),
        ("How much?", '{{shop.ctr("Oracle")}}', "'ctr' is a result of a run that comes later"),
        ("### Happened\n\nIt was", "It was", "a prediction needs a part '### Happened'"),
        ("### Hint\n\nTen.\n", "", "a task has 3 hints"),
        ("## Try {#tame}", "## Try {#welcome}", "'welcome' appears twice"),
    ],
)
def test_a_wrong_text_is_refused_in_one_sentence(before: str, after: str, words: str) -> None:
    assert before in MARKDOWN
    assert words in refusal(markdown=MARKDOWN.replace(before, after, 1))


def test_names_of_agents_and_declared_phrases_may_hold_digits() -> None:
    assert lesson().data.allowed_numbers == ("95 %",)
    assert "the number '95' is typed by hand" in refusal(lambda d: d.update(allowed_numbers=[]))


def test_an_unknown_name_lists_the_lessons_and_a_file_is_read(tmp_path: Any) -> None:
    with pytest.raises(UserError, match="there is no lesson 'x'; there are pull-the-levers, "):
        find("x")
    with pytest.raises(UserError, match=r"x\.json cannot be read: No such file"):
        find(str(tmp_path / "x.json"))
    (tmp_path / "own.json").write_text(json.dumps(data()))
    (tmp_path / "own.md").write_text(MARKDOWN)
    assert find(str(tmp_path / "own.json")).name == "own"
