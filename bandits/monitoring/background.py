"""Find the alarms of a run in a subprocess, so that neither the page nor other users wait for the replay."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from bandits.base.processes import start
from bandits.experiments.experiment import Experiment
from bandits.runtime.subprocesses import BackgroundTask

from .alarm import Alarm

ROWS = 8  # replications that are replayed


class AlarmTask(BackgroundTask):
    """The alarms of the agents of a run, available one agent after the other.

    Parameters
    ----------
    experiment : Experiment
    steps : mapping of str to int
        Steps that each agent has reached, by label; others are not replayed.

    Attributes
    ----------
    alarms : dict of str to list of Alarm
        Those of the agents that have been replayed, in the first replications.
    monitors : dict of str to list of str
        Kinds of the monitors that these agents had, also of those without an alarm.
    rows : int
        The number of these replications.
    """

    max_waiting = 8
    noun = "searches for alarms"
    process_name = "the process that replays runs"
    time_limit = 300.0

    def __init__(self, experiment: Experiment, steps: Mapping[str, int]) -> None:
        self.experiment, self.steps = experiment, dict(steps)
        self.rows = min(ROWS, experiment.replications)
        self.alarms: dict[str, list[Alarm]] = {}
        self.monitors: dict[str, list[str]] = {}
        super().__init__()

    def start_process(self) -> subprocess.Popen[str]:
        request = {
            "experiment": self.experiment.model_dump(mode="json", by_alias=True), "steps": self.steps,
            "rows": list(range(self.rows)),
        }  # fmt: skip
        return start("bandits.monitoring", stdin=json.dumps(request), output=subprocess.PIPE)

    def handle_line(self, line: str) -> None:
        message = json.loads(line)
        if "error" in message:
            self.error = message["error"]
            return
        self.monitors[message["label"]] = message["monitors"]  # first: the page reads it where there are alarms
        self.alarms[message["label"]] = [Alarm(*alarm) for alarm in message["alarms"]]
