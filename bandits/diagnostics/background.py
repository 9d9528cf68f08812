"""The comparisons in a process of their own: whoever looks at the page does not wait for them, nor do others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np

from bandits.base.processes import start
from bandits.experiments.experiment import Experiment
from bandits.runtime.subprocesses import BackgroundTask

from .references import Line, Oracle, Slots, line_of, oracle_of, slots_of

KINDS: dict[str, tuple[type[Any], Callable[[Experiment], Any]]] = {
    "oracle": (Oracle, oracle_of), "line": (Line, line_of), "slots": (Slots, slots_of),
}  # fmt: skip


class Compared(BackgroundTask):
    """What the agents of an experiment are compared with, one after the other as they are found.

    Attributes
    ----------
    oracle : Oracle, optional
    line : Line, optional
    slots : Slots, optional

    Raises
    ------
    UserError
        Too many are waiting.
    """

    max_waiting = 16
    noun = "comparisons"
    process_name = "the comparing process"
    time_limit = 180.0

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.oracle: Oracle | None = None
        self.line: Line | None = None
        self.slots: Slots | None = None
        self._heard: set[str] = set()
        super().__init__()

    def start_process(self) -> subprocess.Popen[str]:
        return start("bandits.diagnostics", stdin=self.experiment.model_dump_json(), output=subprocess.PIPE)

    def handle_line(self, line: str) -> None:
        said = json.loads(line)
        if "refused" in said:
            self.error = said["refused"]
            return
        setattr(self, said["kind"], found_of(said))
        self._heard.add(said["kind"])

    @property
    def found(self) -> tuple[Oracle | None, Line | None, Slots | None]:
        """What has come so far; None too where there is nothing to compare with."""
        return self.oracle, self.line, self.slots

    @property
    def coming(self) -> set[str]:
        """Those still to come: ``oracle``, ``line``, ``slots``."""
        return set(KINDS) - self._heard if self.active else set()


def data_of(kind: str, experiment: Experiment) -> dict[str, Any]:
    """Find one of them; as plain data."""
    found = KINDS[kind][1](experiment)
    values = None if found is None else found._asdict()
    return {"kind": kind, "found": values and {name: np.asarray(value).tolist() for name, value in values.items()}}


def found_of(data: dict[str, Any]) -> Any:
    """And back."""
    if data["found"] is None:
        return None
    kind = KINDS[data["kind"]][0]
    several = tuple if kind is Oracle else np.array
    return kind(**{name: several(v) if isinstance(v, list) else v for name, v in data["found"].items()})
