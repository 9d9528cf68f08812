"""How much processor time does a new checkout take until the first curve?

    python -m benchmarks.speed.first_curve --write

starts the app with an empty home, as a visitor opens Home: cold, with no compiled kernel stored, and
then warm, on another empty home. The time is that of the server and of all processes it started,
until the run on Home has reached its first steps."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from unittest import mock

from benchmarks.load.sessions import Server, Watch, session
from benchmarks.measure import Section, machine, stamp

from .launch import main

# processor seconds until the first curve
MOST = 20.0
REPEATS = 3
# seconds until a missing curve is a failure
PATIENCE = 400.0


def processor(root: int) -> float:
    """Return the processor seconds of a process and of all that it has started (Linux)."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # it has ended meanwhile
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            # its own, and those of its children that have ended
            ticks = sum(map(int, fields[11:15]))
            seconds[int(folder.name)] = ticks / os.sysconf("SC_CLK_TCK")
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds.get(pid, 0.0) for pid in family)


async def until_first_curve(server: Server) -> list[str]:
    """Open Home and wait until its run states a step; return the states that were shown."""
    shown: list[str] = []
    async with session(server.host, Watch()) as visitor:
        await visitor.enter()
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            if visitor.progress and visitor.progress not in shown[-1:]:
                shown.append(visitor.progress)
            # how far the run has come, or how many agents have finished
            if re.match(r"(Step [1-9]|Finished|[1-9]\d* of \d+ agents)", visitor.progress):
                return shown
            await asyncio.sleep(0.05)
    raise AssertionError(f"no curve: {shown[-3:]}")


def start(kernels: str) -> tuple[float, float, list[str]]:
    """Start the app once; return processor seconds, seconds, and what was shown meanwhile."""
    with (
        tempfile.TemporaryDirectory() as home,
        mock.patch.dict(os.environ, NUMBA_CACHE_DIR=kernels),
    ):
        began = time.monotonic()
        server = Server.start(home)
        try:
            shown = asyncio.run(until_first_curve(server))
            return processor(server.process.pid), time.monotonic() - began, shown
        finally:
            server.stop()


def run() -> Section:
    """Measure cold and warm starts in turn."""
    section = Section(
        "First curve: processor time from the start of the app",
        f"`streamlit run app.py` on an empty home, Home opened at once, {REPEATS} times: cold, "
        "without compiled kernels, and warm, with those of the first. Processor seconds of the "
        f"server with all its processes until the first steps are shown. {machine()}.",
        ("start", "processor time, s", "time, s", "compilation as stated"),
        code=stamp(run),
    )
    times: dict[str, list[float]] = {"cold": [], "warm": []}
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as kernels:
            for name in times:
                spent, seconds, shown = start(kernels)
                stated = [text for text in shown if text.startswith("Compiling")]
                section.rows.append(
                    (name, f"{spent:.1f}", f"{seconds:.1f}", stated[-1] if stated else "none")
                )
                times[name].append(spent)
    cold, warm = (median(times[name]) for name in ("cold", "warm"))
    section.targets.append((f"cold: at most {MOST:g} s", f"{cold:.1f} s", cold <= MOST))
    section.targets.append(("warm: at most 10 s", f"{warm:.1f} s", warm <= 10))
    return section


if __name__ == "__main__":
    main(__doc__, run)
