"""Runs on disk: files are complete or absent, and damage is detected."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from bandits import Experiment, Result, UserError, run
from bandits.base.files import pack, unpack
from bandits.storage import run_store as storing
from bandits.storage.run_index import RUNS
from bandits.storage.run_store import CorruptFileError, Store
from tests.support import PATIENCE, experiment, often, same


def finished(seed: int = 1) -> Result:
    return run(experiment("linucb", "random", steps=200, seed=seed))


def put(store: Store, result: Result) -> str:
    store.put(result.experiment, result.histories, 1.5)
    return result.experiment.hash


def test_a_stored_run_is_bit_identical_when_read(tmp_path: Path) -> None:
    result = finished()
    name = put(Store(tmp_path), result)
    # as another process would
    actual = Store(tmp_path).get(name)
    assert actual is not None
    assert actual.experiment == result.experiment
    for label, history in result.histories.items():
        same(actual.histories[label], history)
    assert actual.summary() == result.summary()
    assert Store(tmp_path).get("0" * 64) is None


def test_runs_are_listed_renamed_tagged_and_deleted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = put(store, finished(1)), put(store, finished(2))
    # repeating it changes nothing
    put(store, finished(2))
    assert [r.id for r in store.runs()] == [second, first]
    store.rename(first, "For <b>class</b> '; DROP TABLE runs; --")
    store.tag(first, "lesson 3")
    actual = store.runs()[1]
    assert (actual.title, actual.tags) == ("For <b>class</b> '; DROP TABLE runs; --", "lesson 3")
    store.keep_checkpoint(first, actual.experiment, b"state")
    store.delete(first)
    assert [r.id for r in store.runs()] == [second]
    assert store.get(first) is None
    assert store.checkpoint_files.state(first) is None
    assert store.check() == []
    assert len(list((tmp_path / "objects").glob("*/*"))) == 1


def flip(path: Path, rng: np.random.Generator) -> None:
    """Flip one bit without changing the modification time, as a faulty disk does."""
    data = bytearray(path.read_bytes())
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)


def test_flipped_bits_in_files_are_detected(tmp_path: Path) -> None:
    store, result, rng, times = (
        Store(tmp_path),
        finished(),
        np.random.default_rng(3),
        often(20, 500),
    )
    for _ in range(times):
        name = put(store, result)
        (path,) = (tmp_path / "objects").glob("*/*")
        flip(path, rng)
        with pytest.raises(CorruptFileError, match=r"is damaged; it was set aside"):
            store.get(name)
        # no longer listed: the run can be started again
        assert store.get(name) is None
        assert not path.exists()
    assert len(list((tmp_path / "quarantine").iterdir())) == times


def test_flipped_bits_in_checkpoints_are_detected(tmp_path: Path) -> None:
    store, e, rng, times = Store(tmp_path), experiment(), np.random.default_rng(4), often(20, 500)
    for i in range(times):
        store.keep_checkpoint(e.hash, e, b"state of the run")
        flip(tmp_path / "checkpoints" / e.hash, rng)
        if i % 2:
            assert store.check() == [
                f"the checkpoint of run {e.hash[:12]} was damaged or of another run; it was set "
                "aside"
            ]
        else:
            assert store.checkpoints() == []
        assert store.checkpoint_files.state(e.hash) is None
    assert store.check() == []
    assert len(list((tmp_path / "quarantine").iterdir())) == times


@pytest.mark.slow
def test_flipped_bits_in_the_index_lose_no_run(tmp_path: Path) -> None:
    """A damaged index never raises an unexpected error.

    After a check every run is listed and complete.
    """
    results, rng = [finished(seed) for seed in (1, 2, 3)], np.random.default_rng(5)
    names = {r.experiment.hash: r for r in results}
    store = Store(tmp_path)
    for result in results:
        put(store, result)
    Path(f"{tmp_path}/index.sqlite-wal").unlink(missing_ok=True)
    index = tmp_path / "index.sqlite"
    whole, renewed = index.read_bytes(), 0
    for i in range(often(15, 500)):
        index.write_bytes(whole)
        flip(index, rng)
        if i % 2:
            # otherwise a server that was never restarted
            store = Store(tmp_path)
        for listed in store.runs():
            store.rename(listed.id, "still here")
        for name in names:
            store.get(name)
        message = store.check()
        assert all(line.isprintable() and len(line) <= 400 for line in message)
        assert {r.id for r in store.runs()} == set(names)
        for name, result in names.items():
            actual = store.get(name)
            assert actual is not None
            assert actual.experiment == result.experiment
        assert store.check() == []
        renewed += any("rebuilt" in line for line in message)
    assert renewed > 0
    for name, result in names.items():
        actual = store.get(name)
        assert actual is not None
        for label, history in result.histories.items():
            same(actual.histories[label], history)


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 500])
def test_an_invalid_index_is_rebuilt(damage: bytes, tmp_path: Path) -> None:
    store = Store(tmp_path)
    name = put(store, finished(1))
    store.tag(name, "kept?")
    (tmp_path / "index.sqlite").write_bytes(damage)
    assert [r.id for r in store.runs()] == [name]
    store.check()
    assert store.check() == []
    assert store.get(name) is not None


def test_readable_titles_and_tags_are_kept_when_the_index_is_rebuilt(tmp_path: Path) -> None:
    store = Store(tmp_path)
    name = put(store, finished(1))
    store.rename(name, "For class")
    store.tag(name, "lesson 3")
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as index:
        (size,) = index.execute("PRAGMA page_size").fetchone()
        (page,) = index.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'index'"
        ).fetchone()
    # the index of ids; the table itself stays intact
    with (tmp_path / "index.sqlite").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"?" * size)
    (message,) = Store(tmp_path).check()
    assert "rebuilt from the files: 1 found" in message
    ((_, _, title, tags, *_),) = store.runs()
    assert (title, tags) == ("For class", "lesson 3")


def test_a_file_not_yet_indexed_by_a_killed_process_is_listed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    name = put(store, finished(1))
    store._index.use(lambda index: RUNS.delete(index, "1"), write=True)
    (message,) = Store(tmp_path).check()
    assert message == f"run {name[:12]} was not listed; its file is intact and it is listed again"
    assert store.get(name) is not None
    assert store.check() == []


def test_check_reads_all_files_and_removes_orphans(tmp_path: Path) -> None:
    store = Store(tmp_path)
    good, bad = put(store, finished(1)), put(store, finished(2))
    paths = {p: p.read_bytes() for p in (tmp_path / "objects").glob("*/*")}
    broken = next(p for p in paths if paths[p] != b"" and p.name == _content(store, bad))
    broken.write_bytes(paths[broken][:-1])
    (tmp_path / "objects" / "ab").mkdir(exist_ok=True)
    (tmp_path / "objects" / "ab" / "orphan.part").write_bytes(b"half")
    message = store.check()
    assert len(message) == 2
    assert any(bad[:12] in s for s in message)
    assert any("belongs to no run" in s for s in message)
    assert [r.id for r in store.runs()] == [good]
    assert store.check() == []


def test_old_temporary_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old, new = tmp_path / "staged" / "old", tmp_path / "staged" / "new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert store.check() == []
    # another process may still be writing it
    assert [p.name for p in (tmp_path / "staged").iterdir()] == ["new"]


def _content(store: Store, name: str) -> str:
    return str(store._index.find("id = ?", name)[0]["content"])


def test_checkpoints_are_replaced_verified_and_listed_until_finished(tmp_path: Path) -> None:
    store, result = Store(tmp_path), finished()
    name = result.experiment.hash
    store.keep_checkpoint(name, result.experiment, b"one")
    store.keep_checkpoint(name, result.experiment, b"two")
    assert store.checkpoint_files.state(name) == b"two"
    assert store.checkpoints() == [(name, result.experiment.model_dump_json())]
    put(store, result)
    assert store.checkpoints() == []
    path = tmp_path / "checkpoints" / name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert store.checkpoint_files.state(name) is None
    assert not path.exists()


def test_packed_arrays_are_restored() -> None:
    arrays = {
        "0/sum.clicks": np.arange(6.0).reshape(2, 3),
        "a": np.array(3),
        "b": np.array([True, False]),
    }
    actual = unpack(pack(arrays))
    assert list(actual) == list(arrays)
    for key, value in arrays.items():
        np.testing.assert_array_equal(actual[key], value)
        assert actual[key].dtype == value.dtype


def test_a_run_is_refused_if_disk_space_is_insufficient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "MIN_FREE", 2**70)
    with pytest.raises(UserError, match=r"MiB left; a run needs"):
        Store(tmp_path).require_space()


def test_a_missing_folder_is_reported_in_one_sentence(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    shutil.rmtree(tmp_path / "home")
    with pytest.raises(UserError, match=r"home, cannot be reached: No such file"):
        store.require_space()
    for work in (store.runs, store.check, store.checkpoints, lambda: put(store, finished(1))):
        with pytest.raises(OSError):
            work()


WRITER = """
import resource, signal, sys
from pathlib import Path
from bandits.storage.run_index import RUNS
from bandits.storage.run_store import Store
from tests.storage.test_run_store import finished, put
folder, limit, seeds = Path(sys.argv[1]), int(sys.argv[2]), range(int(sys.argv[3]), int(sys.argv[4]))
store, results = Store(folder), [finished(seed) for seed in seeds]
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
print("ready", flush=True)
def attempt(work, *values):
    try:
        work(*values)
        print("kept", flush=True)
    except OSError as error:
        print("full:", error.strerror, flush=True)
