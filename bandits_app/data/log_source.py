"""The log that is evaluated: of the run viewed last, a shipped one, or a file with the roles of its
columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from bandits import Experiment
from bandits.base.formatting import count, count_of
from bandits.offpolicy import open_bandit, recording
from bandits.offpolicy.background import (
    RecordTask,
    RowProblems,
    columns_of_file,
    summarise_file,
)
from bandits.offpolicy.choices import (
    LogSummary,
    rows_at_first,
    suggested_logger,
    summarise,
    summarise_run,
)
from bandits.offpolicy.reading import ending
from bandits.offpolicy.user_table import ROLES
from bandits.runtime.pool import Job
from bandits_app.session.owner import address
from bandits_app.session.page import SUMMARY, known_of_file
from bandits_app.session.results import shared
from bandits_app.widgets.row_problems import row_problems
from bandits_app.widgets.text import escape_markdown

FILE = "file"
_POLICIES = {"bts": "Thompson sampling", "random": "random choice"}
MAX_MEGABYTES = 50
_OPTIONAL = {
    "propensity": "Probability with which the item was chosen. Without it only DM and replay are possible.",  # noqa: E501
    "propensities": "Probabilities of all items, separated by |, where they are known.",
    "visit": "Identifier of the visit, where what is shown moves the user: values are per visit.",
    "segment": "User segment: alarms are checked per segment too.",
    "event_id": "Identifier of the event, where several items were shown at once.",
    "position": "Position of the item, where several were shown at once.",
    "weight": "How many decisions a row stands for, where some were kept more often than others.",
    "candidates": "Items that could be chosen, separated by |; by default all items of the file.",
}


class Source(NamedTuple):
    """A log, or the run that it is recorded from.

    Attributes
    ----------
    key : str
        Identity: equal sources have equal logs.
    summary : LogSummary
    log : str, bytes or Path
        Name of a shipped log, content of a file, or the recorded log of a run; empty before.
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
    skip : bool
        Rows of a file that hold what is not allowed are left out.
    """

    key: str
    summary: LogSummary
    log: str | bytes | Path = ""
    ending: str = ""
    mapping: Mapping[str, str] | None = None
    experiment: Experiment | None = None
    label: str = ""
    rows: int = 0
    name: str = ""
    skip: bool = False


def choose(job: Job) -> str:
    """Draw the choice of a log."""
    experiment = job.experiment
    suggested = suggested_logger(experiment)
    runs = [f"run:{label}" for label in experiment.labels] if suggested else []
    options = [*runs, *open_bandit.NAMES, FILE]
    return st.selectbox(
        "Log",
        options,
        options.index(f"run:{suggested}") if suggested else 0,
        format_func=_title,
        key=f"whatif-log-{experiment.hash[:12]}",
        width=360,
        help=(
            "What was shown to whom, with which probability, and what it earned: by an agent of "
            "the Arena's run, in the Open Bandit sample (a fashion shop), or in your own file."
        ),
    )


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
        f"{experiment.hash}-{label}-{rows}",
        summarise_run(experiment, rows, label),
        ending=".parquet",
        experiment=experiment,
        label=label,
        rows=rows,
    )


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
            replications = (
                f"{count(source.rows)} of {count_of(R, 'replications')} (*Export* in the Arena "
                "writes all)"
            )
        text = f"{text} in the simulator {title}: {escape_markdown(source.label)}, {replications}"
        if (slots := recording.slots(source.experiment)) > 1:
            text += f"; slates of {slots}, a row for each position"
    elif isinstance(source.log, str):
        text += f". {escape_markdown(open_bandit.ATTRIBUTION)}"
    elif not source.summary.propensities:
        text += (
            ", no propensities: only DM and replay are possible without estimating them "
            "(*Settings*)"
        )
    if source.summary.problem:
        text += f". Its simulator is not available here: {escape_markdown(source.summary.problem)}"
    text = f"{text}." if not text.endswith(".") else text
    return " ".join([text, *map(escape_markdown, source.summary.notes)])


@shared(number=8)
def _shipped(name: str) -> LogSummary:
    return summarise(open_bandit.load(name))


def _of_file() -> Source | None:
    found = _upload()
    if found is None:
        return None
    mapping = _choose_columns(found)
    key = f"{found.identity}-{sorted((mapping or {}).items())}"
    skip_key = f"whatif-skip-{key}"
    skip = bool(st.session_state.get(skip_key))
    summary = _summarise(found, mapping, skip=skip)
    if isinstance(summary, RowProblems):
        row_problems(summary.wrong, summary.sentences, skip_key)
        return None
    return Source(
        f"{key}-{skip}",
        summary,
        found.content,
        found.ending,
        mapping,
        name=found.name,
        skip=skip,
    )


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
        # the next press tries again
        _recording.forget(experiment, label, rows, key)
    return task


# more than can wait
@shared(number=12, seconds=3600)
def _recording(_experiment: Experiment, _label: str, _rows: int, key: str) -> RecordTask:  # noqa: ARG001
    return RecordTask(_experiment, _label, _rows, address=address())


class LogFile(NamedTuple):
    """An uploaded file."""

    identity: str
    name: str
    ending: str
    content: bytes


def _upload() -> LogFile | None:
    uploaded = st.file_uploader(
        "Log file",
        ["csv", "gz", "parquet", "dsjson", "json", "jsonl"],
        max_upload_size=MAX_MEGABYTES,
        key="whatif-file",
        help=(
            "CSV or Parquet with one decision per row, a log that *Export* in the Arena wrote, "
            "or dsjson. Larger files: `python -m bandits evaluate`."
        ),
    )
    st.caption(
        "The file is read for this page only and not stored, unless you replay it in the Arena."
    )
    if uploaded is None:
        return None
    return LogFile(uploaded.file_id, uploaded.name, ending(uploaded.name), uploaded.getvalue())


def _choose_columns(file: LogFile) -> Mapping[str, str] | None:
    """Draw the choice of the columns of a table; None for a file that states their roles itself.

    Raises
    ------
    UserError
        The file is not a table.
    """
    columns = known_of_file(
        SUMMARY, "columns", file.identity, lambda: columns_of_file(file.content, file.ending)
    )
    if columns is None:
        return None
    names, guessed = list(columns.names), columns.guessed
    # a column without a role has none, whatever its name
    found = dict.fromkeys(ROLES, "")
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        for role in ("action", "reward"):
            # one column does not have two roles
            free = [name for name in names if name not in guessed.values()]
            found[role] = st.selectbox(
                role.capitalize(),
                names,
                names.index(guessed.get(role) or (free or names)[0]),
                width=180,
                key=f"whatif-{role}-{file.identity}",
                help="The item that was shown"
                if role == "action"
                else "What it earned: a click is 1, no click 0",
            )
        optional = iter(_OPTIONAL)
        role = next(optional)
        found[role] = _optional(role, names, guessed, file)
        with (
            st.container(width="content"),
            st.popover("More columns", icon=":material/view_column:"),
        ):
            for role in optional:
                found[role] = _optional(role, names, guessed, file)
    able = [name for name in names if name not in found.values() and "|" not in name]
    features = st.multiselect(
        "Features",
        able,
        [name for name in guessed.get("features", "").split("|") if name in able],
        key=f"whatif-features-{file.identity}",
        placeholder="None: rewards are predicted from the item alone",
        help="What was known of the user before the decision: models of rewards use it, and "
        "propensities are checked against it.",
    )
    if able and not features and found.get("propensity"):
        st.caption(
            "Without features, propensities that are wrong in some contexts stay unseen. Choose "
            "what was known before the decision."
        )
    return found | {"features": "|".join(features)}


def _optional(role: str, names: list[str], guessed: Mapping[str, str], file: LogFile) -> str:
    chosen = st.selectbox(
        role.replace("_id", " identifier").capitalize(),
        [None, *names],
        names.index(guessed[role]) + 1 if role in guessed else 0,
        width=180,
        help=_OPTIONAL[role],
        key=f"whatif-{role}-{file.identity}",
        format_func=lambda name: "None" if name is None else name,
    )
    return chosen or ""


def _summarise(
    file: LogFile, mapping: Mapping[str, str] | None, *, skip: bool
) -> LogSummary | RowProblems:
    """Summarise a file, once per choice of columns.

    Raises
    ------
    UserError
        The file holds values that are not allowed; the sentence names row and column.
    """
    identity = f"{file.identity}-{sorted((mapping or {}).items())}-{skip}"
    return known_of_file(
        SUMMARY,
        "summary",
        identity,
        lambda: summarise_file(file.content, file.ending, mapping, skip=skip),
    )
