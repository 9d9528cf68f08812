"""Why this arm? One decision of a run that is not moving, taken apart."""

from __future__ import annotations

import threading

import streamlit as st

from bandits import Experiment, UserError
from bandits.results import text
from bandits.results.decision import Why, why
from bandits.results.decision_figure import decision
from bandits.results.style import styles
from bandits.runtime.pool import Job
from ui.live_panel import panel
from ui.text import escape_markdown, refuse

_one_at_a_time = threading.Lock()  # it is computed here, in the process that serves everybody


def ask(job: Job) -> None:
    """A section that says why an arm was shown, at any step that the run has reached."""
    st.fragment(_section)(job)


def _section(job: Job) -> None:
    reached = {label: h.step for label, h in job.histories.items() if h.step}
    section = st.expander("Why this arm?", icon=":material/psychology_alt:", key="why-open", on_change="rerun")
    if not section.open or not reached:
        return
    with section:
        which = st.container(horizontal=True, gap="small")
        label = which.selectbox("Agent", list(reached), key=f"why-agent-{job.id[:12]}", width=240)
        last, times, key = reached[label], job.experiment.replications, f"{job.id[:12]}-{label}"
        name = f"why-step-{job.id[:12]}-{last}"  # agents that have come as far share the step
        step = which.number_input("Step", 1, last, last, key=name, help=f"1 to {last:,}.", width=150)
        run = which.number_input("Run", 1, times, key=f"why-run-{job.id[:12]}", help=f"1 to {times:,}.", width=130)
        found = _answer(job.experiment, job.id, label, step, run - 1)
        if isinstance(found, str):
            refuse(found)
            return
        reason, *more = text.explain_decision(found)
        st.markdown(f"**{escape_markdown(reason)}** {escape_markdown(' '.join(more))}")
        spec = decision(found, styles(job.experiment)[label])
        spec["layout"]["uirevision"] = f"{key}-{step}-{run}"
        height = 80 + 34 * len(spec["layout"]["yaxis"]["tickvals"])
        panel.live_panel([spec], key="why", alt=[" ".join([reason, *more])], height=height)


@st.cache_data(ttl=600, max_entries=256, show_spinner="Living this run again up to that step ...")
def _answer(_experiment: Experiment, run: str, label: str, step: int, replication: int) -> Why | str:  # noqa: ARG001
    """What `why` finds, or why it finds nothing; an experiment's hash is its key."""
    try:
        with _one_at_a_time:
            return why(_experiment, label, step, replication)
    except UserError as sentence:
        return str(sentence)
