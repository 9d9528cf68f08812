"""Run background subprocesses and read their output line by line."""

from __future__ import annotations

import atexit
import subprocess
import threading
from typing import ClassVar, Literal

from bandits.base.errors import UserError

TaskStatus = Literal["waiting", "running", "finished", "failed"]


class BackgroundTask:
    """A computation in a subprocess that is queued on construction; callers poll its attributes.

    Each subclass runs one task at a time and holds at most ``max_waiting`` more in its queue.

    Attributes
    ----------
    status : {"waiting", "running", "finished", "failed"}
    error : str
        Why the task failed, in one sentence.

    Raises
    ------
    UserError
        The queue is full.
    """

    max_waiting: ClassVar[int]
    noun: ClassVar[str]
    """Plural name of such tasks, for messages."""
    process_name: ClassVar[str]
    """Name of the subprocess, for messages."""
    time_limit: ClassVar[float]
    """Seconds after which the subprocess is killed."""
    _slots: ClassVar[threading.Semaphore]
    _turn: ClassVar[threading.Lock]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._slots, cls._turn = threading.Semaphore(cls.max_waiting + 1), threading.Lock()

    def __init__(self) -> None:
        if not self._slots.acquire(blocking=False):
            raise UserError(f"{self.max_waiting} {self.noun} are waiting already; try again in a minute")
        self.status: TaskStatus = "waiting"
        self.error = ""
        threading.Thread(target=self._run, daemon=True).start()

    def start_process(self) -> subprocess.Popen[str]:
        """Start the subprocess with its standard output as a pipe."""
        raise NotImplementedError

    def handle_line(self, line: str) -> None:
        """Process one line of the subprocess's standard output."""
        raise NotImplementedError

    @property
    def active(self) -> bool:
        """Whether the task is waiting or running."""
        return self.status in ("waiting", "running")

    def _run(self) -> None:
        try:
            with self._turn:
                self.status = "running"
                self._read_output()
        except OSError as error:
            self.error = f"{self.process_name} could not be started ({error.strerror or error})"
        finally:
            self.status = "failed" if self.error else "finished"
            self._slots.release()

    def _read_output(self) -> None:
        process = self.start_process()
        atexit.register(process.kill)
        timer = threading.Timer(self.time_limit, process.kill)
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):  # else the process died while writing the line
                self.handle_line(line)
        exit_status = process.wait()
        timed_out = not timer.is_alive()
        timer.cancel()
        atexit.unregister(process.kill)
        if timed_out:
            self.error = f"stopped after {self.time_limit / 60:.0f} minutes, the limit for one of the {self.noun}"
        elif exit_status:
            self.error = f"{self.process_name} ended with status {exit_status}; the server's log has the reason"
