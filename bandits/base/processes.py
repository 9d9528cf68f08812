"""Call functions in child processes: a line of waiting tasks, limits of time and memory, messages,
errors as sentences.

``python -m bandits.base.processes MEMORY`` is the child. It calls what it is asked to over its
standard input, and ends when that is closed: at once, also within a call, so that no child outlives
the process that started it. Calls and answers are pickled. That is safe because both ends are this
program and the pipes have no other; what users upload travels as bytes and is read in the child,
within its limits."""

from __future__ import annotations

import inspect
import logging
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from .errors import UserError
from .formatting import duration, size
from .ledger import LEDGER

# niceness of subprocesses: the pages are served first
NICE = 15
# of temporary files and folders, before the number of the process that made them
PREFIX = "bandits-of-"
# bytes of an answer, unless a line states another limit
ANSWER = 2**26
_log = logging.getLogger("bandits")

Status = Literal["waiting", "running", "finished", "failed"]


class BusyError(UserError):
    """Too many tasks are waiting; the same task may be accepted later."""


class Line:
    """Tasks of one kind: some run at once, some more wait, all others are refused.

    Parameters
    ----------
    noun : str
        Plural name of the tasks, for messages.
    waiting : int
        Most tasks that wait.
    at_once : int
        Most tasks that run.
    seconds : float, optional
        Time after which a task is stopped.
    memory : int
        Address space of a child in bytes; 0: no limit. It is entered in the ledger while the
        child computes.
    advice : str
        What a user can do when a task exceeds its limits, such as "evaluate larger logs on the
        command line".
    idle : float
        Seconds for which a child waits for the next task; 0: every task has a child of its own.
    variables : mapping of str to str
        Environment variables of the children.
    answer : int
        Bytes of a message or result, at most: this process holds it.
    """

    def __init__(
        self,
        noun: str,
        *,
        waiting: int,
        at_once: int = 1,
        seconds: float | None = None,
        memory: int = 0,
        advice: str = "",
        idle: float = 0.0,
        variables: Mapping[str, str] | None = None,
        answer: int = ANSWER,
    ) -> None:
        self.noun, self.waiting, self.at_once = noun, waiting, at_once
        self.seconds, self.memory, self.advice, self.idle = seconds, memory, advice, idle
        self.variables, self.answer = dict(variables or {}), answer
        self.tasks: list[ChildTask] = []
        self._moved = threading.Condition()
        self._warm: _Child | None = None

    def enter(self, task: ChildTask) -> None:
        """Add a task at the end; where the line is full, one of an address that has more gives way.

        Raises
        ------
        BusyError
            The line is full.
        """
        with self._moved:
            full = len(self.tasks) >= self.at_once + self.waiting
            gives_way = self._last_of_most(task) if full else None
            if full and gives_way is None:
                raise BusyError(
                    f"{self.waiting} {self.noun} are waiting already; try again in a minute"
                )
            self.tasks.append(task)
        if gives_way is not None:
            gives_way.cancel("it gave way to other visitors, who had fewer; try again in a minute")

    def _last_of_most(self, task: ChildTask) -> ChildTask | None:
        """Return the last waiting task of the address that has most in a full line.

        None where it has no more than that of the task would have.
        """
        each = Counter(other.address for other in self.tasks)
        waiting = self.tasks[self.at_once :]
        last = max(reversed(waiting), key=lambda other: each[other.address], default=None)
        return last if last and each[last.address] > each[task.address] + 1 else None

    def wait_for_turn(self, task: ChildTask) -> None:
        """Wait until a task is among the first and its memory fits, or is cancelled."""
        with self._moved:
            self._moved.wait_for(lambda: task.cancelled or task in self.tasks[: self.at_once])
        if self.memory:
            LEDGER.wait(task, self.memory, lambda: task.cancelled)

    def leave(self, task: ChildTask) -> None:
        """Remove a task; the next one has its turn."""
        LEDGER.leave(task)
        with self._moved:
            if task in self.tasks:
                self.tasks.remove(task)
            self._moved.notify_all()

    def take_child(self) -> _Child:
        """Return a child that waits for a task, or else a new one.

        Raises
        ------
        OSError
            The process could not be started.
        """
        with self._moved:
            child, self._warm = self._warm, None
        if child is not None:
            child.rest.cancel()
            if child.alive:
                return child
            child.end()
        return _Child(self.memory, self.variables)

    def keep_child(self, child: _Child) -> None:
        """Keep a child for the next task where this line does so; end it otherwise."""
        with self._moved:
            if self.idle and self._warm is None:
                self._warm = child
                child.rest = threading.Timer(self.idle, self.end_child)
                child.rest.daemon = True
                child.rest.start()
                return
        child.end()

    def end_child(self) -> None:
        """End the child that waits for a task."""
        with self._moved:
            child, self._warm = self._warm, None
        if child is not None:
            child.rest.cancel()
            child.end()


