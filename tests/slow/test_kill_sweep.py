"""Sweeps survive killed workers, schedulers and runners and full disks with identical results."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bandits import sweeps
from bandits.base.files import unpack
from bandits.base.processes import worker_environment
from bandits.cli.sweep import save
from bandits.runtime.pool import Pool
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps.blocks import StoppedError
from bandits.sweeps.execution.dask_client import DaskExecutor
from bandits.sweeps.execution.executors import Executor, PoolExecutor
from bandits.sweeps.runner import Runner
from bandits.sweeps.storage.block_files import BlockFiles
from tests.gate import Gate
from tests.slow.cluster_support import Dask
from tests.support import PATIENCE, often, wait_for

KILLS = often(1, 6)
RUNNERS = often(2, 20)
# blocks of the sweep are held at this step
SEED, STEP = 17, 1000
BLOCKS = 24
DATA: dict[str, Any] = {
    "experiment": {
        "simulator": {"kind": "petshop", "n_products": 10},
        "agents": [{"kind": "linucb"}],
        "steps": often(2000, 12_000),
        "replications": 8,
        "seed": 17,
    },
    "axes": [
        {"path": "agents.0.alpha", "low": 0.1, "high": 10, "number": 3, "scale": "log"},
        {"path": "agents.0.ridge", "low": 0.1, "high": 10, "number": 3, "scale": "log"},
    ],
}
RESULTS = ("points.parquet", "summary.json", "sweep.json")


class Reference(NamedTuple):
    sweep: Sweep
    file: Path
    landscape: Landscape
    out: Path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "sweep.json").write_text(json.dumps(DATA), encoding="utf-8")
    landscape = sweeps.run(sweeps.read(DATA))
    save(landscape, folder / "out")
    return Reference(landscape.sweep, folder / "sweep.json", landscape, folder / "out")


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Dask]:
    """Start a scheduler without workers."""
    cluster = Dask(tmp_path / "dask")
    yield cluster
    cluster.end()


def check(out: Path, whole: Reference) -> None:
    """Check that the files equal those of an uninterrupted sweep."""
    for name in RESULTS:
        assert (out / name).read_bytes() == (whole.out / name).read_bytes(), name


def blocks(home: Path) -> list[Path]:
    return list(home.rglob("*.block"))


def check_rows(home: Path, whole: Reference) -> None:
    """Check that every run of every point is stored exactly once."""
    rows = Counter[tuple[int, ...]]()
    for path in blocks(home):
        rows.update(map(tuple, unpack(path.read_bytes()[32:])["rows"].tolist()))
    assert set(rows.values()) == {1}
    assert len(rows) == whole.landscape.completed.size


# -- workers
# -------------------------------------------------------------------------------------------------------  # noqa: E501


def run_with_kills(
    whole: Reference, executor: Executor, home: Path, victims: Callable[[], list[int]], gate: Gate
) -> None:
    """Run a sweep and kill one victim after each further share of blocks.

    The others are held meanwhile.
    """
    runner = Runner(whole.sweep, executor, BlockFiles(whole.sweep, home))
    rng, killed, share = np.random.default_rng(5), list[int](), BLOCKS // (KILLS + 2)
    gate.hold(SEED, STEP, passes=share)

    def watch(done: float) -> None:
        if (
            len(killed) == KILLS
            or len(blocks(home)) < share * (len(killed) + 1)
            or not (able := victims())
        ):
            return
        killed.append(int(rng.choice(able)))
        os.kill(killed[-1], signal.SIGKILL)
        if len(killed) < KILLS:
            gate.hold(SEED, STEP, passes=share)
        else:
            gate.open()

    runner.on_progress = watch
    landscape = runner.run()
    assert len(set(killed)) == KILLS
    assert runner.notices == []
    save(landscape, home / "out")
    check(home / "out", whole)
    check_rows(home, whole)


def test_a_sweep_survives_killed_workers_of_the_pool(
    whole: Reference, gate: Gate, tmp_path: Path
) -> None:
    pool = Pool(2)
    try:
        run_with_kills(
            whole,
            PoolExecutor(pool),
            tmp_path,
            lambda: [p.pid for p in list(pool.processes.values())],
            gate,
        )
    finally:
        pool.close()


def test_a_sweep_survives_killed_workers_of_a_cluster(
    whole: Reference, dask: Dask, gate: Gate, tmp_path: Path
) -> None:
    dask.work("--nworkers", "2")
    away = DaskExecutor(dask.address)

    def victims() -> list[int]:
        """Return workers that compute a block, and start a replacement."""
        return list(
            away._client.run(
                os.getpid,
                workers=[w for w, keys in away._client.processing().items() if keys],
                on_error="ignore",
            ).values()
        )

    try:
        # Dask removes files beside it meanwhile
        run_with_kills(whole, away, tmp_path / "home", victims, gate)
    finally:
        away.close()


# -- scheduler and runner
# ------------------------------------------------------------------------------------------


class Command:
    """``python -m bandits sweep`` in a subprocess with its own home folder."""

    def __init__(self, whole: Reference, home: Path, *arguments: str, **options: Any) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bandits", "sweep", str(whole.file), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**worker_environment(), "BANDITS_HOME": str(home)},
            **options,
        )

    def reach(self, number: int) -> None:
        """Wait for this many stored blocks; the command must not end before."""
        wait_for(lambda: len(blocks(self.home)) >= number, f"{number} blocks", self._over)
        assert self.process.poll() is None

    def _over(self) -> str:
        return (
            ""
            if self.process.poll() is None
            else f"it has ended with status {self.process.returncode}"
        )

    def ended(self) -> tuple[int, str]:
        """Return exit status and standard error."""
        _, message = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, message


def test_a_killed_scheduler_is_reported_and_the_sweep_resumes(
    whole: Reference, dask: Dask, gate: Gate, tmp_path: Path
) -> None:
    gate.hold(SEED, STEP, passes=1)
    dask.work("--no-nanny")
    out = tmp_path / "out"
    command = Command(
        whole, tmp_path / "home", "--cluster", dask.address, "--workers", "1", "--out", str(out)
    )
    command.reach(1)
    dask.scheduler.kill()
    gate.open()
    status, message = command.ended()
    assert (status, message.splitlines()) == (
        0,
        [f"the scheduler at {dask.address} is gone; continuing on this machine"],
    )
    check(out, whole)
    check_rows(tmp_path / "home", whole)


@pytest.mark.parametrize("series", range(often(1, 4)))
def test_a_killed_runner_resumes_from_stored_blocks(
    series: int, whole: Reference, gate: Gate, tmp_path: Path
) -> None:
    """Kill it repeatedly: while it starts, computes and writes."""
    home, rng, workers = tmp_path / "home", np.random.default_rng([11, series]), str(series % 3)
    kills = RUNNERS // often(1, 4)
    for _ in range(kills):
        new, left = int(rng.integers(0, 4)), BLOCKS - len(blocks(home))
        # it continues for a moment, but does not finish
        gate.hold(SEED, STEP, passes=min(new + 1, left - 1))
        command = Command(whole, home, "--workers", workers)
        command.reach(len(blocks(home)) + min(new, left - 1))
        # a random moment, not a wait for a condition
        time.sleep(0.3 * rng.random())
        assert command.process.poll() is None
        command.process.kill()
        command.ended()
    gate.open()
    last = Command(whole, home, "--workers", workers, "--out", str(tmp_path / "out"))
    status, message = last.ended()
    assert (status, message) == (0, "")
    check(tmp_path / "out", whole)
    check_rows(home, whole)


def restore_control_c() -> None:
    """Processes that a shell starts in the background ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_control_c_stops_with_a_message_and_loses_nothing(
    whole: Reference, gate: Gate, tmp_path: Path
) -> None:
    gate.hold(SEED, STEP, passes=1)
    home = tmp_path / "home"
    command = Command(whole, home, "--workers", "1", preexec_fn=restore_control_c)
    command.reach(1)
    # as a terminal does: to all processes of the command
    os.killpg(command.process.pid, signal.SIGINT)
    status, message = command.ended()
    assert status == 130
    assert message.splitlines() == [
        "Finished blocks are stored: the same command continues from there.",
        "stopped",
    ]
    kept = {path: path.stat().st_mtime_ns for path in blocks(home)}
    assert kept
    save(sweeps.run(whole.sweep, files=BlockFiles(whole.sweep, home / "sweeps")), tmp_path / "out")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    check(tmp_path / "out", whole)


# -- a full disk
# ---------------------------------------------------------------------------------------------------  # noqa: E501


def full() -> None:
    """Limit files written by this process to 1,000 bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def test_a_full_disk_is_reported_and_finished_blocks_are_kept(
    whole: Reference, tmp_path: Path
) -> None:
    files = BlockFiles(whole.sweep, tmp_path / "sweeps")
    with pytest.raises(StoppedError):
        sweeps.run(whole.sweep, files=files, stop=lambda: len(blocks(tmp_path)) >= 3)
    kept = {path: path.read_bytes() for path in blocks(tmp_path)}
    command = Command(whole, tmp_path, "--workers", "0", preexec_fn=full)
    assert command.ended() == (0, "this sweep could not be kept on disk (File too large)\n")
    assert {path: path.read_bytes() for path in blocks(tmp_path)} == kept
    again = Command(
        whole, tmp_path, "--workers", "0", "--out", str(tmp_path / "out"), preexec_fn=full
    )
    status, message = again.ended()
    # requested results are missing
    assert status == 2
    assert message.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in message
