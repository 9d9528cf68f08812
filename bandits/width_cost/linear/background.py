"""Run a measurement of LinUCB in a child process."""

from __future__ import annotations

from collections.abc import Callable

from bandits.base.processes import Task
from bandits.width_cost.background import LINE

from .measure import measure_linear
from .request import LinearRequest
from .results import LinearProgress, LinearReport


class LinearMeasurement(Task):
    """One measurement of LinUCB, started when it is created; see `bandits.width_cost.background.Measurement`."""

    def __init__(self, request: LinearRequest) -> None:
        self.report = LinearReport(request)
        self.fraction, self.activity = 0.0, ""
        super().__init__(LINE, measured, request)

    def receive(self, message: LinearProgress) -> None:
        self.report = self.report.updated(message)
        self.fraction, self.activity = message.fraction, message.activity


def measured(request: LinearRequest, send: Callable[[LinearProgress], None]) -> None:
    """Measure and send every step."""
    for progress in measure_linear(request):
        send(progress)
