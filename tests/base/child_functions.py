"""Functions that tests call in child processes."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bandits.base.errors import UserError
from bandits.base.processes import ChildTask, Line


def double(value: Any) -> Any:
    return 2 * value


def count(n: int, send: Callable[[int], None]) -> str:
    for i in range(n):
        send(i)
    return "counted"


def about_this_process() -> tuple[int, int, str, str | None]:
    """Return its id, niceness, folder of temporary files, and a variable."""
    return (
        os.getpid(),
        os.getpriority(os.PRIO_PROCESS, 0),
        tempfile.gettempdir(),
        os.environ.get("OF_THE_LINE"),
    )


def print_and_return() -> int:
    os.write(1, b"of a compiled library\n")
    print("of Python")
    return 1


def refuse() -> None:
    raise UserError("α is 11; it must be a number from 0 to 10")


def fail() -> None:
    raise KeyError("α")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave_a_file_and_sleep(send: Callable[[tuple[int, str]], None]) -> None:
    path = Path(tempfile.mkdtemp()) / "uploaded.csv"
    path.write_text("1", encoding="utf-8")
    send((os.getpid(), str(path)))
    time.sleep(600)


def allocate(size: int) -> int:
    return len(bytes(size))


def abort() -> None:
    """End as libraries do that get no memory."""
    os.abort()


class Printed(ChildTask):
    """A task that prints the first entry of its messages."""

    def receive(self, message: Any) -> None:
        print(message[0], flush=True)


def serve_naps() -> None:
    """Be a server with a task, which a test kills."""
    Printed(Line("naps", waiting=0), leave_a_file_and_sleep).wait()


def print_niceness() -> None:
    """Print the niceness of a child."""
    print(ChildTask(Line("looks", waiting=0), about_this_process).wait()[1])
