"""Killed at any moment, worker or server: the run goes on from its last checkpoint, to the same bits."""

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
def start_and_report():
    process = start()
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
    """A process that runs a pool with a store, and the experiment in it: begun or gone on with."""

    def __init__(self, folder: Path, file: Path) -> None:
        self.processes: list[int] = []
        command = [sys.executable, "-c", SERVER, str(folder), str(file)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )

    def hear(self, word: str) -> list[str]:
        """Read on to a line that begins with a word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            actual, *rest = line.split()
            self._note(actual, rest)
            if actual == word:
                return rest
        raise AssertionError(f"the server ended before it said '{word}'")

    def reach(self, kill: int, race: Race, store: Store) -> None:
        """Wait for a moment: all steps are equally likely, and so is all that happens between two of them.

        The run stands still before its end, so that the moment comes before that. Every other time a checkpoint does.
        """
        share, rest = np.random.default_rng([17, kill]).random(2)
        while int(self.hear("at")[0]) < share * race.stop:
            pass
        if kill // 2 % 2 == 0:
            wait_for(store.checkpoints, "a checkpoint on disk", lambda: self.process.poll() is not None and "it ended")
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


class Race(NamedTuple):
    experiment: Experiment
    file: Path
    result: Result  # of a run that nobody disturbs

    @property
    def stop(self) -> int:
        """Where it stands still until it was killed."""
        return self.experiment.steps * 9 // 10


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Race:
    """It stands still before its end, where there are checkpoints to be killed before, in and after."""
    agents = ["linucb", "lints", {"kind": "linucb", "label": "window", "window": 100}]
    e = experiment(*agents, steps=30_000, seed=17)
    file = tmp_path_factory.mktemp("race") / "experiment.json"
    file.write_text(e.model_dump_json(), encoding="utf-8")
    return Race(e, file, run(e))


def check(folder: Path, expected: Result) -> None:
    """The stored run has the bits of an undisturbed one, and the store is in order."""
    command = [sys.executable, "-m", "bandits", "store", "check"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "BANDITS_HOME": str(folder)}, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    actual = Store(folder).get(expected.experiment.hash)
    assert actual is not None
    for label, history in expected.histories.items():
        same(actual.histories[label], history)
    assert actual.summary() == expected.summary()
    assert Store(folder).checkpoints() == []


def gone(process: int) -> bool:
    """Ended, though nobody may have asked for its exit status yet."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


@pytest.mark.parametrize("kill", range(0, KILLS, 2))
def test_a_killed_server_leaves_nobody_behind_and_the_next_goes_on(
    kill: int, race: Race, gate: Gate, tmp_path: Path
) -> None:
    gate.hold(race.experiment.seed, race.stop)
    server = Server(tmp_path, race.file)
    try:
        server.reach(kill, race, Store(tmp_path))
    finally:
        server.kill()
    assert len(server.processes) >= 1
    for process in server.processes:
        wait_for(lambda process=process: gone(process), "the end of a worker whose server is gone")
    known = Store(tmp_path).checkpoints() != []
    assert Store(tmp_path).get(race.experiment.hash) is None
    gate.open()
    again = Server(tmp_path, race.file)
    try:
        (start,) = again.hear("from")
        assert known == (int(start) > 0)
        assert again.hear("ended")[0] == "finished"
        assert again.process.wait(PATIENCE) == 0
    finally:
        again.kill()
    check(tmp_path, race.result)


@pytest.mark.parametrize("kill", range(1, KILLS, 2))
def test_a_killed_worker_is_replaced_and_the_run_goes_on(kill: int, race: Race, gate: Gate, tmp_path: Path) -> None:
    gate.hold(race.experiment.seed, race.stop)
    server = Server(tmp_path, race.file)
    try:
        (worker,) = server.hear("worker")
        server.reach(kill, race, Store(tmp_path))
        os.kill(int(worker), signal.SIGKILL)
        gate.open()
        assert server.hear("ended") == ["finished", "1"]
        assert server.process.wait(PATIENCE) == 0
    finally:
        server.kill()
    check(tmp_path, race.result)
