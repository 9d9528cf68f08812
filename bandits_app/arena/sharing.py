"""Share a run: its link, its files, the decisions of an agent, and experiments to open."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits import UserError, read
from bandits.base.formatting import count
from bandits.experiments import url
from bandits.experiments.experiment import MAX_TEXT
from bandits.offpolicy import reading, recording
from bandits.offpolicy.background import ConvertTask, RecordTask
from bandits.offpolicy.choices import rows_at_first, suggested_logger
from bandits.results import export
from bandits.runtime.pool import Job
from bandits_app.data.log_source import recorded
from bandits_app.run_view import unchanged
from bandits_app.server.security import frame_ancestors
from bandits_app.session import draft
from bandits_app.session.results import shared
from bandits_app.widgets import buttons
from bandits_app.widgets.text import escape_markdown, refuse, sentence
from bandits_app.widgets.until_end import until_end

_ASKED = "decision-log-asked"


_copy_image = st.components.v2.component(
    "bandit_copy_image",
    js=Path(__file__).with_name("copy_image.js").read_text(encoding="utf-8"),
    css=Path(__file__).with_name("copy_image.css").read_text(encoding="utf-8"),
)


def _address(job: Job) -> str:
    here = urlsplit(st.context.url or "http://127.0.0.1:8501/arena")
    return f"{here.scheme}://{here.netloc}{here.path}?{url.query(job.experiment)}"


def way_out(row: DeltaGenerator, job: Job) -> None:
    """Draw the way from a frame to the whole app, with the run that the frame shows."""
    row.link_button("Open the app", _address(job), icon=":material/open_in_new:", type="tertiary")


def link(job: Job) -> None:
    """Draw the link to a run, its frame and its picture, and the upload of an experiment file."""
    address = _address(job)
    here = urlsplit(address)
    st.markdown("**Link to this experiment**")
    st.code(address, language=None, wrap_lines=True)
    note = (
        "The link contains the whole experiment: it gives the same numbers, even after this run "
        "has been deleted."
    )
    if not job.experiment.simulator_class().portable(job.experiment.simulator):
        note = (
            "The link contains the experiment, but not the uploaded data: upload the same file on "
            "the other server."
        )
    if here.hostname in ("127.0.0.1", "localhost", "::1"):
        note += " This link works only on this computer; elsewhere replace the host name."
    st.caption(note)
    st.markdown("**Copy as frame**")
    title = job.experiment.simulator_class().title
    frame = f'<iframe src="{html.escape(address)}&amp;embed=true" title="{html.escape(title)}"'
    st.code(
        f'{frame} width="100%" height="720"></iframe>', language=None, wrap_lines=True, height=96
    )
    allowed = frame_ancestors()
    st.caption(
        f"For slides and course pages: the run without navigation. Shown on {allowed}."
        if allowed
        else "For slides and course pages: the run without navigation. No page may show it yet: "
        "the owner of this server names those that may in BANDITS_FRAME_ANCESTORS."
    )
    _copy_image(key="copy-image")
    st.markdown("**Open an experiment file**")
    uploaded = st.file_uploader(
        "Experiment (JSON)", "json", max_upload_size=1, label_visibility="collapsed"
    )
    if uploaded is not None and st.session_state.get("opened") != uploaded.file_id:
        st.session_state.opened = uploaded.file_id
        draft.load(read(uploaded.getvalue()[: MAX_TEXT + 1]))
        st.toast("The experiment is loaded into the controls. Press Run.", icon=":material/input:")
        st.rerun()


def files(job: Job) -> None:
    """Draw the downloads; each file is made when its button is pressed."""
    result, name = unchanged.result_of(job), f"bandits-{job.id[:8]}"
    if not result.histories:
        st.caption("This run has no results to export yet.")
        return
    exports: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("Report (HTML, works offline)", "html", "text/html", lambda: export.report(result)),
        ("Curves (CSV)", "csv", "text/csv", lambda: export.table_csv(result)),
        (
            "Curves (Parquet)",
            "parquet",
            "application/octet-stream",
            lambda: export.table_parquet(result),
        ),
        (
            "Experiment (JSON)",
            "json",
            "application/json",
            lambda: job.experiment.model_dump_json(indent=2),
        ),
        ("Python script", "py", "text/x-python", lambda: export.script(job.experiment)),
    ]

    for label, ending, mime, make in exports:
        buttons.download(
            label,
            make,
            f"{name}.{ending}",
            mime,
            lock=job.lock,
            key=f"export-{ending}",
            width="stretch",
        )
    st.caption(
        "The script explains in its first lines how to run it. To save a plot as PNG or SVG, open "
        "the menu **⋮** at its upper right."
    )


def decision_log(job: Job) -> None:
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
    rows = right.number_input(
        "Replications",
        1,
        most,
        rows_at_first(experiment),
        key=f"log-rows-{key}",
        help="The first replications of the run are recorded.",
    )
    wanted = f"{experiment.hash}-{label}-{rows}"
    if st.button(
        "Record decisions",
        icon=":material/radio_button_checked:",
        width="stretch",
        help=(
            "Replays the agent and writes each decision with its probability. *What if?* "
            "evaluates other policies on such a log."
        ),
    ):
        st.session_state[_ASKED] = wanted
    if st.session_state.get(_ASKED) == wanted:
        try:
            task = recorded(experiment, label, rows)
            if task.status == "failed":
                # the next press tries again
                st.session_state.pop(_ASKED)
        except UserError as error:
            refuse(error)
            return
        until_end(_recorded_decisions, task)


def _recorded_decisions(task: RecordTask) -> None:
    if task.active:
        done = task.steps / task.experiment.steps
        st.progress(
            done, text=f"Recording: step {count(task.steps)} of {count(task.experiment.steps)}"
        )
        return
    if task.error:
        refuse(task.error)
        return
    name = st.segmented_control(
        "Format",
        list(reading.FORMATS),
        default="Parquet",
        required=True,
        key="log-format",
        help=(
            "Parquet: smallest, and the only one that keeps the true value. CSV: one row per "
            "decision. dsjson: one JSON object a line, for Vowpal Wabbit."
        ),
    )
    ending = reading.FORMATS[name or "Parquet"]
    try:
        made: RecordTask | ConvertTask = task
        if ending != ".parquet":
            key = f"{task.experiment.hash}-{task.label}-{task.rows}"
            made = _converted(task, ending, key)
            if made.status == "failed":
                _converted.forget(task, ending, key)
                made = _converted(task, ending, key)
            with st.spinner("Converting ..."):
                made.wait()
        file = f"{task.label}{ending}"
        buttons.download(f"Decisions ({name})", made.content, file, width="stretch")
    except UserError as error:
        refuse(error)
    st.page_link(
        "data.py",
        query_params={"view": "what_if"},
        label="What if?: evaluate other policies",
        icon=":material/fork_right:",
    )


@shared(number=4, seconds=600)
def _converted(_task: RecordTask, ending: str, key: str) -> ConvertTask:  # noqa: ARG001
    return ConvertTask(_task, ending)
