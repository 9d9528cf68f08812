"""Judge the blocks that the workers of a cluster return, and shut out workers that return wrong
ones.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import numpy as np

from bandits.base.files import Arrays
from bandits.runtime.task_queue import settle
from bandits.sweeps.block_check import block_problem
from bandits.sweeps.blocks import Block
from bandits.sweeps.sweep import Sweep

from .executors import Executor

# of the blocks of a cluster, drawn at random, which are computed again here
AUDIT_SHARE = 0.01
# a worker must not know which
_random = random.SystemRandom()


class Audit:
    """Judges blocks, and computes impossible ones and a random share of the others again on this
    machine.

    Parameters
    ----------
    local : callable
        Return the executor of this machine.

    Attributes
    ----------
    shut_out : set of str
        Addresses of workers that returned an impossible block, or other numbers than this machine.
    note : str
        The last such worker, in one sentence.
    """

    def __init__(self, local: Callable[[], Executor]) -> None:
        self.shut_out: set[str] = set()
        self.note = ""
        self._local, self._lock = local, threading.Lock()
        # blocks by worker and sweep
        self._accepted = Counter[tuple[str, str]]()
        self._executor: Executor | None = None

    def judge(
        self, sweep: Sweep, block: Block, arrays: Arrays, worker: str, future: Future[Arrays]
    ) -> None:
        """Settle a future with the arrays of a worker, or with those of this machine where they may
        be wrong.
        """
        if worker in self.shut_out:
            self._recompute(sweep, block, None, worker, future)
        elif problem := block_problem(sweep, block, arrays):
            self._exclude(worker, sweep, f"returned a block that {problem}")
            self._recompute(sweep, block, None, worker, future)
        elif _random.random() < AUDIT_SHARE:
            self._recompute(sweep, block, arrays, worker, future)
        else:
            self._accepted[worker, sweep.hash] += 1
            settle(future, arrays)

    def _recompute(
        self,
        sweep: Sweep,
        block: Block,
        claimed: Arrays | None,
        worker: str,
        future: Future[Arrays],
    ) -> None:
        """Compute a block on this machine, and compare the result with the claimed one if there is
        one.
        """
        with self._lock:
            self._executor = self._executor or self._local()

        def compare(inner: Future[Arrays]) -> None:
            if inner.cancelled():
                return
            if error := inner.exception():
                settle(future, error)
                return
            if claimed is not None and not _equal(inner.result(), claimed):
                self._exclude(worker, sweep, "computed other numbers than this machine")
            settle(future, inner.result())

        inner = self._executor.submit(sweep, block, _ignore)
        inner.add_done_callback(compare)
        future.add_done_callback(partial(_cancel, inner))

    def _exclude(self, worker: str, sweep: Sweep, what: str) -> None:
        self.shut_out.add(worker)
        earlier = self._accepted[worker, sweep.hash]
        advice = (
            f"; {earlier} earlier blocks of this sweep are from it: delete the sweep and run it "
            "again"
        )
        self.note = f"the worker {worker} {what} and was shut out{advice if earlier else ''}"


def _equal(here: Arrays, there: Arrays) -> bool:
    """Whether two blocks have the same bits; the duration does not count."""
    names = set(here) - {"seconds"}
    return names == set(there) - {"seconds"} and all(
        _bits(here[name]) == _bits(there[name]) for name in names
    )


def _bits(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


def _ignore(step: int) -> None:
    """Take no notice of the steps of a block that is computed again."""


def _cancel(inner: Future[Arrays], outer: Future[Arrays]) -> None:
    if outer.cancelled():
        inner.cancel()
