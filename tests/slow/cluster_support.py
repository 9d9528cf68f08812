"""Dask clusters on loopback, started by the commands ``dask scheduler`` and ``dask worker``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bandits.base.processes import worker_environment
from tests.support import wait_for

# workers without a scheduler exit
WORKER = ("--nthreads", "1", "--no-dashboard", "--death-timeout", "60")


class Dask:
    """A scheduler and workers; `end` stops them all.

    Parameters
    ----------
    folder : Path
        Folder of their files and logs.
    workers : int
        Initial number of workers.
    scheme : {"tcp", "tls"}
    options : tuple
        Options of all commands.
    """

    def __init__(
        self, folder: Path, workers: int = 0, scheme: str = "tcp", options: tuple[str, ...] = ()
    ) -> None:
        self._folder, self._options, self._count = folder, options, 0
        self._processes: list[subprocess.Popen[bytes]] = []
        about = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler",
            "--host",
            f"{scheme}://127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--no-show",
            "--scheduler-file",
            str(about),
        )
        wait_for(lambda: about.exists() and about.read_text().endswith("}"), "a Dask scheduler")
        self.address = str(json.loads(about.read_text())["address"])
        if workers:
            self.work("--nworkers", str(workers))

    def work(
        self, *options: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        """Start one or more workers."""
        given = () if "--nthreads" in options else WORKER[:2]
        self._start("worker", self.address, *given, *WORKER[2:], *options, env=env, cwd=cwd)

    def stop_workers(self) -> None:
        """Stop the workers, as Ctrl-C does."""
        for process in self._processes[1:]:
            process.terminate()
            process.wait()
        del self._processes[1:]

    def end(self) -> None:
        """Stop all processes."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()

    def _start(
        self,
        role: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        self._count += 1
        place = self._folder / f"{role}-{self._count}"
        place.mkdir(parents=True)
        local = ("--local-directory", str(place)) if role == "worker" else ()
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", role, *arguments, *local, *self._options],
                stdout=log,
                stderr=log,
                env={**os.environ, **(env if env is not None else worker_environment())},
                cwd=cwd or place,
            )
        self._processes.append(process)
        return process
