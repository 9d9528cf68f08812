"""Measure how long a reader waits for the first plot of each lesson, with all runs in the store.

    python -m benchmarks.load.first_plot --write

runs ``lesson check`` on an empty home and starts the app on it; then one reader at a time opens the
step with a lesson's first plot, whose earlier predictions have been made."""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from bandits.lessons import Lesson, lessons
from bandits.lessons.answers import Prediction, to_link
from bandits.lessons.lesson import ChoiceAnswer, NumberAnswer, PredictStep, RunStep, SeeStep
from benchmarks.measure import Section, keep, machine, stamp

from .lesson import LONGEST, measure
from .sessions import Server

# seconds until the first plot of any lesson
TARGET = 2.0


def first_plot(lesson: Lesson) -> tuple[int, str]:
    """Return the place of the first step with a plot, from 1, and the address of that step."""
    made: dict[str, Prediction] = {}
    for place, step in enumerate(lesson.data.steps, start=1):
        if isinstance(step, PredictStep):
            made[step.id] = _any(step)
        drawn = (
            isinstance(step, RunStep)
            and step.worked is not None
            and step.example.figures(step.example.Params())
        )
        if drawn or isinstance(step, SeeStep):
            return place, urlencode(
                {"lesson": lesson.name, "step": place, "predictions": to_link(made)}
            )
    raise ValueError(f"{lesson.name} has no plot")


def _any(step: PredictStep) -> Prediction:
    if isinstance(step.answer, NumberAnswer):
        return step.answer.low
    return 0 if isinstance(step.answer, ChoiceAnswer) else tuple(range(len(step.answer.options)))


def _processor_seconds(server: Server) -> float:
    """Return the processor time of the app so far, in seconds (Linux)."""
    fields = (
        Path(f"/proc/{server.process.pid}/stat")
        .read_text(encoding="ascii")
        .rpartition(")")[2]
        .split()
    )
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(home: str) -> Section:
    """Measure each lesson once, after the app has shown one.

    Runs that the folder lacks are computed before.
    """
    section = Section(
        "Lessons: the first plot of each",
        f"{machine()}.\n\n`python -m benchmarks.load.first_plot`: all runs are in the store, and "
        "the app has shown one lesson (not counted). One reader at a time opens the step with "
        "the first plot of a lesson; measured from the request until the plot was sent, beside "
        "the processor time of the app, which other work hardly changes.",
        ("lesson", "step", "seconds", "processor time, s"),
        code=stamp(run),
    )
    environment = {**os.environ, "BANDITS_HOME": home}
    subprocess.run(
        [sys.executable, "-m", "bandits", "lesson", "check"], env=environment, check=True
    )
    server, times = Server.start(home), {}
    try:
        queries = {name: first_plot(lesson) for name, lesson in lessons().items()}
        asyncio.run(measure(server.host, next(iter(queries.values()))[1], 1, LONGEST))
        for name, (place, query) in queries.items():
            before = _processor_seconds(server)
            ((seconds,), watch) = asyncio.run(measure(server.host, query, 1, LONGEST))
            assert not watch.failures, watch.failures
            times[name] = LONGEST if seconds is None else seconds
            shown = "none" if seconds is None else f"{seconds:.2f}"
            section.rows.append(
                (name, str(place), shown, f"{_processor_seconds(server) - before:.2f}")
            )
    finally:
        server.stop()
    slowest = max(times.values())
    section.targets.append(
        (f"every lesson: at most {TARGET:g} s", f"{slowest:.2f} s", slowest <= TARGET)
    )
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load.first_plot", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument(
        "--home",
        metavar="FOLDER",
        help="folder with the runs; by default a new one, filled in minutes",
    )
    parsed = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as empty:
        section = run(parsed.home or empty)
    print(section)
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main()