"""  # noqa: E501
PUTS = (
    WRITER
    + """
for result in results:
    attempt(put, store, result)
"""
)
ENDLESS = (
    WRITER
    + """
import itertools
(result,) = results
for seed in itertools.count(seeds[0]):
    attempt(store.put, result.experiment.model_copy(update={"seed": seed}), result.histories, 1.0)
"""
)
EVERYTHING = (
    WRITER
    + """
for n, result in enumerate(results):
    name = result.experiment.hash
    attempt(put, store, result)
    attempt(store.rename, name, f"run {seeds[n]}")
    attempt(store.keep_checkpoint, name, result.experiment, b"state")
    store.get(name), store.runs(), store.checkpoints()
    attempt(store.tag, name, f"tag {seeds[n]}")
    if n % 3 == 2:
        attempt(store.delete, name)
    elif n % 3 == 1:
        attempt(store.delete, name)
        attempt(put, store, result)
"""
)
CROWDED = (
    WRITER
    + """
(result,) = results
name, big = result.experiment.hash, "x" * limit
(row,) = store._index.find("id = ?", name)
attempt(store.keep_checkpoint, name, result.experiment, big.encode())
attempt(store.rename, name, big)  # the file of the annotation cannot be written
for _ in range(3):  # the index cannot grow
    attempt(lambda: store._index.use(lambda index: RUNS.put(index, {**row, "title": big}), write=True))
