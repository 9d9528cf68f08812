"""Disk space: results that can be recomputed are evicted, oldest first, and nothing else is
lost.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bandits import UserError, run, sweeps
from bandits.cli.main import main
from bandits.results.metric_registry import OBJECTIVES
from bandits.runtime.pool import Pool
from bandits.storage.eviction import budget, evict, evictable_runs
from bandits.storage.run_store import EvictedError, Store
from bandits.sweeps.figures import grid
from bandits.sweeps.storage.block_files import BlockFiles, evictable_sweeps, remove_damaged
from tests.support import experiment, same, wait_for
from tests.sweeps.test_sweep import small


def filled(folder: Path, *seeds: int) -> Store:
    store = Store(folder)
    for seed in seeds:
        e = experiment(seed=seed)
        store.put(e, run(e).histories, 1.0)
        store.keep_checkpoint(e.hash, e, b"x" * 5000)
    return store


@pytest.mark.parametrize(
    ("text", "actual"),
    [("500MB", 500_000_000), ("2 gb", 2_000_000_000), ("1.5KB", 1500), ("0", 0), ("7B", 7)],
)
def test_a_budget_is_a_size(text: str, actual: int) -> None:
    assert budget(text) == actual


@pytest.mark.parametrize("text", ["", "much", "-1", "1e9", "5XB", "5K", "1" * 12, "nan"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="it must be a size like 500MB or 2GB"):
        budget(text)


def test_the_oldest_runs_are_evicted_first_and_stay_listed(tmp_path: Path) -> None:
    store = filled(tmp_path, 1, 2, 3)
    weights = [size for _, size, _ in store.evictable()]
    message = evict(evictable_runs(store), sum(weights) - 1)
    listed = {listed.id: listed for listed in store.runs()}
    first, second, third = (experiment(seed=seed) for seed in (1, 2, 3))
    assert [listed[e.hash].evicted for e in (first, second, third)] == [True, False, False]
    assert listed[first.hash].experiment == first
    assert message[0].startswith(f"run {first.hash[:12]}")
    assert store.checkpoint_files.state(first.hash) is None
    assert store.get(second.hash) is not None
    with pytest.raises(EvictedError, match="run it again to restore them"):
        store.get(first.hash)
    assert store.check() == []
    assert evict(evictable_runs(store), sum(weights))[:-1] == []
    evict(evictable_runs(store), 0)
    assert all(one.evicted for one in store.runs())
    assert store.evictable() == []


@pytest.mark.slow
def test_an_evicted_run_is_recomputed_with_its_title(tmp_path: Path) -> None:
    store, e = filled(tmp_path, 1), experiment(seed=1)
    whole = run(e)
    store.rename(e.hash, "mine")
    store.evict(e.hash)
    pool = Pool(1, store)
    try:
        assert pool.get(e.hash) is None
        job = pool.submit(e)
        wait_for(lambda: job.status == "finished", "the run")
    finally:
        pool.close()
    again = Store(tmp_path)
    (listed,) = again.runs()
    assert (listed.title, listed.evicted) == ("mine", False)
    actual = again.get(e.hash)
    assert actual is not None
    for label, history in whole.histories.items():
        same(history, actual.histories[label])
    assert again.check() == []


def test_a_rebuilt_index_lists_evicted_runs(tmp_path: Path) -> None:
    store = filled(tmp_path, 1, 2)
    store.evict(experiment(seed=1).hash)
    (tmp_path / "index.sqlite").write_bytes(b"not an index")
    assert sorted(one.evicted for one in Store(tmp_path).runs()) == [False, True]


def test_a_sweep_keeps_its_numbers_without_its_curves(tmp_path: Path) -> None:
    sweep = small()
    files = BlockFiles(sweep, tmp_path)
    whole = sweeps.run(sweep, files=files)
    heavy = files.bytes
    message = evict(evictable_sweeps(tmp_path), 0)
    assert message[0].startswith(f"sweep {sweep.hash[:12]}")
    assert files.bytes < heavy
    thin = sweeps.run(sweep, files=files)
    for metric in OBJECTIVES:
        assert np.array_equal(thin.numbers(metric), whole.numbers(metric), equal_nan=True)
    record, _ = grid.point_curves(thin, 0, "ctr")
    assert "deleted to save space" in record["layout"]["annotations"][0]["text"]
    assert evict(evictable_sweeps(tmp_path), 0)[:-1] == []


def test_damaged_and_unfinished_files_of_sweeps_are_removed(tmp_path: Path) -> None:
    sweep = small()
    files = BlockFiles(sweep, tmp_path)
    sweeps.run(sweep, files=files)
    assert remove_damaged(tmp_path) == []
    block = next(files.folder.glob("*.block"))
    block.write_bytes(block.read_bytes()[:-1])
    (files.folder / "half.part").write_bytes(b"half")
    (tmp_path / ("0" * 64)).mkdir()
    # other folders are not touched
    (tmp_path / "notes").mkdir()
    message = remove_damaged(tmp_path)
    assert len(message) == 2
    assert "had no readable sweep.json" in message[0]
    assert "2 damaged or unfinished blocks were removed" in message[1]
    assert remove_damaged(tmp_path) == []
    assert (tmp_path / "notes").is_dir()
    assert sweeps.run(sweep, files=files).completed.all()


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    filled(tmp_path, 1)
    assert main(["store", "repair"]) == 0
    assert main(["store", "evict", "--budget", "lots"]) == 2
    assert "--budget is lots" in capsys.readouterr().err
    assert main(["store", "evict", "--budget", "1kB"]) == 0
    assert "MB freed" in capsys.readouterr().out
    assert main(["runs"]) == 0
