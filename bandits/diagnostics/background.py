"""Compute the reference values in a child process, so that neither the page nor other users wait for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bandits.base.processes import ChildTask, Line
from bandits.experiments.experiment import Experiment

from .references import (
    LinearityCheck,
    OracleReference,
    PositionBias,
    linearity_check,
    oracle_reference,
    position_bias_check,
)

LINE = Line("computations of reference values", waiting=16, seconds=180.0)
REFERENCES: dict[str, Callable[[Experiment], Any]] = {
    "oracle": oracle_reference,
    "linearity": linearity_check,
    "position_bias": position_bias_check,
}


class ReferenceTask(ChildTask):
    """The reference values of an experiment, available one after the other as they are computed.

    Attributes
    ----------
    oracle : OracleReference, optional
    linearity : LinearityCheck, optional
    position_bias : PositionBias, optional
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.oracle: OracleReference | None = None
        self.linearity: LinearityCheck | None = None
        self.position_bias: PositionBias | None = None
        self._received: set[str] = set()
        super().__init__(LINE, compute, experiment)

    def receive(self, message: Any) -> None:
        kind, value = message
        setattr(self, kind, value)
        self._received.add(kind)

    @property
    def references(self) -> tuple[OracleReference | None, LinearityCheck | None, PositionBias | None]:
        """The values received so far; None too where a reference does not exist."""
        return self.oracle, self.linearity, self.position_bias

    @property
    def pending(self) -> set[str]:
        """The references still to come: ``oracle``, ``linearity``, ``position_bias``."""
        return set(REFERENCES) - self._received if self.active else set()


def compute(experiment: Experiment, send: Callable[[Any], None]) -> None:
    """Compute one reference after the other; send its kind and its value.

    Raises
    ------
    UserError
        The simulator cannot be created (missing data, say).
    """
    for kind, reference in REFERENCES.items():
        send((kind, reference(experiment)))
