"""Run an experiment to its end from a script: in this process, and on all cores where that pays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.experiments.experiment import MEMORY_LIMIT, Experiment
from bandits.experiments.history import History
from bandits.experiments.lockstep import Lockstep
from bandits.results.change import lost_clicks
from bandits.results.change.lost_clicks import without_changes
from bandits.results.metrics import Estimate
from bandits.results.result import Result

from .pool import Job, Pool

MAX_WORKERS = 64
# seconds after which the time to the end is estimated ...
MEASURED = 1.0
# ... and that time, from which on worker processes are started; a start takes seconds
WORTH_IT = 10.0
CHUNK_SECONDS = 0.1
POLL = 0.05  # seconds

Progress = Callable[[int, int], Any]
Keep = Callable[[Job], None]


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
    if text not in map(str, range(MAX_WORKERS + 1)):
        raise UserError(
            f"--workers is {short(text)}; it must be a whole number from 0 (in this process) to "
            f"{MAX_WORKERS}"
        )
    return int(text)


def run_to_end(
    experiment: Experiment,
    workers: int | None = None,
    progress: Progress | None = None,
    keep: Keep | None = None,
) -> dict[str, History]:
    """Run an experiment and return the history of each agent.

    The run begins in this process. If it will take long, worker processes are started meanwhile;
    they continue from its state as soon as they are ready, to the same bits.

    Parameters
    ----------
    experiment : Experiment
    workers : int, optional
        Processes, at most one per agent; 0 or 1: this process alone. By default one per processor.
    progress : callable, optional
        Called as ``progress(step, steps)`` a few times a second.
    keep : callable, optional
        Called with the finished run: histories, last state and wall time, as a pool stores them.
    """
    began = time.monotonic()
    job = _finished_job(experiment, workers, progress, with_state=keep is not None)
    if keep is not None:
        job.seconds_before = time.monotonic() - began
        keep(job)
    return job.histories


def _finished_job(
    experiment: Experiment, workers: int | None, progress: Progress | None, *, with_state: bool
) -> Job:
    n = processes_for(experiment, available_cores() if workers is None else workers)
    here = _run_here(experiment, {}, n, progress, with_state=with_state)
    if isinstance(here, Job):
        return here
    with closing(here.pool) as pool:
        job = pool.submit(experiment, saved=here.state)
        # the job replaces it agent by agent
        here.state = {}
        if _follow(pool, job, progress):
            return job
    last = _run_here(experiment, job.saved, 1, progress, with_state=with_state)
    assert isinstance(last, Job)
    return last


def processes_for(experiment: Experiment, cores: int) -> int:
    """Return the number of processes that a run is spread over on so many processors.

    1: it stays in this process.

    At most one per agent, and as many as fit into the limit of memory of one experiment beside the
    checkpoint that this process keeps and the next one, which is on its way."""
    n, own = min(cores, len(experiment.agents)), 2 * experiment.memory()
    while n > 1 and own + experiment.memory(n) > MEMORY_LIMIT:
        n -= 1
    return max(n, 1)


@dataclass
class _HandOver:
    """Workers that are ready, and the state from which they continue."""

    pool: Pool
    state: dict[str, Any]


def _run_here(
    experiment: Experiment,
    state: dict[str, Any],
    processes: int,
    progress: Progress | None,
    *,
    with_state: bool,
) -> Job | _HandOver:
    """Continue from a state in this process: to the end, or until workers can take over.

    The job of a run that has ended holds the last state only where it is asked for, which takes as
    much memory again.

    Simulators and agents end with this call, so that they take no memory beside those of the
    workers."""
    lockstep = Lockstep(experiment)
    try:
        lockstep.load_state_dict(state)
        if (pool := _advance(lockstep, processes, progress)) is None:
            saved = _arrays(lockstep) if with_state else {}
            return Job(
                experiment,
                status="finished",
                step=lockstep.step,
                histories=lockstep.histories,
                saved=saved,
            )
        return _HandOver(pool, _arrays(lockstep))
    finally:
        lockstep.close()


def _arrays(lockstep: Lockstep) -> dict[str, Any]:
    return {k: np.asarray(v) for k, v in lockstep.state_dict().items()}


def _advance(lockstep: Lockstep, processes: int, progress: Progress | None) -> Pool | None:
    """Advance to the end, or until worker processes can take over; return these."""
    chunk, pool, began = 20, None, time.monotonic()
    with ExitStack() as stack:
        while not lockstep.done:
            before = lockstep.seconds
            for _ in lockstep.advance(chunk):
                pass
            now = time.monotonic()
            chunk = int(
                np.clip(chunk * CHUNK_SECONDS / max(lockstep.seconds - before, 1e-3), 10, 5000)
            )
            if progress is not None:
                progress(lockstep.step, lockstep.experiment.steps)
            if (
                processes > 1
                and pool is None
                and now - began > MEASURED
                and _seconds_left(lockstep) > WORTH_IT
            ):
                pool = stack.enter_context(closing(Pool(processes, limited=False)))
            elif pool is not None and pool.ready:
                # its caller closes it
                stack.pop_all()
                return pool
            elif pool is not None and pool.broken:
                stack.close()
                pool, processes = None, 1
    return None


def _seconds_left(lockstep: Lockstep) -> float:
    lanes = [runner.lane for runner in lockstep.runners.values()]
    return sum(
        lane.seconds * (lockstep.experiment.steps - lane.step) / max(lane.step, 1) for lane in lanes
    )


def _follow(pool: Pool, job: Job, progress: Progress | None) -> bool:
    """Follow a run to its end.

    Return False if its workers failed, so that it goes on in this process.

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


