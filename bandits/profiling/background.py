"""A measurement in a process of its own: nothing that the asking process does gets into the times.

One runs at a time, because two would slow each other down; others wait.
``python -m bandits.profiling [JSON]`` prints the same, a line of JSON per step.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from bandits.base.processes import start
from bandits.runtime.subprocesses import BackgroundTask

from .request import ProfileRequest, Sizes
from .results import Agreement, CostReport, Point, Step

TIME_LIMIT = 300.0  # seconds one measurement may take


class Measurement(BackgroundTask):
    """One measurement, on its way as soon as it is made.

    Attributes
    ----------
    costs : CostReport
        What was found so far.
    share : float
        How much is done.
    doing : str

    Raises
    ------
    UserError
        Too many are waiting.
    """

    max_waiting = 8
    noun = "measurements"
    process_name = "the measuring process"
    time_limit = TIME_LIMIT

    def __init__(self, question: ProfileRequest) -> None:
        self.costs = CostReport(question)
        self.share, self.doing = 0.0, ""
        super().__init__()

    def start_process(self) -> subprocess.Popen[str]:
        asked = self.costs.question.model_dump_json()
        return start("bandits.profiling", asked, output=subprocess.PIPE, BANDITS_DEVICE="cpu")

    def handle_line(self, line: str) -> None:
        step = step_of(json.loads(line))
        self.costs, self.share, self.doing = self.costs.after(step), step.share, step.doing


def data_of(step: Step) -> dict[str, Any]:
    """A step as plain data."""
    found = step.found
    name = {Point: "point", Agreement: "agreement"}.get(type(found), "found")
    return {"share": step.share, "doing": step.doing, "timed": step.timed, name: found and found._asdict()}


def step_of(data: dict[str, Any]) -> Step:
    """And back."""
    found: Point | Agreement | None = None
    if point := data.get("point"):
        K, t, widths = point.pop("sizes")
        found = Point(sizes=Sizes(K, t, tuple(widths)), **point)
    elif agreement := data.get("agreement"):
        exact, widths = (tuple(agreement.pop(name)) for name in ("exact", "widths"))
        found = Agreement(**agreement, exact=exact, widths=widths)
    return Step(data["share"], data["doing"], found, data["timed"])


def machine_memory() -> float:
    """Bytes of memory that this machine, or the container it is in, has; 16 GB where that cannot be known."""
    known = []
    try:
        known.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    except (AttributeError, OSError, ValueError):
        known.append(16e9)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            known.append(float(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(known)
