"""Tasks that a worker computes in one piece, and a queue that alternates between groups of them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bandits.base.files import Arrays


@dataclass(eq=False)
class Task:
    """A request to a worker and the future of its result.

    Attributes
    ----------
    group : str
        What the task is a part of, for example the hash of a sweep.
    message : dict
        The request as plain data.
    on_progress : callable
        Called with the step that the task has reached.
    future : Future
        Never marked as running, so that it can be cancelled at any time; its worker then abandons
        the task.
    memory : int
        Bytes that it takes, as estimated.
    worker_deaths : int
        Workers that died while they computed this task.
    """

    group: str
    message: dict[str, Any]
    on_progress: Callable[[int], None]
    memory: int = 0
    future: Future[Arrays] = field(default_factory=Future)
    worker_deaths: int = 0


class FairQueue:
    """Serve groups of tasks in turn, so that a large group does not delay the others."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Task]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, task: Task, *, first: bool = False) -> None:
        """Queue a task after the others of its group, or before them."""
        tasks = self._waiting.setdefault(task.group, deque())
        (tasks.appendleft if first else tasks.append)(task)

    def take(self) -> Task:
        """Remove and return the next task."""
        group, tasks = next(iter(self._waiting.items()))
        task = tasks.popleft()
        del self._waiting[group]
        if tasks:
            # now the last group in line
            self._waiting[group] = tasks
        return task

    def drain(self) -> list[Task]:
        """Remove and return all tasks, in no particular order."""
        tasks = [task for group in self._waiting.values() for task in group]
        self._waiting.clear()
        return tasks


def settle(future: Future[Arrays], result: Arrays | BaseException) -> None:
    """Set the result or the exception of a future, unless it was cancelled."""
    with suppress(InvalidStateError):
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
