"""Start subprocesses of this package: their environment, their priority, their input."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

NICE = 5  # how far processes of ours step back behind the pages, where both want a processor


def worker_environment() -> dict[str, str]:
    """The environment of a process of ours: it finds the package by itself and keeps to one thread."""
    root = str(Path(__file__).resolve().parents[2])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **threads, "PYTHONPATH": path}


def start(*command: str, told: str = "", output: int = subprocess.DEVNULL, **variables: str) -> subprocess.Popen[str]:
    """``python -m`` a module of ours, with arguments and variables of its environment; standard input tells the rest.

    Raises
    ------
    OSError
        It could not be started.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=output, text=True, encoding="utf-8",
        env={**worker_environment(), **variables},
    )  # fmt: skip
    if hasattr(os, "setpriority"):  # whoever looks at a page goes first
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, process.pid, max(os.getpriority(os.PRIO_PROCESS, 0), NICE))
    assert process.stdin is not None
    try:
        process.stdin.write(told)
        process.stdin.close()
    except BrokenPipeError:  # it has ended already, and its status will tell
        pass
    return process
