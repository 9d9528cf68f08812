"""What the agents of a run learned from a log before its first step."""

from __future__ import annotations

import streamlit as st

from bandits.results import log_training
from bandits.runtime.pool import Job
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown


def show(job: Job) -> None:
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
