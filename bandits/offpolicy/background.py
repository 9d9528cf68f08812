"""Record and evaluate in child processes, so that neither the page nor other users wait.

Users' files are read there too, within limits of memory and time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.formatting import short, size
from bandits.base.processes import ChildTask, Line, own_folder
from bandits.experiments.experiment import Experiment
from bandits.tables.problems import RowsError
from bandits.tables.reading_line import READINGS

from .choices import LogSummary, summarise
from .evaluation import Evaluation, evaluate
from .keeping import keep_for_replay
from .log import DecisionLog
from .parquet import write_parquet
from .reading import beginning, column_names, convert, read_log
from .recording import record
from .user_table import suggested_map

# address space of a process that computes on a log, in bytes
MEMORY = 4 * 2**30
LARGER = "evaluate larger logs on the command line: python -m bandits evaluate"
# of a user's log that a page takes: columns, and characters of the name of a column or item
MAX_COLUMNS, MAX_NAME = 200, 200
# bytes of a recorded log or of a text made from one: a download of it is in memory
MAX_DOWNLOAD = 128 * 2**20

RECORDINGS = Line("recordings of decisions", waiting=8, seconds=1200.0, memory=MEMORY)
CONVERSIONS = Line("conversions of logs", waiting=8, seconds=120.0, memory=MEMORY)
EVALUATIONS = Line("evaluations", waiting=8, seconds=600.0, memory=MEMORY, advice=LARGER)


class FileTask(ChildTask):
    """A call that makes a file, which is deleted when nothing refers to the task any more.

    Parameters
    ----------
    line : Line
    function : callable
        Its first argument is the path of the file.
    ending : str
        Of the file.
    arguments
        Its further arguments.
    address : str
        As of `ChildTask`.
    """

    def __init__(
        self,
        line: Line,
        function: Callable[..., Any],
        ending: str,
        *arguments: Any,
        address: str = "",
    ) -> None:
        self._folder = own_folder()
        self._file = Path(self._folder.name) / f"log{ending}"
        super().__init__(line, function, self._file, *arguments, address=address)

    @property
    def path(self) -> Path | None:
        """The file; None until the task has finished."""
        return self._file if self.status == "finished" else None

    def content(self) -> bytes:
        """Return what the file holds.

        Raises
        ------
        UserError
            It is too large for the memory of this process.
        """
        if (length := self._file.stat().st_size) > MAX_DOWNLOAD:
            raise UserError(
                f"the file has {size(length)}; at most {size(MAX_DOWNLOAD)} can be downloaded: "
                "record fewer replications"
            )
        return self._file.read_bytes()


class RecordTask(FileTask):
    """The decision log of one agent, recorded by an exact replay.

    Parameters
    ----------
    experiment : Experiment
    label : str
        Of the agent.
    rows : int
        Replications that are recorded, the first ones.
    address : str
        As of `ChildTask`.

    Attributes
    ----------
    steps : int
        Steps that have been recorded.
    """

    def __init__(self, experiment: Experiment, label: str, rows: int, *, address: str = "") -> None:
        self.experiment, self.label, self.rows = experiment, label, rows
        self.steps = 0
        arguments = experiment, label, rows
        super().__init__(RECORDINGS, recorded, ".parquet", *arguments, address=address)

    def receive(self, message: Any) -> None:
        self.steps = message


class ConvertTask(FileTask):
    """A recorded log as a text.

    Parameters
    ----------
    record : RecordTask
        It has finished.
    ending : str
        Of the text, as in `reading.FORMATS`.
    """

    def __init__(self, record: RecordTask, ending: str) -> None:
        # kept, or its file would be deleted
        self.record = record
        super().__init__(CONVERSIONS, converted, ending, record.path)


class EvaluationTask(ChildTask):
    """The evaluation of a target policy on a log.

    Parameters
    ----------
    log : str, bytes or Path
        Name of a shipped log, the content of a user's file, or a recorded log.
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
    address : str
        As of `ChildTask`.
    """

    def __init__(
        self,
        log: str | bytes | Path,
        ending: str,
        mapping: Mapping[str, str] | None,
        target: str,
        options: Mapping[str, Any],
        *,
        skip: bool = False,
        address: str = "",
    ) -> None:
        arguments = log, ending, mapping, target, options, skip
        super().__init__(EVALUATIONS, evaluated, *arguments, address=address)

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation, once the task has finished."""
        return self.result


class RowProblems(NamedTuple):
    """What is wrong with the rows of a file: how many, and what, for the first of them."""

    wrong: int
    sentences: tuple[str, ...]


class Columns(NamedTuple):
    """The columns of a user's table.

    Attributes
    ----------
    names : tuple of str
    guessed : mapping of str to str
        Columns by role, as `suggested_map` returns them.
    """

    names: tuple[str, ...]
    guessed: Mapping[str, str]


def columns_of_file(content: bytes, ending: str) -> Columns | None:
    """List the columns of a user's table in a process as of `summarise_file`.

    None for a file that states their roles itself.

    Raises
    ------
    UserError
        The file is not a table, or has more columns or longer names than a page takes.
    """
    found: Columns | None = ChildTask(READINGS, columns, content, ending).wait()
    return found


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


def recorded(
    path: Path, experiment: Experiment, label: str, rows: int, send: Callable[[int], None]
) -> None:
    """Record the decisions of an agent in a Parquet file, and send the steps that are done."""
    write_parquet(record(experiment, label, rows=range(rows), progress=send), path)


def converted(target: Path, source: Path) -> None:
    """Convert a recorded log in this process."""
    convert(source, target)


def evaluated(
    log: str | bytes | Path,
    ending: str,
    mapping: Mapping[str, str] | None,
    target: str,
    options: Mapping[str, Any],
    skip: bool = False,
) -> Evaluation:
    """Evaluate a target on a shipped log, a recorded one or a user's file."""
    if isinstance(log, bytes):
        return evaluate(_read(log, ending, mapping, skip), target, **options)
    return evaluate(read_log(log, mapping), target, **options)


def columns(content: bytes, ending: str) -> Columns | None:
    """List the columns of a user's table in this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = _written(content, ending, folder)
        names = column_names(path)
        if names is None:
            return None
        if len(names) > MAX_COLUMNS:
            raise UserError(
                f"the table has {len(names):,} columns; at most {MAX_COLUMNS} are allowed: leave "
                "out what is not needed, or evaluate it on the command line"
            )
        _check_lengths("column", names)
        return Columns(tuple(names), suggested_map(names, beginning(path)))


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
    """Read a user's file, whose names a page can draw."""
    with tempfile.TemporaryDirectory() as folder:
        log = read_log(_written(content, ending, folder), mapping, skip=skip)
    _check_lengths("item", log.names)
    _check_lengths("feature", log.feature_names)
    _check_lengths("column", log.columns)
    if log.segments is not None:
        _check_lengths("segment", log.segments.tolist())
    return log


def _written(content: bytes, ending: str, folder: str) -> Path:
    path = Path(folder) / f"log{ending}"
    path.write_bytes(content)
    return path


def _check_lengths(what: str, names: Iterable[str]) -> None:
    longest = max(names, key=len, default="")
    if len(longest) > MAX_NAME:
        raise UserError(
            f"the {what} '{short(longest)}' has a name of {len(longest):,} characters; at most "
            f"{MAX_NAME} are allowed"
        )
