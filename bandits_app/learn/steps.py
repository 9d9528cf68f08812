"""Draw one step of a lesson."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from bandits.lessons import Lesson, figures
from bandits.lessons.answers import answered_by
from bandits.lessons.expressions import Source
from bandits.lessons.lesson import PredictStep, RunStep, SeeStep, Step, TryStep
from bandits.lessons.rules import task_of
from bandits.lessons.texts import fill, needs
from bandits.runtime.pool import Job
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.until_end import until_end

from . import place, predicting, runs, texts, trying, worked


def show(lesson: Lesson, step: Step, jobs: dict[str, Job]) -> None:
    """Draw a step; where it needs a run that has not ended, its progress stands there instead."""
    section, results = lesson.texts[step.id], runs.finished(jobs)
    sources: Mapping[str, Source] = {**lesson.sources(results), **task_of(step)}
    st.subheader(section.title, anchor=False)
    words = "\n".join((section.body, *section.hints))
    waiting = [name for name in needs(words, sources) if name in lesson.runs and lesson.runs[name].worked is None]
    if any(name not in results for name in waiting):
        runs.wait_for_text(jobs)
        return
    texts.show(fill(section.body, sources))
    if isinstance(step, PredictStep):
        predicting.show(lesson, step)
    elif isinstance(step, RunStep) and step.worked is not None:
        worked.show(lesson, step)
    elif isinstance(step, RunStep):
        if step.id in jobs:
            runs.wait(jobs[step.id])
        else:
            runs.wait_for_any(jobs)
    elif isinstance(step, SeeStep):
        _see(lesson, step, jobs)
    elif isinstance(step, TryStep):
        trying.show(lesson, step, section, sources)
    _answers(lesson, step, jobs)


def _answers(lesson: Lesson, step: Step, jobs: dict[str, Job]) -> None:
    """Draw the predictions that this step answers, once their runs have ended."""
    for outcome in answered_by(lesson, step, place.predictions(lesson), runs.finished(jobs)):
        with st.container(border=True):
            texts.compare(outcome)


def _see(lesson: Lesson, step: SeeStep, jobs: dict[str, Job]) -> None:
    run = lesson.runs[step.run]
    if run.worked is not None:
        given = run.example.Params.model_validate(run.given)  # those of the text beside it
        drawn = run.example.figures(given)
        chosen = [drawn[place - 1] for place in step.figures] or drawn
        panel.draw(chosen, key=f"lesson-see-{step.id}", revision=run.worked)
        return
    job = jobs.get(step.run)
    if job is None:  # it starts when the run before it has ended
        runs.wait_for_any(jobs)
        return
    until_end(_plots, lesson, step, job)


def _plots(lesson: Lesson, step: SeeStep, job: Job) -> None:
    with job.lock:
        drawn = figures.see(lesson, step, job.result, place.predictions(lesson))
    panel.draw(drawn, key=f"lesson-see-{step.id}", revision=job.id)
    if job.active:
        runs.wait(job)
