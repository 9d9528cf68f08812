"""Sweeps on a Dask cluster: identical results, encryption, and refusals in one sentence."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import dask
import distributed  # noqa: F401
import numpy as np
import pytest

from bandits import sweeps
from bandits.base.errors import UserError
from bandits.base.processes import worker_environment
from bandits.cli import main as cli
from bandits.results.metric_registry import OBJECTIVES
from bandits.runtime.pool import Pool
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps.blocks import Block
from bandits.sweeps.execution import audit, dask_client
from bandits.sweeps.execution.dask_client import DaskExecutor
from bandits.sweeps.execution.executors import Executor, ExecutorLostError, PoolExecutor
from bandits.sweeps.runner import Runner
from tests.gate import Gate
from tests.slow.cluster_support import Dask
from tests.support import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]
PARTS = {"CA_FILE": "ca.pem", "CLIENT__CERT": "node.pem", "CLIENT__KEY": "node.key"}
DATA: dict[str, Any] = {
    "experiment": {
        "simulator": {"kind": "petshop", "n_products": 10},
        "agents": [{"kind": "lints"}],
        "steps": 500,
        "replications": 4,
    },
    "axes": [
        {"path": "agents.0.sigma2", "low": 0.01, "high": 1, "number": 4, "scale": "log"},
        {"path": "agents.0.sharing", "values": ["per_arm", "shared"]},
    ],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    dask = Dask(tmp_path_factory.mktemp("dask"), workers=2)
    yield dask
    dask.end()


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Dask]:
    """Start a scheduler without workers."""
    dask = Dask(tmp_path)
    yield dask
    dask.end()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(DATA), encoding="utf-8")
    return path


def small() -> Sweep:
    return sweeps.read(DATA)


def held(gate: Gate) -> tuple[Sweep, Block]:
    """Return a block that is held at step 100."""
    gate.hold(18, 100)
    data = {**DATA, "experiment": {**DATA["experiment"], "seed": 18}}
    return sweeps.read(data), Block(tuple((0, run) for run in range(4)))


def same(a: Landscape, b: Landscape) -> None:
    """Assert that numbers and curves are bit-identical."""
    for metric in OBJECTIVES:
        np.testing.assert_array_equal(a.numbers(metric), b.numbers(metric))
    for point in range(a.sweep.size):
        for name, sums in a.curves(point).sums.items():
            np.testing.assert_array_equal(sums, b.curves(point).sums[name])


def run_on(executor: Executor) -> Landscape:
    try:
        runner = Runner(small(), executor)
        landscape = runner.run()
        assert runner.notices == []
        return landscape
    finally:
        executor.close()


def refused(address: str) -> str:
    """Return the message with which a cluster is refused."""
    with pytest.raises(UserError) as error:
        DaskExecutor(address)
    assert "\n" not in str(error.value)
    return str(error.value)


# -- addresses
# -----------------------------------------------------------------------------------------------------  # noqa: E501


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:8786", "must be tls://host:port"),
        ("http://127.0.0.1:8786", "must be tls://host:port"),
        ("inproc://1/2", "must be tls://host:port"),
        ("tls://", "must be tls://host:port"),
        ("tls://somewhere", "must be tls://host:port"),
        ("tls://somewhere:123456", "must be tls://host:port"),
        ("tls://me@somewhere:8786", "must be tls://host:port"),
        ("tls://somewhere:8786/there", "must be tls://host:port"),
        ("tcp://localhost\n:1", "must be tls://host:port"),
        ("tcp://local\thost:1", "must be tls://host:port"),
        ("tls://[::1:8786", "must be tls://host:port"),
        ("tcp://192.0.2.1:8786", "is not encrypted"),
        ("tcp://example.org:8786", "is not encrypted"),
        ("tcp://127.0.0.1.example.org:8786", "is not encrypted"),
        ("tcp://0.0.0.0:8786", "is not encrypted"),
        ("tls://127.0.0.1:8786", "set DASK_DISTRIBUTED__COMM__TLS__CA_FILE"),
    ],
)
def test_invalid_and_insecure_addresses_are_refused(
    address: str, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(address)
    assert cli.main(["sweep", str(file), "--cluster", address]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_an_address_without_a_scheduler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_client, "CONNECT_TIMEOUT", 0.5)
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in refused("tcp://127.0.0.1:9")


def test_a_missing_dask_is_reported(file: Path) -> None:
    code = (
        "import sys; sys.modules['distributed'] = None; from bandits.cli.main import main; "
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "sweep", str(file), "--cluster", "tcp://127.0.0.1:8786"],
        capture_output=True,
        text=True,
        env=worker_environment(),
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: a sweep on a cluster needs Dask, which is not installed: pip install "
        '"bandit-playground[cluster]"\n'
    )


# -- numbers
# -------------------------------------------------------------------------------------------------------  # noqa: E501


def test_results_in_process_in_the_pool_and_on_a_cluster_are_identical(cluster: Dask) -> None:
    here, pool = sweeps.run(small()), Pool(1)
    try:
        same(run_on(PoolExecutor(pool)), here)
    finally:
        pool.close()
    away = DaskExecutor(cluster.address)
    wait_for(lambda: away.workers == 2, "the second worker")
    same(run_on(away), here)


def test_optuna_sweeps_on_a_cluster_are_identical(cluster: Dask) -> None:
    sweep = sweeps.read({**DATA, "search": "optuna", "number": 8, "batch": 4})
    here, away = sweeps.run(sweep), DaskExecutor(cluster.address)
    try:
        actual = Runner(sweep, away).run()
    finally:
        away.close()
    assert actual.sweep.proposed == here.sweep.proposed
    for metric in OBJECTIVES:
        np.testing.assert_array_equal(actual.numbers(metric), here.numbers(metric))


@pytest.mark.stress
def test_the_command_line_reads_the_cluster_address_from_the_environment(
    cluster: Dask, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, address in (("here", ""), ("there", cluster.address)):
        monkeypatch.setenv("BANDITS_HOME", str(tmp_path / f"home-{place}"))
        monkeypatch.setenv("BANDITS_CLUSTER", address)
        assert cli.main(["sweep", str(file), "--workers", "0", "--out", str(tmp_path / place)]) == 0
    for name in ("points.parquet", "summary.json", "sweep.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_a_cancelled_block_is_abandoned(cluster: Dask, gate: Gate) -> None:
    away, steps = DaskExecutor(cluster.address), list[int]()
    try:
        future = away.submit(*held(gate), steps.append)
        wait_for(lambda: len(steps) > 1, "progress of a block")
        assert steps == sorted(steps)
        assert busy(away) == 1
        assert future.cancel()
        wait_for(lambda: busy(away) == 0, "the end of a block that was cancelled")
    finally:
        away.close()


def test_a_closed_client_leaves_no_running_blocks(cluster: Dask, gate: Gate) -> None:
    away, other, steps = DaskExecutor(cluster.address), DaskExecutor(cluster.address), list[int]()
    try:
        away.submit(*held(gate), steps.append)
        wait_for(lambda: steps, "progress of a block")
        away.close()
        wait_for(lambda: busy(other) == 0, "the end of a block whose client is gone")
    finally:
        other.close()


def busy(away: DaskExecutor) -> int:
    """Return the number of blocks that the workers compute."""
    return sum(away._client.run(lambda dask_worker: len(dask_worker.active_threads)).values())


def test_errors_of_a_worker_are_reported(cluster: Dask) -> None:
    away = DaskExecutor(cluster.address)
    try:
        future = away.submit(small(), Block(((99, 0),)), lambda step: None)
        assert str(future.exception()) == "tuple index out of range"
        assert isinstance(future.exception(), UserError)
    finally:
        away.close()


def test_a_block_that_kills_its_workers_is_reported(cluster: Dask, gate: Gate) -> None:
    away, steps = DaskExecutor(cluster.address), list[int]()
    away._client.run_on_scheduler(
        lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0)
    )
    try:
        future = away.submit(*held(gate), steps.append)
        wait_for(lambda: steps, "progress of a block")
        (worker,) = (address for address, keys in away._client.processing().items() if keys)
        os.kill(away._client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)
        with pytest.raises(
            UserError, match="1 workers of the cluster died while computing the same block"
        ):
            future.result()
    finally:
        away._client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3)
        )
        away.close()


def test_a_worker_that_returns_other_numbers_is_shut_out(
    scheduler: Dask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "AUDIT_SHARE", 1.0)

    def begin_to_lie() -> None:
        from bandits.sweeps.execution import dask_worker

        honest = dask_worker.compute

        def lie(*arguments: Any) -> Any:
            arrays = honest(*arguments)
            return {**arrays, "sum.value": arrays["sum.value"] * 0.999}

        dask_worker.compute = lie

    scheduler.work()
    away = DaskExecutor(scheduler.address)
    (liar,) = away._client.nthreads()
    away._client.run(begin_to_lie)
    scheduler.work()
    wait_for(lambda: away.workers == 2, "the second worker")
    try:
        same(Runner(small(), away).run(), sweeps.run(small()))
    finally:
        away.close()
    assert away.audit.shut_out == {liar}
    assert away.note.startswith(
        f"the worker {liar} computed other numbers than this machine and was shut out"
    )


# -- valid workers
# -------------------------------------------------------------------------------------------------


def test_workers_with_several_threads_are_refused(
    scheduler: Dask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_client, "WORKER_TIMEOUT", 0.5)
    assert f"has no workers; start one: dask worker {scheduler.address}" in refused(
        scheduler.address
    )
    scheduler.work("--nthreads", "2", "--no-nanny")
    monkeypatch.setattr(dask_client, "WORKER_TIMEOUT", PATIENCE)
    assert "has 2 threads; start it with --nthreads 1" in refused(scheduler.address)


def test_workers_with_different_code_are_refused_and_missing_workers_time_out(
    scheduler: Dask, gate: Gate, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "bandits", other / "bandits", ignore=shutil.ignore_patterns("*.nb?"))
    with (other / "bandits" / "experiments" / "lane.py").open("a") as code:
        code.write("# newer\n")
    env = {**worker_environment(), "PYTHONPATH": str(other)}
    scheduler.work("--no-nanny")
    patient, impatient, steps = (
        DaskExecutor(scheduler.address),
        DaskExecutor(scheduler.address, silence=1.0),
        list[int](),
    )
    try:
        future = impatient.submit(*held(gate), steps.append)
        wait_for(lambda: steps, "progress of a block")
        scheduler.stop_workers()
        with pytest.raises(ExecutorLostError, match="has had no worker for"):
            future.result()
        with pytest.raises(ExecutorLostError, match="has had no worker for"):
            impatient.submit(*held(gate), steps.append)
        scheduler.work("--no-nanny", env=env)
        with pytest.raises(ExecutorLostError, match="has other code"):
            patient.submit(*held(gate), steps.append).result()
    finally:
        patient.close()
        impatient.close()
    assert re.search(
        r"the worker tcp://127\.0\.0\.1:\d+ has other code \(\w{12}; the client has \w{12}\)",
        refused(scheduler.address),
    )


# -- mutual TLS
# ----------------------------------------------------------------------------------------------------  # noqa: E501


def test_mutual_tls_as_documented(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, others = certificates(tmp_path / "mine"), certificates(tmp_path / "others")
    options = (
        "--tls-ca-file",
        str(own / "ca.pem"),
        "--tls-cert",
        str(own / "node.pem"),
        "--tls-key",
        str(own / "node.key"),
    )
    dask = Dask(tmp_path / "dask", scheme="tls", options=options)
    try:
        assert dask.address.startswith("tls://")
        dask.work("--no-nanny")
        shown = {
            f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(own / path) for name, path in PARTS.items()
        }
        done = subprocess.run(
            [sys.executable, "-m", "bandits", "sweep", str(file), "--cluster", dask.address],
            capture_output=True,
            text=True,
            env={**worker_environment(), **shown},
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("best: ")
        monkeypatch.setattr(dask_client, "CONNECT_TIMEOUT", 2.0)
        with configured(others):
            assert "no Dask scheduler answers" in refused(dask.address)
        with configured(tmp_path / "nowhere"):
            assert "No such file" in refused(dask.address)
        assert "no Dask scheduler answers" in refused(dask.address.replace("tls", "tcp"))
    finally:
        dask.end()


def configured(folder: Path) -> AbstractContextManager[object]:
    """Set the certificates in the configuration of Dask."""
    names = {
        name: f"distributed.comm.tls.{name.lower().replace('__', '.').replace('_', '-')}"
        for name in PARTS
    }
    return dask.config.set({names[name]: str(folder / path) for name, path in PARTS.items()})


def certificates(folder: Path) -> Path:
    """Create certificates by the commands of docs/cluster.md."""
    folder.mkdir()
    document = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    commands = [
        block for block in re.findall(r"```\n(.*?)```", document, re.DOTALL) if "openssl" in block
    ]
    assert len(commands) == 1
    done = subprocess.run(
        ["bash", "-ec", commands[0]], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder
