"""Measure how long a class waits for the first plot of a lesson that all open at once.

    python -m benchmarks.load.lesson --readers 30 --write

starts the app on an empty home. Cold: all readers open the step with the first plot before its run
exists; the store must then hold one run for each experiment of the lesson. Warm: they open the same
step of the finished run."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from bandits.lessons import lessons
from bandits.lessons.lesson import SeeStep
from bandits.storage.run_store import Store
from benchmarks.measure import Section, keep, machine, stamp

from .sessions import Server, Session, Watch, session

LESSON = "explore-or-exploit"
# component that draws all plots
PLOT = "bandit_live_panel"
# predictions before the first plot
MADE = "off=0.3;best=1"
# seconds, 95th percentile
TARGET = 3.0
# seconds that a cold reader waits
LONGEST = 60.0


async def _read(
    host: str, query: str, watch: Watch, opened: asyncio.Barrier, wait: float
) -> float | None:
    """Open the step and return the seconds until its plot was sent; None if it was not."""
    try:
        async with session(host, watch) as reader:
            await opened.wait()
            began = time.monotonic()
            await reader.enter("learn", query)
            while not _has_plot(reader) and time.monotonic() - began < wait:
                await asyncio.sleep(0.05)
            return time.monotonic() - began if _has_plot(reader) else None
    except Exception as error:  # noqa: BLE001
        watch.failures.append(f"{type(error).__name__}: {error}")
        # the others do not wait for this one: they fail too
        await opened.abort()
        return None


def _has_plot(reader: Session) -> bool:
    """Tell whether a plot of the lesson's own component was sent to this reader."""
    return any(name.endswith(PLOT) for name in reader.seen)


async def measure(
    host: str, query: str, readers: int, wait: float
) -> tuple[list[float | None], Watch]:
    """Let all readers open the step in the same instant."""
    watch, opened = Watch(), asyncio.Barrier(readers)
    found = await asyncio.gather(*(_read(host, query, watch, opened, wait) for _ in range(readers)))
    return list(found), watch


def _stored(home: str, wanted: int) -> set[str]:
    """Wait until so many runs are stored, and return them."""
    store, began = Store(Path(home)), time.monotonic()
    while (
        len(found := {each.id for each in store.runs()}) < wanted
        and time.monotonic() - began < LONGEST
    ):
        time.sleep(0.5)
    return found


def run(readers: int) -> Section:
    """Measure."""
    lesson = lessons()[LESSON]
    step = next(i for i, each in enumerate(lesson.data.steps) if isinstance(each, SeeStep))
    query = urlencode({"lesson": LESSON, "step": step + 1, "predictions": MADE})
    with tempfile.TemporaryDirectory() as home:
        server = Server.start(home)
        try:
            cold, cold_watch = asyncio.run(measure(server.host, query, readers, LONGEST))
            wanted = {each.resolved.hash for each in lesson.runs.values() if each.worked is None}
            stored = _stored(home, len(wanted))
            warm, warm_watch = asyncio.run(measure(server.host, query, readers, LONGEST))
            errors = server.errors()
        finally:
            server.stop()
    failures = [*cold_watch.failures, *warm_watch.failures, *errors]
    section = Section(
        f"Lesson: {readers} readers at once",
        f"{machine()}.\n\n`python -m benchmarks.load.lesson`: {readers} websockets open the step "
        f"with the first plot of the lesson {LESSON} in the same instant, first right after the "
        "start of the server, which has imported nothing and has no run (cold), then again "
        "(warm). Measured from the request until the plot was sent; nothing is drawn. A cold "
        "plot is live: its run goes on. The store must then hold the lesson's runs and no others.",
        ("what", "median, 95th percentile, maximum"),
        code=stamp(run),
    )
    section.rows += [
        ("cold", _spread(cold)),
        ("warm", _spread(warm)),
        ("failures", str(len(failures))),
    ]
    for name, times in (("cold", cold), ("warm", warm)):
        late = _late(times)
        section.targets.append(
            (f"{name}: 95th percentile at most {TARGET:g} s", f"{late:.2f} s", late <= TARGET)
        )
    section.targets += [
        (
            "the store holds one run for each of the lesson's",
            f"{len(stored)} of {len(wanted)}",
            stored == wanted,
        ),
        ("no reader fails", "; ".join(sorted(set(failures))) or "none", not failures),
    ]
    return section


def _late(found: list[float | None]) -> float:
    """Return the 95th percentile; NaN if a reader saw no plot."""
    known = [each for each in found if each is not None]
    return float(np.quantile(known, 0.95)) if len(known) == len(found) else float("nan")


def _spread(found: list[float | None]) -> str:
    known = [each for each in found if each is not None]
    if not known:
        return "no plot"
    missing = f"; {len(found) - len(known)} without a plot" if len(known) < len(found) else ""
    return ", ".join(f"{s:.2f} s" for s in np.quantile(known, [0.5, 0.95, 1.0])) + missing


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load.lesson", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--readers", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parsed = parser.parse_args(arguments)
    section = run(parsed.readers)
    print(section)
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main()
