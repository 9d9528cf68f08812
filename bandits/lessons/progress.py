"""How far a reader is: the step, the predictions and the attempts at tasks so far, as short texts for a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from .answers import Prediction, valid
from .lesson import ChoiceAnswer, Lesson, NumberAnswer, PredictStep, TryStep

KEPT = 5  # attempts at a task, the last ones


def reachable(lesson: Lesson, predictions: Mapping[str, Prediction]) -> int:
    """Return the last step that may be shown: the first prediction that has not been made, or the card at the end."""
    for i, step in enumerate(lesson.data.steps):
        if isinstance(step, PredictStep) and step.id not in predictions:
            return i
    return len(lesson.data.steps)


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
        name: ",".join(f"{value:.12g}" for value in values[-KEPT:]) for name, values in attempts.items() if values
    }
    return ";".join(f"{name}={values}" for name, values in written.items())


def attempts_from_link(lesson: Lesson, text: str) -> dict[str, list[float]]:
    """Read attempts at tasks from a link; those that the slider of their task lacks are left out."""
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
