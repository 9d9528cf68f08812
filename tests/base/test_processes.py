"""Tasks in child processes: results, messages, the line, limits, cancelling, and what the death of
either side does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.base.processes import NICE, PREFIX, BusyError, ChildTask, Line, remove_leftovers
from tests.base import child_functions as functions
from tests.support import hold, wait_for

ROOT = Path(__file__).parents[2]
CAPTURED: dict[str, Any] = {"capture_output": True, "text": True, "check": True}


class Listener(ChildTask):
    """A task that keeps its messages."""

    def __init__(self, line: Line, function: Callable[..., Any], *arguments: Any) -> None:
        self.messages: list[Any] = []
        super().__init__(line, function, *arguments)

    def receive(self, message: Any) -> None:
        self.messages.append(message)


def line(**options: Any) -> Line:
    return Line("naps", **{"waiting": 2, "seconds": 60.0} | options)


def alive(pid: int) -> bool:
    """Tell whether a process or one of its threads runs, not counting one that has ended and is not
    waited for.
    """
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2]
        return state != "Z" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def test_an_address_with_most_tasks_gives_way_in_a_full_line() -> None:
    naps = line(waiting=2)
    first, second, third = (
        ChildTask(naps, functions.leave_a_file_and_sleep, address="192.0.2.1") for _ in range(3)
    )
    with pytest.raises(BusyError):
        ChildTask(naps, functions.double, 1, address="192.0.2.1")
    other = ChildTask(naps, functions.double, 1, address="192.0.2.2")
    with pytest.raises(UserError, match="it gave way to other visitors"):
        third.wait()
    for task in (first, second):
        task.cancel()
    assert other.wait() == 2


def test_an_answer_that_is_too_large_is_not_read() -> None:
    with pytest.raises(UserError, match=r"the answer of one of the naps has 2.* at most 1.*MB are"):
        ChildTask(line(answer=10**6), functions.double, b"x" * 10**6).wait()


def python(function: str) -> list[str]:
    """Return the command that calls a function in a process which is no child of the line."""
    return [
        sys.executable,
        "-c",
        f"from tests.base.child_functions import {function}; {function}()",
    ]


def test_results_and_messages_arrive_whatever_is_printed() -> None:
    values = {"x": np.arange(3.0), "y": (float("nan"), "α")}
    task = ChildTask(line(), functions.double, [values])
    assert repr(task.wait()) == repr([values, values])
    assert (task.status, task.error, task.active) == ("finished", "", False)
    counted = Listener(line(), functions.count, 3)
    assert counted.wait() == "counted"
    assert counted.messages == [0, 1, 2]
    assert ChildTask(line(), functions.print_and_return).wait() == 1


def test_a_task_has_a_process_of_its_own_with_the_variables_of_its_line() -> None:
    of_line = line(variables={"OF_THE_LINE": "yes"})
    (a, nice, folder, variable), (b, *_) = (
        ChildTask(of_line, functions.about_this_process).wait() for _ in range(2)
    )
    assert a != b
    assert nice == max(os.getpriority(os.PRIO_PROCESS, 0), NICE)
    assert variable == "yes"
    assert not Path(folder).exists()
    wait_for(lambda: not alive(b), "the end of the process")


def test_a_line_may_keep_its_process_for_some_time_also_after_a_refusal() -> None:
    warm = line(idle=60.0)
    first = ChildTask(warm, functions.about_this_process).wait()[0]
    with pytest.raises(UserError):
        ChildTask(warm, functions.refuse).wait()
    assert ChildTask(warm, functions.about_this_process).wait()[0] == first
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not alive(first), "its death")
    assert ChildTask(warm, functions.about_this_process).wait()[0] != first
    warm.end_child()
    short = line(idle=0.01)
    last = ChildTask(short, functions.about_this_process).wait()[0]
    wait_for(lambda: not alive(last), "the end of the process")


def test_errors_are_sentences(capfd: pytest.CaptureFixture[str]) -> None:
    for function, sentence in (
        (functions.refuse, "α is 11; it must be a number from 0 to 10"),
        (
            functions.fail,
            "the process for naps ended with status 1; the server's log has the reason",
        ),
        (
            functions.die,
            "the process for naps ended by signal 9; the server's log has the reason",
        ),
    ):
        task = ChildTask(line(), function)
        with pytest.raises(UserError) as caught:
            task.wait()
        assert (str(caught.value), task.status) == (sentence, "failed")
    assert "KeyError: 'α'" in capfd.readouterr().err


def test_what_cannot_be_sent_or_received_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf(ChildTask):
        def receive(self, message: object) -> None:
            raise ValueError(message)

    for task in (
        ChildTask(line(), lambda: None),
        Deaf(line(), functions.leave_a_file_and_sleep),
    ):
        with pytest.raises(UserError, match=r"^one of the naps failed; the server's log has"):
            task.wait()
        assert task.status == "failed"
    assert len(caplog.records) == 2


def test_a_process_that_cannot_be_started_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(
        UserError, match=r"^a process for naps could not be started \(No such file or directory\)$"
    ):
        ChildTask(line(), functions.double, 1).wait()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(
        UserError, match=r"^the process for naps ended with status 1; the server's log"
    ):
        ChildTask(line(), functions.double, 1).wait()


def test_time_and_memory_are_limited() -> None:
    task = Listener(
        line(seconds=3.0, advice="sleep on the command line"), functions.leave_a_file_and_sleep
    )
    with pytest.raises(
        UserError, match=r"^stopped after 3\ss, the limit for one of the naps; sleep on the"
    ):
        task.wait()
    assert not any(Path(path).exists() for _, path in task.messages)
    small = line(memory=2 * 10**9)
    assert ChildTask(small, functions.allocate, 10**6).wait() == 10**6
    sentence = r"^stopped because one of the naps took more than 2\s?.*GB of memory$"
    for function, *arguments in ((functions.allocate, 3 * 10**9), (functions.abort,)):
        with pytest.raises(UserError, match=sentence):
            ChildTask(small, function, *arguments).wait()


def test_tasks_wait_in_a_line_that_refuses_when_it_is_full() -> None:
    narrow = line()
    with hold(narrow):
        tasks = [ChildTask(narrow, functions.double, i) for i in range(2)]
        with pytest.raises(BusyError, match=r"^2 naps are waiting already; try again in a minute$"):
            ChildTask(narrow, functions.double, 2)
        assert [task.status for task in tasks] == ["waiting", "waiting"]
        tasks[0].cancel()
        with pytest.raises(UserError, match="cancelled"):
            tasks[0].wait()
        tasks.append(ChildTask(narrow, functions.double, 2))
    assert [task.wait() for task in tasks[1:]] == [2, 4]
    assert narrow.tasks == []
    wide = line(at_once=2, waiting=0)
    both = [Listener(wide, functions.leave_a_file_and_sleep) for _ in range(2)]
    wait_for(lambda: all(task.messages for task in both), "both at once")
    for task in both:
        task.cancel()


def test_a_task_that_is_cancelled_leaves_neither_process_nor_files() -> None:
    of_line = line()
    task = Listener(of_line, functions.leave_a_file_and_sleep)
    wait_for(lambda: task.messages, "the start")
    ((pid, path),) = task.messages
    assert Path(path).exists()
    task.cancel()
    with pytest.raises(UserError, match=r"^cancelled$"):
        task.wait()
    assert not alive(pid)
    assert not Path(path).exists()
    assert ChildTask(of_line, functions.double, 1).wait() == 2


def test_folders_of_a_killed_server_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], **CAPTURED)
    names = [f"{PREFIX}{int(gone.stdout)}-a", f"{PREFIX}{os.getpid()}-b", f"{PREFIX}mine", "other"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.csv").write_text("a,b\n", encoding="utf-8")
    remove_leftovers()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


def test_a_child_ends_with_the_server_that_is_killed() -> None:
    command = python("serve_naps")
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    with server:
        child = int(server.stdout.readline())
        assert alive(child)
        # Ctrl-C in a terminal reaches the server only
        assert os.getpgid(child) == child
        server.kill()
    wait_for(lambda: not alive(child), "the end of the child")


@pytest.mark.slow
def test_children_lower_their_priority_and_never_raise_it() -> None:
    for more in (0, NICE + 2):
        command = ["nice", "-n", f"{more}", *python("print_niceness")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert int(done.stdout) == min(19, max(os.getpriority(os.PRIO_PROCESS, 0) + more, NICE))
