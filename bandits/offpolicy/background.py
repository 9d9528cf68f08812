"""Record and evaluate in subprocesses, so that neither the page nor other users wait."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bandits.base.errors import UserError
from bandits.base.formatting import size
from bandits.base.processes import start
from bandits.experiments.experiment import Experiment
from bandits.runtime.subprocesses import BackgroundTask

from .choices import LogSummary
from .evaluation import Evaluation, Truth
from .intervals import Interval
from .support import Alarm, Support
from .weights import Histogram

MEMORY = 8 * 10**9  # address space of a process that reads a user's file, in bytes
SUMMARY_SECONDS = 60
LARGER = "evaluate larger logs on the command line: python -m bandits evaluate"


class _TaskWithFolder(BackgroundTask):
    """A task that hands files over in a temporary folder, which is removed at its end or that of the server."""

    max_waiting = 8

    def _read_output(self) -> None:
        with tempfile.TemporaryDirectory(prefix="bandits-") as folder:
            self._folder = Path(folder)
            super()._read_output()


class RecordTask(_TaskWithFolder):
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
    content : bytes
        The Parquet file, once the task has finished.
    steps : int
        Steps that have been recorded.
    """

    noun = "recordings of decisions"
    process_name = "the process that records decisions"
    time_limit = 1200.0

    def __init__(self, experiment: Experiment, label: str, rows: int) -> None:
        self.experiment, self.label, self.rows = experiment, label, rows
        self.content, self.steps = b"", 0
        super().__init__()

    def start_process(self) -> subprocess.Popen[str]:
        request = {
            "experiment": self.experiment.model_dump(mode="json", by_alias=True), "label": self.label,
            "rows": list(range(self.rows)), "path": str(self._folder / "log.parquet"),
        }  # fmt: skip
        return start("bandits.offpolicy", stdin=json.dumps(request), output=subprocess.PIPE)

    def handle_line(self, line: str) -> None:
        message = json.loads(line)
        self.error = message.get("error", self.error)
        self.steps = message.get("steps", self.steps)
        if "written" in message:
            self.content = (self._folder / "log.parquet").read_bytes()


class EvaluationTask(_TaskWithFolder):
    """The evaluation of a target policy on a log.

    Parameters
    ----------
    log : str or bytes
        Name of a shipped log, or the content of a file.
    ending : str
        Of the file: ``.parquet``, ``.csv``, ``.dsjson``; empty for a shipped log.
    mapping : mapping of str to str, optional
        Columns of a user's table, as in `from_frame`.
    target : str
        As in `evaluate`.
    options : mapping
        ``estimators``, ``model``, ``interval`` and ``estimate_propensities`` of `evaluate`.

    Attributes
    ----------
    evaluation : Evaluation or None
        Once the task has finished.
    """

    noun = "evaluations"
    process_name = "the process that evaluates logs"
    time_limit = 600.0

    def __init__(
        self, log: str | bytes, ending: str, mapping: Mapping[str, str] | None, target: str, options: Mapping[str, Any]
    ) -> None:
        self._log, self._ending = log, ending
        self._request = {"mapping": dict(mapping) if mapping else None, "target": target, "options": dict(options)}
        self.evaluation: Evaluation | None = None
        super().__init__()

    def start_process(self) -> subprocess.Popen[str]:
        name = self._log
        if isinstance(name, bytes):
            path = self._folder / f"log{self._ending}"
            path.write_bytes(name)
            self._log = name = str(path)  # the content is not held any longer
        return start("bandits.offpolicy", stdin=json.dumps({**self._request, "log": name}), output=subprocess.PIPE)

    def handle_line(self, line: str) -> None:
        message = json.loads(line)
        self.error = message.get("error", self.error)
        if "evaluation" in message:
            self.evaluation = from_message(message["evaluation"])


def summarise_file(content: bytes, ending: str, mapping: Mapping[str, str] | None) -> LogSummary:
    """Summarise a user's file in a process of its own, whose memory and time are limited.

    Parameters
    ----------
    content : bytes
    ending : str
        Of the file's name.
    mapping : mapping of str to str, optional
        As in `from_frame`.

    Raises
    ------
    UserError
        The file holds what is not allowed, or takes more memory or time than a page may.
    """
    return LogSummary.from_message(_answer(content, ending, mapping, {})["summary"])


def keep_file(content: bytes, ending: str, mapping: Mapping[str, str] | None, title: str, *, uniform: bool) -> str:
    """Keep a user's file for replays (`keep_for_replay`), in a process as of `summarise_file`; return its id.

    Raises
    ------
    UserError
        The file cannot be replayed or kept, or takes more memory or time than a page may.
    """
    return str(_answer(content, ending, mapping, {"title": title, "uniform": uniform})["kept"])


def _answer(
    content: bytes, ending: str, mapping: Mapping[str, str] | None, request: Mapping[str, Any]
) -> dict[str, Any]:
    """Send a request on a user's file to a process of its own; return the last line of its answer."""
    with tempfile.TemporaryDirectory(prefix="bandits-") as folder:
        path = Path(folder) / f"log{ending}"
        path.write_bytes(content)
        asked = {"log": str(path), "mapping": dict(mapping) if mapping else None, **request}
        process = start("bandits.offpolicy", output=subprocess.PIPE, keep_open=True)
        try:
            written, _ = process.communicate(json.dumps(asked), timeout=SUMMARY_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise UserError(f"reading the log took more than {SUMMARY_SECONDS} s; {LARGER}") from error
    lines = written.splitlines()
    if process.returncode or not lines:
        raise UserError(f"reading the log took more than {size(MEMORY)} of memory; {LARGER}")
    message: dict[str, Any] = json.loads(lines[-1])
    if "error" in message:
        raise UserError(message["error"])
    return message


def to_message(found: Evaluation) -> dict[str, Any]:
    """Return an evaluation as plain data, from which `from_message` makes an equal one."""
    plain = {"estimates": dict(found.estimates), "tuned": dict(found.tuned), "positions": dict(found.positions)}
    return {**vars(found), **plain}


def from_message(message: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation that was given to `to_message`, also where JSON has made lists of its tuples."""
    truth, weights = message["truth"], message["weights"]
    made = {
        "estimates": {name: Interval(*e) for name, e in message["estimates"].items()},
        "support": Support(*message["support"]), "alarms": tuple(Alarm(*alarm) for alarm in message["alarms"]),
        "truth": None if truth is None else Truth(*truth), "gain": Interval(*message["gain"]),
        "weights": None if weights is None else Histogram(*weights),
        "positions": {name: Interval(*e) for name, e in message["positions"].items()},
    }  # fmt: skip
    return Evaluation(**{**message, **made})
