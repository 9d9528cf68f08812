"""What the runs answer to the predictions of a lesson, and what a reader predicted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from bandits.base.formatting import count, number
from bandits.results.result import Result

from .expressions import Source, describe_first, evaluate, mean, parse, quantities
from .lesson import (
    ChoiceAnswer,
    ExplainStep,
    Lesson,
    NumberAnswer,
    OrderAnswer,
    PredictStep,
    RunStep,
    SeeStep,
    Step,
    TryStep,
)
from .rules import TRIED, task_of
from .texts import fill

# a number, the place of the option, or the order of the options
Prediction = float | int | tuple[int, ...]
# between the options of an order, whose texts may hold commas
ORDERED = "; "
# of the range of a slider: by so much a predicted number may be off and is right
TOLERANCE = 0.1


class Outcome(NamedTuple):
    """A prediction beside what happened, one sentence each.

    Attributes
    ----------
    title, predicted : str
    right : bool or None
        None where the runs have no answer.
    answer : str
        What would have been right, if that is not what was predicted; for a number, also by how
        much it was off.
    happened : str
        Empty where the prediction is answered within the lesson.
    """

    title: str
    predicted: str
    right: bool | None
    answer: str
    happened: str


class TaskOutcome(NamedTuple):
    """What a reader reached in a task.

    Attributes
    ----------
    title, task : str
    solved : bool or None
        None where no attempt has a result.
    reached : str
        The attempt that reached the goal, or the last one; empty without one.
    """

    title: str
    task: str
    solved: bool | None
    reached: str


def number_answer(answer: NumberAnswer, sources: Mapping[str, Source]) -> float:
    """Return the true number; NaN where the run has none."""
    return mean(evaluate(parse(answer.truth), sources))


def true_options(answer: ChoiceAnswer, sources: Mapping[str, Source]) -> list[int]:
    """Return the places of the options that are true."""
    return [i for i, option in enumerate(answer.options) if evaluate(parse(option.when), sources)]


def true_order(answer: OrderAnswer, sources: Mapping[str, Source]) -> tuple[int, ...]:
    """Return the places of the options, largest value first."""
    values = [mean(evaluate(parse(option.value), sources)) for option in answer.options]
    return tuple(sorted(range(len(values)), key=lambda i: -values[i]))


def valid(step: PredictStep, prediction: Any) -> bool:
    """Tell whether a prediction, for example of a link, is one of this step."""
    answer = step.answer
    if isinstance(answer, NumberAnswer):
        return type(prediction) in (int, float) and answer.low <= prediction <= answer.high
    if isinstance(answer, ChoiceAnswer):
        return type(prediction) is int and 0 <= prediction < len(answer.options)
    return isinstance(prediction, tuple) and sorted(prediction) == list(range(len(answer.options)))


def in_words(step: PredictStep, prediction: Prediction) -> str:
    """Write a prediction: a number with its unit, the text of an option, or the options in
    order.
    """
    answer = step.answer
    if isinstance(answer, NumberAnswer):
        assert isinstance(prediction, (int, float))
        shown, (noun, *rest) = _number(answer, prediction), answer.unit.split(" ")
        return " ".join([shown, noun.removesuffix("s") if shown == "1" else noun, *rest]).strip()
    if isinstance(answer, ChoiceAnswer):
        assert isinstance(prediction, int)
        return answer.options[prediction].text
    assert isinstance(prediction, tuple)
    return ORDERED.join(answer.options[i].text for i in prediction)


def _number(answer: NumberAnswer, value: float) -> str:
    """Write a number of an answer: a count in full, unless it is an average below a hundred, such
    as 2.25 clicks.
    """
    return (
        count(value)
        if answer.step >= 1 and (abs(value) >= 100 or value == round(value))
        else number(value)
    )


def judge(
    step: PredictStep, prediction: Prediction, sources: Mapping[str, Source]
) -> tuple[bool | None, str]:
    """Tell whether a prediction was right, and state the answer.

    A choice or an order that was right needs none.

    A number is right if it is off by at most `TOLERANCE` of the slider's range, a choice if its
    option is true, an order if it is the true one. None: the runs have no answer."""
    answer = step.answer
    if isinstance(answer, NumberAnswer):
        assert isinstance(prediction, (int, float))
        truth = number_answer(answer, sources)
        if not math.isfinite(truth):
            return None, ""
        error, allowed = prediction - truth, TOLERANCE * (answer.high - answer.low)
        far = f"{_number(answer, abs(error))} too {'high' if error > 0 else 'low'}"
        off = "as close as the slider allows" if abs(error) <= answer.step / 2 else far
        return abs(error) <= allowed * (
            1 + 1e-9
        ), f"{in_words(step, truth)}; the prediction is {off}"
    if isinstance(answer, ChoiceAnswer):
        true = true_options(answer, sources)
        return prediction in true, "" if prediction in true else in_words(step, true[0])
    order = true_order(answer, sources)
    return prediction == order, "" if prediction == order else in_words(step, order)


def card(
    lesson: Lesson, predictions: Mapping[str, Prediction], results: Mapping[str, Result]
) -> list[Outcome]:
    """Return the card at the end of a lesson: what was predicted, whether it was right, and what
    happened.
    """
    sources = lesson.sources(results)
    return [
        _outcome(lesson, name, predictions[name], sources)._replace(
            happened=fill(lesson.texts[name].happened, sources)
        )
        for name in lesson.predictions
        if name in predictions
    ]


def answered_by(
    lesson: Lesson, step: Step, predictions: Mapping[str, Prediction], results: Mapping[str, Result]
) -> list[Outcome]:
    """Return what came of the predictions that a step answers (`answering_step`), if their runs
    have ended.

    Only the card at the end states what happened: that text may hold numbers of runs that have not
    ended yet."""
    ended = {name for name, run in lesson.runs.items() if run.worked is not None or name in results}
    sources = lesson.sources(results)
    return [
        _outcome(lesson, name, predictions[name], sources)
        for name, asked in lesson.predictions.items()
        if name in predictions and answering_step(lesson, name) == step.id and _runs(asked) <= ended
    ]


def answering_step(lesson: Lesson, name: str) -> str:
    """Return the step that answers a prediction: the first after it and its runs that shows or
    explains something.

    Empty if there is none: the card at the end answers all.
    """
    before = {name, *_runs(lesson.predictions[name])}
    last = max(i for i, step in enumerate(lesson.data.steps) if step.id in before)
    after = lesson.data.steps[last + 1 :]
    return next((step.id for step in after if isinstance(step, (SeeStep, ExplainStep))), "")


def _outcome(
    lesson: Lesson, name: str, prediction: Prediction, sources: Mapping[str, Source]
) -> Outcome:
    step = lesson.predictions[name]
    return Outcome(
        lesson.texts[name].title, in_words(step, prediction), *judge(step, prediction, sources), ""
    )


def _runs(step: PredictStep) -> set[str]:
    """Return the runs that give the answer to a prediction."""
    answer = step.answer
    if isinstance(answer, NumberAnswer):
        expressions = [answer.truth]
    elif isinstance(answer, ChoiceAnswer):
        expressions = [option.when for option in answer.options]
    else:
        expressions = [option.value for option in answer.options]
    return {each.source for text in expressions for each in quantities(parse(text))}


def task_outcome(
    lesson: Lesson,
    step: TryStep,
    attempts: Mapping[float, Result | None],
    sources: Mapping[str, Source],
) -> TaskOutcome:
    """Return what a reader reached in a task: the first attempt that reaches the goal, otherwise
    the last one.

    Parameters
    ----------
    attempts : dict of float to Result or None
        The runs of the values that were tried, in their order; None for a worked example.
    """
    section, run = lesson.texts[step.id], lesson.runs[step.run]
    task = fill(section.body, {**sources, **task_of(step)})
    for value, found in attempts.items():
        if reached_goal(step, run, value, sources, found):
            return TaskOutcome(
                section.title, task, True, attempt_in_words(step, run, value, sources, found)
            )
    if not attempts:
        return TaskOutcome(section.title, task, None, "")
    last = list(attempts)[-1]
    return TaskOutcome(
        section.title, task, False, attempt_in_words(step, run, last, sources, attempts[last])
    )


def attempt_in_words(
    step: TryStep, run: RunStep, value: float, sources: Mapping[str, Source], found: Result | None
) -> str:
    """Write an attempt and its number: "Ridge penalty = 9 gives 0.0817"."""
    return f"{step.field(run).title} = {value:g} gives {measured(step, run, value, sources, found)}"


def measured(
    step: TryStep, run: RunStep, value: float, sources: Mapping[str, Source], found: Result | None
) -> str:
    """State the number of a task's run that the goal compares: "0.507"."""
    return describe_first(parse(step.goal), _names(step, run, value, sources, found))


