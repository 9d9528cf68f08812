"""What stands below a run: where to go on, one decision, what agents learned before it, formulas, configuration."""

from __future__ import annotations

import streamlit as st

from bandits.results import log_training
from bandits.runtime.pool import Job
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown

from . import decision, explanations

FURTHER = (
    ("labs", "change", "Shock lab: what a change costs", "bolt"),
    ("labs", "guards", "Guard rails: safety and alarms", "shield"),
    ("data", "what_if", "What if?: other policies on this run's log", "fork_right"),
)


def show(job: Job) -> None:
    """Draw all of it."""
    with st.container(key="arena-further", horizontal=True, gap="medium"):
        for page, view, label, icon in FURTHER:
            st.page_link(f"{page}.py", query_params={"view": view}, label=label, icon=f":material/{icon}:")
    if not job.active:
        decision.show(job)
    _training(job)
    with st.expander("Formulas and symbols", icon=":material/function:"):
        explanations.explain(job.experiment)
    with st.expander("Configuration and hash", icon=":material/data_object:"):
        st.text(f"Experiment {job.id}")
        st.json(job.experiment.model_dump(mode="json"), expanded=1)


def _training(job: Job) -> None:
    """Draw the training of each agent that learned from a log; nothing where none did."""
    with job.lock:
        sentences, specs = log_training.sentences(job.result), log_training.training_curves(job.result)
    if not sentences:
        return
    with st.expander("Training before the run", icon=":material/model_training:"):
        st.markdown("\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences))
        if specs:
            alt = [f"{label}: {spec['layout']['meta']['note']}" for label, spec in specs.items()]
            panel.draw(list(specs.values()), key="log-training", revision=job.id, alt=alt, height=300)
