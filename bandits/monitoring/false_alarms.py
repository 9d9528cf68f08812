"""Delays and false alarms, from the changes that a simulator declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bandits.base.types import IntArray
from bandits.simulators.base import SimulatorParams

from .alarm import Alarm


class Score(NamedTuple):
    """How the alarms of one monitor agree with the changes of a simulator, over all rows.

    Attributes
    ----------
    false_alarms : int
        Alarms before the first change; without a change, all of them.
    quiet_steps : int
        Steps before the first change, over all rows.
    cases : int
        Pairs of a row and a change.
    delays : int64 (n,)
        Steps from a change to the first alarm after it and not after the next change, in the n
        cases with one.
    """

    false_alarms: int
    quiet_steps: int
    cases: int
    delays: IntArray

    @property
    def per_10_000(self) -> float:
        """False alarms per 10,000 steps; NaN without steps before a change."""
        return 1e4 * self.false_alarms / self.quiet_steps if self.quiet_steps else float("nan")

    @property
    def detected(self) -> float:
        """Share of the cases with an alarm; NaN without a change."""
        return len(self.delays) / self.cases if self.cases else float("nan")

    @property
    def median_delay(self) -> float:
        """Median of the delays, in steps; NaN without any."""
        return float(np.median(self.delays)) if len(self.delays) else float("nan")


def change_steps(params: SimulatorParams, steps: int) -> list[int]:
    """Return the steps at which changes begin within a run, ascending and distinct.

    Seasons begin at 0.
    """
    return sorted(
        {change.begins for change in params.all_changes.values() if change.begins < steps}
    )


def score(found: Sequence[Alarm], params: SimulatorParams, *, rows: int, steps: int) -> Score:
    """Count false alarms and delays.

    After the first change, further alarms count neither for nor against a monitor: the agent is
    learning again.

    Parameters
    ----------
    found : sequence of Alarm
        Of one monitor and one agent.
    params : SimulatorParams
        Their changes are the truth.
    rows, steps : int
        Replications and steps that were monitored.
    """
    changes = change_steps(params, steps)
    ends = [*changes[1:], steps][: len(changes)]
    by_row: dict[int, list[int]] = {}
    for alarm in found:
        by_row.setdefault(alarm.row, []).append(alarm.step)
    quiet = changes[0] if changes else steps
    false_alarms = sum(step <= quiet for reached in by_row.values() for step in reached)
    delays = [
        min(late)
        for reached in by_row.values()
        for begin, end in zip(changes, ends, strict=True)
        if (late := [step - begin for step in reached if begin < step <= end])
    ]
    return Score(false_alarms, quiet * rows, rows * len(changes), np.array(delays, np.int64))
