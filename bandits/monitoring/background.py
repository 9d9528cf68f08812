"""Find the alarms of a run in a child process, so that neither the page nor other users wait for the replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bandits.base.processes import ChildTask, Line
from bandits.experiments.experiment import Experiment

from .alarm import Alarm
from .replay import watched

# replications that are replayed
ROWS = 8
LINE = Line("searches for alarms", waiting=8, seconds=300.0)


class AlarmTask(ChildTask):
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

    def __init__(self, experiment: Experiment, steps: Mapping[str, int]) -> None:
        self.experiment, self.steps = experiment, dict(steps)
        self.rows = min(ROWS, experiment.replications)
        self.alarms: dict[str, list[Alarm]] = {}
        self.monitors: dict[str, list[str]] = {}
        super().__init__(LINE, search, experiment, self.steps, range(self.rows))

    def receive(self, message: Any) -> None:
        # monitors first: the page reads them where there are alarms
        label, self.monitors[message[0]], alarms = message
        self.alarms[label] = alarms


def search(experiment: Experiment, steps: Mapping[str, int], rows: range, send: Callable[[Any], None]) -> None:
    """Replay one agent after the other; send its label, the kinds of its monitors and their alarms.

    Raises
    ------
    UserError
        The run cannot be replayed (missing data, say).
    """
    for label, reached in steps.items():
        send((label, *watched(experiment, label, reached, rows=rows)))
