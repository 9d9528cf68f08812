"""What every lesson must fulfil before anything is run."""

from __future__ import annotations

from collections.abc import Mapping

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.runtime.least_time import least_seconds

from .expressions import Source
from .lesson import (
    HINTS,
    ChoiceAnswer,
    ExplainStep,
    Lesson,
    NumberAnswer,
    OrderAnswer,
    PlayStep,
    PredictStep,
    RunStep,
    SeeStep,
    Step,
    TextStep,
    TryStep,
)
from .sources import ComingRun, TaskSource, WorkedSource
from .texts import check_expression, check_text

# of one run of a lesson
MAX_SECONDS = 60.0
# what the goal of a task calls the reader's run
TRIED = "tried"
# and the task itself
TASK = "task"


def check_lesson(lesson: Lesson) -> None:
    """Check the steps, texts and claims of a lesson."""
    ids = [step.id for step in lesson.data.steps]
    if twice := next((each for each in ids if ids.count(each) > 1), None):
        raise UserError(f"two steps are called '{twice}'; every step needs its own id")
    if missing := [each for each in ids if each not in lesson.texts]:
        raise UserError(
            f"the Markdown file has no section for step '{missing[0]}': ## Title {{#{missing[0]}}}"
        )
    if extra := [each for each in lesson.texts if each not in ids]:
        raise UserError(f"the Markdown file has a section for '{extra[0]}', which is no step")
    sources = lesson.sources({})
    labels = [
        label for run in lesson.runs.values() if run.worked is None for label in run.resolved.labels
    ]
    allowed = [*labels, *lesson.data.allowed_numbers]
    # worked examples, and the runs that the reader has passed
    seen: dict[str, Source] = {}
    for name, source in sources.items():
        seen[name] = source if isinstance(source, WorkedSource) else ComingRun(source.experiment)
    for step in lesson.data.steps:
        try:
            _check_step(lesson, step, sources, seen)
            section, task = lesson.texts[step.id], task_of(step)
            for text in (section.title, *_options(step)):
                if "{{" in text:
                    raise UserError(
                        f"'{short(text)}': numbers are filled into texts, not into titles and "
                        "options"
                    )
            for text in (section.title, section.body, *section.hints):
                check_text(text, {**seen, **task}, labels, allowed)
            # shown after all runs
            for text in (section.happened, *_options(step)):
                check_text(text, sources, labels, allowed)
        except UserError as error:
            raise UserError(f"step '{step.id}': {error}") from None
    for claim in lesson.data.claims:
        try:
            check_expression(claim.holds, sources)
        except UserError as error:
            raise UserError(f"claim '{claim.text}': {error}") from None


def task_of(step: Step) -> dict[str, Source]:
    """Return the numbers of a task by the name that its texts use; nothing for other steps."""
    return {TASK: TaskSource(step.target)} if isinstance(step, TryStep) else {}


def _options(step: Step) -> list[str]:
    if isinstance(step, PredictStep) and not isinstance(step.answer, NumberAnswer):
        return [option.text for option in step.answer.options]
    return []


def _check_step(
    lesson: Lesson, step: Step, sources: Mapping[str, Source], seen: dict[str, Source]
) -> None:
    if isinstance(step, RunStep):
        seen[step.id] = sources[step.id]
        if step.worked is None:
            seconds = least_seconds(step.resolved, 2)
            if seconds > MAX_SECONDS:
                raise UserError(
                    f"the experiment would take at least {seconds:,.0f} s; a run of a lesson may "
                    f"take {MAX_SECONDS:.0f} s: use fewer steps, replications or agents"
                )
    elif isinstance(step, PredictStep):
        _check_answer(lesson, step, sources)
    elif isinstance(step, SeeStep):
        _check_see(lesson, step, seen)
    elif isinstance(step, TryStep):
        _check_try(lesson, step, seen)
    elif not isinstance(step, (TextStep, ExplainStep, PlayStep)):
        raise AssertionError(step)


def _check_answer(lesson: Lesson, step: PredictStep, sources: Mapping[str, Source]) -> None:
    answer = step.answer
    if isinstance(answer, NumberAnswer):
        expressions = [answer.truth]
    elif isinstance(answer, ChoiceAnswer):
        expressions = [option.when for option in answer.options]
    else:
        assert isinstance(answer, OrderAnswer)
        expressions = [option.value for option in answer.options]
    for expression in expressions:
        check_expression(expression, sources)
    if not lesson.texts[step.id].happened:
        raise UserError("a prediction needs a part '### Happened' in its section")


def _check_passed(name: str, seen: Mapping[str, Source]) -> None:
    if name not in seen or isinstance(seen[name], ComingRun):
        passed = [each for each, source in seen.items() if not isinstance(source, ComingRun)]
        raise UserError(
            f"there is no run '{name}' before it; there are {', '.join(passed) or 'none'}"
        )


def _check_see(lesson: Lesson, step: SeeStep, seen: Mapping[str, Source]) -> None:
    _check_passed(step.run, seen)
    run = lesson.runs[step.run]
    if (run.worked is not None) != (step.plots == ("worked",)):
        raise UserError("the plot 'worked' is for worked examples, the others for runs")
    drawn = (
        0
        if run.worked is None
        else len(run.example.figures(run.example.Params.model_validate(run.given)))
    )
    if beyond := [place for place in step.figures if place > drawn]:
        raise UserError(
            f"figure {beyond[0]} does not exist: '{step.run}' is a worked example with {drawn} "
            "figures"
            if drawn
            else "figures are those of a worked example"
        )
    if run.worked is None and (
        unknown := [label for label in step.agents if label not in run.resolved.labels]
    ):
        raise UserError(
            f"there is no agent '{unknown[0]}'; there are {', '.join(run.resolved.labels)}"
        )
    if "lead" in step.plots and len(step.agents) != 2:
        raise UserError("the plot 'lead' compares two agents: name them in agents")
    for name in step.predictions:
        if name not in lesson.predictions:
            raise UserError(f"there is no prediction '{name}'")


def _check_try(lesson: Lesson, step: TryStep, seen: Mapping[str, Source]) -> None:
    _check_passed(step.run, seen)
    if len(lesson.texts[step.id].hints) != HINTS:
        raise UserError(f"a task has {HINTS} hints: three parts '### Hint' in its section")
    if not (step.low <= step.start <= step.high and step.low <= step.solution <= step.high):
        raise UserError(f"start and solution must lie between {step.low:g} and {step.high:g}")
    run = lesson.runs[step.run]
    for value in (step.low, step.high, step.start):
        try:
            step.source(run, value, {})
        except ValueError as error:
            raise UserError(f"{step.parameter} = {value:g} is not possible: {error}") from None
    if run.worked is None and step.agent not in run.resolved.labels:
        raise UserError(
            f"there is no agent '{step.agent}'; there are {', '.join(run.resolved.labels)}"
        )
    try:
        check_expression(
            step.goal, {**seen, **task_of(step), TRIED: step.source(run, step.solution, {})}
        )
    except ValueError as error:
        raise UserError(f"{error}") from None
