"""Work in processes of our own: started, told what to do, and heard line by line."""

from __future__ import annotations

import atexit
import subprocess
import threading
from typing import ClassVar, Literal

from bandits.base.errors import UserError

Status = Literal["waiting", "running", "finished", "failed"]


class Desk:
    """Where errands of a kind wait: one goes on at a time, and not too many may wait for it.

    Parameters
    ----------
    noun : str
        What they are, in the plural.
    waiting : int
        How many may wait.
    """

    def __init__(self, noun: str, waiting: int) -> None:
        self.noun, self.waiting = noun, waiting
        self.turn, self.places = threading.Lock(), threading.Semaphore(waiting + 1)


class Errand:
    """What a process of its own finds out, on its way as soon as it is made; whoever waits looks at it now and then.

    Attributes
    ----------
    status : {"waiting", "running", "finished", "failed"}
    error : str
        Why it failed, in one sentence.

    Raises
    ------
    UserError
        Too many are waiting.
    """

    desk: ClassVar[Desk]
    name: ClassVar[str]  # of the process, in sentences
    limit: ClassVar[float]  # seconds it may take

    def __init__(self) -> None:
        if not self.desk.places.acquire(blocking=False):
            raise UserError(f"{self.desk.waiting} {self.desk.noun} are waiting already; try again in a minute")
        self.status: Status = "waiting"
        self.error = ""
        threading.Thread(target=self._run, daemon=True).start()

    def started(self) -> subprocess.Popen[str]:
        """The process, its standard output a pipe."""
        raise NotImplementedError

    def hear(self, line: str) -> None:
        """Take in a line that it has printed."""
        raise NotImplementedError

    @property
    def active(self) -> bool:
        """Waiting or running."""
        return self.status in ("waiting", "running")

    def _run(self) -> None:
        try:
            with self.desk.turn:
                self.status = "running"
                self._follow()
        except OSError as error:
            self.error = f"{self.name} could not be started ({error.strerror or error})"
        finally:
            self.status = "failed" if self.error else "finished"
            self.desk.places.release()

    def _follow(self) -> None:
        process = self.started()
        atexit.register(process.kill)
        timer = threading.Timer(self.limit, process.kill)
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):  # else the process died within the line
                self.hear(line)
        ended = process.wait()
        late = not timer.is_alive()
        timer.cancel()
        atexit.unregister(process.kill)
        if late:
            self.error = f"stopped after {self.limit / 60:.0f} minutes, the limit for one of the {self.desk.noun}"
        elif ended:
            self.error = f"{self.name} ended with status {ended}; the server's log tells why"
