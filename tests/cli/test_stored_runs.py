"""Stored runs on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bandits import Result, run
from bandits.cli import main as cli
from bandits.storage.owners import Owners
from bandits.storage.run_index import RUNS
from bandits.storage.run_store import Store
from tests.support import experiment


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a home folder that does not exist yet."""
    home = tmp_path / "new" / "home"
    monkeypatch.setenv("BANDITS_HOME", str(home))
    return home


def keep(**changes: int) -> Result:
    result = run(experiment("linucb", "random", **{"steps": 200, **changes}))
    Store().put(result.experiment, result.histories, 1.5)
    return result


def output(capsys: pytest.CaptureFixture[str], status: int, *arguments: str) -> str:
    """Return what a command prints.

    A refusal is one printable line on standard error and no output.
    """
    assert cli.main(list(arguments)) == status
    out, err = capsys.readouterr()
    if status == 2:
        assert out == ""
        assert err.startswith("error: ")
        assert err[:-1].isprintable()
        assert len(err) <= 410
        return err[:-1]
    assert err == ""
    return out


def test_a_new_store_is_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, 0, "runs") == "No runs are stored yet.\n"
    assert json.loads(output(capsys, 0, "runs", "--json")) == []
    assert "Stored runs: 0" in output(capsys, 0, "store", "check")
    assert (folder / "index.sqlite").is_file()


def test_runs_are_listed_and_searched(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = keep(seed=1), keep(seed=2, steps=3000)
    Store().rename(first.experiment.hash, "For class\x1b[31m\n2 b")
    Store().tag(first.experiment.hash, "lesson 3")
    Store().star(first.experiment.hash, True)
    Store().note(first.experiment.hash, "shown in May")
    newest, oldest = output(capsys, 0, "runs").splitlines()
    assert newest.startswith(second.experiment.hash[:12])
    assert all(part in newest for part in ("3,000 x 3", "Pet shop", "LinUCB, Random"))
    # no control characters
    assert "For class\\x1b[31m\\n2 b" in oldest
    assert "[lesson 3]" in oldest
    for wanted in ("LESSON", first.experiment.hash[:8], "for class"):
        assert output(capsys, 0, "runs", "--search", wanted).splitlines() == [oldest]
    assert output(capsys, 0, "runs", "--search", "\x1bnobody") == (
        "None of the 2 stored runs contains '\\x1bnobody'.\n"
    )
    facts = json.loads(output(capsys, 0, "runs", "--json", "--search", "lesson"))
    assert [f["id"] for f in facts] == [first.experiment.hash]
    assert facts[0]["agents"] == ["LinUCB", "Random"]
    assert facts[0]["title"] == "For class\x1b[31m\n2 b"
    assert (facts[0]["starred"], facts[0]["notes"]) == (True, "shown in May")


def test_a_run_is_shown_by_the_first_digits_of_its_id(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = keep(seed=1)
    name, out = result.experiment.hash, tmp_path / "out"
    shown = output(capsys, 0, "show", name[:6], "--out", str(out))
    table, _, text = shown.partition("{")
    assert [line.split("  ")[0] for line in table.splitlines()] == ["LinUCB", "Random"]
    assert json.loads("{" + text) == json.loads(result.experiment.model_dump_json())
    result.save(tmp_path / "direct")
    for file in ("experiment.json", "summary.json"):
        assert (out / file).read_bytes() == (tmp_path / "direct" / file).read_bytes()
    pd.testing.assert_frame_equal(pd.read_parquet(out / "curves.parquet"), result.table())
    assert output(capsys, 0, "show", name, "--json") == (out / "summary.json").read_text("utf-8")
    assert output(capsys, 0, "show", name, "--json", "--out", str(out / "again")).startswith("{")


def test_show_prints_the_same_lines_as_run(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = keep(seed=1)
    file = tmp_path / "experiment.json"
    file.write_text(result.experiment.model_dump_json(), encoding="utf-8")
    assert cli.main(["run", str(file)]) == 0
    ran = capsys.readouterr().out
    assert output(capsys, 0, "show", result.experiment.hash).startswith(ran)


def test_unknown_and_ambiguous_ids_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = keep(seed=1)
    name = result.experiment.hash
    for bad in ("abc", name[:5], name + "0", "ABCDEF", "../../etc/passwd", "\x1b[31m" * 90, ""):
        assert "it must be 6 to 64 of the digits" in output(capsys, 2, "show", bad)
    other = "0" * 6 if not name.startswith("0" * 6) else "1" * 6
    assert output(capsys, 2, "show", other) == (
        f"error: no stored run begins with '{other}'; python -m bandits runs lists them"
    )
    store = Store()
    ambiguous = name[:10] + "0" * 54
    (row,) = store._index.find()
    store._index.use(lambda index: RUNS.put(index, row | {"id": ambiguous}), write=True)
    refusal = output(capsys, 2, "show", name[:8])
    assert f"'{name[:8]}' matches 2 stored runs" in refusal
    assert name[:12] in refusal
    assert output(capsys, 0, "show", name).startswith("LinUCB")


def test_store_check_reports_damage_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = keep(seed=1).experiment.hash, keep(seed=2).experiment.hash
    content = str(Store()._index.find("id = ?", bad)[0]["content"])
    path = folder / "objects" / content[:2] / content
    path.write_bytes(path.read_bytes()[:-1])
    lines = output(capsys, 1, "store", "check").splitlines()
    assert lines == [
        f"the stored file of run {bad[:12]} is damaged; it was set aside and the run must be run "
        "again"
    ]
    assert (
        output(capsys, 0, "store", "check")
        == "No damage was found. Stored runs: 1, unfinished: 0.\n"
    )
    assert good in output(capsys, 0, "runs", "--json")
    assert "no stored run" in output(capsys, 2, "show", bad)


def test_a_damaged_run_is_refused_in_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = keep(seed=1).experiment.hash
    (path,) = (folder / "objects").glob("*/*")
    path.write_bytes(b"nothing of the kind")
    assert "is damaged; it was set aside" in output(capsys, 2, "show", name)


def test_an_unwritable_home_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setenv("BANDITS_HOME", str(home))
        for arguments in (["runs"], ["show", "abcdef"], ["store", "check"]):
            assert str(home) in output(capsys, 2, *arguments)
    # a folder in place of the index
    (tmp_path / "index.sqlite").mkdir()
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    assert "the index of stored runs" in output(capsys, 2, "runs")


def test_one_replication_has_no_interval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = keep(seed=1, replications=1)
    shown = output(capsys, 0, "show", result.experiment.hash).splitlines()[0]
    assert "(" not in shown
    assert np.isfinite(float(shown.split("ctr ")[1].split()[0]))


def test_runs_are_deleted_whoever_started_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, first, second = (keep(seed=seed).experiment.hash for seed in (1, 2, 3))
    Owners(folder / "owners").record(first, "a visitor")
    assert "no stored run begins with" in output(capsys, 2, "delete", first, "0" * 12)
    assert len(Store().runs()) == 3
    assert (
        output(capsys, 0, "delete", first, second[:12])
        == f"deleted {first[:12]}\ndeleted {second[:12]}\n"
    )
    assert [each.id for each in Store().runs()] == [kept]
    assert list((folder / "owners").iterdir()) == []
