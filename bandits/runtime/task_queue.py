"""A piece of a larger whole that a worker computes at one go, and the fair queue of such pieces."""

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
    """What a worker is asked, and the future of its answer.

    Attributes
    ----------
    whole : str
        What it is a piece of.
    message : dict
        Plain data.
    told : callable
        Given the step that it has reached.
    future : Future
        Never marked as running, so that it can be cancelled at any time: its worker is then told to leave it.
    deaths : int
        Workers that have died of it, or with it.
    """

    whole: str
    message: dict[str, Any]
    told: Callable[[int], None]
    future: Future[Arrays] = field(default_factory=Future)
    deaths: int = 0


class FairQueue:
    """Tasks in turn by their wholes: however many pieces one has, another's next piece comes soon."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Task]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, task: Task, *, first: bool = False) -> None:
        """Queue a task behind those of its whole, or before them."""
        line = self._waiting.setdefault(task.whole, deque())
        (line.appendleft if first else line.append)(task)

    def take(self) -> Task:
        """The next one."""
        whole, line = next(iter(self._waiting.items()))
        task = line.popleft()
        del self._waiting[whole]
        if line:
            self._waiting[whole] = line  # at the end: the others' turn
        return task

    def drain(self) -> list[Task]:
        """All of them, in no order."""
        found = [task for line in self._waiting.values() for task in line]
        self._waiting.clear()
        return found


def settle(future: Future[Arrays], answer: Arrays | BaseException) -> None:
    """Give a future its result or its error, unless it was cancelled meanwhile."""
    with suppress(InvalidStateError):
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