class ChildTask:
    """A call in a child process, which waits in a line.

    Callers poll its attributes, or wait for its result.

    Parameters
    ----------
    line : Line
    function : callable
        A function of a module. One with a parameter ``send`` is given a function that sends a
        message to `receive`.
    arguments
        Of the function.
    address : str
        The network address of who asks.

    Attributes
    ----------
    status : {"waiting", "running", "finished", "failed"}
    error : str
        Why the task failed, in one sentence.
    result : object
        What the function returned, once the task has finished.
    cancelled : bool
    nbytes : int
        Of the messages and the result so far, as they were sent.

    Raises
    ------
    BusyError
        Too many tasks are waiting.
    """

    def __init__(
        self, line: Line, function: Callable[..., Any], *arguments: Any, address: str = ""
    ) -> None:
        self.address, self._why = address, "cancelled"
        # emptied once it is sent: it may hold a large file
        self.line, self._call = line, [(function, arguments)]
        self.status: Status = "waiting"
        self.error, self.result, self.cancelled, self.nbytes = "", None, False, 0
        self._child: _Child | None = None
        line.enter(self)
        self._thread = threading.Thread(
            target=self._run, name=f"a task of the {line.noun}", daemon=True
        )
        self._thread.start()

    @property
    def active(self) -> bool:
        """Whether the task is waiting or running."""
        return self.status in ("waiting", "running")

    def receive(self, message: Any) -> None:
        """Handle a message of the function."""

    def wait(self) -> Any:
        """Wait for the end and return the result.

        Raises
        ------
        UserError
            The task failed.
        """
        self._thread.join()
        if self.error:
            raise UserError(self.error)
        return self.result

    def cancel(self, why: str = "cancelled") -> None:
        """Leave the line, or kill the process; the task has failed."""
        self._why, self.cancelled = why, True
        self.line.leave(self)
        if (child := self._child) is not None:
            child.kill()

    def _receive(self, kind: str, value: Any, length: int) -> None:
        self.nbytes += length
        if kind == "message":
            self.receive(value)

    def _run(self) -> None:
        try:
            self.line.wait_for_turn(self)
            if not self.cancelled:
                self.status = "running"
                self.error = self._answer()
        except OSError as error:
            self.error = (
                f"a process for {self.line.noun} could not be started ({error.strerror or error})"
            )
        except Exception:  # noqa: BLE001
            _log.exception("one of the %s failed", self.line.noun)
            self.error = f"one of the {self.line.noun} failed; the server's log has the reason"
        finally:
            self._call.clear()
            self.error = self._why if self.cancelled else self.error
            self.status = "failed" if self.error else "finished"
            self.line.leave(self)

    def _answer(self) -> str:
        """Call the function in a child; return the sentence of its error, or an empty text."""
        line, late = self.line, threading.Event()
        child = self._child = line.take_child()

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(line.seconds or threading.TIMEOUT_MAX, stop)
        timer.daemon = True
        timer.start()
        if self.cancelled:
            child.kill()
        advice = f"; {line.advice}" if line.advice else ""
        try:
            kind, value = child.call(self._call, self._receive, line.answer)
        except BaseException:
            child.end()
            raise
        finally:
            timer.cancel()
            self._child = None
        if kind == "large":
            child.end()
            return (
                f"stopped because the answer of one of the {line.noun} has {size(value)}; at most "
                f"{size(line.answer)} are allowed{advice}"
            )
        if kind == "ended":
            status = child.end(patience=10.0)
            if late.is_set():
                return (
                    f"stopped after {_spelled(line.seconds or 0.0)}, the limit for one of the "
                    f"{line.noun}{advice}"
                )
            # libraries abort where they get no memory
            if not line.memory or status != -signal.SIGABRT:
                how = f"with status {status}" if status >= 0 else f"by signal {-status}"
                return f"the process for {line.noun} ended {how}; the server's log has the reason"
            kind = "memory"
        else:
            line.keep_child(child)
        if kind == "memory":
            limit = (
                f"more than {size(line.memory)} of memory"
                if line.memory
                else "more memory than there is"
            )
            return f"stopped because one of the {line.noun} took {limit}{advice}"
        if kind == "error":
            return str(value)
        self.result = value
        return ""