def reached_goal(
    step: TryStep, run: RunStep, value: float, sources: Mapping[str, Source], found: Result | None
) -> bool:
    """Tell whether the goal of a task holds for a value.

    Parameters
    ----------
    found : Result or None
        The run with this value; None for a worked example.
    """
    return bool(evaluate(parse(step.goal), _names(step, run, value, sources, found)))


def _names(
    step: TryStep, run: RunStep, value: float, sources: Mapping[str, Source], found: Result | None
) -> dict[str, Source]:
    results = {} if found is None else {found.experiment.hash: found}
    return {**sources, **task_of(step), TRIED: step.source(run, value, results)}


def in_range(answer: NumberAnswer, value: float) -> bool:
    """Tell whether a slider reaches a value."""
    return math.isfinite(value) and answer.low <= value <= answer.high


# attempts at a task, the last ones
KEPT = 5


def to_link(predictions: Mapping[str, Prediction]) -> str:
    """Write predictions for a link: ``off=0.3;best=1;order=2-0-1``."""
    parts = {
        name: "-".join(map(str, value)) if isinstance(value, tuple) else f"{float(value):.12g}"
        for name, value in predictions.items()
    }
    return ";".join(f"{name}={value}" for name, value in parts.items())


def from_link(lesson: Lesson, text: str) -> dict[str, Prediction]:
    """Read predictions from a link; those that do not fit the lesson are left out."""
    found: dict[str, Prediction] = {}
    for part in text[:2000].split(";"):
        name, _, value = part.partition("=")
        step = lesson.predictions.get(name)
        if step is None:
            continue
        with suppress(ValueError):
            prediction: Prediction
            if isinstance(step.answer, NumberAnswer):
                prediction = float(value)
            elif isinstance(step.answer, ChoiceAnswer):
                prediction = int(value)
            else:
                prediction = tuple(map(int, value.split("-")))
            if valid(step, prediction):
                found[name] = prediction
    return found


