"""Finished runs reach the disk: before their checkpoints, and again after a failure."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import run
from bandits.base.files import pack
from bandits.runtime import job as jobs
from bandits.runtime import pool as pools
from bandits.runtime.job import Job, save, saved_state
from bandits.runtime.pool import Pool
from bandits.storage.run_store import Store
from tests.support import experiment, same, wait_for


def finished_job(size: int = 10) -> Job:
    e = experiment()
    result = run(e)
    return Job(
        e, histories=dict(result.histories), saved={"step": np.array(300), "0.x": np.zeros(size)}
    )


class FullDisk(Store):
    """A store whose disk is too full for some files."""

    full: tuple[str, ...] = ()

    def put(self, *arguments: Any) -> None:
        if "put" in self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().put(*arguments)

    def keep_checkpoint(self, *arguments: Any) -> None:
        if "checkpoint" in self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().keep_checkpoint(*arguments)


def test_a_result_is_stored_where_its_checkpoint_does_not_fit(tmp_path: Path) -> None:
    store, job = FullDisk(tmp_path), finished_job()
    store.full = ("checkpoint",)
    save(store, job, finished=True)
    assert (job.error, job.unstored) == ("", False)
    actual = Store(tmp_path).get(job.id)
    assert actual is not None
    for label, history in job.histories.items():
        same(actual.histories[label], history)


def test_a_result_that_was_not_stored_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RETRY_INTERVAL", 0.01)
    store, job = FullDisk(tmp_path), finished_job()
    store.full = ("put",)
    save(store, job, finished=True)
    assert "could not be kept on disk (No space left on device)" in job.error
    store.full = ()
    wait_for(lambda: not job.unstored, "the result on the disk")
    assert job.error == ""
    assert [listed.id for listed in Store(tmp_path).runs()] == [job.id]


def test_a_locked_index_delays_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "RETRY_INTERVAL", 0.01)
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *values, **more: connect(*values, **{**more, "timeout": 0.01})
    )
    store, job = Store(tmp_path), finished_job()
    other = connect(tmp_path / "index.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    save(store, job, finished=True)
    assert "database is locked" in job.error
    other.execute("COMMIT")
    other.close()
    wait_for(lambda: not job.unstored, "the result on the disk")
    assert store.get(job.id) is not None


def test_the_saved_state_of_a_finished_run_is_in_the_store_and_not_in_memory(
    tmp_path: Path,
) -> None:
    store, job = FullDisk(tmp_path), finished_job()
    store.full = ("checkpoint",)
    save(store, job, finished=True)
    job.end("finished")
    assert job.saved  # the only copy
    store.full = ()
    save(store, job, finished=True)
    # other shares may still ask which agents have ended
    assert job.saved
    job.end("stopped")
    assert job.saved  # it can go on
    job.end("finished")
    assert job.saved == {}
    assert saved_state(store, job.id).keys() == {"step", "0.x"}


def test_a_state_that_comes_while_another_is_written_is_not_taken_for_stored(
    tmp_path: Path,
) -> None:
    class Slow(Store):
        def keep_checkpoint(self, *arguments: Any) -> None:
            super().keep_checkpoint(*arguments)
            if "1.x" not in job.saved:
                job.save({"step": np.array(300), "1.x": np.ones(3)})
                # the share that has finished finds the store busy
                save(self, job)

    store, job = Slow(tmp_path), finished_job()
    save(store, job, last=True)
    assert not job.state_stored
    save(store, job, last=True)
    assert job.state_stored
    assert saved_state(store, job.id).keys() == {"step", "0.x", "1.x"}


def test_ended_runs_take_bounded_memory_and_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    results = [run(experiment(seed=seed, steps=30)) for seed in range(5)]
    for result in results[:4]:
        store.put(result.experiment, result.histories, 1.0)
    unstored = Job(
        results[4].experiment,
        status="finished",
        histories=dict(results[4].histories),
        unstored=True,
    )
    monkeypatch.setattr(pools, "MAX_ENDED_BYTES", 2 * unstored.nbytes)
    pool = Pool(1, store)
    try:
        pool._jobs[unstored.id] = unstored
        for result in [*results[:4], *results]:
            found = pool.get(result.experiment.hash)
            assert found is not None
            for label, history in result.histories.items():
                same(found.histories[label], history)
            others = [job for job in pool._jobs.values() if job is not unstored]
            assert found is unstored or others[-1] is found
            assert 1 <= len(others) <= 2
        assert pool.get(unstored.id) is unstored  # its only copy
        monkeypatch.setattr(pools, "MAX_ENDED_BYTES", 1)
        assert pool.get(results[0].experiment.hash) is not None
        assert [job.id for job in pool._jobs.values()] == [unstored.id, results[0].experiment.hash]
    finally:
        pool.close()


def test_a_deleted_result_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[Any] = []
    monkeypatch.setattr(
        jobs.threading, "Timer", lambda _, attempt: attempts.append(attempt) or _Never()
    )
    store, job = FullDisk(tmp_path), finished_job()
    store.full = ("put",)
    save(store, job, finished=True)
    pool = Pool(1, store)
    try:
        job.status = "finished"
        pool._jobs[job.id] = job
        pool.delete(job.id)
    finally:
        pool.close()
    store.full = ()
    attempts[0]()
    assert store.runs() == []


class _Never:
    """A timer that never fires."""

    def start(self) -> None:
        """Do nothing."""


@pytest.mark.slow
@pytest.mark.parametrize(("size", "kept"), [(10, True), (2_000_000, False)])
def test_a_finished_run_keeps_a_small_checkpoint_only(
    size: int, kept: bool, tmp_path: Path
) -> None:
    store, job = Store(tmp_path), finished_job(size)
    job.saved["0.x"] = np.random.default_rng(0).random(size)
    save(store, job)
    assert store.checkpoint_files.state(job.id) is not None
    save(store, job, finished=True)
    assert (store.checkpoint_files.state(job.id) is not None) == kept


@pytest.mark.parametrize(
    "state",
    [
        b"no arrays",
        (2**62).to_bytes(8, "little"),
        pack({"step": np.array(3)}),
        pack({"step": np.array("x")}),
    ],
)
def test_a_forged_checkpoint_is_not_continued(state: bytes, tmp_path: Path) -> None:
    e, store = experiment(), Store(tmp_path)
    store.keep_checkpoint(e.hash, e, state)
    pool = Pool(1, store)
    try:
        found = pool.get(e.hash)
        assert found is None or found.step == 3
        assert pool.unfinished() in ([], [e])
    finally:
        pool.close()