print(len(store.runs()), store.get(name) is not None, store.checkpoint_files.state(name) == b"before", flush=True)
"""  # noqa: E501
)


def writer(
    folder: Path, first: int, last: int, limit: int = 0, program: str = PUTS
) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", program, str(folder), str(limit), str(first), str(last)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=root)


@pytest.mark.slow
def test_a_full_disk_loses_only_the_new_run(tmp_path: Path) -> None:
    kept = put(Store(tmp_path), finished(1))
    out, _ = writer(tmp_path, 2, 4, limit=4096).communicate(timeout=120)
    assert out.splitlines() == ["ready", "full: File too large", "full: File too large"]
    store = Store(tmp_path)
    assert [r.id for r in store.runs()] == [kept]
    assert store.get(kept) is not None
    # no partial file
    assert store.check() == []
    assert list((tmp_path / "staged").iterdir()) == []


@pytest.mark.slow
def test_a_full_disk_keeps_checkpoint_and_index_unchanged(tmp_path: Path) -> None:
    store, result = Store(tmp_path), finished(1)
    name = put(store, result)
    store.keep_checkpoint(name, result.experiment, b"before")
    out, _ = writer(tmp_path, 1, 2, limit=300_000, program=CROWDED).communicate(timeout=120)
    message = out.splitlines()
    assert message[:3] == ["ready", "full: File too large", "full: File too large"]
    assert len(message) == 7
    assert all(line.startswith("full: the index of stored runs: ") for line in message[3:-1]), (
        message
    )
    assert message[-1] == "1 True True"
    assert store.runs()[0].title == "LinUCB, Random"
    assert store.check() == []


@pytest.mark.slow
def test_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    """Processes store, rename, tag, delete and store again without affecting each other."""
    each = often(3, 60)
    firsts = [1000 * i for i in range(1, 1 + often(2, 8))]
    writers = [writer(tmp_path, first, first + each, program=EVERYTHING) for first in firsts]
    for process in writers:
        out, _ = process.communicate(timeout=PATIENCE * each)
        assert process.returncode == 0
        assert "full" not in out
    store = Store(tmp_path)
    # of three runs the first is kept, the second deleted and stored again, the third deleted
    expected = {first + n: n % 3 for first in firsts for n in range(each) if n % 3 < 2}
    actual = {r.experiment.seed: r for r in store.runs()}
    assert set(actual) == set(expected)
    for seed, turn in expected.items():
        assert actual[seed].title == ("LinUCB, Random" if turn else f"run {seed}")
        assert actual[seed].tags == ("" if turn else f"tag {seed}")
        assert store.get(actual[seed].id) is not None
    assert store.check() == []
    assert len(list((tmp_path / "objects").glob("*/*"))) == len(expected)


@pytest.mark.slow
def test_a_killed_writer_leaves_only_complete_files(tmp_path: Path) -> None:
    process = writer(tmp_path, 1, 2, program=ENDLESS)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for _ in range(5):
        assert process.stdout.readline() == "kept\n"
    # at a random moment
    process.send_signal(signal.SIGKILL)
    process.wait()
    # indexes files that are not yet listed
    store = Store(tmp_path)
    assert len(store.runs()) >= 5
    for listed in store.runs():
        assert isinstance(listed.experiment, Experiment)
        assert store.get(listed.id) is not None
    assert all("it is listed again" in s for s in store.check())
    assert store.check() == []


# -- stars, notes, best agents
# -------------------------------------------------------------------------------------


def test_stars_and_notes_survive_eviction_a_new_run_and_the_loss_of_the_index(
    tmp_path: Path,
) -> None:
    store, result = Store(tmp_path), finished(1)
    name = put(store, result)
    other = put(store, finished(2))
    store.rename(name, "For the class")
    store.star(name, True)
    store.note(name, "α 0.5 wins; é😀\nsecond line")
    store.tag(other, "lesson 3")

    def check(starred: bool = True) -> None:
        listed = {each.id: each for each in Store(tmp_path).runs()}
        line = listed[name]
        assert (line.title, line.starred, line.notes) == (
            "For the class",
            starred,
            "α 0.5 wins; é😀\nsecond line",
        )
        assert (listed[other].tags, listed[other].starred, listed[other].notes) == (
            "lesson 3",
            False,
            "",
        )

    check()
    store.evict(name)
    check()
    put(store, result)
    check()
    for damage in (None, b"", b"not a database at all" * 500):
        for ending in ("-wal", "-shm", ""):
            Path(f"{tmp_path}/index.sqlite{ending}").unlink(missing_ok=True)
        if damage is not None:
            (tmp_path / "index.sqlite").write_bytes(damage)
        check()
    store = Store(tmp_path)
    store.star(name, False)
    check(starred=False)
    store.delete(name)
    put(store, result)
    assert [(each.title, each.notes) for each in store.runs() if each.id == name] == [
        ("LinUCB, Random", "")
    ]


def test_a_damaged_annotation_leaves_the_run_listed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    name = put(store, finished(1))
    store.note(name, "kept")
    (file,) = (tmp_path / "annotations").iterdir()
    for text in ("{", "[]", '{"title": 3, "notes": null, "starred": "yes"}'):
        file.write_text(text, encoding="utf-8")
        (tmp_path / "index.sqlite").unlink()
        (line,) = Store(tmp_path).runs()
        assert (line.id, line.title, line.starred) == (name, "LinUCB, Random", False)
    Store(tmp_path).note("../" + name, "no such run")
    assert list((tmp_path / "annotations").iterdir()) == [file]


def test_a_run_is_listed_with_its_best_agent(tmp_path: Path) -> None:
    result = run(experiment("random", "oracle", "linucb", steps=600))
    store = Store(tmp_path)
    put(store, result)
    (line,) = store.runs()
    assert line.headline is not None
    # the oracle is a reference, not a competitor
    expected = result.summary()["agents"]["LinUCB"]
    assert line.headline.label == "LinUCB"
    assert line.headline.ctr._asdict() == pytest.approx(expected["ctr"])
    assert line.headline.regret._asdict() == pytest.approx(expected["pseudo_regret"])
    store.evict(line.id)
    assert Store(tmp_path).runs()[0].headline == line.headline
    alone = run(experiment("oracle", replications=1))
    put(store, alone)
    best = store.runs()[0].headline
    assert best is not None
    assert best.label == "Oracle"
    assert np.isnan([best.ctr.low, best.ctr.high]).all()
