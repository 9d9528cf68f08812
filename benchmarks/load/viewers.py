"""Measure what many viewers of one live run cost the server, each with one update per second.

    python -m benchmarks.load.viewers --viewers 30 --minutes 30 --write

starts the app in an empty home with a run that lasts longer than the measurement. A viewer
(`sessions.Session`) opens the page once and then requests the fragment that draws the run."""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Sequence

import numpy as np

from bandits import Experiment, read
from bandits.experiments import url
from benchmarks.measure import Section, keep, machine, stamp

from .sessions import Server, Watch, session

# seconds between readings of the server's memory
SAMPLE = 10.0
# seconds of updates before the measurement begins
SETTLE = 5.0


async def _view(host: str, run: str, watch: Watch, ready: asyncio.Semaphore) -> None:
    """Watch the run until cancelled."""
    try:
        async with session(host, watch) as viewer:
            await viewer.enter("arena", run)
            ready.release()
            assert viewer.listening is not None
            await viewer.listening
    except Exception as error:  # noqa: BLE001
        watch.failures.append(f"{type(error).__name__}: {error}")
        ready.release()


async def measure(
    server: Server, run: str, viewers: int, seconds: float
) -> tuple[Watch, float, list[float]]:
    """Measure the viewers' delays, the server's processor seconds, and its memory in MiB every ten
    seconds.
    """
    watch, ready, generator = Watch(), asyncio.Semaphore(0), random.Random(1)
    viewing = []
    for _ in range(viewers):
        viewing.append(asyncio.create_task(_view(server.host, run, watch, ready)))
        # visitors do not open a page in the same instant
        await asyncio.sleep(0.1 + 0.2 * generator.random())
    for _ in range(viewers):
        await ready.acquire()
    await asyncio.sleep(SETTLE)
    watch.counting, began, processor, resident = (
        True,
        time.monotonic(),
        server.processor(),
        [server.resident()],
    )
    while (left := began + seconds - time.monotonic()) > 0:
        await asyncio.sleep(min(SAMPLE, left))
        resident.append(server.resident())
    watch.counting, spent = False, server.processor() - processor
    for task in viewing:
        task.cancel()
    await asyncio.gather(*viewing, return_exceptions=True)
    return watch, spent, resident


def endless_experiment() -> Experiment:
    """Return four agents with more steps than the measurement lasts."""
    agents = [{"kind": kind} for kind in ("linucb", "lints", "epsilon_greedy", "beta_ts")]
    return read({"agents": agents, "steps": 10_000_000, "replications": 64})


def run(viewers: int, minutes: float) -> Section:
    """Measure."""
    experiment, seconds = endless_experiment(), 60 * minutes
    with tempfile.TemporaryDirectory() as home:
        server = Server.start(home, experiment)
        try:
            watch, spent, resident = asyncio.run(
                measure(server, url.query(experiment), viewers, seconds)
            )
        finally:
            server.stop()
    section = Section(
        f"Viewers: {viewers} for {minutes:g} minutes",
        f"{machine()}.\n\n`python -m benchmarks.load.viewers`: {viewers} websockets watch one "
        f"live run of {len(experiment.agents)} agents with {experiment.replications} replications "
        "in the Arena, with one update per second each, while its worker computes on the same "
        "machine. The delay is the time from a request to the end of its answer; requests that "
        "arrive while another waits are answered together. Bytes are before compression; "
        "processor time is that of the server alone. Nothing is drawn.",
        ("what", "measured"),
        code=stamp(run),
    )
    ticks = [answer for answer in watch.answers if answer.fragment]
    answered = len(ticks)
    late = (
        np.quantile([tick.seconds for tick in ticks], [0.5, 0.95, 1.0])
        if answered
        else np.full(3, np.nan)
    )
    middle = resident[len(resident) // 2]
    section.rows += [
        ("updates requested per second", f"{watch.ticks / seconds:.1f}"),
        (
            "updates answered per second",
            f"{answered / seconds:.1f} ({answered / max(watch.ticks, 1):.1%})",
        ),
        ("answers replaced by a newer one before they were sent", f"{watch.overtaken:,}"),
        (
            "delay of an answer: median, 95th percentile, maximum",
            ", ".join(f"{1000 * s:,.0f} ms" for s in late),
        ),
        (
            "bytes per update, median",
            f"{np.median([tick.size for tick in ticks]) if answered else np.nan:,.0f}",
        ),
        ("server processor time per update", f"{1000 * spent / max(answered, 1):.1f} ms"),
        ("server processor load", f"{spent / seconds:.2f} cores"),
        (
            "server memory: start, middle, end, maximum",
            ", ".join(f"{m:,.0f} MiB" for m in (resident[0], middle, resident[-1], max(resident))),
        ),
        (
            "viewers that were refused or disconnected",
            f"{len(watch.failures)}"
            + "".join(f" ({reason})" for reason in sorted(set(watch.failures))),
        ),
    ]
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load.viewers", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--viewers", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parsed = parser.parse_args(arguments)
    section = run(parsed.viewers, parsed.minutes)
    print(section)
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main()
