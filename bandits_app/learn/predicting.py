"""Ask for a prediction and keep it."""

from __future__ import annotations

import streamlit as st

from bandits.lessons import Lesson
from bandits.lessons.answers import Prediction, in_words
from bandits.lessons.lesson import ChoiceAnswer, NumberAnswer, PredictStep

from . import place, texts


def show(lesson: Lesson, step: PredictStep) -> None:
    """Draw the question, or the prediction that has been kept."""
    made = place.predictions(lesson).get(step.id)
    if made is not None:
        st.info(f"Your prediction: {in_words(step, made)}", icon=":material/push_pin:")
        return
    value = _ask(lesson, step)
    st.button(
        "Keep my prediction", type="primary", icon=":material/push_pin:", shortcut="Ctrl+Enter", disabled=value is None,
        on_click=_keep, args=(lesson, step, value),
    )  # fmt: skip
    rule = f" {texts.RULE}" if isinstance(step.answer, NumberAnswer) else ""
    st.caption(f"A prediction that is kept cannot be changed.{rule}")


def _ask(lesson: Lesson, step: PredictStep) -> Prediction | None:
    answer, key = step.answer, f"lesson-{lesson.name}-{step.id}-{place.round_number(lesson)}"
    if isinstance(answer, NumberAnswer):
        whole = all(float(x).is_integer() for x in (answer.step, answer.low, answer.high))
        number = int if whole else float
        middle = answer.low + answer.step * round((answer.high - answer.low) / 2 / answer.step)
        unit = f", as a share {answer.unit}" if answer.unit.startswith("of ") else f": how many {answer.unit}"
        return st.slider(
            f"Your prediction{unit if answer.unit else ''}",
            number(answer.low), number(answer.high), number(middle), number(answer.step),
            key=key, format="%d" if whole else "%g",
        )  # fmt: skip
    texts = [option.text for option in answer.options]
    if isinstance(answer, ChoiceAnswer):
        return st.radio("Your prediction", range(len(texts)), None, texts.__getitem__, key=key)
    chosen: list[int] = []
    for rank in range(len(texts)):  # the next place is asked for when this one is taken
        left = [i for i in range(len(texts)) if i not in chosen]
        label = "Most" if rank == 0 else "Least" if rank == len(texts) - 1 else f"Place {rank + 1}"
        picked = st.selectbox(
            label, left, None if len(left) > 1 else 0, texts.__getitem__,
            key=f"{key}-{rank}-{'-'.join(map(str, chosen))}", placeholder="Choose",
        )  # fmt: skip
        if picked is None:
            return None
        chosen.append(picked)
    return tuple(chosen)


def _keep(lesson: Lesson, step: PredictStep, value: Prediction) -> None:
    place.predictions(lesson)[step.id] = value
    place.go_to(lesson, place.step(lesson) + 1)
