"""A measurement in a process of its own: nothing that the asking process does gets into the times.

One goes on at a time, because two would slow each other down; others wait. ``python -m bandits.cost [JSON]`` prints the
same, a line of JSON per step.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Literal

from ..race import worker_environment
from ..refused import Refused
from .answer import Agreement, Costs, Point, Step
from .question import Question, Sizes

TIME_LIMIT = 300.0  # seconds one measurement may take
WAITING = 8  # measurements that may wait
_turn, _active = threading.Lock(), threading.Semaphore(WAITING + 1)

Status = Literal["waiting", "running", "finished", "failed"]


class Measurement:
    """One measurement, on its way as soon as it is made.

    Attributes
    ----------
    costs : Costs
        What was found so far.
    status : {"waiting", "running", "finished", "failed"}
    share : float
        How much is done.
    doing, error : str

    Raises
    ------
    Refused
        Too many are waiting.
    """

    def __init__(self, question: Question) -> None:
        if not _active.acquire(blocking=False):
            raise Refused(f"{WAITING} measurements are waiting already; try again in a minute")
        self.costs = Costs(question)
        self.status: Status = "waiting"
        self.share, self.doing, self.error = 0.0, "", ""
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def active(self) -> bool:
        """Waiting or running."""
        return self.status in ("waiting", "running")

    def _run(self) -> None:
        try:
            with _turn:
                self.status = "running"
                self._follow()
        except OSError as error:
            self.error = f"the measuring process could not be started ({error.strerror or error})"
        finally:
            self.status = "failed" if self.error else "finished"
            _active.release()

    def _follow(self) -> None:
        command = [sys.executable, "-m", "bandits.cost", self.costs.question.model_dump_json()]
        environment = {**worker_environment(), "BANDITS_DEVICE": "cpu"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8")
        atexit.register(process.kill)
        timer = threading.Timer(TIME_LIMIT, process.kill)
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):  # else the process died within the line
                step = step_of(json.loads(line))
                self.costs, self.share, self.doing = self.costs.after(step), step.share, step.doing
        ended = process.wait()
        late = not timer.is_alive()
        timer.cancel()
        atexit.unregister(process.kill)
        if late:
            self.error = f"stopped after {TIME_LIMIT / 60:.0f} minutes, the limit for one measurement"
        elif ended:
            self.error = f"the measuring process ended with status {ended}; the server's log tells why"


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
