"""Run an experiment to its end from a script: in this process, and on all cores where that pays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.experiments.race import Race, load_histories

from .pool import Job, Pool

MAX_WORKERS = 64
WORTH_IT = 10.0  # expected seconds to the end from which on worker processes are started; a start takes seconds
CHUNK_SECONDS = 0.1
POLL = 0.05  # seconds

Progress = Callable[[int, int], Any]


def available_cores() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, MAX_WORKERS)


def read_workers(text: str | None) -> int:
    """Read a number of worker processes; None means one per processor.

    Raises
    ------
    UserError
    """
    if text is None:
        return available_cores()
    if not text.isdecimal() or not int(text) <= MAX_WORKERS:
        raise UserError(
            f"--workers is {short(text)}; it must be a whole number from 0 (in this process) to {MAX_WORKERS}"
        )
    return int(text)


def run_to_end(
    experiment: Experiment, workers: int | None = None, progress: Progress | None = None
) -> dict[str, History]:
    """Run an experiment and return the history of each agent.

    The run begins in this process. If it will take long, worker processes are started meanwhile; they continue from its
    state as soon as they are ready, to the same bits.

    Parameters
    ----------
    experiment : Experiment
    workers : int, optional
        Processes, at most one per agent; 0 or 1: this process alone. By default one per processor.
    progress : callable, optional
        Called as ``progress(step, steps)`` a few times a second.
    """
    n = min(available_cores() if workers is None else workers, experiment.max_processes())
    race = Race(experiment)
    try:
        if n > 1 and (pool := _advance(race, n, progress)) is not None:
            with closing(pool):
                job = pool.submit(experiment, saved={k: np.asarray(v) for k, v in race.state_dict().items()})
                if _follow(pool, job, progress):
                    return load_histories(experiment, job.saved)
                race.load_state_dict(job.saved)
        _advance(race, 1, progress)
        return race.histories
    finally:
        race.close()


def _advance(race: Race, workers: int, progress: Progress | None) -> Pool | None:
    """Advance to the end, or until worker processes can take over; return these."""
    chunk, pool, began = 20, None, time.monotonic()
    while not race.done:
        before = race.seconds
        for _ in race.advance(chunk):
            pass
        now = time.monotonic()
        chunk = int(np.clip(chunk * CHUNK_SECONDS / max(race.seconds - before, 1e-3), 10, 5000))
        if progress is not None:
            progress(race.step, race.experiment.steps)
        if workers > 1 and pool is None and now - began > 1 and _seconds_left(race) > WORTH_IT:
            pool = Pool(workers, limited=False)
        elif pool is not None and (pool.ready or pool.broken):
            if pool.ready:
                return pool
            workers = 1
    if pool is not None:
        pool.close()
    return None


def _seconds_left(race: Race) -> float:
    lanes = [runner.lane for runner in race.runners.values()]
    return sum(lane.seconds * (race.experiment.steps - lane.step) / max(lane.step, 1) for lane in lanes)


def _follow(pool: Pool, job: Job, progress: Progress | None) -> bool:
    """Follow a run to its end; return False if its workers failed, so that it goes on in this process.

    Raises
    ------
    UserError
        An agent or the simulator refused to continue.
    """
    while job.active:
        if pool.broken:
            return False
        time.sleep(POLL)
        if progress is not None:
            progress(job.step, job.experiment.steps)
    if job.status == "failed" and job.worker_deaths == 0:
        raise UserError(job.error)
    return job.status == "finished"
