"""The list of lessons, and the player: the step that a reader has reached, and the card at
the end.
"""

from __future__ import annotations

import streamlit as st

from bandits.lessons import Lesson, lessons
from bandits.lessons.answers import Outcome, TaskOutcome, card, task_outcome
from bandits.lessons.handout import handout
from bandits.lessons.lesson import NumberAnswer, PredictStep, TryStep
from bandits.runtime.pool import Job
from bandits_app.run_view import options

from . import progress, runs, steps


def listing() -> None:
    """Draw one row per lesson."""
    for number, lesson in enumerate(lessons().values()):
        with st.container(border=True):
            _row(number, lesson)


def _row(number: int, lesson: Lesson) -> None:
    data, steps = lesson.data, len(lesson.data.steps)
    st.subheader(f"{number}. {data.title}", anchor=False)
    st.markdown(data.about)
    st.caption(f"{data.minutes} minutes · {steps} steps · You need: {data.needs}")
    at = progress.step(lesson)
    if progress.started(lesson):
        done = "Finished" if at >= steps else f"Step {at + 1} of {steps}"
        st.progress(at / steps, text=done)
    row = st.container(horizontal=True, gap="small")
    row.button(
        "Continue" if progress.started(lesson) and at else "Start",
        icon=":material/play_arrow:",
        type="primary" if number == 0 else "secondary",
        key=f"lesson-open-{lesson.name}",
        on_click=progress.open_lesson,
        args=(lesson.name,),
        help=f"Open the lesson {data.title}",
    )
    row.download_button(
        "Handout",
        lambda: _handout(lesson),
        f"{lesson.name}.html",
        "text/html",
        icon=":material/print:",
        type="tertiary",
        key=f"lesson-handout-{lesson.name}",
        on_click="ignore",
        help=(
            "Pages to print, with blanks for predictions and numbers. The answer sheet is added "
            "when the runs of the lesson have ended; they start when it is opened."
        ),
    )


def _handout(lesson: Lesson) -> str:
    """Print a lesson, with the answer sheet where all its runs are at hand."""
    results = runs.at_hand(lesson)
    return handout(lesson, results, answers=runs.needed(lesson) <= results.keys())


def play(lesson: Lesson) -> None:
    """Draw the step that the reader has reached, or the card at the end.

    Raises
    ------
    UserError
    """
    jobs = runs.start(lesson)
    at, all_steps = progress.step(lesson), lesson.data.steps
    _head(lesson, at)
    if at >= len(all_steps):
        _finish(lesson, jobs)
        row = st.container(horizontal=True, gap="small")
        row.button(
            "Back",
            icon=":material/arrow_back:",
            on_click=progress.go_to,
            args=(lesson, len(all_steps) - 1),
        )
        row.button(
            "Start again", icon=":material/restart_alt:", on_click=progress.restart, args=(lesson,)
        )
        row.button(
            "All lessons",
            icon=":material/list:",
            type="primary",
            key="lesson-list",
            on_click=progress.close,
        )
        return
    step = all_steps[at]
    with st.container(key="lesson-step"):
        steps.show(lesson, step, jobs)
    row = st.container(horizontal=True, gap="small", key="lesson-buttons")
    row.button(
        "Back",
        icon=":material/arrow_back:",
        disabled=at == 0,
        on_click=progress.go_to,
        args=(lesson, at - 1),
    )
    onwards = (lesson, at + 1)
    # its own button is the main one
    if isinstance(step, PredictStep) and step.id not in progress.predictions(lesson):
        row.button(
            "Skip the prediction",
            type="tertiary",
            on_click=progress.go_to,
            args=onwards,
            help="Go on without predicting, to preview the lesson. You can come back.",
        )
    elif isinstance(step, TryStep):
        row.button("Next", icon=":material/arrow_forward:", on_click=progress.go_to, args=onwards)
    else:
        row.button(
            "Next",
            type="primary",
            icon=":material/arrow_forward:",
            shortcut="Ctrl+Enter",
            on_click=progress.go_to,
            args=onwards,
        )


def _head(lesson: Lesson, at: int) -> None:
    """Draw the way back to the list, the title, and how far the reader is."""
    total = len(lesson.data.steps)
    # where its text changes, shell/focus.js goes to the top of the page
    head = st.container(key="lesson-head")
    row = head.container(horizontal=True, vertical_alignment="center", gap="small")
    row.button("All lessons", icon=":material/list:", type="tertiary", on_click=progress.close)
    row.markdown(f"**{lesson.data.title}**", width="stretch")
    options.present_button(row, "Larger type, for a projector; **Esc** leaves it")
    head.progress(
        min(at / total, 1.0), text=f"Step {at + 1} of {total}" if at < total else "Finished"
    )


def _finish(lesson: Lesson, jobs: dict[str, Job]) -> None:
    """Draw what was predicted beside what happened, and the tasks, once all runs have ended."""
    st.subheader("What you predicted, and what happened", anchor=False)
    results = runs.finished(jobs)
    if any(step.worked is None and name not in results for name, step in lesson.runs.items()):
        runs.wait_for_text(jobs)
        return
    predicted = card(lesson, progress.predictions(lesson), results)
    sources = lesson.sources(results)
    tasks = [
        task_outcome(lesson, step, steps.results_of_attempts(lesson, step), sources)
        for step in lesson.tasks.values()
    ]
    st.markdown(_summary(predicted, tasks, len(lesson.predictions) - len(predicted)))
    if any(isinstance(step.answer, NumberAnswer) for step in lesson.predictions.values()):
        st.caption(steps.RULE)
    for outcome in predicted:
        with st.container(border=True):
            steps.compare(outcome)
            steps.write_text(outcome.happened)
    for index, task in enumerate(tasks):
        with st.container(border=True):
            _task(lesson, list(lesson.tasks)[index], task)


def _summary(predicted: list[Outcome], tasks: list[TaskOutcome], skipped: int) -> str:
    left_out = f" ({skipped} skipped)" if skipped else ""
    right, solved = sum(o.right is True for o in predicted), sum(t.solved is True for t in tasks)
    return (
        f"Right predictions: **{right} of {len(predicted)}**{left_out}. "
        f"Solved tasks: **{solved} of {len(tasks)}**."
    )


def _task(lesson: Lesson, name: str, task: TaskOutcome) -> None:
    st.markdown(f"**Task: {task.title}**")
    steps.write_text(task.task)
    if task.solved:
        st.markdown(f":green[:material/check_circle:] **Solved.** {task.reached}.")
        return
    tried = (
        f"Your last value, {task.reached}, does not reach the goal."
        if task.reached
        else "You have not tried it."
    )
    st.markdown(f"{steps.WRONG} **Not solved.** {tried}")
    at = [step.id for step in lesson.data.steps].index(name)
    st.button(
        "Go to the task",
        icon=":material/arrow_back:",
        key=f"lesson-task-{name}",
        on_click=progress.go_to,
        args=(lesson, at),
    )
