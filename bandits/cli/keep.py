"""Store the runs of the command line, where the app and the command ``runs`` list them."""

from __future__ import annotations

import sys

from bandits.base.errors import UserError
from bandits.runtime.job import Job, keep_result
from bandits.storage import budget
from bandits.storage.run_store import Store

from .stored_runs import ID_DIGITS


class Keeper:
    """Store finished runs as the app stores them; without an owner, so that only this machine can delete them.

    A run that is stored already is left unchanged. A failure does not interrupt the command, which still has results to
    write: `report` states it at the end.

    Parameters
    ----------
    required : bool
        Whether the store is the only place for the results, so that one which cannot be written is refused at once.

    Raises
    ------
    UserError
        Results are required here and the store cannot be changed, or the disk is too full.
    OSError
        Results are required here and the folder cannot be created or read.
    """

    def __init__(self, *, required: bool) -> None:
        self._stored: list[str] = []
        self._failures: list[str] = []
        if required:
            _open()

    def __call__(self, job: Job) -> None:
        """Store a finished run."""
        try:
            store = _open()
            keep_result(store, job)
            evicted = any(run.evicted for run in store.runs() if run.id == job.id)
        except (OSError, UserError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            self._failures.append(f"run {job.id[:ID_DIGITS]} could not be stored: {reason}")
            return
        if evicted:
            self._failures.append(
                f"run {job.id[:ID_DIGITS]} is listed, but its curves do not fit into {budget.VARIABLE}, the budget of "
                "the disk, and were deleted"
            )
        else:
            self._stored.append(job.id[:ID_DIGITS])

    def report(self) -> int:
        """Print which runs were stored and which were not; return the exit status."""
        for run in self._stored:
            print(f"stored as run {run}")
        for failure in self._failures:
            print(f"error: {failure}", file=sys.stderr)
        return 1 if self._failures else 0


def _open() -> Store:
    """Open the store for another run.

    Raises
    ------
    UserError
        It cannot be changed, or the disk is too full.
    OSError
        The folder cannot be created or read.
    """
    store = Store()
    if store.notice:
        raise UserError(store.notice[0].lower() + store.notice[1:].removesuffix("."))
    store.require_space()
    return store
