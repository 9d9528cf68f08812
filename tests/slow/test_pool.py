"""Worker processes: results identical to runs in process, one job for equal experiments, and no
lost runs.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np
import pytest

from bandits import Experiment, History, UserError, read, run
from bandits.base.files import pack
from bandits.base.mapped_arrays import memory
from bandits.experiments.experiment import MEMORY_LIMIT
from bandits.experiments.lockstep import Lockstep, make_lane, run_to_end, state_for
from bandits.experiments.snapshots import snapshot_steps
from bandits.runtime import pool as pools
from bandits.runtime import supervisor
from bandits.runtime.pool import MAX_ACTIVE, MAX_ENDED_JOBS, Job, Pool
from bandits.runtime.protocol import receive, send
from bandits.runtime.worker_handle import WorkerProcess, start_worker
from bandits.storage.owners import DELETE_REFUSED
from bandits.storage.run_store import Store
from tests.gate import Gate
from tests.support import experiment, over, same, wait_for


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with closing(Pool()) as made:
        yield made


def ended(job: Job) -> Job:
    wait_for(lambda: not job.active, "the end of the run")
    return job


def held_experiment(gate: Gate, seed: int) -> Experiment:
    """Return an experiment that is held at step 100."""
    gate.hold(seed, 100)
    return experiment(seed=seed)


def start_held_run(pool: Pool, gate: Gate, seed: int) -> Job:
    job = pool.submit(held_experiment(gate, seed))
    wait_for(lambda: job.result.histories, "the first points", over(job))
    return job


def interrupt(gate: Gate, folder: Path, e: Experiment) -> None:
    """Leave an unfinished run as a killed server does: a checkpoint at a third of its steps."""
    gate.hold(e.seed, e.steps // 3)
    with closing(Pool(store=Store(folder))) as pool:
        job = pool.submit(e, "another visitor")
        wait_for(
            lambda: Store(folder).checkpoint_files.state(job.id), "a checkpoint on disk", over(job)
        )
        pool._supervisor.closed = True
        pool.processes[job].kill()
        wait_for(lambda: not job.active, "the end of the run")
    gate.open(e.seed)


def test_results_of_a_worker_are_identical_to_those_in_process(pool: Pool) -> None:
    e = experiment(
        "linucb",
        "lints",
        {"kind": "epsilon_greedy", "sharing": "shared"},
        "beta_ts",
        "oracle",
        steps=2500,
    )
    job = ended(pool.submit(e))
    assert (job.status, job.error, job.step, job.progress) == ("finished", "", 2500, 1.0)
    here = run(e)
    assert list(job.histories) == list(e.labels)
    for label, h in here.histories.items():
        same(job.histories[label], h)
    assert [s.step for s in job.histories["LinUCB"].spectra] == snapshot_steps(2500)
    assert job.result.summary() == here.summary()
    assert set(job.result.timing()["agents"]) == set(e.labels)
    assert job.seconds > 0
    assert job.seconds_left is None


def test_submitting_an_experiment_twice_gives_one_job(pool: Pool) -> None:
    first = pool.submit(experiment(seed=1))
    again = pool.submit(Experiment.model_validate_json(first.experiment.model_dump_json()))
    assert again is first
    assert pool.get(first.id) is first
    ended(first)
    # finished: not computed again
    assert pool.submit(experiment(seed=1)) is first
    assert pool.submit(experiment(seed=2)) is not first
    assert pool.get("nothing of the kind") is None


def test_queued_runs_have_a_position(pool: Pool, gate: Gate) -> None:
    running = start_held_run(pool, gate, 3)
    waiting = [pool.submit(experiment(seed=seed)) for seed in (4, 5, 6)]
    assert [job.status for job in waiting] == ["queued"] * 3
    assert [pool.queue_position(job) for job in waiting] == [0, 1, 2]
    assert all(job.active and job.progress == 0 and not job.result.histories for job in waiting)
    # a run that never started
    pool.stop(waiting[1])
    assert (waiting[1].status, pool.queue_position(waiting[2])) == ("stopped", 1)
    pool.stop(running)
    assert [ended(job).status for job in waiting] == ["finished", "stopped", "finished"]
    assert waiting[0].ended is not None
    assert waiting[2].started is not None
    assert waiting[2].started >= waiting[0].ended


def test_a_run_starts_while_a_page_draws_it(pool: Pool, gate: Gate) -> None:
    """A page holds the run's lock while it draws.

    The pool never waits for it with its own lock held.
    """
    gate.hold(41, 100)
    first, second = (pool.submit(experiment(steps=2000, seed=seed)) for seed in (41, 42))
    with second.lock:
        pool.stop(first, first.owner)
        gate.open()
        wait_for(lambda: second.status == "running", "the second run to start", over(second))
        assert pool.queue_position(second) == 0
    wait_for(lambda: second.status == "finished", "its end")


def test_a_stopped_run_keeps_its_results(pool: Pool, gate: Gate) -> None:
    job = start_held_run(pool, gate, 7)
    pool.stop(job)
    assert (job.status, job.active) == ("stopped", False)
    seconds = job.seconds
    wait_for(lambda: job not in pool.processes, "the end of its worker")
    steps = {label: h.step for label, h in job.histories.items()}
    assert all(0 < step < job.experiment.steps for step in steps.values())
    assert 0 < job.progress < 1
    # the timer has stopped
    assert job.seconds == seconds
    # results equal those of a run in process at that step
    lockstep = Lockstep(job.experiment)
    while lockstep.step < max(steps.values()):
        for _ in lockstep.advance(5000):
            pass
    for label, h in job.histories.items():
        for name in History.SUMS:
            np.testing.assert_array_equal(
                h.sums[name][: h.size], lockstep.histories[label].sums[name][: h.size]
            )
    # repeating it changes nothing
    pool.stop(job)
    assert job.status == "stopped"
    # submitted again: a new run
    again = pool.submit(job.experiment)
    assert again is not job
    pool.stop(again)


def test_a_run_whose_workers_keep_dying_fails_with_a_message_and_the_next_runs(
    pool: Pool, gate: Gate
) -> None:
    job = start_held_run(pool, gate, 8)
    after = pool.submit(experiment(seed=9))
    while job.active:
        if (worker := pool.processes.get(job)) is not None:
            worker.kill()
            worker.wait()
        wait_for(lambda: not job.active or pool.processes.get(job) is not None, "the next attempt")
    assert (job.status, job.error) == ("failed", "its worker process died 3 times")
    # results are kept
    assert job.result.histories
    assert ended(after).status == "finished"
    same(after.histories["LinUCB"], run(after.experiment).histories["LinUCB"])


def test_a_paused_run_releases_its_worker_and_resumes_identically(pool: Pool, gate: Gate) -> None:
    e = experiment(
        "linucb",
        "beta_ts",
        {"kind": "linucb", "label": "window", "window": 100},
        steps=10_000,
        seed=30,
    )
    gate.hold(30, 4000)
    job = pool.submit(e, "me")
    wait_for(lambda: job.result.histories, "the first points", over(job))
    pool.pause(job, "me")
    assert (job.status, job.active) == ("paused", False)
    assert ended(pool.submit(experiment(seed=31))).status == "finished"
    seconds = job.seconds
    # still the same run
    assert pool.submit(e) is job
    pool.resume(job, "me")
    gate.open(30)
    assert ended(job).status == "finished"
    assert job.seconds > seconds
    for label, history in run(e).histories.items():
        same(job.histories[label], history)


def test_agents_that_are_unchanged_are_not_computed_again(pool: Pool, gate: Gate) -> None:
    e = experiment(
        "linucb",
        "lints",
        {"kind": "linucb", "label": "Mine", "alpha": 2.0},
        "random",
        steps=900,
        seed=31,
    )
    before = ended(pool.submit(e))
    agents = [
        {"kind": "random"},
        {"kind": "linucb", "alpha": 0.3},
        {"kind": "linucb", "alpha": 2.0},
        {"kind": "lints"},
    ]
    # another order, another name, another value
    changed = experiment(*agents, steps=900, seed=31)
    gate.hold(31, 0)
    job = pool.submit_changed(changed, before=before)
    wait_for(lambda: gate.stands(31) == 0, "the changed agent to begin", over(job))
    done = {label: history.step for label, history in job.histories.items()}
    assert done == {"Random": 900, "LinUCB": 0, "LinUCB 2": 900, "LinTS": 900}
    gate.open()
    ended(job)
    whole = run(changed)
    for label, history in whole.histories.items():
        same(job.histories[label], history)
    assert job.result.summary() == whole.summary()
    # the states that were taken over go on
    longer = ended(pool.extend(job, 1500))
    for label, history in run(longer.experiment).histories.items():
        same(longer.histories[label], history)


def test_what_is_taken_over_lifts_no_limit_and_is_of_the_same_code(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ended(pool.submit(experiment("linucb", "random", seed=34)))
    changed = experiment("lints", "random", seed=34)
    with monkeypatch.context() as patched:
        patched.setattr(supervisor, "TIME_LIMIT", 1e-6)
        with pytest.raises(UserError, match="cannot end"):
            pool.submit_changed(changed, before=before)
    # the plug-ins that it used were edited since
    with monkeypatch.context() as patched:
        patched.setattr(before, "id", "0" * 64)
        anew = pool.submit_changed(changed, before=before)
    assert anew.saved == {}
    ended(anew)


@pytest.mark.parametrize("changes", [{"seed": 33}, {"steps": 800}, {"replications": 4}])
def test_nothing_is_taken_over_from_another_experiment(changes: dict[str, int]) -> None:
    e = experiment("linucb", "random", steps=900, seed=32)
    lockstep = Lockstep(e)
    run_to_end(lockstep)
    state = lockstep.state_dict()
    other = experiment("linucb", "random", **{"steps": 900, "seed": 32, **changes})
    assert state_for(e, e, state).keys() == state.keys()
    assert state_for(other, e, state) == {}
    assert state_for(experiment("lints", steps=900, seed=32), e, state) == {}
    assert state_for(e, e, {}) == {}


def test_a_finished_run_is_extended_to_the_longer_run(pool: Pool) -> None:
    short = ended(pool.submit(experiment(steps=3000, seed=40)))
    longer = ended(pool.extend(short, 9000))
    assert longer.experiment == experiment(steps=9000, seed=40)
    for label, history in run(longer.experiment).histories.items():
        same(longer.histories[label], history)
    with pytest.raises(UserError, match="steps is 0"):
        pool.extend(short, 0)


def test_equal_experiments_submitted_concurrently_are_one_run(pool: Pool) -> None:
    for seed in range(200, 210):
        barrier, jobs = threading.Barrier(8), []

        def submit(
            e: Experiment, barrier: threading.Barrier = barrier, jobs: list[Job] = jobs
        ) -> None:
            barrier.wait()
            jobs.append(pool.submit(e))

        threads = [
            threading.Thread(target=submit, args=(experiment("random", seed=seed),))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(job) for job in jobs}) == 1
        ended(jobs[0])


def test_a_stopped_run_stays_available_to_all_users(pool: Pool, gate: Gate) -> None:
    job = pool.submit(held_experiment(gate, 51), "teacher")
    wait_for(lambda: job.saved, "a checkpoint", over(job))
    pool.stop(job, "teacher")
    wait_for(lambda: job not in pool.processes, "the end of its worker")
    with pytest.raises(UserError, match="only the browser that started or uploaded this"):
        pool.discard(job.id, "pupil")
    # another user has opened the link
    again = pool.submit(job.experiment, "pupil")
    # no second computation
    assert int(again.saved["step"]) == int(job.saved["step"]) > 0
    pool.stop(again, "pupil")


def test_only_one_server_resumes_unfinished_runs(tmp_path: Path, gate: Gate) -> None:
    with closing(Pool(store=Store(tmp_path))) as first:
        job = first.submit(held_experiment(gate, 52))
        wait_for(lambda: Store(tmp_path).checkpoints(), "a checkpoint on disk", over(job))
        assert first.unfinished() == []  # it is running
        # another server on the same folder
        with closing(Pool(store=Store(tmp_path))) as second:
            assert second.unfinished() == []
            assert second.get(job.id) is None
        first.stop(job)
        assert first.unfinished() == [job.experiment]


def test_only_the_owner_of_a_run_may_stop_it(pool: Pool, gate: Gate) -> None:
    job = pool.submit(held_experiment(gate, 50), "teacher")
    assert pool.submit(held_experiment(gate, 50), "pupil") is job
    for leave in (pool.stop, pool.pause):
        with pytest.raises(UserError, match="only the user who started this run"):
            leave(job, "pupil")
    assert job.active
    pool.stop(job, "teacher")
    assert job.status == "stopped"


def test_one_visitor_cannot_fill_the_queue(pool: Pool, gate: Gate) -> None:
    jobs = [pool.submit(held_experiment(gate, 60 + i), "eager") for i in range(MAX_ACTIVE)]
    with pytest.raises(UserError, match=f"you have {MAX_ACTIVE} active runs"):
        pool.submit(held_experiment(gate, 70), "eager")
    pool.pause(jobs[-1], "eager")
    # a paused run still counts for its owner ...
    with pytest.raises(UserError, match="active runs"):
        pool.submit(held_experiment(gate, 70), "eager")
    # ... and can resume
    pool.resume(jobs[-1], "eager")
    assert jobs[-1].active
    other = pool.submit(held_experiment(gate, 71), "patient")
    for job in jobs:
        pool.stop(job, "eager")
    pool.stop(other, "patient")


def test_a_run_over_its_time_limit_is_stopped_with_a_message(
    pool: Pool, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "TIME_LIMIT", 0.5)
    job = ended(pool.submit(held_experiment(gate, 80)))
    assert job.status == "stopped"
    wait_for(lambda: job.error, "the sentence")
    assert "the limit for one run" in job.error


def test_after_a_restart_finished_runs_are_available_and_unfinished_ones_resume(
    tmp_path: Path, gate: Gate
) -> None:
    e, done = experiment("linucb", "beta_ts", steps=3000, seed=90), experiment(seed=91)
    with closing(Pool(store=Store(tmp_path))) as first:
        kept = ended(first.submit(done))
    interrupt(gate, tmp_path, e)
    with closing(Pool(store=Store(tmp_path))) as second:
        again = second.get(done.hash)
        assert again is not None
        assert again.status == "finished"
        assert again.result.summary() == kept.result.summary()
        # not computed again
        assert second.submit(done) is again
        assert second.unfinished() == [e]
        revived = second.resume_unfinished(e)
        assert int(revived.saved["step"]) > 0
        assert ended(revived).status == "finished"
        assert second.unfinished() == []
    for label, history in run(e).histories.items():
        same(revived.histories[label], history)


def test_an_interrupted_run_shows_its_results_and_resumes_identically(
    tmp_path: Path, gate: Gate
) -> None:
    e = experiment("lints", "beta_ts", steps=3000, seed=92)
    interrupt(gate, tmp_path, e)
    with closing(Pool(store=Store(tmp_path))) as pool:
        job = pool.get(e.hash)
        assert job is not None
        assert pool.get(e.hash) is job
        assert (job.status, job.error, job.interrupted) == (
            "stopped",
            "interrupted when the app ended",
            True,
        )
        assert 0 < job.step == int(job.saved["step"]) < e.steps
        lockstep = Lockstep(e)
        lockstep.load_state_dict(job.saved)
        assert list(job.histories) == list(e.labels)
        for label, history in lockstep.histories.items():
            same(job.histories[label], history)
        assert 0 < job.progress < 1
        assert job.seconds > 0
        assert pool.unfinished() == [e]
        assert pool.live_jobs() == []
        pool.resume(job, "teacher")
        # whoever continues it, it stays that of who started it
        assert (job.owner, job.interrupted) == ("another visitor", False)
        assert (pool.live_jobs(), pool.unfinished()) == ([job], [])
        with pytest.raises(UserError, match="only the user who started this run"):
            pool.stop(job, "teacher")
        assert ended(job).status == "finished"
    for label, history in run(e).histories.items():
        same(job.histories[label], history)


def test_a_paused_run_leaves_memory_and_goes_on_to_the_same_bits(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "UNSEEN", 0.0)
    e = experiment("lints", "beta_ts", steps=3000, seed=95)
    gate.hold(95, 1000)
    with closing(Pool(store=Store(tmp_path))) as pool:
        job = pool.submit(e, "visitor")
        wait_for(lambda: job.step > 0, "some steps", over(job))
        wait_for(lambda: gate.stands(95), "the gate", over(job))
        wait_for(lambda: job.state_stored, "a checkpoint", over(job))
        pool.pause(job, "visitor")
        wait_for(lambda: not pool.live_jobs(), "the job to leave memory", over(job))
        monkeypatch.setattr(pools, "UNSEEN", 60.0)
        gate.open(95)
        again = pool.get(e.hash)
        assert again is not None
        assert again is not job
        assert (again.status, again.owner) == ("paused", "visitor")
        assert 0 < again.step <= 1000
        assert pool.live_jobs() == [again]
        with pytest.raises(UserError, match="only the user who started this run"):
            pool.resume(again, "another visitor")
        pool.resume(again, "visitor")
        assert ended(again).status == "finished"
    for label, history in run(e).histories.items():
        same(again.histories[label], history)


def test_a_run_that_no_page_shows_gives_way_to_those_that_wait(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "ABANDONED", 0.0)
    with closing(Pool()) as pool:
        job = pool.submit(held_experiment(gate, 96), "visitor")
        wait_for(lambda: job.result.histories, "the first points", over(job))
        other = pool.submit(experiment(seed=97))
        wait_for(lambda: job.status == "paused", "the first run to give way", over(job))
        assert ended(other).status == "finished"
        # somebody else asks for it, who could not resume it
        gate.open(96)
        monkeypatch.setattr(supervisor, "ABANDONED", 600.0)
        assert pool.submit(job.experiment, "another visitor") is job
        assert ended(job).status == "finished"


def test_a_large_state_stays_in_a_file(tmp_path: Path) -> None:
    e = read(
        {
            "simulator": {"kind": "petshop", "n_products": 800},
            "agents": [{"kind": "linucb"}],
            "steps": 50_000,
            "replications": 4,
        }
    )
    with closing(Pool(store=Store(tmp_path))) as pool:
        job = pool.submit(e)
        wait_for(lambda: job.step > 0, "some steps", over(job))
        pool.pause(job)
        wait_for(lambda: job.state_stored, "its checkpoint")
    assert sum(np.asarray(value).nbytes for value in job.saved.values()) > 4 * 2**20
    assert sum(map(memory, job.saved.values())) < 1000
    assert not list(tmp_path.glob("staged/*"))
    lockstep = Lockstep(e)
    for _ in lockstep.advance(int(job.saved["step"])):
        pass
    expected = lockstep.state_dict()
    assert job.saved.keys() == expected.keys()
    for name in expected:
        if not name.endswith("seconds"):
            np.testing.assert_array_equal(job.saved[name], expected[name], err_msg=name)


def test_an_interrupted_run_that_is_submitted_again_resumes(tmp_path: Path, gate: Gate) -> None:
    e = experiment(seed=93)
    interrupt(gate, tmp_path, e)
    gate.hold(93, 200)
    with closing(Pool(store=Store(tmp_path))) as pool:
        job = pool.submit(e, "another visitor")
        started = int(job.saved["step"])
        assert started > 0
        assert (job.status, job.owner) == ("queued", "another visitor")
        wait_for(lambda: job.step > started, "the run to go on", over(job))
        pool.pause(job, "another visitor")
        # a paused run resumes too
        assert pool.resume_unfinished(e, "another visitor") is job
        assert job.active
        pool.stop(job, "another visitor")
        # another job, from the stopped step
        assert pool.submit(e, "another visitor") is not job


def test_resuming_applies_the_limits_of_a_new_run(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = held_experiment(gate, 94)
    interrupt(gate, tmp_path, e)
    with closing(Pool(store=Store(tmp_path))) as pool:
        for i in range(MAX_ACTIVE):
            pool.submit(held_experiment(gate, 160 + i), "eager")
        with pytest.raises(UserError, match=f"you have {MAX_ACTIVE} active runs"):
            pool.resume_unfinished(e, "eager")
        monkeypatch.setattr("bandits.storage.run_store.MIN_FREE", 2**70)
        with pytest.raises(UserError, match="MiB left"):
            pool.resume_unfinished(e, "patient")
        job = pool.get(e.hash)
        assert job is not None
        assert (job.status, job.owner, job.interrupted) == ("stopped", "", True)


def test_a_run_can_be_discarded_and_an_active_one_only_by_its_owner(
    tmp_path: Path, gate: Gate
) -> None:
    e, live = held_experiment(gate, 96), held_experiment(gate, 97)
    interrupt(gate, tmp_path, e)
    store = Store(tmp_path)
    with closing(Pool(store=store)) as pool:
        assert pool.get(e.hash) is not None
        with pytest.raises(UserError, match="only the browser that started or uploaded this"):
            pool.discard(e.hash, "pupil")
        pool.discard(e.hash, "another visitor")
        assert pool.get(e.hash) is None
        assert pool.unfinished() == store.checkpoints() == []
        job = pool.submit(live, "teacher")
        wait_for(lambda: job.saved, "a checkpoint", over(job))
        with pytest.raises(UserError, match="only the user who started this run"):
            pool.discard(job.id, "pupil")
        with pytest.raises(UserError, match="this run is active; stop it before you delete it"):
            pool.delete(job.id)
        assert job.active
        pool.discard(job.id, "teacher")
        assert (job.status, pool.get(job.id)) == ("stopped", None)
        # not even the last one from its worker
        assert store.checkpoints() == []
        paused = pool.submit(live, "teacher")
        assert paused is not job
        wait_for(lambda: paused.result.histories, "the first points", over(paused))
        pool.pause(paused, "teacher")
        pool.discard(paused.id, "teacher")
        assert pool.get(paused.id) is None
        assert pool.unfinished() == []


def test_a_deleted_run_is_removed_from_store_and_pool(tmp_path: Path) -> None:
    with closing(Pool(store=Store(tmp_path))) as pool:
        job = ended(pool.submit(experiment(seed=98)))
        pool.delete(job.id)
        assert pool.get(job.id) is None
        again = ended(pool.submit(job.experiment))
        assert again is not job
        same(again.histories["LinUCB"], job.histories["LinUCB"])
        pool.delete("0" * 64)  # an unknown run


def test_only_whoever_started_a_run_deletes_it_and_a_person_at_the_server(tmp_path: Path) -> None:
    def deleted(pool: Pool, run: str, owner: str | None) -> bool:
        with suppress(UserError):
            pool.delete(run, owner)
        return pool.get(run) is None

    def stored(pool: Pool, owner: str, seed: int) -> str:
        return ended(pool.submit(experiment(seed=seed), owner)).id

    with closing(Pool(store=Store(tmp_path))) as pool:
        first, second, nobodys = (
            stored(pool, "teacher", 98),
            stored(pool, "teacher", 97),
            stored(pool, "", 96),
        )
        # who asks for the same run later has not started it
        assert stored(pool, "pupil", 98) == first
    # the server was started again
    with closing(Pool(store=Store(tmp_path))) as pool:
        for run in (first, second, nobodys):
            assert not deleted(pool, run, "pupil")
            assert not deleted(pool, run, "")
        assert not deleted(pool, nobodys, "teacher")
        with pytest.raises(UserError, match=DELETE_REFUSED):
            pool.delete(first, "pupil")
        assert deleted(pool, first, "teacher")
        assert deleted(pool, second, None)
        assert deleted(pool, nobodys, None)
        assert list((tmp_path / "owners").iterdir()) == []
        again = stored(pool, "pupil", 98)
        assert not deleted(pool, again, "teacher")
        assert deleted(pool, again, "pupil")


def test_a_damaged_run_is_restored_from_its_checkpoint_or_reported_as_missing(
    tmp_path: Path,
) -> None:
    e = experiment("linucb", "lints", seed=99)
    with closing(Pool(store=Store(tmp_path))) as pool:
        whole = ended(pool.submit(e))

    def damage() -> None:
        (path,) = (tmp_path / "objects").glob("*/*")
        path.write_bytes(path.read_bytes()[:-1])

    damage()
    with closing(Pool(store=Store(tmp_path))) as pool:
        job = pool.get(e.hash)
        assert job is not None
        assert (job.status, job.step) == ("stopped", e.steps)
        assert "is damaged; it was set aside" in job.error
        same(job.histories["LinTS"], whole.histories["LinTS"])
        pool.resume(job)
        assert ended(job).status == "finished"
        assert [r.id for r in Store(tmp_path).runs()] == [e.hash]
    damage()
    Store(tmp_path).drop_checkpoint(e.hash)
    with closing(Pool(store=Store(tmp_path))) as pool:
        assert pool.get(e.hash) is None


def test_a_checkpoint_of_another_version_is_ignored(tmp_path: Path) -> None:
    e = experiment(seed=101)
    store = Store(tmp_path)
    store.keep_checkpoint(e.hash, e, pack({"step": np.array(100), "0.history.step": np.array(100)}))
    with closing(Pool(store=store)) as pool:
        assert pool.get(e.hash) is None
        assert ended(pool.resume_unfinished(e)).status == "finished"


def test_invalid_ids_name_no_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    path = ("", "../index.sqlite", "..", "checkpoints", "/etc/passwd")
    with closing(Pool(store=store)) as pool:
        for name in (*path, "a\0b", "A" * 64, "é" * 64):
            assert pool.get(name) is None, name
            assert store.checkpoint_files.state(name) is None, name
            store.drop_checkpoint(name)
    assert [
        p for p in before if not p.exists() and p.suffix not in (".sqlite-wal", ".sqlite-shm")
    ] == []


def test_a_full_disk_keeps_the_run_in_memory_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bandits.storage.checkpoints.atomic_write", full)
    monkeypatch.setattr("bandits.storage.object_files.stage", full)
    with closing(Pool(store=store)) as pool:
        job = ended(pool.submit(experiment(seed=95)))
        assert job.status == "finished"
        assert "No space left on device" in job.error
        assert job.result.summary()["agents"]["LinUCB"]["rows"] == 3
    assert store.runs() == []


def test_an_idle_worker_that_dies_is_replaced(pool: Pool, gate: Gate) -> None:
    job = pool.submit(held_experiment(gate, 20))
    wait_for(lambda: job in pool.processes, "its worker", over(job))
    worker = pool.processes[job]
    gate.open(20)
    assert ended(job).status == "finished"
    worker.kill()
    worker.wait()
    assert ended(pool.submit(experiment(seed=21))).status == "finished"


def test_workers_that_do_not_start_are_reported_and_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = start_worker
    bad = [True]

    def broken(folder: Path | None = None) -> WorkerProcess:
        if not bad[0]:
            return start(folder)
        return WorkerProcess(
            Popen([sys.executable, "-c", "raise SystemExit(1)"], stdin=PIPE, stdout=PIPE)
        )

    monkeypatch.setattr(supervisor, "start_worker", broken)
    with closing(Pool()) as pool:
        job = pool.submit(experiment(seed=96))
        wait_for(lambda: pool.broken, "two deaths at birth")
        assert job.status == "queued"
        bad[0] = False
        assert ended(job).status == "finished"
        assert not pool.broken


def test_the_static_network_is_trained_during_the_run_and_catches_up(
    pool: Pool, gate: Gate
) -> None:
    mlp = {"kind": "static_mlp", "interactions": 5000, "epochs": 2, "hidden": [8], "embedding": 4}
    e = experiment("linucb", mlp, steps=3000, replications=2, seed=22)
    gate.hold(22, 2000, training=True)
    job = pool.submit(e)
    wait_for(
        lambda: job.waiting and "LinUCB" in job.result.histories,
        "the others to start without it",
        over(job),
    )
    assert job.waiting == {"Static MLP"}
    assert "Static MLP" not in job.result.histories
    gate.open(22)
    assert ended(job).status == "finished"
    assert job.waiting == set()
    assert {h.step for h in job.histories.values()} == {3000}
    # trained before the start in process
    for label, h in run(e).histories.items():
        same(job.histories[label], h)


def test_old_runs_are_dropped_from_memory_but_active_ones_are_kept(pool: Pool, gate: Gate) -> None:
    running = start_held_run(pool, gate, 11)
    many = [
        pool.submit(experiment("random", steps=1, replications=1, seed=s))
        for s in range(100, 100 + MAX_ENDED_JOBS + 5)
    ]
    pool.stop(running)
    for job in many:
        ended(job)
    last = ended(pool.submit(experiment("random", steps=1, replications=1, seed=99)))
    assert pool.get(running.id) is None
    assert pool.get(last.id) is last
    assert len(pool._jobs) <= MAX_ENDED_JOBS + 1


def test_closing_ends_all_processes(gate: Gate) -> None:
    def threads(name: str) -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == name} - before

    before = set(threading.enumerate())
    pool = Pool(2)
    # the other worker is idle, or about to start
    busy = start_held_run(pool, gate, 12)
    process = pool.processes[busy]
    serving = threads("supervisor of a worker")
    assert len(serving) == 2
    pool.close()
    # a thread ends after its worker
    for thread in serving:
        thread.join(60)
    assert not any(thread.is_alive() for thread in serving)
    wait_for(
        lambda: not threads("messages to a worker"), "the end of the threads that write to workers"
    )
    assert process.returncode is not None
    assert not busy.active


def test_memory_is_estimated_before_anything_is_allocated() -> None:
    sizes = (
        (1, 1, 1),
        (300, 3, 10),
        (20_000, 16, 50),
        (10_000_000, 64, 50),
        (5000, 2, 100_000),
        (5000, 2, 25_000),
    )
    for steps, rows, items in sizes:
        made = History(steps, rows, items, 4)
        assert (made.segments is None) == (items == 100_000)
        held = made.counts.nbytes + sum(s.nbytes for s in made.sums.values()) + made.grid.nbytes
        held += (
            0 if made.segments is None else made.segments.counts.nbytes + made.segments.now.nbytes
        )
        assert held <= 1.2 * History.memory(steps, rows, items, 4) + 100_000
    with pytest.raises(
        UserError, match=r"would need about [\d,.]+ GiB of memory; 4 GiB are allowed"
    ) as refused:
        read(
            {
                "simulator": {"kind": "petshop", "n_products": 10_000_000},
                "agents": [{"kind": "linucb"}],
            }
        )
    assert "fewer arms (10,000,000)" in str(refused.value)


def test_the_estimate_covers_the_state_of_the_agents() -> None:
    e = experiment(
        "linucb", "lints", replications=16, simulator={"kind": "petshop", "n_products": 400}
    )
    lockstep = Lockstep(e)
    run_to_end(lockstep)
    state = [
        v
        for i in range(2)
        for v in make_lane(e, i).state_dict().values()
        if isinstance(v, np.ndarray)
    ]
    held = sum(a.nbytes for h in lockstep.histories.values() for a in (h.counts, *h.sums.values()))
    assert sum(a.nbytes for a in state) + held <= e.memory() < MEMORY_LIMIT


def test_a_truncated_message_ends_the_stream() -> None:
    whole = io.BytesIO()
    send(
        whole,
        {"event": "history", "label": "LinUCB"},
        {"step": np.array(7), "sum.clicks": np.zeros((3, 2))},
    )
    sent = whole.getvalue()
    message = receive(io.BytesIO(sent))
    assert message is not None
    assert message[0]["label"] == "LinUCB"
    assert message[1]["step"] == 7
    assert all(receive(io.BytesIO(sent[:cut])) is None for cut in range(len(sent)))
