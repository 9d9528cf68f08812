"""Draw the card at the end of a lesson: predictions and tasks, each with what came of it."""

from __future__ import annotations

import streamlit as st

from bandits.lessons import Lesson
from bandits.lessons.answers import Outcome, TaskOutcome, card, task_outcome
from bandits.lessons.lesson import NumberAnswer
from bandits.runtime.pool import Job

from . import place, runs, texts, trying


def show(lesson: Lesson, jobs: dict[str, Job]) -> None:
    """Draw what was predicted beside what happened, and the tasks, once all runs have ended."""
    st.subheader("What you predicted, and what happened", anchor=False)
    results = runs.finished(jobs)
    if any(step.worked is None and name not in results for name, step in lesson.runs.items()):
        runs.wait_for_text(jobs)
        return
    predicted = card(lesson, place.predictions(lesson), results)
    sources = lesson.sources(results)
    tasks = [task_outcome(lesson, step, trying.results(lesson, step), sources) for step in lesson.tasks.values()]
    st.markdown(_summary(predicted, tasks))
    if any(isinstance(step.answer, NumberAnswer) for step in lesson.predictions.values()):
        st.caption(texts.RULE)
    for outcome in predicted:
        with st.container(border=True):
            texts.compare(outcome)
            texts.show(outcome.happened)
    for place_of_task, task in enumerate(tasks):
        with st.container(border=True):
            _task(lesson, list(lesson.tasks)[place_of_task], task)


def _summary(predicted: list[Outcome], tasks: list[TaskOutcome]) -> str:
    right, solved = sum(o.right is True for o in predicted), sum(t.solved is True for t in tasks)
    return f"Right predictions: **{right} of {len(predicted)}**. Solved tasks: **{solved} of {len(tasks)}**."


def _task(lesson: Lesson, name: str, task: TaskOutcome) -> None:
    st.markdown(f"**Task: {task.title}**")
    texts.show(task.task)
    if task.solved:
        st.markdown(f":green[:material/check_circle:] **Solved.** {task.reached}.")
        return
    tried = f"Your last value, {task.reached}, does not reach the goal." if task.reached else "You have not tried it."
    st.markdown(f"{texts.WRONG} **Not solved.** {tried}")
    at = [step.id for step in lesson.data.steps].index(name)
    st.button(
        "Go to the task", icon=":material/arrow_back:", key=f"lesson-task-{name}", on_click=place.go_to,
        args=(lesson, at),
    )  # fmt: skip
