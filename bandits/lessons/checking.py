"""Run the experiments of a lesson, and check that every statement of it is true of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from bandits.base.errors import UserError
from bandits.base.formatting import number
from bandits.experiments.experiment import Experiment
from bandits.results.result import Result
from bandits.runtime.cores import run_to_end
from bandits.runtime.job import Job, keep_result
from bandits.storage.run_store import CorruptFileError, Store

from .answers import in_range, number_answer, reached_goal, true_options
from .expressions import Source, describe, evaluate, parse
from .lesson import ChoiceAnswer, Lesson, NumberAnswer, TryStep
from .rules import MAX_SECONDS, task_of
from .texts import missing_numbers

# idle ones, for which the time of a run is stated
PROCESSORS = 2
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
        except CorruptFileError:
            # damaged, or deleted to save space: computed again
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

    It is the processor time of its agents, which are spread over both; an agent is never split.
    Training before the run and compilation happen once and are not counted."""
    agents = [history.processor_seconds or history.seconds for history in result.histories.values()]
    return max(*agents, sum(agents) / PROCESSORS)


def results_of(lesson: Lesson, run: Runner) -> dict[str, Result]:
    """Return the runs of a lesson by step; worked examples need none."""
    return {name: run(step.resolved) for name, step in lesson.runs.items() if step.worked is None}


def attempt(lesson: Lesson, step: TryStep, value: float, run: Runner) -> Result | None:
    """Return the run of a task with a value of its parameter; None for a worked example."""
    changed = lesson.runs[step.run]
    return None if changed.worked is not None else run(step.changed(changed, value))


def check(lesson: Lesson, run: Runner) -> list[str]:
    """Run a lesson and return one sentence per statement that is not true; empty if all are.

    Claims must hold, every number of a text must exist, sliders must reach the answers, one option
    of a choice must be true, tasks must be unsolved at first and solved by their solution, and no
    run may take over `MAX_SECONDS` on two idle processors.

    Parameters
    ----------
    run : callable
        Returns a run: see `running.stored_or_run`.
    """
    results = results_of(lesson, run)
    slow = [
        f"step '{name}': the run takes {seconds:.0f} s; a run of a lesson may take "
        f"{MAX_SECONDS:.0f} s"
        for name, seconds in ((name, idle_seconds(result)) for name, result in results.items())
        if seconds > MAX_SECONDS
    ]
    sources = lesson.sources(results)
    found = [
        *slow,
        *_claims(lesson, sources),
        *_texts(lesson, sources),
        *_predictions(lesson, sources),
    ]
    return [f"{lesson.name}: {each}" for each in [*found, *_tasks(lesson, sources, run)]]


def check_seeds(lesson: Lesson, run: Runner, seeds: Iterable[int]) -> Iterator[str]:
    """Run a lesson at other seeds, and yield one sentence per claim that does not hold at one of
    them.

    Another seed is another layout of the simulator with other visitors. Claims about the lesson's
    own run are left out, and so are lessons whose claims need no run.
    """
    runs = [step for step in lesson.runs.values() if step.worked is None]
    for seed in seeds if runs else ():
        results = {step.id: run(step.with_seed(seed)) for step in runs}
        for failure in _claims(lesson, lesson.sources(results), "every seed"):
            yield f"{lesson.name}, seed {seed}: {failure}"


def _claims(
    lesson: Lesson, sources: Mapping[str, Source], scope: str | None = None
) -> Iterator[str]:
    for claim in lesson.data.claims:
        if scope not in (None, claim.scope):
            continue
        tree = parse(claim.holds)
        try:
            if not evaluate(tree, sources):
                yield f"'{claim.text}' is not true: {claim.holds} with {describe(tree, sources)}"
        except UserError as error:
            yield f"'{claim.text}' cannot be checked: {error}"


def _texts(lesson: Lesson, sources: Mapping[str, Source]) -> Iterator[str]:
    tasks = {step.id: task_of(step) for step in lesson.data.steps}
    for name, section in lesson.texts.items():
        for text in (section.title, section.body, section.happened, *section.hints):
            for expression in missing_numbers(text, {**sources, **tasks.get(name, {})}):
                yield f"step '{name}': no run gives a number for {expression}"


def _predictions(lesson: Lesson, sources: Mapping[str, Source]) -> Iterator[str]:
    for name, step in lesson.predictions.items():
        answer = step.answer
        if isinstance(answer, NumberAnswer) and not in_range(
            answer, truth := number_answer(answer, sources)
        ):
            reach = f"the slider goes from {answer.low:g} to {answer.high:g}"
            yield f"step '{name}': the answer is {number(truth)}, but {reach}"
        if isinstance(answer, ChoiceAnswer) and len(true := true_options(answer, sources)) != 1:
            yield f"step '{name}': {len(true)} of the options are true; it must be one"


def _tasks(lesson: Lesson, sources: Mapping[str, Source], run: Runner) -> Iterator[str]:
    for step in lesson.data.steps:
        if not isinstance(step, TryStep):
            continue
        for value, expected in ((step.start, False), (step.solution, True)):
            found: Result | None = attempt(lesson, step, value, run)
            if reached_goal(step, lesson.runs[step.run], value, sources, found) != expected:
                state = "does not reach" if expected else "reaches"
                yield f"step '{step.id}': {step.parameter} = {value:g} {state} the goal {step.goal}"
