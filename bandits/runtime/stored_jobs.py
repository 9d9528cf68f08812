"""Jobs of runs that an earlier process has stored."""

from __future__ import annotations

from typing import Any

from bandits.base.errors import UserError
from bandits.experiments.experiment import read
from bandits.storage.run_store import RUN_ID, CorruptFileError, Store

from .job import Job


def stored_job(store: Store, run: str) -> Job | None:
    """Return the job of a stored run, or of one that has only a checkpoint; None if there is neither."""
    if not RUN_ID.fullmatch(run):
        return None
    reason = "interrupted when the app ended"
    try:
        result = store.get(run)
    except (CorruptFileError, OSError, UserError) as error:  # quarantined, or its disk or its data set is missing
        result, reason = None, str(error)
    if result is None:
        return _from_checkpoint(store, run, reason)
    job = Job(result.experiment, status="finished", step=result.experiment.steps, histories=result.histories)
    job.seconds_before = store.seconds(run)
    job.id = run  # of a plug-in that was edited meanwhile, the new hash differs
    return job


def saved_state(store: Store | None, run: str) -> dict[str, Any]:
    """Return the state in a run's checkpoint; empty if there is none."""
    return {} if store is None else store.checkpoint_arrays(run)


def _from_checkpoint(store: Store, run: str, reason: str) -> Job | None:
    """Return the job of a run that has only a checkpoint; None if there is none that this version can read."""
    text = store.checkpoint_experiment(run) if store.claim() else None
    if text is None or not (saved := saved_state(store, run)):
        return None
    try:
        job = Job.from_checkpoint(read(text), saved, reason)
    except (KeyError, IndexError, TypeError, ValueError, MemoryError):  # of another version, or forged
        return None
    return job if job.id == run else None  # of a plug-in that was edited meanwhile
