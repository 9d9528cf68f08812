"""Explain one decision of a run that is not active: why this arm was chosen."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment, UserError
from bandits.base.processes import BusyError, ChildTask, Line
from bandits.results.decision import Why, why
from bandits.results.decision_report import decision, explain_decision
from bandits.results.figures.style import styles
from bandits.runtime.pool import Job
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown, refuse

# the process stays for the next question: its start takes longer than most answers
EXPLANATIONS = Line("explanations", waiting=4, seconds=90.0, idle=300.0)


def show(job: Job) -> None:
    """Draw a section that explains the choice at any step that the run has reached."""
    st.fragment(_section)(job)


def _section(job: Job) -> None:
    reached = {label: h.step for label, h in job.histories.items() if h.step}
    section = st.expander("Why this arm?", icon=":material/psychology_alt:", key="why-open", on_change="rerun")
    if not section.open or not reached:
        return
    with section:
        row = st.container(horizontal=True, gap="small")
        label = row.selectbox("Agent", list(reached), key=f"why-agent-{job.id[:12]}", width=240)
        last, replications, key = reached[label], job.experiment.replications, f"{job.id[:12]}-{label}"
        name = f"why-step-{job.id[:12]}-{last}"  # agents at the same step share the choice
        step = row.number_input("Step", 1, last, last, key=name, help=f"Decision to explain, 1 to {last:,}.", width=150)
        replication = row.number_input(
            "Replication", 1, replications, key=f"why-run-{job.id[:12]}", width=130,
            help=f"Replication that the decision is taken from, 1 to {replications:,}.",
        )  # fmt: skip
        try:
            explanation = _explain(job.experiment, job.id, label, step, replication - 1)
        except BusyError as error:
            explanation = str(error)
        if isinstance(explanation, str):
            refuse(explanation)
            return
        reason, *more = explain_decision(explanation)
        st.markdown(f"**{escape_markdown(reason)}** {escape_markdown(' '.join(more))}")
        spec = decision(explanation, styles(job.experiment)[label])
        height = 80 + 34 * len(spec["layout"]["yaxis"]["tickvals"])
        revision, alt = f"{key}-{step}-{replication}", [" ".join([reason, *more])]
        panel.draw([spec], key="why", revision=revision, alt=alt, height=height)


@st.cache_data(ttl=600, max_entries=256, show_spinner="Replaying the run up to this step ...")
def _explain(_experiment: Experiment, run: str, label: str, step: int, replication: int) -> Why | str:  # noqa: ARG001
    """Return the explanation of a decision, or the reason why there is none; the run's hash is the key."""
    try:
        found: Why = ChildTask(EXPLANATIONS, why, _experiment, label, step, replication).wait()
        return found
    except BusyError:  # the same question may be answered later
        raise
    except UserError as error:
        return str(error)
