"""Start subprocesses of this package, and run the main function of one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NICE = 5  # niceness of subprocesses: the pages are served first


def worker_environment() -> dict[str, str]:
    """Return the environment of subprocesses: the package is on their path, and they use one thread."""
    root = str(Path(__file__).resolve().parents[2])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **threads, "PYTHONPATH": path}


def start(
    *command: str, stdin: str = "", output: int = subprocess.DEVNULL, keep_open: bool = False, **variables: str
) -> subprocess.Popen[str]:
    """Start ``python -m`` with a module of this package and its arguments.

    Parameters
    ----------
    command : str
        Module and arguments.
    stdin : str
        Text for its standard input, which is then closed unless ``keep_open``.
    output : int
        Its standard output, as for `subprocess.Popen`.
    variables : str
        Additional environment variables.

    Raises
    ------
    OSError
        The process could not be started.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=output, text=True, encoding="utf-8",
        env={**worker_environment(), **variables},
    )  # fmt: skip
    if hasattr(os, "setpriority"):
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, process.pid, max(os.getpriority(os.PRIO_PROCESS, 0), NICE))
    assert process.stdin is not None
    try:
        process.stdin.write(stdin)
        if not keep_open:
            process.stdin.close()
    except BrokenPipeError:  # it has ended already: its exit status is reported
        pass
    return process


def run_main(main: Callable[[], int]) -> None:
    """Run a module's main function and exit with its status; a closed output pipe is no error."""
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader has gone: the final flush must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
