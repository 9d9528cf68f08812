"""Export the decisions of an agent with their probabilities, for off-policy evaluation."""

from __future__ import annotations

import streamlit as st

from bandits import UserError
from bandits.base.formatting import count
from bandits.offpolicy import recording, text_formats
from bandits.offpolicy.background import RecordTask
from bandits.offpolicy.choices import rows_at_first, suggested_logger
from bandits.runtime.pool import Job
from bandits_app.data.log_source import recorded
from bandits_app.widgets.text import escape_markdown, refuse, sentence
from bandits_app.widgets.until_end import until_end

_ASKED = "decision-log-asked"


def export(job: Job) -> None:
    """Draw the switch that records decisions, and the download once they are recorded."""
    st.markdown("**Decision log**")
    st.caption("Every decision of an agent with its probability, to evaluate other policies.")
    experiment = job.experiment
    try:
        recording.check(experiment, range(rows_at_first(experiment)))
    except UserError as error:
        st.caption(escape_markdown(sentence(str(error))))
        return
    key, labels = experiment.hash[:12], experiment.labels
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    suggested = labels.index(suggested_logger(experiment) or labels[0])
    label = left.selectbox("Decisions of", labels, suggested, key=f"log-agent-{key}")
    most = recording.most_replications(experiment)
    rows = right.number_input("Replications", 1, most, rows_at_first(experiment), key=f"log-rows-{key}",
                              help="The first replications of the run are recorded.")  # fmt: skip
    wanted = f"{experiment.hash}-{label}-{rows}"
    if st.button(
        "Record decisions", icon=":material/radio_button_checked:", width="stretch",
        help="Replays the agent and writes each decision with its probability. *What if?* evaluates other policies on "
        "such a log.",
    ):  # fmt: skip
        st.session_state[_ASKED] = wanted
    if st.session_state.get(_ASKED) == wanted:
        try:
            task = recorded(experiment, label, rows)
            if task.status == "failed":
                st.session_state.pop(_ASKED)  # the next press tries again
        except UserError as error:
            refuse(error)
            return
        until_end(_show, task)


def _show(task: RecordTask) -> None:
    if task.active:
        done = task.steps / task.experiment.steps
        st.progress(done, text=f"Recording: step {count(task.steps)} of {count(task.experiment.steps)}")
        return
    if task.error:
        refuse(task.error)
        return
    name = st.segmented_control(
        "Format", list(text_formats.ENDINGS), default="Parquet", required=True, key="log-format",
        help="Parquet: smallest, and the only one that keeps the true value. CSV: one row per decision. dsjson: one "
        "JSON object a line, for Vowpal Wabbit.",
    )  # fmt: skip
    ending = text_formats.ENDINGS[name or "Parquet"]
    try:
        content = _converted(task, ending, f"{task.experiment.hash}-{task.label}-{task.rows}")
        st.download_button(
            f"Decisions ({name})", content, f"{task.label}{ending}", "application/octet-stream", on_click="ignore",
            icon=":material/download:", width="stretch",
        )  # fmt: skip
    except UserError as error:
        refuse(error)
    st.page_link(
        "data.py",
        query_params={"view": "what_if"},
        label="What if?: evaluate other policies",
        icon=":material/fork_right:",
    )


@st.cache_data(ttl=600, max_entries=4, show_spinner="Converting ...")
def _converted(_task: RecordTask, ending: str, key: str) -> bytes:  # noqa: ARG001 - the key
    return text_formats.convert(_task.content, ending)
