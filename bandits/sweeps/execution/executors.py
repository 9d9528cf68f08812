"""Executors compute blocks in this process, in worker processes, or (`dask_client`) on other
machines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from bandits.base.files import Arrays
from bandits.runtime.pool import Pool
from bandits.runtime.task_queue import settle
from bandits.sweeps.blocks import Block, block_memory, compute
from bandits.sweeps.sweep import Sweep


class Executor(Protocol):
    """Computes blocks and returns their arrays.

    Attributes
    ----------
    workers : int
        Number of blocks that are computed at the same time.
    note : str
        A message for the user; usually empty.
    """

    @property
    def workers(self) -> int: ...

    @property
    def note(self) -> str: ...

    def submit(self, sweep: Sweep, block: Block, on_step: Callable[[int], None]) -> Future[Arrays]:
        """Start a block and report its steps to ``on_step``.

        Cancelling the future ends it within a second.
        """
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class ExecutorLostError(Exception):
    """An executor failed; its blocks can be computed elsewhere."""


class InProcessExecutor:
    """Computes blocks in this process, one at a time: for tests, scripts and notebooks."""

    workers, note = 1, ""

    def submit(self, sweep: Sweep, block: Block, on_step: Callable[[int], None]) -> Future[Arrays]:
        """Compute a block; the returned future is done."""
        future: Future[Arrays] = Future()
        future.set_result(compute(sweep, block, on_step))
        return future

    def close(self) -> None:
        """Do nothing: there are no resources to release."""


class PoolExecutor:
    """Computes blocks on the worker processes of a pool, beside its runs.

    A block whose worker dies is restarted.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool, self.workers, self.note = pool, pool.workers, ""

    def submit(self, sweep: Sweep, block: Block, on_step: Callable[[int], None]) -> Future[Arrays]:
        """Queue a block."""
        message = {"sweep": sweep.model_dump(mode="json"), "rows": block.rows}
        need = block_memory(sweep, block)
        return self._pool.compute(sweep.hash, message, on_step, memory=need)

    def close(self) -> None:
        """Do nothing: the pool belongs to the caller."""


class FailoverExecutor:
    """Switches to a second executor when the first one fails; no block is lost.

    Parameters
    ----------
    first : Executor
        Raises `ExecutorLostError` in `submit` or through its futures.
    second : callable
        Creates the second executor when it is needed.

    Attributes
    ----------
    failure : str
        Why the first executor was left; empty while it is used.
    """

    def __init__(self, first: Executor, second: Callable[[], Executor]) -> None:
        self._active, self._second, self.failure = first, second, ""
        self._first, self._lock = first, threading.Lock()

    @property
    def note(self) -> str:
        """Notes of the first executor and why it was left, for the user; usually empty."""
        return ". ".join(filter(None, (self._first.note, self.failure)))

    @property
    def workers(self) -> int:
        """Number of blocks that the active executor computes at the same time."""
        return self._active.workers

    def submit(self, sweep: Sweep, block: Block, on_step: Callable[[int], None]) -> Future[Arrays]:
        """Start a block on the active executor."""
        future: Future[Arrays] = Future()
        self._start(sweep, block, on_step, future)
        return future

    def close(self) -> None:
        """Release the first executor; the second belongs to the caller."""
        self._first.close()

    def _start(
        self, sweep: Sweep, block: Block, on_step: Callable[[int], None], future: Future[Arrays]
    ) -> None:
        try:
            inner = self._active.submit(sweep, block, on_step)
        except ExecutorLostError as error:
            self._fail_over(error)
            inner = self._active.submit(sweep, block, on_step)
        restart = partial(self._start, sweep, block, on_step, future)
        inner.add_done_callback(partial(self._forward, future, restart))
        future.add_done_callback(lambda done: done.cancelled() and inner.cancel())

    def _forward(
        self, future: Future[Arrays], restart: Callable[[], None], inner: Future[Arrays]
    ) -> None:
        """Forward the outcome of a block, or restart it if the executor failed."""
        if future.cancelled() or inner.cancelled():
            return
        error = inner.exception()
        if not isinstance(error, ExecutorLostError):
            settle(future, error or inner.result())
            return
        try:
            self._fail_over(error)
            restart()
        except Exception as failure:  # noqa: BLE001
            settle(future, failure)

    def _fail_over(self, reason: ExecutorLostError) -> None:
        with self._lock:
            if self._active is self._first:
                self._active, self.failure = self._second(), f"{reason}; continuing on this machine"
