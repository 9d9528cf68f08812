"""Draw one step of a lesson."""

from __future__ import annotations

import re
from collections.abc import Mapping

import streamlit as st

from bandits.lessons import Lesson, figures
from bandits.lessons.answers import answered_by
from bandits.lessons.expressions import Source
from bandits.lessons.lesson import PredictStep, RunStep, SeeStep, Step, TryStep
from bandits.lessons.rules import task_of
from bandits.lessons.texts import fill, needs
from bandits.results.figures.style import Spec
from bandits.runtime.pool import Job
from bandits_app.widgets.live_panel import panel

from . import outcomes, place, predicting, runs, trying, worked


def show(lesson: Lesson, step: Step, jobs: dict[str, Job]) -> None:
    """Draw a step; where it needs a run that has not ended, its progress stands there instead."""
    section, results = lesson.texts[step.id], runs.finished(jobs)
    sources: Mapping[str, Source] = {**lesson.sources(results), **task_of(step)}
    st.subheader(section.title, anchor=False)
    texts = "\n".join((section.body, *section.hints))
    waiting = [name for name in needs(texts, sources) if name in lesson.runs and lesson.runs[name].worked is None]
    if any(name not in results for name in waiting):
        still_computed(jobs)
        return
    text(fill(section.body, sources))
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


def still_computed(jobs: dict[str, Job]) -> None:
    """Say that a text waits for a run, and draw the run's progress."""
    st.caption("This text is filled with the numbers of the run, which is still being computed.")
    runs.wait_for_any(jobs)


def text(markdown: str) -> None:
    """Draw a text of a lesson."""
    markdown = re.sub(r"^(\d+)([.)])(?=\s)", r"\1\\\2", markdown, flags=re.MULTILINE)  # texts have no numbered lists
    st.markdown(markdown.replace(" %", "\u00a0%"))  # no line begins with a percent sign


def draw(specs: list[Spec], revision: str, key: str) -> None:
    """Draw figures side by side."""
    for spec in specs:
        spec["layout"]["uirevision"] = revision
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    panel.mount(panel.pack(specs, alt, 340), key=key)


def _answers(lesson: Lesson, step: Step, jobs: dict[str, Job]) -> None:
    """Draw the predictions that this step answers, once their runs have ended."""
    for outcome in answered_by(lesson, step, place.predictions(lesson), runs.finished(jobs)):
        with st.container(border=True):
            outcomes.compare(outcome)


def _see(lesson: Lesson, step: SeeStep, jobs: dict[str, Job]) -> None:
    run = lesson.runs[step.run]
    if run.worked is not None:
        given = run.example.Params.model_validate(run.given)  # those of the text beside it
        drawn = run.example.figures(given)
        chosen = [drawn[place - 1] for place in step.figures] or drawn
        draw(chosen, run.worked, f"lesson-see-{step.id}")
        return
    job = jobs.get(step.run)
    if job is None:  # it starts when the run before it has ended
        runs.wait_for_any(jobs)
        return
    st.fragment(_plots, run_every=1.0 if job.active else None)(lesson, step, job, job.active)


def _plots(lesson: Lesson, step: SeeStep, job: Job, was_active: bool) -> None:
    if was_active and not job.active:
        st.rerun()
    with job.lock:
        drawn = figures.see(lesson, step, job.result, place.predictions(lesson))
    draw(drawn, job.id, f"lesson-see-{step.id}")
    if job.active:
        runs.wait(job)
