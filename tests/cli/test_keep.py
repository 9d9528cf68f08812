"""``run --keep`` stores what the app stores for the same experiment, and loses nothing where it
cannot.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bandits import read, run
from bandits.cli import main as cli
from bandits.results.change.lost_clicks import without_changes
from bandits.storage.eviction import VARIABLE
from bandits.storage.owners import Owners
from bandits.storage.run_store import Store
from bandits_app.session import workers
from tests.pages.support import open_page
from tests.support import experiment, same

SHOCK = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "shock", "at": 100}]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a home folder that does not exist yet."""
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def file_of(folder: Path, *agents: Any, **changes: Any) -> str:
    path = folder / "experiment.json"
    path.write_text(experiment(*agents, **changes).model_dump_json())
    return str(path)


def test_a_kept_run_is_listed_and_opened(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    e, out = experiment(simulator=SHOCK), tmp_path / "out"
    arguments = [file_of(tmp_path, simulator=SHOCK), "--keep", "--log", "--out", str(out)]
    assert cli.main(["run", *arguments]) == 0
    unchanged = without_changes(e)
    ids = [each.hash[:12] for each in (e, unchanged)]
    assert capsys.readouterr().out.splitlines()[-2:] == [f"stored as run {run}" for run in ids]
    assert {each.name for each in out.iterdir()} >= {"summary.json", "log"}
    for each in (e, unchanged):
        found = Store().get(each.hash)
        assert found is not None
        for label, history in run(each).histories.items():
            same(found.histories[label], history)
    assert cli.main(["runs"]) == 0
    listed = capsys.readouterr().out
    assert all(run in listed for run in ids)
    assert cli.main(["show", ids[0]]) == 0
    shown = capsys.readouterr().out
    assert "LinUCB" in shown
    # the run without them is stored too
    assert "Clicks lost to the changes" in shown


def test_without_the_option_nothing_is_stored(folder: Path, tmp_path: Path) -> None:
    assert cli.main(["run", file_of(tmp_path)]) == 0
    assert not folder.exists()


def test_a_kept_run_is_on_the_page_runs(folder: Path, tmp_path: Path) -> None:
    workers.pool.clear()
    try:
        assert cli.main(["run", file_of(tmp_path), "--keep"]) == 0
        at = open_page("runs")
        assert not at.exception
        assert experiment().hash in [run.id for run in workers.pool().store.runs()]
        text = " ".join(
            str(each.value)
            for kind in ("markdown", "caption", "text", "dataframe")
            for each in at.get(kind)
        )
        assert "LinUCB, Random" in text
    finally:
        workers.pool().close()
        workers.pool.clear()


def test_texts_and_owner_of_a_stored_run_stay(folder: Path, tmp_path: Path) -> None:
    run_id, name = experiment().hash, file_of(tmp_path)
    for evicted in (False, True):
        assert cli.main(["run", name, "--keep"]) == 0
        store, owners = Store(), Owners(folder / "owners")
        store.rename(run_id, "For class")
        store.tag(run_id, "lesson 3")
        owners.record(run_id, "a browser")
        first = store.runs()
        if evicted:
            store.evict(run_id)
            assert store.runs()[0].evicted
        assert cli.main(["run", name, "--keep"]) == 0
        (listed,) = store.runs()
        assert (listed.title, listed.tags, listed.evicted) == ("For class", "lesson 3", False)
        assert evicted or [listed] == first
        assert owners.of(run_id) == "a browser"
    # a run of the command line has no owner
    assert not Owners(None).may_delete(run_id, "a browser")


def test_the_disk_budget_holds(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["run", file_of(tmp_path, seed=1), "--keep"]) == 0
    size = Store().runs()[0].bytes
    # what stays of an evicted run counts too
    monkeypatch.setenv(VARIABLE, str(size + 20_000))
    assert cli.main(["run", file_of(tmp_path, seed=2), "--keep"]) == 0
    assert {run.id: run.evicted for run in Store().runs()} == {
        experiment(seed=1).hash: True,
        experiment(seed=2).hash: False,
    }
    capsys.readouterr()
    monkeypatch.setenv(VARIABLE, "0")
    out = tmp_path / "out"
    assert cli.main(["run", file_of(tmp_path, seed=3), "--keep", "--out", str(out)]) == 1
    printed, error = capsys.readouterr()
    assert printed.startswith("LinUCB")
    assert error == (
        f"error: run {experiment(seed=3).hash[:12]} is listed, but its curves do not fit into "
        "BANDITS_DISK_BUDGET, the budget of the disk, and were deleted\n"
    )
    assert (out / "curves.parquet").is_file()


def test_a_store_that_cannot_be_opened_costs_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --out it is refused before the run; with it, the run is computed and written."""
    folder.write_text("a file")
    assert cli.main(["run", file_of(tmp_path), "--keep"]) == 2
    printed, error = capsys.readouterr()
    assert (printed, error) == ("", f"error: {folder}: File exists\n")
    out = tmp_path / "out"
    assert cli.main(["run", file_of(tmp_path), "--keep", "--out", str(out)]) == 1
    printed, error = capsys.readouterr()
    assert printed.startswith("LinUCB")
    assert error == f"error: run {experiment().hash[:12]} could not be stored: File exists\n"
    assert json.loads((out / "summary.json").read_text())["agents"].keys() == {"LinUCB", "Random"}


def test_a_run_is_stored_where_its_output_cannot_be_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (out / "summary.json").mkdir(parents=True)
    assert cli.main(["run", file_of(tmp_path), "--keep", "--out", str(out)]) == 2
    printed, error = capsys.readouterr()
    assert printed == f"stored as run {experiment().hash[:12]}\n"
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert Store().get(experiment().hash) is not None


def test_an_experiment_keeps_its_hash_in_the_store(folder: Path, tmp_path: Path) -> None:
    """Changes on the command line are part of the stored experiment."""
    assert (
        cli.main(["run", file_of(tmp_path), "--keep", "--steps", "50", "--set", "agents.0.alpha=2"])
        == 0
    )
    (listed,) = Store().runs()
    data = experiment().model_dump(mode="json")
    data["agents"][0]["alpha"], data["steps"] = 2, 50
    assert listed.id == listed.experiment.hash == read(data).hash