def attempts_to_link(attempts: Mapping[str, Sequence[float]]) -> str:
    """Write the last attempts at tasks for a link: ``tame=1,9;more=0.5``."""
    written = {
        name: ",".join(f"{value:.12g}" for value in values[-KEPT:])
        for name, values in attempts.items()
        if values
    }
    return ";".join(f"{name}={values}" for name, values in written.items())


def attempts_from_link(lesson: Lesson, text: str) -> dict[str, list[float]]:
    """Read attempts at tasks from a link.

    Those that the slider of their task lacks are left out.
    """
    found: dict[str, list[float]] = {}
    for part in text[:2000].split(";"):
        name, _, values = part.partition("=")
        step = lesson.tasks.get(name)
        if step is None:
            continue
        with suppress(ValueError):
            tried = [float(value) for value in values.split(",")[-KEPT:]]
            found[name] = [value for value in tried if _on_slider(step, value)]
    return found


def _on_slider(step: TryStep, value: float) -> bool:
    places = (value - step.low) / step.step
    return step.low <= value <= step.high and abs(places - round(places)) < 1e-6


def pulls_to_link(pulls: Mapping[str, Sequence[int]]) -> str:
    """Write the pulls of games for a link, a digit each: ``ten=0120;context=4``."""
    return ";".join(f"{name}={''.join(map(str, made))}" for name, made in pulls.items() if made)


def pulls_from_link(lesson: Lesson, text: str) -> dict[str, list[int]]:
    """Read the pulls of games from a link; those that do not fit their game are left out."""
    found: dict[str, list[int]] = {}
    for part in text[:2000].split(";"):
        name, _, digits = part.partition("=")
        step = lesson.games.get(name)
        if step is None or not (digits.isascii() and digits.isdecimal()):
            continue
        game = step.game(0)
        made = [int(digit) for digit in digits]
        if len(made) <= game.pulls and max(made) < game.levers:
            found[name] = made
    return found
