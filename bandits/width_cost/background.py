"""Run a measurement in a subprocess, whose times this process does not affect.

One measurement runs at a time, because two would slow each other down; others wait.
``python -m bandits.width_cost [JSON]`` prints the same results, one line of JSON per step.
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
from .results import Agreement, CostReport, Progress, Timing

TIME_LIMIT = 300.0  # seconds of one measurement, at most


class Measurement(BackgroundTask):
    """One measurement, started when it is created.

    Attributes
    ----------
    report : CostReport
        Results so far.
    fraction : float
        Completed fraction.
    activity : str
        What is measured at present.

    Raises
    ------
    UserError
        Too many measurements are waiting.
    """

    max_waiting = 8
    noun = "measurements"
    process_name = "the measuring process"
    time_limit = TIME_LIMIT

    def __init__(self, request: ProfileRequest) -> None:
        self.report = CostReport(request)
        self.fraction, self.activity = 0.0, ""
        super().__init__()

    def start_process(self) -> subprocess.Popen[str]:
        request = self.report.request.model_dump_json()
        return start("bandits.width_cost", request, output=subprocess.PIPE, BANDITS_DEVICE="cpu")

    def handle_line(self, line: str) -> None:
        progress = from_json(json.loads(line))
        self.report = self.report.updated(progress)
        self.fraction, self.activity = progress.fraction, progress.activity


def to_json(progress: Progress) -> dict[str, Any]:
    """Convert a step to plain data; the keys are those of earlier versions."""
    data: dict[str, Any] = {"share": progress.fraction, "doing": progress.activity, "timed": progress.timed}
    result = progress.result
    if isinstance(result, Timing):
        K, t, widths, *samples = result.sizes
        named = dict(zip(("members", "passes"), samples, strict=True))
        return data | {"point": {**result._asdict(), "sizes": (K, t, widths), **named}}
    if isinstance(result, Agreement):
        return data | {"agreement": {"world" if k == "simulator" else k: v for k, v in result._asdict().items()}}
    return data | {"found": None}


def from_json(data: dict[str, Any]) -> Progress:
    """Convert plain data back to a step."""
    result: Timing | Agreement | None = None
    if timing := data.get("point"):
        K, t, widths = timing.pop("sizes")
        named = {name: timing.pop(name) for name in ("members", "passes") if name in timing}  # absent earlier
        result = Timing(sizes=Sizes(K, t, tuple(widths), **named), **timing)
    elif agreement := data.get("agreement"):
        exact, widths = (tuple(agreement.pop(name)) for name in ("exact", "widths"))
        result = Agreement(simulator=agreement.pop("world"), **agreement, exact=exact, widths=widths)
    return Progress(data["share"], data["doing"], result, data["timed"])


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
