"""Workers and servers killed at random moments: the run resumes from its last checkpoint with
identical results.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from bandits import Experiment, Result, run
from bandits.runtime.protocol import UPDATE_INTERVAL
from bandits.storage.run_store import Store
from tests.gate import Gate
from tests.support import PATIENCE, STRESS, experiment, same, wait_for

ROOT = Path(__file__).parents[2]
KILLS = 60 if STRESS else 2
SERVER = """
import sys, threading, time
from pathlib import Path
from bandits import read
from bandits.runtime import supervisor
from bandits.runtime.pool import Pool
from bandits.storage.run_store import Store
lock = threading.Lock()
def say(*words):
    with lock:
        print(*words, flush=True)
start = supervisor.start_worker
def start_and_report(folder=None):
    process = start(folder)
    say("process", process.pid)
    return process
supervisor.start_worker = start_and_report
pool = Pool(workers=2, store=Store(Path(sys.argv[1])))
left = pool.unfinished()
job = pool.resume_unfinished(left[0]) if left else pool.submit(read(Path(sys.argv[2]).read_bytes()))
say("from", int(job.saved["step"]) if job.saved else 0)
worker, step = None, -1
while job.active:
    if job.step != step:
        step = job.step
        say("at", step)
    if (now := pool.processes.get(job)) not in (None, worker):
        worker = now
        say("worker", worker.pid)
    time.sleep(0.01)
say("at", job.step)
say("ended", job.status, job.worker_deaths)
pool.close()
"""


class Server:
    """A process with a pool and a store that starts or resumes an experiment."""

    def __init__(self, folder: Path, file: Path) -> None:
        self.processes: list[int] = []
        command = [sys.executable, "-c", SERVER, str(folder), str(file)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def wait_for_line(self, word: str) -> list[str]:
        """Read up to a line that begins with a word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            actual, *rest = line.split()
            self._note(actual, rest)
            if actual == word:
                return rest
        raise AssertionError(f"the server ended before it printed '{word}'")

    def reach(self, kill: int, held_run: HeldRun, store: Store) -> None:
        """Wait for a random moment: steps, and times between two steps, are equally likely.

        The run is held before its end, so that it cannot end first. Every other time a checkpoint
        is required."""
        share, rest = np.random.default_rng([17, kill]).random(2)
        while int(self.wait_for_line("at")[0]) < share * held_run.stop:
            pass
        if kill // 2 % 2 == 0:
            wait_for(
                store.checkpoints,
                "a checkpoint on disk",
                lambda: self.process.poll() is not None and "it ended",
            )
        time.sleep(UPDATE_INTERVAL * rest)

    def _note(self, word: str, rest: list[str]) -> None:
        if word == "process":
            self.processes.append(int(rest[0]))

    def kill(self) -> None:
        self.process.kill()
        out, _ = self.process.communicate()
        for line in out.splitlines():
            word, *rest = line.split()
            self._note(word, rest)


class HeldRun(NamedTuple):
    experiment: Experiment
    file: Path
    # of an uninterrupted run
    result: Result

    @property
    def stop(self) -> int:
        """The step at which the run is held until the kill."""
        return self.experiment.steps * 9 // 10


@pytest.fixture(scope="module")
def held_run(tmp_path_factory: pytest.TempPathFactory) -> HeldRun:
    """Return a run that is held before its end and long enough to be killed before, during and
    after checkpoints.
    """
    agents = ["linucb", "lints", {"kind": "linucb", "label": "window", "window": 100}]
    e = experiment(*agents, steps=30_000, seed=17)
    file = tmp_path_factory.mktemp("race") / "experiment.json"
    file.write_text(e.model_dump_json(), encoding="utf-8")
    return HeldRun(e, file, run(e))


def check(folder: Path, expected: Result) -> None:
    """Check that the stored run equals an uninterrupted one and that the store is valid."""
    command = [sys.executable, "-m", "bandits", "store", "check"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "BANDITS_HOME": str(folder)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    actual = Store(folder).get(expected.experiment.hash)
    assert actual is not None
    for label, history in expected.histories.items():
        same(actual.histories[label], history)
    assert actual.summary() == expected.summary()
    assert Store(folder).checkpoints() == []


def has_ended(process: int) -> bool:
    """Return whether a process has ended, also if its exit status has not been read."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


@pytest.mark.parametrize("kill", range(0, KILLS, 2))
def test_a_killed_server_leaves_no_workers_and_the_next_resumes(
    kill: int, held_run: HeldRun, gate: Gate, tmp_path: Path
) -> None:
    gate.hold(held_run.experiment.seed, held_run.stop)
    server = Server(tmp_path, held_run.file)
    try:
        server.reach(kill, held_run, Store(tmp_path))
    finally:
        server.kill()
    assert len(server.processes) >= 1
    for process in server.processes:
        wait_for(
            lambda process=process: has_ended(process), "the end of a worker whose server is gone"
        )
    known = Store(tmp_path).checkpoints() != []
    assert Store(tmp_path).get(held_run.experiment.hash) is None
    gate.open()
    again = Server(tmp_path, held_run.file)
    try:
        (start,) = again.wait_for_line("from")
        assert known == (int(start) > 0)
        assert again.wait_for_line("ended")[0] == "finished"
        assert again.process.wait(PATIENCE) == 0
    finally:
        again.kill()
    check(tmp_path, held_run.result)


@pytest.mark.parametrize("kill", range(1, KILLS, 2))
def test_a_killed_worker_is_replaced_and_the_run_continues(
    kill: int, held_run: HeldRun, gate: Gate, tmp_path: Path
) -> None:
    gate.hold(held_run.experiment.seed, held_run.stop)
    server = Server(tmp_path, held_run.file)
    try:
        (worker,) = server.wait_for_line("worker")
        server.reach(kill, held_run, Store(tmp_path))
        os.kill(int(worker), signal.SIGKILL)
        gate.open()
        assert server.wait_for_line("ended") == ["finished", "1"]
        assert server.process.wait(PATIENCE) == 0
    finally:
        server.kill()
    check(tmp_path, held_run.result)
