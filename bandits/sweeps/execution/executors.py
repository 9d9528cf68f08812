"""Where blocks are computed: here, in worker processes, or (`cluster`) on other machines. One contract for all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from bandits.base.files import Arrays
from bandits.runtime.pool import Pool
from bandits.runtime.task_queue import settle
from bandits.sweeps.blocks import Block, compute
from bandits.sweeps.sweep import Sweep


class Executor(Protocol):
    """Takes blocks and gives back their arrays.

    Attributes
    ----------
    workers : int
        How many blocks it works at, at a time.
    note : str
        What whoever waits for the blocks should know; usually empty.
    """

    @property
    def workers(self) -> int: ...

    @property
    def note(self) -> str: ...

    def submit(self, sweep: Sweep, block: Block, told: Callable[[int], None]) -> Future[Arrays]:
        """Begin a block; ``told`` hears of its steps. A future that is cancelled ends it within a second."""
        ...

    def close(self) -> None:
        """Let go of whatever it holds."""
        ...


class ExecutorLostError(Exception):
    """An executor cannot go on, in one sentence; its blocks can, elsewhere."""


class InProcessExecutor:
    """In this process, one block after the other: for tests, scripts and notebooks."""

    workers, note = 1, ""

    def submit(self, sweep: Sweep, block: Block, told: Callable[[int], None]) -> Future[Arrays]:
        """The future of a block, done when this returns."""
        future: Future[Arrays] = Future()
        future.set_result(compute(sweep, block, told))
        return future

    def close(self) -> None:
        """Nothing is held."""


class PoolExecutor:
    """On the worker processes of a pool, beside its runs: supervised, a block whose worker dies is begun again."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self.workers, self.note = pool, pool.workers, ""

    def submit(self, sweep: Sweep, block: Block, told: Callable[[int], None]) -> Future[Arrays]:
        """Queue a block."""
        message = {"sweep": sweep.model_dump(mode="json"), "rows": block.rows}
        return self._pool.compute(sweep.hash, message, told)

    def close(self) -> None:
        """The pool lives on; it is its owner's."""


class FailoverExecutor:
    """An executor that can be lost, and another one that goes on for it from then on: no block is.

    Parameters
    ----------
    first : Executor
        Raises `ExecutorLostError`, in `submit` or by its futures.
    second : callable
        Makes the other one, once it is needed.
    """

    def __init__(self, first: Executor, second: Callable[[], Executor]) -> None:
        self._now, self._second, self.note = first, second, ""
        self._first, self._lock = first, threading.Lock()

    @property
    def workers(self) -> int:
        """Of the one that works now."""
        return self._now.workers

    def submit(self, sweep: Sweep, block: Block, told: Callable[[int], None]) -> Future[Arrays]:
        """Begin a block with whoever is there."""
        future: Future[Arrays] = Future()
        self._begin(sweep, block, told, future)
        return future

    def close(self) -> None:
        """Let go of the first; the second is its maker's."""
        self._first.close()

    def _begin(self, sweep: Sweep, block: Block, told: Callable[[int], None], future: Future[Arrays]) -> None:
        try:
            inner = self._now.submit(sweep, block, told)
        except ExecutorLostError as why:
            self._change(why)
            inner = self._now.submit(sweep, block, told)
        again = partial(self._begin, sweep, block, told, future)
        inner.add_done_callback(partial(self._settle, future, again))
        future.add_done_callback(lambda done: done.cancelled() and inner.cancel())

    def _settle(self, future: Future[Arrays], again: Callable[[], None], inner: Future[Arrays]) -> None:
        """Hand on what came out; begin again what was lost."""
        if future.cancelled() or inner.cancelled():
            return
        error = inner.exception()
        if not isinstance(error, ExecutorLostError):
            settle(future, error or inner.result())
            return
        try:
            self._change(error)
            again()
        except Exception as worse:  # noqa: BLE001 - somebody waits for the future
            settle(future, worse)

    def _change(self, why: ExecutorLostError) -> None:
        with self._lock:
            if self._now is self._first:
                self._now, self.note = self._second(), f"{why}; this machine goes on alone"
