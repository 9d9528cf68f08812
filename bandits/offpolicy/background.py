"""Record and evaluate in child processes, so that neither the page nor other users wait.

Users' files are read there too, within limits of memory and time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bandits.base.processes import ChildTask, Line
from bandits.experiments.experiment import Experiment
from bandits.tables.problems import RowsError

from .choices import LogSummary, summarise
from .evaluation import Evaluation, evaluate
from .keeping import keep_for_replay
from .log import DecisionLog
from .parquet import to_parquet
from .reading import read_log
from .recording import record

# address space of a process that reads a user's file, in bytes
MEMORY = 8 * 10**9
LARGER = "evaluate larger logs on the command line: python -m bandits evaluate"

RECORDINGS = Line("recordings of decisions", waiting=8, seconds=1200.0, memory=MEMORY)
EVALUATIONS = Line("evaluations", waiting=8, seconds=600.0, memory=MEMORY, advice=LARGER)
READINGS = Line(
    "readings of logs", waiting=16, at_once=4, seconds=60.0, memory=MEMORY, advice=LARGER
)


class RecordTask(ChildTask):
    """The decision log of one agent, recorded by an exact replay.

    Parameters
    ----------
    experiment : Experiment
    label : str
        Of the agent.
    rows : int
        Replications that are recorded, the first ones.

    Attributes
    ----------
    steps : int
        Steps that have been recorded.
    """

    def __init__(self, experiment: Experiment, label: str, rows: int) -> None:
        self.experiment, self.label, self.rows = experiment, label, rows
        self.steps = 0
        super().__init__(RECORDINGS, recorded, experiment, label, rows)

    def receive(self, message: Any) -> None:
        self.steps = message

    @property
    def content(self) -> bytes:
        """The Parquet file; empty until the task has finished."""
        return self.result or b""


class EvaluationTask(ChildTask):
    """The evaluation of a target policy on a log.

    Parameters
    ----------
    log : str or bytes
        Name of a shipped log, or the content of a file.
    ending : str
        Of the file, as `reading.ending`; empty for a shipped log.
    mapping : mapping of str to str, optional
        Columns of a user's table, as in `from_table`.
    target : str
        As in `evaluate`.
    options : mapping
        ``estimators``, ``model``, ``interval`` and ``estimate_propensities`` of `evaluate`.
    skip : bool
        Leave out rows that hold what is not allowed.
    """

    def __init__(
        self,
        log: str | bytes,
        ending: str,
        mapping: Mapping[str, str] | None,
        target: str,
        options: Mapping[str, Any],
        *,
        skip: bool = False,
    ) -> None:
        super().__init__(EVALUATIONS, evaluated, log, ending, mapping, target, options, skip)

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation, once the task has finished."""
        return self.result


class RowProblems(NamedTuple):
    """What is wrong with the rows of a file: how many, and what, for the first of them."""

    wrong: int
    sentences: tuple[str, ...]


def summarise_file(
    content: bytes, ending: str, mapping: Mapping[str, str] | None, *, skip: bool = False
) -> LogSummary | RowProblems:
    """Summarise a user's file in a process of its own, whose memory and time are limited.

    Parameters
    ----------
    content : bytes
    ending : str
        Of the file's name.
    mapping : mapping of str to str, optional
        As in `from_table`.
    skip : bool
        Leave out rows that hold what is not allowed.

    Raises
    ------
    UserError
        The file holds what is not allowed, or takes more memory or time than a page may.
    """
    found: LogSummary | RowProblems = ChildTask(
        READINGS, summary, content, ending, mapping, skip
    ).wait()
    return found


def keep_file(
    content: bytes,
    ending: str,
    mapping: Mapping[str, str] | None,
    title: str,
    *,
    uniform: bool,
    skip: bool = False,
) -> str:
    """Keep a user's file for replays (`keep_for_replay`), in a process as of `summarise_file`.

    Return its id.

    Raises
    ------
    UserError
        The file cannot be replayed or kept, or takes more memory or time than a page may.
    """
    return str(ChildTask(READINGS, kept, content, ending, mapping, title, uniform, skip).wait())


def recorded(experiment: Experiment, label: str, rows: int, send: Callable[[int], None]) -> bytes:
    """Record the decisions of an agent, send the steps that are done, and return a Parquet file."""
    return to_parquet(record(experiment, label, rows=range(rows), progress=send))


def evaluated(
    log: str | bytes,
    ending: str,
    mapping: Mapping[str, str] | None,
    target: str,
    options: Mapping[str, Any],
    skip: bool = False,
) -> Evaluation:
    """Evaluate a target on a shipped log or a user's file."""
    found = read_log(log, mapping) if isinstance(log, str) else _read(log, ending, mapping, skip)
    return evaluate(found, target, **options)


def summary(
    content: bytes, ending: str, mapping: Mapping[str, str] | None, skip: bool = False
) -> LogSummary | RowProblems:
    """Summarise a user's file in this process."""
    try:
        return summarise(_read(content, ending, mapping, skip))
    except RowsError as error:
        return RowProblems(error.count, tuple(error.sentences))


def kept(
    content: bytes,
    ending: str,
    mapping: Mapping[str, str] | None,
    title: str,
    uniform: bool,
    skip: bool = False,
) -> str:
    """Keep a user's file in this process."""
    return keep_for_replay(_read(content, ending, mapping, skip), title, uniform=uniform)


def _read(
    content: bytes, ending: str, mapping: Mapping[str, str] | None, skip: bool
) -> DecisionLog:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log{ending}"
        path.write_bytes(content)
        return read_log(path, mapping, skip=skip)
