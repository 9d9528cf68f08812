"""The command lesson: list, check and handout, with one sentence for each error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bandits.cli.main import main
from bandits.lessons import lessons
from tests.lessons.support import MARKDOWN, data


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "small.json").write_text(json.dumps(data()), encoding="utf-8")
    (tmp_path / "small.md").write_text(MARKDOWN, encoding="utf-8")
    return tmp_path / "small.json"


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split("  ")[0] == "pull-the-levers"
    assert main(["lesson", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(lessons())
    assert set(rows[0]) == {"name", "title", "minutes"}


def test_check_of_a_true_and_of_a_false_lesson(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lesson", "check", str(small)]) == 0
    assert capsys.readouterr().out == ""
    changed = data()
    changed["claims"][0]["holds"] = 'shop.ctr("Oracle") < shop.ctr("Random")'
    small.write_text(json.dumps(changed), encoding="utf-8")
    assert main(["lesson", "check", str(small)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("small: 'The oracle wins' is not true: ")


def test_handouts(small: Path, tmp_path: Path) -> None:
    for name, answers in (("pupil", []), ("teacher", ["--answers"])):
        out = tmp_path / f"{name}.html"
        assert main(["lesson", "handout", str(small), "--out", str(out), *answers]) == 0
        assert ("Answer:" in out.read_text(encoding="utf-8")) == bool(answers)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "nothing"], "there is no lesson 'nothing'"),
        (
            ["handout", "explore-or-exploit", "--out", "/no/such/folder/x.html"],
            "No such file or directory",
        ),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lesson", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert words in error
    assert error.count("\n") == 1
