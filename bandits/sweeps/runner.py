"""Run a sweep to its end: order its blocks, store them, and resume after any interruption."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from functools import partial

from bandits.base.files import Arrays
from bandits.sweeps.analysis.landscape import Landscape
from bandits.sweeps.analysis.run_metrics import METRICS
from bandits.sweeps.execution.executors import Executor, InProcessExecutor
from bandits.sweeps.storage.block_files import BlockFiles

from .blocks import Block, Row, StoppedError, pack
from .halving import eliminate, rung_rows, rungs
from .optuna_search import OptunaSearch
from .sweep import Sweep

POLL_INTERVAL = 0.2  # seconds between checks whether to stop


class Runner:
    """Runs a sweep.

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
        self.executor, self._files, self._stop, self._lock = executor, files, stop, lock or nullcontext()
        self._steps_done: dict[Block, int] = {}
        self.on_progress: Callable[[float], object] = lambda _: None

    @property
    def progress(self) -> float:
        """Finished share of the work, with the steps of running blocks: 0 to 1."""
        total = self.landscape.completed.size
        running = sum(len(block.rows) * step for block, step in list(self._steps_done.items()))
        return min(1.0, self.landscape.progress + running / (total * self.sweep.experiment.steps))

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
            for rows in rounds:
                self._run_round(deque(self._missing(rows)))
        return self.landscape

    def load(self) -> bool:
        """Load the stored blocks and compute nothing; returns whether the sweep is complete."""
        with closing(self._rounds(propose=False)) as rounds:
            return not any(self._missing(rows) for rows in rounds) and self.landscape.progress >= 1

    def _rounds(self, *, propose: bool = True) -> Generator[list[Row]]:
        """Yield the rows of each round; later rounds depend on the results of earlier ones."""
        if not self.sweep.is_grid:
            yield from self._proposed_rounds(propose)
            return
        for rung in rungs(self.sweep):
            yield rung_rows(self.sweep, rung, self.landscape)
            if self.sweep.search == "halving":
                with self._lock:
                    eliminate(self.sweep, self.landscape, rung.stop)

    def _proposed_rounds(self, propose: bool) -> Generator[list[Row]]:
        metric, replications = METRICS[self.sweep.metric], range(self.sweep.experiment.replications)
        path = None
        if self._files is not None:
            path = self._files.study
            with suppress(OSError):  # reported when the first block is stored
                self._files.save_sweep()
        with closing(OptunaSearch(self.sweep, path, sign=metric.sign, stop=self._stop)) as search:
            with self._lock:
                self.landscape = Landscape(self.sweep)
            while batch := search.ask(propose=propose):
                with self._lock:
                    new = self.landscape.add_points(batch)
                    if self._files is not None:
                        self._files.sweep = self.landscape.sweep
                yield [(p, r) for p in new for r in replications]
                search.tell(self.landscape.means(batch, self.sweep.metric))
                self.error = self.error or search.error
            if search.complete:
                with self._lock:
                    self.landscape.close()

    def _missing(self, rows: list[Row]) -> list[Block]:
        """Return the blocks of a round that are neither in the landscape nor stored; load those that are stored."""
        completed = self.landscape.completed
        blocks = pack(self.landscape.sweep, rows)
        return [
            block for block in blocks if not all(completed[row] for row in block.rows) and not self._load_block(block)
        ]

    def _load_block(self, block: Block) -> bool:
        arrays = self._files.get(block) if self._files is not None else None
        if arrays is not None:
            with self._lock:
                self.landscape.add(arrays, self._reader(block))
        return arrays is not None

    def _reader(self, block: Block) -> Callable[[], Arrays | None] | None:
        return None if self._files is None else partial(self._files.get, block)

    def _run_round(self, waiting: deque[Block]) -> None:
        running: dict[Future[Arrays], Block] = {}
        try:
            while waiting or running:
                while waiting and len(running) <= self.executor.workers and not self._stop():
                    block = waiting.popleft()
                    on_step = partial(self._steps_done.__setitem__, block)
                    running[self.executor.submit(self.landscape.sweep, block, on_step)] = block
                if self._stop():
                    raise StoppedError
                self.on_progress(self.progress)
                for future in wait(running, POLL_INTERVAL, FIRST_COMPLETED).done:
                    self._collect(running.pop(future), future.result())
        finally:
            for future in running:
                future.cancel()
            self._steps_done.clear()

    def _collect(self, block: Block, arrays: Arrays) -> None:
        """Store a computed block and add it to the landscape."""
        reader = self._reader(block)
        if self._files is not None:
            try:
                self._files.save(block, arrays)
            except OSError as error:
                self.error, reader = f"this sweep could not be kept on disk ({error.strerror or error})", None
        with self._lock:
            self._steps_done.pop(block, None)
            self.landscape.add(arrays, reader)


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