class _Child:
    """A child process and the folder of its temporary files, which is removed at its end."""

    rest: threading.Timer

    def __init__(self, memory: int, variables: Mapping[str, str]) -> None:
        self._folder = own_folder()
        environment = {**worker_environment(), "TMPDIR": self._folder.name, **variables}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bandits.base.processes", str(memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                # Ctrl-C goes to this process, whose end ends the child
                process_group=0,
            )
        except BaseException:
            self._folder.cleanup()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def call(
        self,
        call: list[tuple[Callable[..., Any], tuple[Any, ...]]],
        receive: Callable[[str, Any, int], None],
        most: int,
    ) -> tuple[str, Any]:
        """Call a function; return ``result``, ``error``, ``memory``, ``large`` or ``ended``, and a
        value; ``receive`` is given the kind, value and bytes of every answer.

        ``large``: a message has more than ``most`` bytes, and was not read. ``call`` holds the
        function and its arguments, and is emptied once they are sent.
        """
        requests, answers = self._pipes()
        try:
            _write(requests, call.pop())
            kind = "message"
            while kind == "message":
                kind, value, length = _read(answers, most)
                receive(kind, value, length)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            # it has ended, perhaps while writing: its exit status is reported
            return "ended", None
        return kind, value

    def kill(self) -> None:
        self._process.kill()

    def end(self, patience: float = 0.0) -> int:
        """Kill it, unless it ends by itself within some seconds.

        Remove its files and return its exit status.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._process.kill()
        for pipe in self._pipes():
            # a process that has died left its request in the pipe
            with suppress(BrokenPipeError):
                pipe.close()
        status = self._process.wait()
        self._folder.cleanup()
        return status

    def _pipes(self) -> tuple[BinaryIO, BinaryIO]:
        return cast(BinaryIO, self._process.stdin), cast(BinaryIO, self._process.stdout)


def own_folder() -> tempfile.TemporaryDirectory[str]:
    """Make a folder that is deleted with the object, or by `remove_leftovers` if this process is
    killed.
    """
    return tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", ignore_cleanup_errors=True)


def remove_leftovers(folder: Path | None = None) -> None:
    """Remove files and folders whose process was killed.

    Parameters
    ----------
    folder : Path, optional
        Where they lie; by default where children have their temporary folders.
    """
    for path in (folder or Path(tempfile.gettempdir())).glob(f"{PREFIX}*-*"):
        process = path.name.removeprefix(PREFIX).partition("-")[0]
        with suppress(OSError):
            if process.isdigit() and not _exists(int(process)):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def worker_environment() -> dict[str, str]:
    """Return the environment of subprocesses: the package is on their path, and they use one
    thread.
    """
    root = str(Path(__file__).resolve().parents[2])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **threads, "PYTHONPATH": path}


def lower_priority() -> None:
    """Let this process give way to the server; one that gives way already stays as it is."""
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), NICE))


def main() -> None:
    """Call functions until standard input is closed."""
    lower_priority()
    if memory := int(sys.argv[1]):
        _limit_memory(memory)
    # output of libraries must not mix with the answers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive_requests, args=(requests,), daemon=True).start()
    while True:
        function, arguments = pickle.loads(requests.get())  # noqa: S301
        _reply(
            answers,
            _answer(function, arguments, lambda message: _reply(answers, ("message", message))),
        )
        del function, arguments


def _answer(
    function: Callable[..., Any], arguments: tuple[Any, ...], send: Callable[[Any], None]
) -> tuple[str, Any]:
    try:
        named = {"send": send} if "send" in inspect.signature(function).parameters else {}
        return "result", function(*arguments, **named)
    except UserError as error:
        return "error", str(error)
    except MemoryError:
        return "memory", None


def _receive_requests(requests: queue.SimpleQueue[bytes]) -> None:
    """Read requests ahead, and end this process when there can be no more: no process reads its
    answers.
    """
    # a stream of its own: at its end the interpreter needs the lock of sys.stdin, which this thread
    # would hold
    stream = os.fdopen(os.dup(0), "rb")
    try:
        while True:
            requests.put(pickle.load(stream))  # noqa: S301
    finally:
        os._exit(0)


def _limit_memory(limit: int) -> None:
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if most < 0 else min(limit, most), most))


# bytes of the number before an answer: its length
_LENGTH = 8


def _write(stream: BinaryIO, value: Any) -> None:
    """Write a request as bytes of a pickle, so that reading it to the end imports nothing."""
    pickle.dump(pickle.dumps(value), stream)
    stream.flush()


def _reply(stream: BinaryIO, value: Any) -> None:
    """Write an answer after its length, so that the reader may refuse it."""
    data = pickle.dumps(value)
    stream.write(len(data).to_bytes(_LENGTH))
    stream.write(data)
    stream.flush()


def _read(stream: BinaryIO, most: int) -> tuple[str, Any, int]:
    """Read an answer of at most so many bytes, and its length; ``large`` where it has more."""
    length = int.from_bytes(_exactly(stream, _LENGTH))
    if length > most:
        return "large", length, 0
    kind, value = pickle.loads(_exactly(stream, length))  # noqa: S301
    return kind, value, length


def _exactly(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _spelled(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else duration(seconds)


if __name__ == "__main__":
    main()
