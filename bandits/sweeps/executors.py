"""Where blocks are computed: here, in worker processes, or (`cluster`) on other machines. One contract for all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from ..cache import Arrays
from ..jobs import Pool
from .blocks import Block, compute
from .sweep import Sweep


class Executor(Protocol):
    """Takes blocks and gives back their arrays.

    Attributes
    ----------
    workers : int
        How many blocks it works at, at a time.
    """

    workers: int

    def submit(self, sweep: Sweep, block: Block, told: Callable[[int], None]) -> Future[Arrays]:
        """Begin a block; ``told`` hears of its steps. A future that is cancelled ends it within a second."""
        ...

    def close(self) -> None:
        """Let go of whatever it holds."""
        ...


class Here:
    """In this process, one block after the other: for tests, scripts and notebooks."""

    workers = 1

    def submit(self, sweep: Sweep, block: Block, told: Callable[[int], None]) -> Future[Arrays]:
        """The future of a block, done when this returns."""
        future: Future[Arrays] = Future()
        future.set_result(compute(sweep, block, told))
        return future

    def close(self) -> None:
        """Nothing is held."""


class Processes:
    """On the worker processes of a pool, beside its runs: supervised, a block whose worker dies is begun again."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self.workers = pool, pool.workers

    def submit(self, sweep: Sweep, block: Block, told: Callable[[int], None]) -> Future[Arrays]:
        """Queue a block."""
        message = {"sweep": sweep.model_dump(mode="json"), "rows": block.rows}
        return self._pool.compute(sweep.hash, message, told)

    def close(self) -> None:
        """The pool lives on; it is its owner's."""
