"""The log that is evaluated: of the run viewed last, a shipped one, or a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import streamlit as st

from bandits import Experiment
from bandits.base.formatting import count, count_of
from bandits.offpolicy import open_bandit, recording
from bandits.offpolicy.background import RecordTask
from bandits.offpolicy.choices import LogSummary, rows_at_first, suggested_logger, summarise, summarise_run
from bandits.runtime.pool import Job
from bandits_app.widgets.text import escape_markdown

from . import log_file

FILE = "file"
_POLICIES = {"bts": "Thompson sampling", "random": "random choice"}


class Source(NamedTuple):
    """A log, or the run that it is recorded from.

    Attributes
    ----------
    key : str
        Identity: equal sources have equal logs.
    summary : LogSummary
    log : str or bytes
        Name of a shipped log or content of a file; empty for a run.
    ending : str
        Of the file's name.
    mapping : mapping of str to str, optional
    experiment : Experiment, optional
    label : str
        The agent whose decisions are recorded.
    rows : int
        Replications that are recorded.
    name : str
        Of a file.
    """

    key: str
    summary: LogSummary
    log: str | bytes = ""
    ending: str = ""
    mapping: Mapping[str, str] | None = None
    experiment: Experiment | None = None
    label: str = ""
    rows: int = 0
    name: str = ""


def choose(job: Job) -> str:
    """Draw the choice of a log."""
    experiment = job.experiment
    suggested = suggested_logger(experiment)
    runs = [f"run:{label}" for label in experiment.labels] if suggested else []
    options = [*runs, *open_bandit.NAMES, FILE]
    return st.selectbox(
        "Log", options, options.index(f"run:{suggested}") if suggested else 0, format_func=_title,
        key=f"whatif-log-{experiment.hash[:12]}", width=360,
        help="What was shown to whom, with which probability, and what it earned: by an agent of the "
        "Arena's run, in the Open Bandit sample (a fashion shop), or in your own file.",
    )  # fmt: skip


def load(job: Job, chosen: str) -> Source | None:
    """Return the chosen log, with controls for a file; None while the file is missing.

    Raises
    ------
    UserError
        The file cannot be read, or the decisions of the run cannot be logged.
    """
    experiment = job.experiment
    if chosen == FILE:
        return _of_file()
    if chosen in open_bandit.NAMES:
        if suggested_logger(experiment) is None:
            st.caption("The Arena's run cannot be logged: it replays a log or is too large.")
        return Source(chosen, _shipped(chosen), chosen)
    label, rows = chosen.removeprefix("run:"), rows_at_first(experiment)
    return Source(
        f"{experiment.hash}-{label}-{rows}", summarise_run(experiment, rows, label), ending=".parquet",
        experiment=experiment, label=label, rows=rows,
    )  # fmt: skip


def _title(option: str) -> str:
    if option == FILE:
        return "Your file"
    if option.startswith("run:"):
        return f"Run: {option.removeprefix('run:')}"
    policy, campaign = option.removeprefix(open_bandit.PREFIX).split("/")
    return f"Open Bandit: {_POLICIES[policy]}, {campaign} items"


def describe(source: Source) -> str:
    """Describe a log in one line of Markdown."""
    n, K = source.summary.n, len(source.summary.names)
    text = f"{count_of(n, 'decisions')}, {count_of(K, 'items')}"
    if source.experiment is not None:
        title = source.experiment.simulator_class().title
        R, replications = source.experiment.replications, count_of(source.rows, "replications")
        if source.rows < R:
            replications = f"{count(source.rows)} of {count_of(R, 'replications')} (*Export* in the Arena writes all)"
        text = f"{text} in the simulator {title}: {escape_markdown(source.label)}, {replications}"
        if (slots := recording.slots(source.experiment)) > 1:
            text += f"; slates of {slots}, a row for each position"
    elif isinstance(source.log, str):
        text += f". {escape_markdown(open_bandit.ATTRIBUTION)}"
    elif not source.summary.propensities:
        text += ", no propensities: only DM and replay are possible without estimating them (*Settings*)"
    if source.summary.problem:
        text += f". Its simulator is not available here: {escape_markdown(source.summary.problem)}"
    return f"{text}." if not text.endswith(".") else text


@st.cache_resource(show_spinner=False)
def _shipped(name: str) -> LogSummary:
    return summarise(open_bandit.load(name))


def _of_file() -> Source | None:
    found = log_file.upload()
    if found is None:
        return None
    mapping = log_file.columns(found)
    summary = log_file.summary(found, mapping)
    key = f"{found.identity}-{sorted((mapping or {}).items())}"
    return Source(key, summary, found.content, found.ending, mapping, name=found.name)


def recorded(experiment: Experiment, label: str, rows: int) -> RecordTask:
    """Record once per run, agent and number of replications, for all users; after a failure again.

    Raises
    ------
    UserError
        Too many recordings are waiting.
    """
    key = f"{experiment.hash}-{label}-{rows}"
    task = _recording(experiment, label, rows, key)
    if task.status == "failed":
        _recording.clear(experiment, label, rows, key)  # the next press tries again
    return task


@st.cache_resource(ttl=3600, max_entries=12, show_spinner=False)  # more than can wait
def _recording(_experiment: Experiment, _label: str, _rows: int, key: str) -> RecordTask:  # noqa: ARG001 - the key
    return RecordTask(_experiment, _label, _rows)
