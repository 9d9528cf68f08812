"""A sweep from its first block to its last: what is next, what is kept, and how to go on after an end of any kind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from functools import partial

from bandits.base.files import Arrays
from bandits.sweeps.analysis.landscape import METRICS, Landscape
from bandits.sweeps.execution.executors import Executor, InProcessExecutor
from bandits.sweeps.storage.block_files import BlockFiles

from .blocks import Block, Row, StoppedError, pack
from .halving import eliminate, rung_rows, rungs
from .optuna_search import OptunaSearch
from .sweep import Sweep

PAUSE = 0.2  # seconds between looks at whether to stop


class Runner:
    """Brings a sweep to its end.

    Parameters
    ----------
    sweep : Sweep
    executor : Executor
    files : BlockFiles, optional
        Where finished blocks are kept, and found again.
    stop : callable, optional
        Asked several times a second whether to give up.
    lock : context manager, optional
        Held while the landscape changes.

    Attributes
    ----------
    landscape : Landscape
    executor : Executor
        May be another one before `run`.
    watch : callable
        Told the share of the work that is done, several times a second.
    error : str
        What could not be done, in one sentence: the numbers are complete all the same.
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
        self._under_way: dict[Block, int] = {}
        self.on_progress: Callable[[float], object] = lambda _: None

    @property
    def progress(self) -> float:
        """Share of the work that is done, what is under way included: 0 to 1."""
        total = self.landscape.completed.size
        under_way = sum(len(block.rows) * step for block, step in list(self._under_way.items()))
        return min(1.0, self.landscape.progress + under_way / (total * self.sweep.experiment.steps))

    @property
    def notices(self) -> list[str]:
        """What whoever waits should know so far, a sentence each."""
        return [said for said in (self.executor.note, self.error) if said]

    def run(self) -> Landscape:
        """All rounds; blocks that are kept from before are not computed again.

        Raises
        ------
        Stopped
            It was told to give up; what is finished is kept.
        UserError
            A block cannot be computed.
        """
        with closing(self._rounds()) as rounds:
            for rows in rounds:
                self._round(deque(self._missing(rows)))
        return self.landscape

    def load(self) -> bool:
        """Take in what is kept, and compute nothing; whether that was all."""
        with closing(self._rounds(propose=False)) as rounds:
            return not any(self._missing(rows) for rows in rounds) and self.landscape.progress >= 1

    def _rounds(self, *, propose: bool = True) -> Generator[list[Row]]:
        """What is wanted first, and next in the light of it, to the end; or as far as it was proposed before."""
        if not self.sweep.is_grid:
            yield from self._proposed(propose)
            return
        for rung in rungs(self.sweep):
            yield rung_rows(self.sweep, rung, self.landscape)
            if self.sweep.search == "halving":
                with self._lock:
                    eliminate(self.sweep, self.landscape, rung.stop)

    def _proposed(self, propose: bool) -> Generator[list[Row]]:
        metric, runs = METRICS[self.sweep.metric], range(self.sweep.experiment.replications)
        path = None
        if self._files is not None:
            path = self._files.study
            with suppress(OSError):  # it will be said when there is something to keep
                self._files.save_sweep()
        with closing(OptunaSearch(self.sweep, path, sign=metric.sign, stop=self._stop)) as study:
            with self._lock:
                self.landscape = Landscape(self.sweep)
            while batch := study.ask(propose=propose):
                with self._lock:
                    new = self.landscape.add_points(batch)
                    if self._files is not None:
                        self._files.sweep = self.landscape.sweep
                yield [(p, r) for p in new for r in runs]
                study.tell(self.landscape.means(batch, self.sweep.metric))
                self.error = self.error or study.error
            if study.complete:
                with self._lock:
                    self.landscape.close()

    def _missing(self, rows: list[Row]) -> list[Block]:
        """Blocks of a round that are neither known nor kept."""
        known = self.landscape.completed
        blocks = pack(self.landscape.sweep, rows)
        return [block for block in blocks if not all(known[row] for row in block.rows) and not self._load_block(block)]

    def _load_block(self, block: Block) -> bool:
        arrays = self._files.get(block) if self._files is not None else None
        if arrays is not None:
            with self._lock:
                self.landscape.add(arrays, self._again(block))
        return arrays is not None

    def _again(self, block: Block) -> Callable[[], Arrays | None] | None:
        return None if self._files is None else partial(self._files.get, block)

    def _round(self, waiting: deque[Block]) -> None:
        running: dict[Future[Arrays], Block] = {}
        try:
            while waiting or running:
                while waiting and len(running) <= self.executor.workers and not self._stop():
                    block = waiting.popleft()
                    told = partial(self._under_way.__setitem__, block)
                    running[self.executor.submit(self.landscape.sweep, block, told)] = block
                if self._stop():
                    raise StoppedError
                self.on_progress(self.progress)
                for future in wait(running, PAUSE, FIRST_COMPLETED).done:
                    self._take(running.pop(future), future.result())
        finally:
            for future in running:
                future.cancel()
            self._under_way.clear()

    def _take(self, block: Block, arrays: Arrays) -> None:
        again = self._again(block)
        if self._files is not None:
            try:
                self._files.save(block, arrays)
            except OSError as error:
                self.error, again = f"this sweep could not be kept on disk ({error.strerror or error})", None
        with self._lock:
            self._under_way.pop(block, None)
            self.landscape.add(arrays, again)


def run(
    sweep: Sweep,
    executor: Executor | None = None,
    files: BlockFiles | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Landscape:
    """Run a sweep to its end, in this process unless told otherwise.

    Returns
    -------
    Landscape
    """
    return Runner(sweep, executor or InProcessExecutor(), files, stop).run()
