"""How far a reader is: the step, and the predictions made so far, as short texts for a link."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from .answers import Prediction, valid
from .lesson import ChoiceAnswer, Lesson, NumberAnswer, PredictStep


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
