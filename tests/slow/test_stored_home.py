"""Runs, sweeps, links, data sets and logs stored by version 1.0 open with the same hashes and
numbers.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bandits import Result, read, run
from bandits.experiments import url
from bandits.experiments.lockstep import Lockstep
from bandits.simulators.datasets import kept_logs, uploads
from bandits.storage.run_store import EvictedError, Store
from bandits.sweeps import url as sweep_url
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.runner import Runner
from bandits.sweeps.storage.block_files import BlockFiles, stored_sweep
from bandits.sweeps.storage.catalogue import Catalogue
from tests.slow.make_stored_home import ARCHIVE, RUNS, UNFINISHED, experiment, facts, sweep_facts

# networks are computed with other roundings on other processors
TOLERANCE = {"neural": 1e-3}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(tmp_path, filter="data")
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def expected(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "facts.json").read_text(encoding="utf-8"))
    return found


def assert_same(found: Any, stated: Any, tolerance: float, path: str = "") -> None:
    """Compare what version 1.0 stated; later versions may state more."""
    if isinstance(stated, dict):
        for name, value in stated.items():
            assert name in found, f"{path}/{name}"
            assert_same(found[name], value, tolerance, f"{path}/{name}")
    elif isinstance(stated, list):
        assert len(found) == len(stated), path
        for i, value in enumerate(stated):
            assert_same(found[i], value, tolerance, f"{path}/{i}")
    elif isinstance(stated, float):
        assert found == pytest.approx(stated, rel=tolerance, abs=tolerance, nan_ok=True), path
    else:
        assert found == stated, path


def test_the_home_of_version_1_0_opens(home: Path, expected: dict[str, Any]) -> None:
    store = Store()
    assert (store.repairs, store.check(), store.notice) == ([], [], "")
    assert list((home / "quarantine").iterdir()) == []
    listed = {line.id: line for line in store.runs()}
    assert set(listed) == {expected[name]["hash"] for name in RUNS}
    line = listed[expected["linear"]["hash"]]
    assert (line.title, line.tags, line.starred) == ("Première course", "lesson 1", True)
    assert (line.notes, line.seconds, line.evicted) == ("two lines\nof notes", 1.5, False)
    for name, data in RUNS.items():
        assert listed[expected[name]["hash"]].experiment == experiment(data)
        headline = listed[expected[name]["hash"]].headline
        assert headline is not None
        assert headline.label in expected[name]["summary"]["agents"]
        if name == "guarded":
            with pytest.raises(EvictedError):
                store.get(expected[name]["hash"])
            continue
        stored = store.get(expected[name]["hash"])
        assert stored is not None
        # sums are stored, so nothing is computed again
        assert_same(facts(stored), expected[name], 1e-9)


def test_the_same_experiments_have_the_same_numbers(expected: dict[str, Any]) -> None:
    for name, data in RUNS.items():
        again = run(experiment(data), workers=0, progress=False)
        assert_same(facts(again), expected[name], TOLERANCE.get(name, 1e-9))


def test_a_checkpoint_continues_to_the_same_numbers(expected: dict[str, Any]) -> None:
    store, e = Store(), experiment(UNFINISHED)
    ((name, text),) = store.checkpoints()
    assert (name, read(text)) == (e.hash, e)
    rest = Lockstep(e)
    rest.load_state_dict(store.checkpoint_arrays(name))
    assert rest.step == 100
    list(rest.advance(100))
    assert_same(facts(Result(e, rest.histories)), expected["unfinished"], 1e-9)


def test_links_open_the_same_experiments(expected: dict[str, Any]) -> None:
    for name, data in {**RUNS, "unfinished": UNFINISHED}.items():
        assert url.parse_query(expected[name]["link"]) == (experiment(data), True)
    assert sweep_url.parse_query(expected["sweep"]["link"]).hash == expected["sweep"]["hash"]


def test_the_sweep_is_listed_and_not_computed_again(home: Path, expected: dict[str, Any]) -> None:
    (entry,) = Catalogue(home / "sweeps").entries()
    assert (entry.sweep.hash, entry.progress) == (expected["sweep"]["hash"], 1)
    sweep = stored_sweep(home / "sweeps", entry.sweep.hash)
    assert sweep is not None
    runner = Runner(sweep, InProcessExecutor(), BlockFiles(sweep, home / "sweeps"))
    assert runner.load()
    assert_same(sweep_facts(runner.landscape), expected["sweep"], 1e-9)


def test_data_sets_and_logs_are_read(expected: dict[str, Any]) -> None:
    (data,), (log,) = uploads.listing(), kept_logs.listing()
    assert (data.id, log.id) == (expected["data"], expected["log"])
    assert uploads.load(data.id).shape == (60, 3)
    kept = kept_logs.load(log.id)
    assert (len(kept.items), kept.rewards.sum(), kept.features.shape, kept.names) == (
        40,
        10,
        (40, 2),
        ("a", "b", "c"),
    )
