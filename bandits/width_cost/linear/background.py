"""Run a measurement of LinUCB in a subprocess."""

from __future__ import annotations

import json
import subprocess

from bandits.base.processes import start
from bandits.runtime.subprocesses import BackgroundTask
from bandits.width_cost.background import TIME_LIMIT, Measurement

from .request import LinearRequest
from .results import LinearReport, from_json


class LinearMeasurement(BackgroundTask):
    """One measurement of LinUCB, started when it is created; see `bandits.width_cost.background.Measurement`."""

    max_waiting = 8
    noun = "measurements"
    process_name = "the measuring process"
    time_limit = TIME_LIMIT

    def __init__(self, request: LinearRequest) -> None:
        self.report = LinearReport(request)
        self.fraction, self.activity = 0.0, ""
        super().__init__()

    def start_process(self) -> subprocess.Popen[str]:
        request = self.report.request.model_dump_json()
        return start("bandits.width_cost.linear", request, output=subprocess.PIPE, BANDITS_DEVICE="cpu")

    def handle_line(self, line: str) -> None:
        progress = from_json(json.loads(line))
        self.report = self.report.updated(progress)
        self.fraction, self.activity = progress.fraction, progress.activity


LinearMeasurement._turn = Measurement._turn  # two measurements at once would slow each other down
