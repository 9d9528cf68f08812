"""Run the experiments of a lesson, or find their results in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bandits.base.errors import UserError
from bandits.experiments.experiment import Experiment
from bandits.results.result import Result
from bandits.runtime.cores import run_to_end
from bandits.runtime.job import Job, keep_result
from bandits.storage.run_store import CorruptFileError, Store

from .lesson import Lesson, TryStep


class Computed(NamedTuple):
    """A finished run and the wall time that it took when it was computed."""

    result: Result
    seconds: float


Runner = Callable[[Experiment], Computed]


def stored_or_run(store: Store, workers: int | None = None) -> Runner:
    """Return what finds a run in the store, and otherwise computes and stores it.

    Parameters
    ----------
    workers : int, optional
        Processes of a long run; by default one per processor.
    """

    def run(experiment: Experiment) -> Computed:
        try:
            found = store.get(experiment.hash)
        except CorruptFileError:  # damaged, or deleted to save space: computed again
            found = None
        if found is not None:
            return Computed(found, store.seconds(experiment.hash))
        kept: list[Job] = []
        histories = run_to_end(experiment, workers, None, kept.append)
        try:
            keep_result(store, kept[0])
        except OSError as error:
            raise UserError(f"the run could not be stored: {error.strerror or error}") from None
        return Computed(Result(experiment, histories), kept[0].seconds)

    return run


def results_of(lesson: Lesson, run: Runner) -> dict[str, Computed]:
    """Return the runs of a lesson by step; worked examples need none."""
    return {name: run(step.resolved) for name, step in lesson.runs.items() if step.worked is None}


def attempt(lesson: Lesson, step: TryStep, value: float, run: Runner) -> Result | None:
    """Return the run of a task with a value of its parameter; None for a worked example."""
    changed = lesson.runs[step.run]
    return None if changed.worked is not None else run(step.changed(changed, value)).result
