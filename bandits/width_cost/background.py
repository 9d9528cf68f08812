"""Run a measurement in a child process, whose times this process does not affect.

One measurement runs at a time, because two would slow each other down; others wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from bandits.base.processes import ChildTask, Line

from .measure import measure
from .request import CostRequest
from .results import CostReport, Progress

LINE = Line("measurements", waiting=8, seconds=300.0, variables={"BANDITS_DEVICE": "cpu"})


class Measurement(ChildTask):
    """One measurement, started when it is created.

    Attributes
    ----------
    report : CostReport
        Results so far.
    fraction : float
        Completed fraction.
    activity : str
        What is measured at present.
    """

    def __init__(self, request: CostRequest) -> None:
        self.report = CostReport(request)
        self.fraction, self.activity = 0.0, ""
        super().__init__(LINE, measured, request)

    def receive(self, message: Progress) -> None:
        self.report = self.report.updated(message)
        self.fraction, self.activity = message.fraction, message.activity


def measured(request: CostRequest, send: Callable[[Progress], None]) -> None:
    """Measure and send every step."""
    for progress in measure(request):
        send(progress)


def machine_memory() -> float:
    """Return the bytes of memory of this machine or container; 16 GB if unknown."""
    limits = []
    try:
        limits.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    except (AttributeError, OSError, ValueError):
        limits.append(16e9)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(float(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)
