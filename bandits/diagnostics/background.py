"""Compute the reference values in a subprocess, so that neither the page nor other users wait for them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np

from bandits.base.processes import start
from bandits.experiments.experiment import Experiment
from bandits.runtime.subprocesses import BackgroundTask

from .references import (
    LinearityCheck,
    OracleReference,
    PositionBias,
    linearity_check,
    oracle_reference,
    position_bias_check,
)

KINDS: dict[str, tuple[type[Any], Callable[[Experiment], Any]]] = {
    "oracle": (OracleReference, oracle_reference),
    "linearity": (LinearityCheck, linearity_check),
    "position_bias": (PositionBias, position_bias_check),
}


class ReferenceTask(BackgroundTask):
    """The reference values of an experiment, available one after the other as they are computed.

    Attributes
    ----------
    oracle : OracleReference, optional
    linearity : LinearityCheck, optional
    position_bias : PositionBias, optional

    Raises
    ------
    UserError
        Too many tasks are waiting.
    """

    max_waiting = 16
    noun = "computations of reference values"
    process_name = "the reference process"
    time_limit = 180.0

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.oracle: OracleReference | None = None
        self.linearity: LinearityCheck | None = None
        self.position_bias: PositionBias | None = None
        self._received: set[str] = set()
        super().__init__()

    def start_process(self) -> subprocess.Popen[str]:
        return start("bandits.diagnostics", stdin=self.experiment.model_dump_json(), output=subprocess.PIPE)

    def handle_line(self, line: str) -> None:
        message = json.loads(line)
        if "error" in message:
            self.error = message["error"]
            return
        setattr(self, message["kind"], from_json(message))
        self._received.add(message["kind"])

    @property
    def references(self) -> tuple[OracleReference | None, LinearityCheck | None, PositionBias | None]:
        """The values received so far; None too where a reference does not exist."""
        return self.oracle, self.linearity, self.position_bias

    @property
    def pending(self) -> set[str]:
        """The references still to come: ``oracle``, ``linearity``, ``position_bias``."""
        return set(KINDS) - self._received if self.active else set()


def to_json(kind: str, experiment: Experiment) -> dict[str, Any]:
    """Compute one reference and convert it to plain data."""
    reference = KINDS[kind][1](experiment)
    fields = None if reference is None else reference._asdict()
    value = fields and {name: np.asarray(field).tolist() for name, field in fields.items()}
    return {"kind": kind, "value": value}


def from_json(data: dict[str, Any]) -> Any:
    """Restore the reference that `to_json` converted."""
    if data["value"] is None:
        return None
    kind = KINDS[data["kind"]][0]
    sequence = tuple if kind is OracleReference else np.array
    return kind(**{name: sequence(v) if isinstance(v, list) else v for name, v in data["value"].items()})
