"""Run the experiments of a lesson, or find their results in the store."""

from __future__ import annotations

from collections.abc import Callable

from bandits.base.errors import UserError
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results.result import Result
from bandits.runtime.cores import run_to_end
from bandits.runtime.job import Job, keep_result
from bandits.storage.run_store import CorruptFileError, Store

from .lesson import Lesson, TryStep

PROCESSORS = 2  # idle ones, for which the time of a run is stated
Runner = Callable[[Experiment], Result]


def stored_or_run(store: Store, workers: int | None = None) -> Runner:
    """Return what finds a run in the store, and otherwise computes and stores it.

    Parameters
    ----------
    workers : int, optional
        Processes of a long run; by default one per processor.
    """

    def run(experiment: Experiment) -> Result:
        try:
            found = store.get(experiment.hash)
        except CorruptFileError:  # damaged, or deleted to save space: computed again
            found = None
        if found is not None:
            return found
        kept: list[Job] = []
        histories = run_to_end(experiment, workers, None, kept.append)
        try:
            keep_result(store, kept[0])
        except OSError as error:
            raise UserError(f"the run could not be stored: {error.strerror or error}") from None
        return Result(experiment, histories)

    return run


def idle_seconds(result: Result) -> float:
    """Compute the time of a run on two idle processors, whatever else ran when it was computed.

    It is the processor time of its agents, which are spread over both; an agent is never split. Training before the
    run and compilation happen once and are not counted.
    """
    agents = [_processor_time(history) for history in result.histories.values()]
    return max(*agents, sum(agents) / PROCESSORS)


def _processor_time(history: History) -> float:
    return history.processor_seconds or history.seconds


def results_of(lesson: Lesson, run: Runner) -> dict[str, Result]:
    """Return the runs of a lesson by step; worked examples need none."""
    return {name: run(step.resolved) for name, step in lesson.runs.items() if step.worked is None}


def attempt(lesson: Lesson, step: TryStep, value: float, run: Runner) -> Result | None:
    """Return the run of a task with a value of its parameter; None for a worked example."""
    changed = lesson.runs[step.run]
    return None if changed.worked is not None else run(step.changed(changed, value))
