"""The index of sweeps and points: derived from the blocks, which take precedence."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Thread, current_thread
from typing import Any

import numpy as np
import pytest

from bandits import UserError, sweeps
from bandits.base.ledger import LEDGER
from bandits.results.describe import plain_value
from bandits.results.metric_registry import OBJECTIVES
from bandits.runtime.pool import Pool
from bandits.storage.annotations import Annotations
from bandits.storage.eviction import VARIABLE, usage
from bandits.storage.run_store import Store
from bandits.sweeps import Landscape
from bandits.sweeps import manager as manager_module
from bandits.sweeps.analysis.nearest import nearest_points
from bandits.sweeps.manager import SweepJob, SweepManager
from bandits.sweeps.storage.block_files import BlockFiles
from bandits.sweeps.storage.catalogue import Catalogue
from tests.gate import Gate
from tests.support import wait_for
from tests.sweeps.test_sweep import small


@pytest.fixture
def kept(tmp_path: Path) -> Landscape:
    sweep = small()
    return sweeps.run(sweep, files=BlockFiles(sweep, tmp_path))


def points(folder: Path) -> list[sqlite3.Row]:
    with closing(sqlite3.connect(folder / "index.sqlite")) as index:
        index.row_factory = sqlite3.Row
        return index.execute("SELECT * FROM points ORDER BY point").fetchall()


def test_every_point_has_a_row(kept: Landscape, tmp_path: Path) -> None:
    (line,) = Catalogue(tmp_path).entries()
    assert (line.sweep, line.progress) == (kept.sweep, 1.0)
    assert line.bytes == BlockFiles(kept.sweep, tmp_path).bytes
    rows = points(tmp_path)
    assert [row["point"] for row in rows] == list(range(kept.sweep.size))
    for row in rows:
        assert tuple(json.loads(row["parameters"]).values()) == kept.sweep.values_at(row["point"])
        assert (row["runs"], row["diverged"]) == (kept.sweep.experiment.replications, 0)
        for name, metric in OBJECTIVES.items():
            if not metric.known(kept.sweep.experiment):
                assert row[name] is None
                continue
            assert row[name] == kept.numbers(name)[row["point"]].mean()
            assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]


def test_predictions_are_read_from_the_index(kept: Landscape, tmp_path: Path) -> None:
    catalogue, sweep = Catalogue(tmp_path), kept.sweep
    assert catalogue.entries()
    for file in BlockFiles(sweep, tmp_path).folder.glob("*.block"):
        stamp = file.parent.stat()
        # the folder is not modified
        file.write_bytes(b"not read")
        os.utime(file.parent, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    again = Catalogue(tmp_path)
    (line,) = again.entries()
    (answer,) = nearest_points(
        [(line.sweep, lambda point: again.estimate_at(line.sweep.hash, point))], sweep.points[1]
    )
    assert (answer.point, answer.exact) == (1, True)
    assert (answer.estimate, answer.runs) == kept.estimate_at(1)
    assert again.estimate_at(sweep.hash, 99) is None


def test_a_row_older_than_its_blocks_is_rebuilt(kept: Landscape, tmp_path: Path) -> None:
    catalogue, files = Catalogue(tmp_path), BlockFiles(kept.sweep, tmp_path)
    assert catalogue.entries()[0].progress == 1.0
    for block in files.folder.glob("*.block"):
        block.unlink()
    (line,) = catalogue.entries()
    assert line.progress == 0.0
    assert points(tmp_path) == []
    files.delete()
    assert catalogue.entries() == []
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as index:
        assert index.execute("SELECT count(*) FROM sweeps").fetchone() == (0,)


@pytest.mark.parametrize("damage", ["bytes", "half", "version", "json", "type"])
def test_a_damaged_index_is_rebuilt(damage: str, kept: Landscape, tmp_path: Path) -> None:
    catalogue, path = Catalogue(tmp_path), tmp_path / "index.sqlite"
    before = catalogue.entries()
    if damage == "bytes":
        path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size))
    elif damage == "half":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        with closing(sqlite3.connect(path)) as index:
            index.execute(
                {
                    "version": "PRAGMA user_version=99",
                    "json": "UPDATE sweeps SET sweep = substr(sweep, 2)",
                    "type": "UPDATE sweeps SET done = 'much'",
                }[damage]
            )
            index.commit()
    assert Catalogue(tmp_path).entries() == before
    assert len(points(tmp_path)) == kept.sweep.size


def test_without_a_writable_index_the_blocks_are_read(
    kept: Landscape, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # a database cannot be opened there
    (tmp_path / "index.sqlite").mkdir()
    (line,) = Catalogue(tmp_path).entries()
    assert (line.sweep, line.progress) == (kept.sweep, 1.0)
    assert "the index of sweeps" in caplog.text


def test_points_proposed_by_optuna_are_listed(tmp_path: Path) -> None:
    data = small().model_dump(mode="json", include={"experiment", "axes"})
    sweep = sweeps.read({**data, "search": "optuna", "number": 3, "batch": 3, "sampler": "random"})
    landscape = sweeps.run(sweep, files=BlockFiles(sweep, tmp_path))
    catalogue = Catalogue(tmp_path)
    (line,) = catalogue.entries()
    assert (line.sweep, line.progress) == (sweep, 1.0)
    rows = points(tmp_path)
    assert [row["ctr"] for row in rows] == landscape.numbers("ctr").mean(axis=1).tolist()
    values = [tuple(json.loads(row["parameters"]).values()) for row in rows]
    assert values == [landscape.sweep.values_at(point) for point in range(3)]
    before = os.stat(tmp_path / "index.sqlite").st_mtime_ns
    assert catalogue.entries() == [line]
    # the index was not rewritten
    assert os.stat(tmp_path / "index.sqlite").st_mtime_ns == before


def test_an_unreadable_sweep_does_not_hide_others(kept: Landscape, tmp_path: Path) -> None:
    data = small().model_dump(mode="json", include={"experiment", "axes"})
    other = sweeps.read({**data, "search": "optuna", "number": 2, "batch": 2, "sampler": "random"})
    sweeps.run(other, files=BlockFiles(other, tmp_path))
    path = BlockFiles(other, tmp_path).folder / "sweep.json"
    path.write_bytes(path.read_bytes().replace(b'"checksum": "', b'"checksum": "0'))
    for _ in range(2):
        assert {line.sweep.hash for line in Catalogue(tmp_path).entries()} == {
            kept.sweep.hash,
            other.hash,
        }
    shutil.rmtree(BlockFiles(kept.sweep, tmp_path).folder)
    assert [line.sweep.hash for line in Catalogue(tmp_path).entries()] == [other.hash]


def test_unfinished_sweeps_are_left_out(kept: Landscape, tmp_path: Path) -> None:
    assert Catalogue(tmp_path).entries(busy=[kept.sweep.hash]) == []
    assert Catalogue(tmp_path / "nowhere").entries() == []


def test_an_entry_names_the_best_point(kept: Landscape, tmp_path: Path) -> None:
    (line,) = Catalogue(tmp_path).entries()
    (again,) = Catalogue(tmp_path).entries()  # from the index
    leader = kept.leader(kept.sweep.metric)
    assert leader is not None
    assert line.best is not None
    assert again.best == line.best
    rate, regret = kept.estimate_at(leader, "ctr"), kept.estimate_at(leader, "pseudo_regret")
    assert rate is not None
    assert regret is not None
    assert (line.best.ctr, line.best.regret) == (rate[0], regret[0])
    values = dict(
        zip((axis.name for axis in kept.sweep.axes), kept.sweep.values_at(leader), strict=True)
    )
    assert (
        line.best.label
        == "LinUCB (" + ", ".join(f"{n} {plain_value(v)}" for n, v in values.items()) + ")"
    )


def test_star_and_notes_stay_when_the_index_is_lost_and_do_not_change_the_date(
    kept: Landscape, tmp_path: Path
) -> None:
    catalogue = Catalogue(tmp_path)
    (before,) = catalogue.entries()
    catalogue.annotate(kept.sweep.hash, starred=True)
    catalogue.annotate(kept.sweep.hash, notes="coarse; refine later")
    with pytest.raises(UserError, match="this sweep has been deleted"):
        catalogue.annotate("0" * 64, notes="no such sweep")
    (tmp_path / "index.sqlite").unlink()
    (line,) = Catalogue(tmp_path).entries()
    assert line == before._replace(starred=True, notes="coarse; refine later")
    assert len(list((tmp_path / "annotations").iterdir())) == 1
    catalogue.forget(kept.sweep.hash)
    assert catalogue.entries() == [before]


def test_sweeps_that_stay_in_memory_are_in_the_ledger(
    kept: Landscape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = small(seed=8104)
    sweeps.run(other, files=BlockFiles(other, tmp_path))
    monkeypatch.setattr(manager_module, "MAX_ENDED_JOBS", 1)
    with closing(Pool()) as pool:
        manager = SweepManager(pool, tmp_path)
        for sweep in (kept.sweep, other):
            job = manager.get(sweep.hash)
            assert job is not None
            cells = sweep.size * sweep.experiment.replications
            # a number and two flags at least of each row; the other sweep has left
            assert LEDGER.entries["sweeps"] == job.landscape.nbytes > 10 * cells
    LEDGER.leave("sweeps")


@pytest.mark.slow
def test_a_sweep_that_ends_lets_another_one_leave_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    monkeypatch.setattr(manager_module, "MAX_ENDED_JOBS", 1)
    gate.hold(8105)
    gate.hold(8106)
    with closing(Pool()) as pool:
        manager = SweepManager(pool, tmp_path / "sweeps")
        jobs = [manager.submit(small(seed=seed)) for seed in (8105, 8106)]
        one = jobs[0].landscape.nbytes
        assert LEDGER.entries["sweeps"] == 2 * one
        gate.open(8105)
        gate.open(8106)
        wait_for(lambda: not any(job.active for job in jobs), "the end of the sweeps")
        wait_for(lambda: LEDGER.entries["sweeps"] < 2 * one, "one of them to leave")
        # the one that ended last can still be read
        assert LEDGER.entries["sweeps"] == one
        for job in jobs:
            manager.delete(job.id)
        assert LEDGER.entries["sweeps"] == 0
    LEDGER.leave("sweeps")


@pytest.mark.slow
def test_a_running_sweep_keeps_star_and_notes_from_before_its_first_block(
    tmp_path: Path, gate: Gate
) -> None:
    sweep = small(seed=8100)
    gate.hold(8100)
    with closing(Pool()) as pool:
        manager = SweepManager(pool, tmp_path / "sweeps")
        job = manager.submit(sweep)
        manager.star(job.id, True)
        manager.note(job.id, "for the lecture")
        (line,) = manager.stored_sweeps()
        assert (line.progress, line.starred, line.notes) == (0.0, True, "for the lecture")
        gate.open(8100)
        wait_for(lambda: not job.active, "the end of the sweep")
        assert job.status == "finished"
        # before a page asks for it, and as it is read from the blocks
        written = points(tmp_path / "sweeps")
        (line,) = manager.stored_sweeps()
        assert (line.progress, line.starred, line.notes) == (1.0, True, "for the lecture")
        (tmp_path / "sweeps" / "index.sqlite").unlink()
        assert manager.stored_sweeps() == [line]
        assert points(tmp_path / "sweeps") == written
        assert len(written) == sweep.size


@pytest.mark.slow
def test_a_sweep_that_ends_before_its_first_block_leaves_no_star(
    tmp_path: Path, gate: Gate
) -> None:
    gate.hold(8101)
    with closing(Pool()) as pool:
        manager = SweepManager(pool, tmp_path / "sweeps")
        job = manager.submit(small(seed=8101))
        manager.star(job.id, True)
        manager.stop(job)
        wait_for(
            lambda: not any((tmp_path / "sweeps" / "annotations").iterdir()), "the end of its star"
        )
        assert job.status == "stopped"
        assert manager.stored_sweeps() == []
        with pytest.raises(UserError, match="this sweep has been deleted"):
            manager.note(job.id, "nothing is stored")


@pytest.mark.slow
def test_the_curves_of_ended_sweeps_keep_to_the_disk_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Pool(store=Store(tmp_path / "runs"))) as pool:
        assert pool.store is not None
        manager = SweepManager(pool, tmp_path / "sweeps")

        def ended(seed: int, *, starred: bool = False) -> SweepJob:
            job = manager.submit(small(seed=seed))
            # before its end, which frees disk space
            manager.star(job.id, starred)
            wait_for(lambda: not job.active, "the end of the sweep")
            return job

        def size(job: SweepJob) -> int:
            return BlockFiles(job.sweep, tmp_path / "sweeps").bytes

        first, starred = ended(8102), ended(8103, starred=True)
        assert [item.name for item in manager.evictable()] == [f"sweep {first.id[:12]}"]
        before, kept = size(first), size(starred)
        assert usage(pool.store, manager.evictable()).used - usage(pool.store).used == before
        monkeypatch.setenv(VARIABLE, "0")
        ended(8104)
        wait_for(lambda: size(first) < before, "the curves to go")
        assert size(starred) == kept
        assert manager.get(first.id) is not None


def test_two_changes_at_the_same_time_are_both_kept(
    kept: Landscape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes the notes between reading and writing the star, unless it has
    to wait.
    """
    run, read = kept.sweep.hash, Annotations.read
    other = Thread(target=lambda: Catalogue(tmp_path).annotate(run, notes="kept"))

    def read_and_be_overtaken(self: Annotations, item: str) -> dict[str, Any]:
        found = read(self, item)
        if current_thread() is not other and not other.ident:
            other.start()
            other.join(1.0)
        return found

    monkeypatch.setattr(Annotations, "read", read_and_be_overtaken)
    Catalogue(tmp_path).annotate(run, starred=True)
    other.join()
    (line,) = Catalogue(tmp_path).entries()
    assert (line.starred, line.notes) == (True, "kept")
