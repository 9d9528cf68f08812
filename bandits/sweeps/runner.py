"""Run a sweep to its end: order its blocks, store them, and resume after any interruption."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import Arrays
from bandits.base.types import FloatArray, IntArray
from bandits.results.metric_registry import OBJECTIVES
from bandits.sweeps.analysis.landscape import Landscape
from bandits.sweeps.execution.executors import Executor, InProcessExecutor
from bandits.sweeps.storage.block_files import BlockFiles

from .block_check import block_problem
from .blocks import Block, Row, StoppedError, pack, renumber
from .halving import eliminate, rung_rows, rungs
from .optuna_search import OptunaSearch
from .sweep import Sweep

# seconds between checks whether to stop
POLL_INTERVAL = 0.2


class Round(NamedTuple):
    """Rows that are computed together, and the numbers of their points in the landscape.

    Attributes
    ----------
    sweep : Sweep
        The sweep, or its stage before a refinement, which determines the blocks.
    rows : list of Row
    points : int64 (P,)
        Number in the landscape of every point of ``sweep``.
    """

    sweep: Sweep
    rows: list[Row]
    points: IntArray


class Runner:
    """Runs a sweep, with the points of every refinement after those that it refines.

    Parameters
    ----------
    sweep : Sweep
    executor : Executor
    files : BlockFiles, optional
        Where finished blocks are stored and looked up.
    stop : callable, optional
        Called several times a second; the run ends if it returns True.
    lock : context manager, optional
        Held while the landscape changes.

    Attributes
    ----------
    landscape : Landscape
    executor : Executor
        May be replaced before `run`.
    on_progress : callable
        Called with the finished share of the work, several times a second.
    error : str
        A problem that did not affect the numbers, in one sentence.
    """

    def __init__(
        self,
        sweep: Sweep,
        executor: Executor,
        files: BlockFiles | None = None,
        stop: Callable[[], bool] = lambda: False,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.sweep, self.landscape, self.error = sweep, Landscape(sweep), ""
        self.executor, self._files, self._stop, self._lock = (
            executor,
            files,
            stop,
            lock or nullcontext(),
        )
        # the points of its rows, and its step
        self._running: dict[Block, tuple[IntArray, int]] = {}
        self.on_progress: Callable[[float], object] = lambda _: None

    @property
    def progress(self) -> float:
        """Finished share of the work, with the steps of running blocks: 0 to 1."""
        return min(1.0, 1 - float(self.rows()[1].sum()) / self.landscape.completed.size)

    def rows(self) -> tuple[FloatArray, FloatArray]:
        """Count the rows of each point that are computed, and that are left, with shares of running
        ones; two of (P,).

        Rows of points that the search has eliminated are neither.
        """
        completed, dropped = self.landscape.completed, self.landscape.dropped[:, None]
        running = np.zeros(len(completed))
        for points, step in list(self._running.values()):
            np.add.at(running, points, step / self.sweep.experiment.steps)
        return completed.sum(axis=1) + running, (~(completed | dropped)).sum(axis=1) - running

    def _reached(self, block: Block, points: IntArray, step: int) -> None:
        self._running[block] = points, step

    @property
    def notices(self) -> list[str]:
        """Messages for the user so far, one sentence each."""
        return [message for message in (self.executor.note, self.error) if message]

    def run(self) -> Landscape:
        """Run all rounds; stored blocks are not computed again.

        Raises
        ------
        StoppedError
            If ``stop`` returned True; finished blocks are stored.
        UserError
            If a block cannot be computed.
        """
        with closing(self._rounds()) as rounds:
            for each in rounds:
                self._run_round(each, deque(self._missing(each)))
        return self.landscape

    def load(self) -> bool:
        """Load the stored blocks and compute nothing; returns whether the sweep is complete."""
        with closing(self._rounds(propose=False)) as rounds:
            return not any(self._missing(each) for each in rounds) and self.landscape.progress >= 1

    def _rounds(self, *, propose: bool = True) -> Generator[Round]:
        """Yield the rounds; later ones depend on the results of earlier ones."""
        if not self.sweep.is_grid:
            yield from self._proposed_rounds(propose)
            return
        for stage in self.sweep.stages:
            points = self.sweep.points_of(stage)
            for rung in rungs(stage):
                yield Round(stage, rung_rows(stage, rung, self.landscape), points)
                if stage.search == "halving":
                    with self._lock:
                        eliminate(stage, self.landscape, rung.stop)

    def _proposed_rounds(self, propose: bool) -> Generator[Round]:
        metric, replications = (
            OBJECTIVES[self.sweep.metric],
            range(self.sweep.experiment.replications),
        )
        stored = self._files.proposals() if self._files is not None else []
        search = OptunaSearch(self.sweep, stored, sign=metric.better, stop=self._stop)
        with self._lock:
            self.landscape = Landscape(self.sweep)
        while batch := search.ask(propose=propose):
            with self._lock:
                new = self.landscape.add_points(batch)
                if self._files is not None:
                    self._files.sweep = self.landscape.sweep
            if self._files is not None and propose:
                # a disk that cannot be written is reported when the first block is stored
                with suppress(OSError):
                    self._files.save_proposals(search.proposals)
            rows = [(p, r) for p in new for r in replications]
            yield Round(self.landscape.sweep, rows, np.arange(self.sweep.size))
            search.tell(self.landscape.means(batch, self.sweep.metric))
        if search.complete:
            with self._lock:
                self.landscape.close()

    def _missing(self, each: Round) -> list[Block]:
        """Return the blocks of a round that are neither in the landscape nor stored.

        Load those that are stored.
        """
        completed = self.landscape.completed[each.points]
        blocks = pack(each.sweep, each.rows)
        return [
            block
            for block in blocks
            if not all(completed[row] for row in block.rows) and not self._load_block(each, block)
        ]

    def _load_block(self, each: Round, block: Block) -> bool:
        arrays = self._stored(each, block)
        if arrays is not None:
            with self._lock:
                self.landscape.add(arrays, self._reader(each, block))
        return arrays is not None

    def _stored(self, each: Round, block: Block) -> Arrays | None:
        arrays = self._files.get(block, each.sweep) if self._files is not None else None
        return None if arrays is None else renumber(arrays, each.points)

    def _reader(self, each: Round, block: Block) -> Callable[[], Arrays | None] | None:
        return None if self._files is None else partial(self._stored, each, block)

    def _run_round(self, each: Round, waiting: deque[Block]) -> None:
        running: dict[Future[Arrays], Block] = {}
        try:
            while waiting or running:
                while waiting and len(running) <= self.executor.workers and not self._stop():
                    block = waiting.popleft()
                    on_step = partial(
                        self._reached, block, each.points[[point for point, _ in block.rows]]
                    )
                    running[self.executor.submit(each.sweep, block, on_step)] = block
                if self._stop():
                    raise StoppedError
                self.on_progress(self.progress)
                for future in wait(running, POLL_INTERVAL, FIRST_COMPLETED).done:
                    self._collect(each, running.pop(future), future.result())
        finally:
            for future in running:
                future.cancel()
            self._running.clear()

    def _collect(self, each: Round, block: Block, arrays: Arrays) -> None:
        """Store a computed block and add it to the landscape.

        Raises
        ------
        UserError
            If no computation can have returned it.
        """
        if problem := block_problem(each.sweep, block, arrays):
            raise UserError(
                f"a worker returned a block of this sweep that {problem}; it was not stored"
            )
        reader = self._reader(each, block)
        if self._files is not None:
            try:
                self._files.save(block, arrays, each.sweep)
            except OSError as error:
                self.error, reader = (
                    f"this sweep could not be kept on disk ({error.strerror or error})",
                    None,
                )
        with self._lock:
            self._running.pop(block, None)
            self.landscape.add(renumber(arrays, each.points), reader)


def run(
    sweep: Sweep,
    executor: Executor | None = None,
    files: BlockFiles | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Landscape:
    """Run a sweep to its end, in this process unless an executor is given.

    Returns
    -------
    Landscape

    Raises
    ------
    StoppedError
        If ``stop`` returned True; finished blocks are stored.
    UserError
        If a block cannot be computed.
    """
    return Runner(sweep, executor or InProcessExecutor(), files, stop).run()