def run_unchanged(
    result: Result,
    workers: int | None = None,
    progress: Progress | None = None,
    keep: Keep | None = None,
) -> Result:
    """Return a result together with the run of the same experiment without changes (``unchanged``).

    See `bandits.runtime.cores.run_to_end` for the parameters.

    Raises
    ------
    UserError
        Nothing changes in the experiment.
    """
    experiment = without_changes(result.experiment)
    histories = run_to_end(experiment, workers, progress, keep)
    return Result(result.experiment, result.histories, unchanged=Result(experiment, histories))


def lost(
    result: Result, label: str, *, unchanged: Result | None = None, workers: int | None = None
) -> Estimate:
    """Estimate the clicks that an agent lost to the changes of its run.

    These are the clicks of the same run without the changes, minus those of the run, paired by
    replication. Both have the same seed: the same users and random numbers. Part of the loss is the
    optimal choice's own, if the changes made it worse:
    `bandits.results.change.lost_clicks.lost_between` with ``best_value``; the rest is the agent's.
    The loss is negative where the changes helped.

    Parameters
    ----------
    result : Result
    label : str
        Of the agent.
    unchanged : Result, optional
        The result without the changes, if there is one already, with this agent. Otherwise this
        agent alone is run.
    workers : int, optional
        Processes of that run; see `bandits.run`.

    Returns
    -------
    Estimate
        Mean and 95 % interval (Student t of paired differences); NaN ends with one replication.

    Raises
    ------
    UserError
        Nothing changes in the experiment, there is no such agent, or ``unchanged`` is another
        experiment.

    Examples
    --------
    >>> from bandits import lost, read, run
    >>> shock = {"kind": "petshop", "changes": [{"kind": "shock", "at": 500}]}
    >>> result = run(read({"simulator": shock, "agents": [{"kind": "linucb"}], "steps": 1000,
    ...     "replications": 4}))
    >>> lost(result, "LinUCB").mean > 0
    True
    """
    if unchanged is None:
        unchanged = result.unchanged
    if unchanged is not None:
        return lost_clicks.lost(result, unchanged, label)
    experiment = without_changes(result.experiment, label)
    (history,) = run_to_end(experiment, workers).values()
    return lost_clicks.lost_between(result.histories[label], history)
