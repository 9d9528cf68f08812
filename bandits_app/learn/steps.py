"""Draw one step of a lesson: its text, and what a reader predicts, sees, tries or computes
in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st
from pydantic import ValidationError

from bandits import UserError
from bandits.experiments.validation import refusal
from bandits.lessons import Lesson, figures
from bandits.lessons.answers import (
    KEPT,
    TOLERANCE,
    Outcome,
    Prediction,
    answered_by,
    attempt_in_words,
    in_words,
    reached_goal,
)
from bandits.lessons.expressions import Source
from bandits.lessons.lesson import (
    ChoiceAnswer,
    NumberAnswer,
    PlayStep,
    PredictStep,
    RunStep,
    Section,
    SeeStep,
    Step,
    TryStep,
)
from bandits.lessons.rules import task_of
from bandits.lessons.texts import fill, needs
from bandits.lessons.worked import Table
from bandits.results.result import Result
from bandits.runtime.pool import Job
from bandits_app.glossary import link
from bandits_app.session import followed, workers
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.params_form import form, label
from bandits_app.widgets.text import glued, refuse
from bandits_app.widgets.until_end import until_end

from . import game, progress, runs

RULE = f"A number counts as right if it is off by at most {TOLERANCE:.0%} of its slider's range."
# the difference of two agents with its interval, in a text
INTERVAL = re.compile(r"\.difference\([^}]*\bci\b")
WRONG = ":red[:material/cancel:]"
HINTS = ("First hint", "Second hint", "Third hint")


def show(lesson: Lesson, step: Step, jobs: dict[str, Job]) -> None:
    """Draw a step; where it needs a run that has not ended, its progress stands there instead."""
    section, results = lesson.texts[step.id], runs.finished(jobs)
    sources: Mapping[str, Source] = {**lesson.sources(results), **task_of(step)}
    st.subheader(section.title, anchor=False)
    words = "\n".join((section.body, *section.hints))
    waiting = [
        name
        for name in needs(words, sources)
        if name in lesson.runs and lesson.runs[name].worked is None
    ]
    if any(name not in results for name in waiting):
        runs.wait_for_text(jobs)
        return
    write_text(fill(section.body, sources))
    if INTERVAL.search(section.body):
        st.caption(
            "Intervals of differences are corrected for all pairs of agents of the run, as in the "
            f"Arena ({link('bonferroni-correction')}): with more agents they are wider."
        )
    if isinstance(step, PredictStep):
        _predict(lesson, step)
    elif isinstance(step, RunStep) and step.worked is not None:
        _worked(lesson, step)
    elif isinstance(step, RunStep):
        if step.id in jobs:
            runs.wait(jobs[step.id])
        else:
            runs.wait_for_any(jobs)
    elif isinstance(step, SeeStep):
        _see(lesson, step, jobs)
    elif isinstance(step, TryStep):
        _try(lesson, step, section, sources)
    elif isinstance(step, PlayStep):
        game.play(lesson, step)
    _answers(lesson, step, jobs)


def _answers(lesson: Lesson, step: Step, jobs: dict[str, Job]) -> None:
    """Draw the predictions that this step answers, once their runs have ended."""
    for outcome in answered_by(lesson, step, progress.predictions(lesson), runs.finished(jobs)):
        with st.container(border=True):
            compare(outcome)


def _see(lesson: Lesson, step: SeeStep, jobs: dict[str, Job]) -> None:
    run = lesson.runs[step.run]
    if run.worked is not None:
        # those of the text beside it
        given = run.example.Params.model_validate(run.given)
        drawn = run.example.figures(given)
        chosen = [drawn[place - 1] for place in step.figures] or drawn
        panel.draw(chosen, key=f"lesson-see-{step.id}", revision=run.worked)
        return
    job = jobs.get(step.run)
    # it starts when the run before it has ended
    if job is None:
        runs.wait_for_any(jobs)
        return
    until_end(_plots, lesson, step, job)


def _plots(lesson: Lesson, step: SeeStep, job: Job) -> None:
    with job.lock:
        drawn = figures.see(lesson, step, job.result, progress.predictions(lesson))
    panel.draw(drawn, key=f"lesson-see-{step.id}", revision=job.id)
    names = [trace.get("name") or "" for plot in drawn for trace in plot["data"]]
    if any(name.startswith("your prediction") for name in names):
        st.caption("Straight dashed line in orange: your prediction.")
    if job.active:
        runs.wait(job)


def write_text(markdown: str) -> None:
    """Draw a text of a lesson."""
    # Texts have no numbered lists.
    markdown = re.sub(r"^(\d+)([.)])(?=\s)", r"\1\\\2", markdown, flags=re.MULTILINE)
    # No line begins with a percent sign.
    st.markdown(glued(markdown))


def compare(outcome: Outcome) -> None:
    """Draw what was predicted, whether that was right, and the answer, a line each."""
    if outcome.right is None:
        verdict = ":material/remove: **No answer**: the run has no such number."
    else:
        verdict = (
            ":green[:material/check_circle:] **Right.**"
            if outcome.right
            else f"{WRONG} **Not right.**"
        )
    answer = f" The answer: {outcome.answer}." if outcome.answer else ""
    st.markdown(f"**{outcome.title}**  \nYou predicted: {outcome.predicted}.  \n{verdict}{answer}")


def _predict(lesson: Lesson, step: PredictStep) -> None:
    """Draw the question, or the prediction that has been kept."""
    made = progress.predictions(lesson).get(step.id)
    if made is not None:
        st.info(f"Your prediction: {in_words(step, made)}", icon=":material/push_pin:")
        return
    value = _ask(lesson, step)
    st.button(
        "Keep my prediction",
        type="primary",
        icon=":material/push_pin:",
        shortcut="Ctrl+Enter",
        disabled=value is None,
        on_click=_keep,
        args=(lesson, step, value),
    )
    rule = f" {RULE}" if isinstance(step.answer, NumberAnswer) else ""
    st.caption(f"A prediction that is kept cannot be changed.{rule}")


def _ask(lesson: Lesson, step: PredictStep) -> Prediction | None:
    answer, key = step.answer, f"lesson-{lesson.name}-{step.id}-{progress.round_number(lesson)}"
    if isinstance(answer, NumberAnswer):
        whole = all(float(x).is_integer() for x in (answer.step, answer.low, answer.high))
        number = int if whole else float
        middle = answer.low + answer.step * round((answer.high - answer.low) / 2 / answer.step)
        unit = (
            f", as a share {answer.unit}"
            if answer.unit.startswith("of ")
            else f": how many {answer.unit}"
        )
        return st.slider(
            f"Your prediction{unit if answer.unit else ''}",
            number(answer.low),
            number(answer.high),
            number(middle),
            number(answer.step),
            key=key,
            format="%d" if whole else "%g",
        )
    texts = [option.text for option in answer.options]
    if isinstance(answer, ChoiceAnswer):
        return st.radio("Your prediction", range(len(texts)), None, texts.__getitem__, key=key)
    chosen: list[int] = []
    # the next place is asked for when this one is taken
    for rank in range(len(texts)):
        left = [i for i in range(len(texts)) if i not in chosen]
        label = "Most" if rank == 0 else "Least" if rank == len(texts) - 1 else f"Place {rank + 1}"
        picked = st.selectbox(
            label,
            left,
            None if len(left) > 1 else 0,
            texts.__getitem__,
            key=f"{key}-{rank}-{'-'.join(map(str, chosen))}",
            placeholder="Choose",
        )
        if picked is None:
            return None
        chosen.append(picked)
    return tuple(chosen)


def _keep(lesson: Lesson, step: PredictStep, value: Prediction) -> None:
    progress.predictions(lesson)[step.id] = value
    progress.go_to(lesson, progress.step(lesson) + 1)


def _try(lesson: Lesson, step: TryStep, section: Section, sources: Mapping[str, Source]) -> None:
    """Draw the slider, the last attempts and the hints."""
    run, key = (
        lesson.runs[step.run],
        f"lesson-{lesson.name}-{step.id}-{progress.round_number(lesson)}",
    )
    attempts, began = progress.attempts(lesson, step.id), f"{key}-began"
    # the step has just been opened
    if f"{key}-value" not in st.session_state:
        st.session_state[began] = attempts[-1] if attempts else step.start
    value = st.slider(
        f"Your value: {label(step.field(run))}",
        float(step.low),
        float(step.high),
        float(st.session_state[began]),
        float(step.step),
        key=f"{key}-value",
        format="%g",
    )
    pressed = st.button(
        "Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", key=f"{key}-run"
    )
    try:
        if pressed:
            if run.worked is None:
                followed.submit(step.changed(run, value))
            attempts[:] = [*(each for each in attempts if each != value), value]
        for attempt in reversed(attempts[-KEPT:]):
            _result(lesson, step, attempt, sources)
    except UserError as error:
        refuse(error)
    for title, hint in zip(HINTS, section.hints, strict=True):
        with st.expander(title, icon=":material/lightbulb:"):
            write_text(fill(hint, sources))


def _result(lesson: Lesson, step: TryStep, value: float, sources: Mapping[str, Source]) -> None:
    """State whether a value reaches the goal, once its run has ended."""
    run = lesson.runs[step.run]
    found: Result | None = None
    if run.worked is None:
        job = workers.pool().get(step.changed(run, value).hash)
        if job is None:
            return
        if job.status != "finished":
            runs.wait(job)
            return
        found = job.result
    text = attempt_in_words(step, run, value, sources, found)
    if reached_goal(step, run, value, sources, found):
        st.success(f"{text}. The goal is reached.", icon=":material/check_circle:")
    else:
        st.info(f"{text}. Not yet.", icon=":material/adjust:")


def results_of_attempts(lesson: Lesson, step: TryStep) -> dict[float, Result | None]:
    """Return the runs of the values that were tried and have a result.

    None for a worked example.
    """
    run = lesson.runs[step.run]
    if run.worked is not None:
        return dict.fromkeys(progress.attempts(lesson, step.id))
    jobs = {
        v: workers.pool().get(step.changed(run, v).hash) for v in progress.attempts(lesson, step.id)
    }
    return {
        v: job.result for v, job in jobs.items() if job is not None and job.status == "finished"
    }


def _worked(lesson: Lesson, step: RunStep) -> None:
    """Draw the controls of the parameters that a reader may change, the tables and the figures."""
    entered, model = _enter(lesson, step), step.example.Params
    try:
        params = model.model_validate({**step.given, **entered})
    except ValidationError as error:
        name, space, rest = refusal(error, model).partition(" ")
        titles = {n: field.title for n, field in model.model_fields.items()}
        refuse(f"{titles.get(name) or name}{space}{rest}")
        return
    progress.entered(lesson, step.id).update(entered)
    _tables(step.example.tables(params))
    if drawn := step.example.figures(params):
        panel.draw(drawn, key=f"{_key(lesson, step)}-figures", revision=str(step.worked))


def _enter(lesson: Lesson, step: RunStep) -> dict[str, Any]:
    """Draw the controls, and return their values.

    Those of an earlier visit to the step are where they begin.
    """
    if not step.shown:
        return {}
    entered: dict[str, Any] = {}
    key = _key(lesson, step)
    # the step has just been opened
    if f"{key}-{step.shown[0]}" not in st.session_state:
        st.session_state[f"{key}-began"] = dict(progress.entered(lesson, step.id))
    began = step.example.Params.model_validate(
        {**step.given, **st.session_state[f"{key}-began"]}
    ).model_dump()
    for names, place_of_group in _places(step):
        with place_of_group:
            entered.update(form(step.example.Params, names, began, key, bounded=False))
    return entered


def _places(step: RunStep) -> Iterator[tuple[list[str], Any]]:
    """Return the groups of controls with their places: columns for those that belong together, one
    row for the rest.
    """
    groups = [[name for name in group if name in step.shown] for group in step.example.groups]
    columns = st.columns(len(groups)) if groups else []
    yield from zip(groups, columns, strict=True)
    if rest := [name for name in step.shown if not any(name in group for group in groups)]:
        yield rest, st.container(horizontal=True, gap="medium")


def _tables(found: list[Table]) -> None:
    """Draw tables, each below its title."""
    for table in found:
        st.markdown(f"**{table.title}**")
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        st.table(rows, hide_index=True)


def _key(lesson: Lesson, step: RunStep) -> str:
    return f"lesson-{lesson.name}-{step.id}-{progress.round_number(lesson)}"
