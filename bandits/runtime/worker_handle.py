"""A worker process of the server: its messages, sent by a thread of their own so that no caller
waits for it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, BinaryIO, cast

from bandits.base.processes import worker_environment

from .protocol import Message, receive, send


class WorkerProcess:
    """A process that was started with pipes, and a thread that writes to it, one message after the
    other.

    A worker that is suspended or busy may not read for long. Messages to it then wait here, and
    `send` returns at once.

    Parameters
    ----------
    process : Popen
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._outbox: SimpleQueue[Message | None] = SimpleQueue()
        self._waiting_since: float | None = None
        threading.Thread(target=self._write, name="messages to a worker", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process identifier."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status, once `wait` or `poll` has seen its end."""
        return self._process.returncode

    def send(self, header: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
        """Send a message after those before it, without waiting.

        What a dead worker does not get is dropped.
        """
        self._outbox.put((header, arrays or {}))

    def receive(self) -> Message | None:
        """Wait for its next message other than a sign of life; return None when it has ended."""
        try:
            while True:
                self._waiting_since = time.monotonic()
                message = receive(_pipe(self._process.stdout))
                if message is None or message[0]["event"] != "alive":
                    return message
        finally:
            self._waiting_since = None

    @property
    def silence(self) -> float:
        """Seconds for which its next message has been waited for."""
        since = self._waiting_since
        return 0.0 if since is None else time.monotonic() - since

    def poll(self) -> int | None:
        """Return its exit status, or None while it is alive."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()

    def wait(self) -> None:
        """Wait until it has ended."""
        self._process.wait()

    def end(self) -> None:
        """Kill it, wait for its end and end its thread."""
        self.kill()
        self._outbox.put(None)
        self.wait()

    def _write(self) -> None:
        stream = _pipe(self._process.stdin)
        # it has died, which the thread that receives its messages notices
        with suppress(OSError), stream:
            while (message := self._outbox.get()) is not None:
                send(stream, *message)
                # its arrays may be large
                del message


def start_worker(folder: Path | None = None) -> WorkerProcess:
    """Start a worker process.

    Parameters
    ----------
    folder : Path, optional
        Where it writes large states, on the file system of the store; by default it sends them.

    Raises
    ------
    OSError
        The machine has no memory or no processes left.
    RuntimeError
        The machine has no threads left; the process has been ended.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "bandits.runtime.worker", *([str(folder)] if folder else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=worker_environment(),
        # Ctrl-C goes to this process, which ends the workers
        process_group=0,
    )
    try:
        return WorkerProcess(process)
    except BaseException:
        # closes its pipes and waits for its end
        with process:
            process.kill()
        raise


def _pipe(stream: IO[bytes] | None) -> BinaryIO:
    return cast(BinaryIO, stream)
