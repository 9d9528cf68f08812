"""Check that every statement of a lesson is true of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bandits.base.errors import UserError
from bandits.base.formatting import number
from bandits.results.result import Result

from .answers import in_range, number_answer, reached_goal, true_options
from .expressions import Source, describe, evaluate, parse
from .lesson import ChoiceAnswer, Lesson, NumberAnswer, TryStep
from .rules import MAX_SECONDS, task_of
from .running import Runner, attempt, idle_seconds, results_of
from .texts import missing_numbers


def check(lesson: Lesson, run: Runner) -> list[str]:
    """Run a lesson and return one sentence per statement that is not true; empty if all are.

    Claims must hold, every number of a text must exist, sliders must reach the answers, one option of a choice must be
    true, tasks must be unsolved at first and solved by their solution, and no run may take over `MAX_SECONDS` on two
    idle processors.

    Parameters
    ----------
    run : callable
        Returns a run: see `running.stored_or_run`.
    """
    results = results_of(lesson, run)
    slow = [
        f"step '{name}': the run takes {seconds:.0f} s; a run of a lesson may take {MAX_SECONDS:.0f} s"
        for name, seconds in ((name, idle_seconds(result)) for name, result in results.items())
        if seconds > MAX_SECONDS
    ]
    sources = lesson.sources(results)
    found = [*slow, *_claims(lesson, sources), *_texts(lesson, sources), *_predictions(lesson, sources)]
    return [f"{lesson.name}: {each}" for each in [*found, *_tasks(lesson, sources, run)]]


def _claims(lesson: Lesson, sources: Mapping[str, Source]) -> Iterator[str]:
    for claim in lesson.data.claims:
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
        if isinstance(answer, NumberAnswer) and not in_range(answer, truth := number_answer(answer, sources)):
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
