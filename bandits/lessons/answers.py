"""What the runs answer to the predictions of a lesson, and what a reader predicted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from bandits.base.formatting import count, number
from bandits.results.result import Result

from .expressions import Source, describe_first, evaluate, mean, parse
from .lesson import ChoiceAnswer, Lesson, NumberAnswer, OrderAnswer, PredictStep, RunStep, TryStep
from .rules import TRIED, task_of
from .texts import fill

Prediction = float | int | tuple[int, ...]  # a number, the place of the option, or the order of the options


class Outcome(NamedTuple):
    """A prediction beside what happened, one sentence each."""

    title: str
    predicted: str
    happened: str


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
    """Write a prediction: a number with its unit, the text of an option, or the options in order."""
    answer = step.answer
    if isinstance(answer, NumberAnswer):
        assert isinstance(prediction, (int, float))
        text = count(prediction) if answer.step >= 1 else number(prediction)
        return f"{text} {answer.unit}".strip()
    if isinstance(answer, ChoiceAnswer):
        assert isinstance(prediction, int)
        return answer.options[prediction].text
    assert isinstance(prediction, tuple)
    return ", ".join(answer.options[i].text for i in prediction)


def card(lesson: Lesson, predictions: Mapping[str, Prediction], results: Mapping[str, Result]) -> list[Outcome]:
    """Return the card at the end of a lesson: what was predicted and what happened."""
    sources = lesson.sources(results)
    return [
        Outcome(lesson.texts[name].title, in_words(step, predictions[name]), fill(lesson.texts[name].happened, sources))
        for name, step in lesson.predictions.items()
        if name in predictions
    ]


def measured(step: TryStep, run: RunStep, value: float, sources: Mapping[str, Source], found: Result | None) -> str:
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
