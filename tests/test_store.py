"""Runs on disk: whole or not there at all, and whatever is damaged is noticed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bandits import Experiment, Refused, Result, run
from bandits import store as storing
from bandits.store import Corrupt, Store, pack, unpack
from tests.support import experiment, same


def finished(seed: int = 1) -> Result:
    return run(experiment("linucb", "random", steps=200, seed=seed))


def put(store: Store, result: Result) -> str:
    store.put(result.experiment, result.histories, 1.5)
    return result.experiment.hash


def test_what_was_put_comes_back_to_the_bit(tmp_path: Path) -> None:
    result = finished()
    name = put(Store(tmp_path), result)
    found = Store(tmp_path).get(name)  # another process would see the same
    assert found is not None
    assert found.experiment == result.experiment
    for label, history in result.histories.items():
        same(found.histories[label], history)
    assert found.summary() == result.summary()
    assert Store(tmp_path).get("0" * 64) is None


def test_runs_are_listed_renamed_tagged_and_deleted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = put(store, finished(1)), put(store, finished(2))
    put(store, finished(2))  # once more changes nothing
    assert [r.id for r in store.runs()] == [second, first]
    store.rename(first, "For <b>class</b> '; DROP TABLE runs; --")
    store.tag(first, "lesson 3")
    found = store.runs()[1]
    assert (found.title, found.tags) == ("For <b>class</b> '; DROP TABLE runs; --", "lesson 3")
    store.keep_checkpoint(first, found.experiment, b"state")
    store.delete(first)
    assert [r.id for r in store.runs()] == [second]
    assert store.get(first) is None
    assert store.checkpoint(first) is None
    assert store.check() == []
    assert len(list((tmp_path / "objects").glob("*/*"))) == 1


def test_twenty_flipped_bits_are_all_noticed(tmp_path: Path) -> None:
    store, result, dice = Store(tmp_path), finished(), np.random.default_rng(3)
    for _ in range(20):
        name = put(store, result)
        (path,) = (tmp_path / "objects").glob("*/*")
        data = bytearray(path.read_bytes())
        data[int(dice.integers(len(data)))] ^= 1 << int(dice.integers(8))
        path.write_bytes(data)
        with pytest.raises(Corrupt, match=r"is damaged; it was set aside"):
            store.get(name)
        assert store.get(name) is None  # no longer listed: it can be run again
        assert not path.exists()
    assert len(list((tmp_path / "quarantine").iterdir())) == 20


def test_check_reads_everything_and_sweeps_what_belongs_to_nobody(tmp_path: Path) -> None:
    store = Store(tmp_path)
    good, bad = put(store, finished(1)), put(store, finished(2))
    paths = {p: p.read_bytes() for p in (tmp_path / "objects").glob("*/*")}
    broken = next(p for p in paths if paths[p] != b"" and p.name == _content(store, bad))
    broken.write_bytes(paths[broken][:-1])
    (tmp_path / "objects" / "ab").mkdir(exist_ok=True)
    (tmp_path / "objects" / "ab" / "orphan.part").write_bytes(b"half")
    said = store.check()
    assert len(said) == 2
    assert any(bad[:12] in s for s in said)
    assert any("belongs to no run" in s for s in said)
    assert [r.id for r in store.runs()] == [good]
    assert store.check() == []


def _content(store: Store, name: str) -> str:
    with store._index() as index:
        return str(index.execute("SELECT content FROM runs WHERE id = ?", (name,)).fetchone()[0])


def test_checkpoints_are_replaced_trusted_only_whole_and_listed_until_finished(tmp_path: Path) -> None:
    store, result = Store(tmp_path), finished()
    name = result.experiment.hash
    store.keep_checkpoint(name, result.experiment, b"one")
    store.keep_checkpoint(name, result.experiment, b"two")
    assert store.checkpoint(name) == b"two"
    assert store.checkpoints() == [(name, result.experiment.model_dump_json())]
    put(store, result)
    assert store.checkpoints() == []
    path = tmp_path / "checkpoints" / name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert store.checkpoint(name) is None
    assert not path.exists()


def test_packed_arrays_come_back() -> None:
    arrays = {"0/sum.clicks": np.arange(6.0).reshape(2, 3), "a": np.array(3), "b": np.array([True, False])}
    found = unpack(pack(arrays))
    assert list(found) == list(arrays)
    for key, value in arrays.items():
        np.testing.assert_array_equal(found[key], value)
        assert found[key].dtype == value.dtype


def test_a_disk_without_room_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "FLOOR", 2**70)
    with pytest.raises(Refused, match=r"MiB left; a run needs"):
        Store(tmp_path).require_space()


WRITER = """
import resource, sys
from pathlib import Path
from bandits.store import Store
from tests.test_store import finished, put
folder, limit, seeds = Path(sys.argv[1]), int(sys.argv[2]), range(int(sys.argv[3]), int(sys.argv[4]))
store, results = Store(folder), [finished(seed) for seed in seeds]
if limit:
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
print("ready", flush=True)
for result in results:
    try:
        put(store, result)
        print("kept", flush=True)
    except OSError as error:
        print("full:", error.strerror, flush=True)
"""


def writer(folder: Path, first: int, last: int, limit: int = 0) -> subprocess.Popen[str]:
    root = Path(__file__).parent.parent
    command = [sys.executable, "-c", WRITER, str(folder), str(limit), str(first), str(last)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=root)


def test_a_full_disk_costs_the_new_run_only(tmp_path: Path) -> None:
    kept = put(Store(tmp_path), finished(1))
    out, _ = writer(tmp_path, 2, 4, limit=4096).communicate(timeout=120)
    assert out.splitlines() == ["ready", "full: File too large", "full: File too large"]
    store = Store(tmp_path)
    assert [r.id for r in store.runs()] == [kept]
    assert store.get(kept) is not None
    assert store.check() == []  # nothing half-written stayed


def test_processes_writing_at_once_lose_nothing(tmp_path: Path) -> None:
    Store(tmp_path)
    writers = [writer(tmp_path, 10 * i, 10 * i + 4) for i in range(1, 5)]
    for process in writers:
        out, _ = process.communicate(timeout=120)
        assert out.count("kept") == 4
    store = Store(tmp_path)
    assert len(store.runs()) == 16
    assert store.check() == []


def test_a_killed_writer_leaves_whole_files_only(tmp_path: Path) -> None:
    process = writer(tmp_path, 1, 40)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert process.stdout.readline() == "kept\n"
    time.sleep(0.02)  # somewhere in the middle of the others
    process.send_signal(signal.SIGKILL)
    process.wait()
    store = Store(tmp_path)
    assert len(store.runs()) >= 1
    for listed in store.runs():
        assert isinstance(listed.experiment, Experiment)
        assert store.get(listed.id) is not None
    assert all("belongs to no run" in s for s in store.check())
