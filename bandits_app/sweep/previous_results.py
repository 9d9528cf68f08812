"""Show what earlier sweeps measured for the agents of a draft, before it is run."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment
from bandits.base.formatting import count_of, number
from bandits.results import words
from bandits.runtime.job import Job
from bandits_app.widgets.text import escape_markdown

from . import selection, view


def show(experiment: Experiment | None, job: Job) -> None:
    """Show the nearest swept point of every agent that a sweep covers, unless the run above has measured the agent."""
    if experiment is None:
        return
    shown, rest = job.experiment, {"agents"}
    alike = job.status == "finished" and experiment.model_dump(exclude=rest) == shown.model_dump(exclude=rest)
    agents = zip(experiment.labels, experiment.agents, strict=True)
    measured = {label for label, agent in agents if alike and agent in shown.agents}
    for found in selection.manager().nearest_points(experiment):
        if found.label in measured:
            continue
        at = view.describe_values(found.sweep, found.sweep.values_at(found.point))
        nearest = "" if found.exact else "the nearest point, "
        replications = count_of(found.runs, "replications")
        noun = shown.simulator_class().reward_noun
        interval = f"{words.interval(found.estimate, 'rate')}; {replications}" if found.runs > 1 else replications
        st.caption(
            f":material/grid_on: From a previous sweep: {escape_markdown(found.label)} earned "
            f"{number(found.estimate.mean)} {noun} per step ({interval}) at {nearest}{at}."
        )
