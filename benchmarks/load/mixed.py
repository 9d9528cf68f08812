"""Measure the server under many simultaneous sessions, ten of them with runs and two with sweeps.

    python -m benchmarks.load.mixed --sessions 50 --minutes 5 --write
    python -m benchmarks.load.mixed --sessions 30 --minutes 60 --pause 60 --attackers 5 --write

starts the app in an empty home; one visitor opens every page. Then ten sessions start runs: all at
once, then one of them alone, then all at once again, each run with another seed. Two sessions run
sweeps, one after the other. All others open page after page. All actions go through the pages, as
those of a browser (`sessions`). From half an hour on it is a soak: memory and file descriptors must
not grow in its second half. Attackers, each with an address of its own, make one attack after the
other (`attacks`)."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bandits import Experiment, read, sweeps
from bandits.base.formatting import count_of
from bandits.experiments import url
from bandits.sweeps import Sweep
from bandits.sweeps import url as sweep_link
from benchmarks.measure import Section, keep, machine, stamp

from .attacks import ATTACKS
from .sessions import Answer, Server, Session, Watch, session

RACERS, SWEEPERS = 10, 2
# seconds between readings of the memory
SAMPLE = 5.0
# seconds on a page before the next one is opened
READING = (5.0, 20.0)
PAGES = ("home", "arena", "sweep", "labs", "data", "runs", "learn")
BEGUN, ENDED = re.compile(r"Step [1-9]|Finished"), re.compile(r"Finished")
# seconds, targets
SOON, STILL, PAGE = 20.0, 30.0, 3.0
# ... of a page while others attack
ATTACKED = 5.0
# minutes from which a measurement is a soak, with stricter targets for what may not grow
SOAK = 30.0
# seconds after which the server has forgotten a page that was left
FORGOTTEN = 150.0


class Wait(NamedTuple):
    """Seconds from pressing Run, as seen by the visitor.

    Attributes
    ----------
    news, end : float
        Until the first steps, and until it is finished.
    """

    news: float
    end: float


@dataclass
class Observations:
    """What all sessions observed.

    Attributes
    ----------
    together : list of lists of Wait
        Runs that were submitted at the same moment.
    alone : list of Wait
        Runs that were submitted while only sweeps were running.
    swept : list of lists of (float, float)
        For each session with sweeps: times, and the number of sweeps completed by then.
    resident, others : list of float
        MiB of the server, and of all processes it has started, every few seconds.
    descriptors : list of int
        Open file descriptors of the server, at the same times.
    left : int
        The same some time after the last visitor has left, where some attack.
    attacks : list of str
        What came of each attack.
    """

    watch: Watch = field(default_factory=Watch)
    together: list[list[Wait]] = field(default_factory=list)
    alone: list[Wait] = field(default_factory=list)
    swept: list[list[tuple[float, float]]] = field(
        default_factory=lambda: [[] for _ in range(SWEEPERS)]
    )
    resident: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    left: int = 0
    attacks: list[str] = field(default_factory=list)
    processor: float = 0.0


def ordinary(seed: int) -> Experiment:
    """Return an experiment of ordinary size."""
    agents = [{"kind": kind} for kind in ("linucb", "lints", "epsilon_greedy", "random")]
    return read({"agents": agents, "steps": 20_000, "replications": 16, "seed": seed})


def landscape(seed: int) -> Sweep:
    """Return the default sweep of the page Sweep."""
    axes = [
        {"path": "agents.0.alpha", "low": 0.1, "high": 10.0, "number": 9, "scale": "log"},
        {"path": "agents.0.ridge", "low": 0.01, "high": 10.0, "number": 7, "scale": "log"},
    ]
    one = {"agents": [{"kind": "linucb"}], "steps": 20_000, "replications": 16, "seed": seed}
    return sweeps.read({"experiment": one, "axes": axes})


# -- what sessions do
# ------------------------------------------------------------------------------------------------


async def guarded(watch: Watch, doing: Awaitable[None]) -> None:
    """Await an action of a session; record its failure."""
    try:
        await doing
    except Exception as error:  # noqa: BLE001
        watch.failures.append(f"{type(error).__name__}: {error}")


async def walk(host: str, watch: Watch, generator: random.Random) -> None:
    """Open one page after another."""
    async with session(host, watch) as visitor:
        await visitor.enter(generator.choice(PAGES))
        while True:
            await asyncio.sleep(generator.uniform(*READING))
            await visitor.go(generator.choice([page for page in PAGES if page != visitor.page]))


async def sweep(
    host: str, watch: Watch, seeds: Iterator[int], reached: list[tuple[float, float]], pause: float
) -> None:
    """Run one sweep after the other."""
    async with session(host, watch) as visitor:
        await visitor.enter("sweep", sweep_link.query(landscape(next(seeds))))
        await visitor.press("Run")
        for through in itertools.count():
            while not ENDED.match(text := await visitor.news()):
                if share := re.match(r"Sweeping: (\d+) %", text):
                    reached.append((time.monotonic(), through + int(share[1]) / 100))
            await asyncio.sleep(pause)
            await visitor.press("Run", Seed=next(seeds))


async def wait(visitor: Session, seed: int, waits: list[Wait]) -> None:
    """Run an experiment and watch it until it ends."""
    began = time.monotonic()
    if visitor.page:
        await visitor.press("Run", Seed=seed)
    else:
        await visitor.enter("arena", url.query(ordinary(seed)))
    while not BEGUN.match(visitor.progress):
        await visitor.news()
    news = time.monotonic() - began
    while not ENDED.match(visitor.progress):
        await visitor.news()
    waits.append(Wait(news, time.monotonic() - began))


async def compete(
    host: str, seen: Observations, seeds: Iterator[int], racers: int, pause: float
) -> None:
    """Run all sessions at once, then one alone, and repeat."""
    async with AsyncExitStack() as stack:
        visitors = [
            await stack.enter_async_context(session(host, seen.watch)) for _ in range(racers)
        ]
        for turn in itertools.count():
            waits: list[Wait] = []
            seen.together.append(waits)
            await asyncio.gather(
                *(guarded(seen.watch, wait(one, next(seeds), waits)) for one in visitors)
            )
            await asyncio.sleep(2 + pause)
            await wait(visitors[turn % racers], next(seeds), seen.alone)
            await asyncio.sleep(2 + pause)


async def attack(server: Server, seen: Observations, generator: random.Random, place: int) -> None:
    """Make one attack after the other, from an address of its own."""
    while True:
        one = generator.choice(ATTACKS)
        try:
            found = await asyncio.to_thread(one, server, f"127.0.0.{place}")
        # what the server does not let in
        except Exception as error:  # noqa: BLE001
            found = type(error).__name__
        seen.attacks.append(f"{one.__name__}: {found}")
        await asyncio.sleep(generator.uniform(*READING))


async def warm(host: str) -> None:
    """Open every page once, so that the server has loaded its modules."""
    async with session(host, Watch()) as visitor:
        await visitor.enter()
        for page in PAGES[1:]:
            await visitor.go(page)


# -- measuring
# -------------------------------------------------------------------------------------------------------


async def measure(
    server: Server, sessions: int, seconds: float, pause: float, attackers: int
) -> Observations:
    """Start the sessions one by one and observe them."""
    seen, seeds = Observations(), itertools.count(1)
    await warm(server.host)
    doing: list[Awaitable[None]] = [
        sweep(server.host, seen.watch, seeds, reached, pause) for reached in seen.swept
    ]
    doing.append(compete(server.host, seen, seeds, RACERS, pause))
    walkers = range(sessions - RACERS - SWEEPERS)
    doing += [walk(server.host, seen.watch, random.Random(number)) for number in walkers]
    doing += [attack(server, seen, random.Random(1000 + i), 100 + i) for i in range(attackers)]
    going = []
    for one in doing:
        going.append(asyncio.create_task(guarded(seen.watch, one)))
        # visitors do not open a page in the same instant
        await asyncio.sleep(0.2)
    seen.watch.counting, began, seen.processor = True, time.monotonic(), -server.processor()
    while (left := began + seconds - time.monotonic()) > 0:
        seen.resident.append(server.resident())
        seen.others.append(sum(server.others()))
        seen.descriptors.append(server.descriptors())
        await asyncio.sleep(min(SAMPLE, left))
    seen.watch.counting = False
    seen.processor += server.processor()
    for task in going:
        task.cancel()
    await asyncio.gather(*going, return_exceptions=True)
    if attackers:
        await asyncio.sleep(FORGOTTEN)
        seen.left = server.descriptors()
    return seen


def run(sessions: int, minutes: float, pause: float, attackers: int) -> Section:
    """Measure."""
    seconds = 60 * minutes
    with tempfile.TemporaryDirectory() as home:
        server = Server.start(home)
        try:
            seen = asyncio.run(measure(server, sessions, seconds, pause, attackers))
            errors = server.errors()
        finally:
            server.stop()
    e, s = ordinary(1), landscape(1)
    section = Section(
        f"{'Soak' if minutes >= SOAK else 'Load'}: {sessions} sessions for {minutes:g} minutes",
        f"{machine()}.\n\n`python -m benchmarks.load.mixed`: {sessions} websockets use "
        f"Streamlit's protocol with one server. {RACERS} of them start runs ({len(e.agents)} "
        f"agents, {e.steps:,} steps, {e.replications} replications, different seeds): all at "
        f"once, then one alone, and again. {SWEEPERS} run sweeps ({s.size} points of "
        f"{s.experiment.replications} replications, {s.experiment.steps:,} steps), one after the "
        "other. All others open a page, stay for 5 to 20 seconds and open another. Workers and "
        "measurements of pages compute on the same machine; every page has been opened once "
        "before. A delay is the time from a request to the end of its answer; times of runs are "
        "as seen by the visitor, with one update per second. Sessions with runs and sweeps pause "
        f"for {pause:g} s between them."
        + (
            f" Beside them {attackers} visitors attack, one attack after the other."
            if attackers
            else ""
        ),
        ("what", "measured"),
        code=stamp(run),
    )
    section.rows = rows(seen, seconds, errors)
    section.targets = soaked(seen, errors, attackers) if minutes >= SOAK else targets(seen, errors)
    return section


def rows(seen: Observations, seconds: float, errors: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the rows of the table."""
    pages = [answer for answer in seen.watch.answers if not answer.fragment]
    ticks = [answer for answer in seen.watch.answers if answer.fragment]
    waits = [one for together in seen.together for one in together]
    return [
        ("sessions that failed", counted(seen.watch.failures)),
        ("tracebacks in the server's log", counted(errors)),
        (
            "answers per second: pages, updates",
            f"{len(pages) / seconds:.1f}, {len(ticks) / seconds:.1f}",
        ),
        ("delay of a page: median, 95th percentile, maximum", late(pages)),
        *(
            (f"– {page}", late([answer for answer in pages if answer.page == page]))
            for page in PAGES
        ),
        ("delay of an update: median, 95th percentile, maximum", late(ticks)),
        ("updates requested per second", f"{seen.watch.ticks / seconds:.1f}"),
        ("script runs interrupted by a newer request", f"{seen.watch.overtaken:,}"),
        ("server processor load", f"{seen.processor / seconds:.2f} cores"),
        ("server memory: start, middle, end, maximum", mib(seen.resident)),
        ("memory of all its workers: start, middle, end, maximum", mib(seen.others)),
        (
            "open file descriptors of the server: start, middle, end, maximum",
            ", ".join(f"{count}" for count in of_interest(seen.descriptors)),
        ),
        (
            f"{len(waits)} runs, {RACERS} at once, time to the first steps: median, maximum",
            spread(waits, lambda w: w.news),
        ),
        ("– time to the end", spread(waits, lambda w: w.end)),
        (
            f"{len(seen.alone)} runs alone beside {SWEEPERS} sweeps, time to the first steps: "
            "median, maximum",
            spread(seen.alone, lambda w: w.news),
        ),
        ("– time to the end", spread(seen.alone, lambda w: w.end)),
        (
            "sweeps completed by each session",
            ", ".join(f"{through(reached):.2f}" for reached in seen.swept),
        ),
        ("longest time without progress of a sweep", f"{max(map(stood, seen.swept)):.1f} s"),
        *((f"– attacks: {found}", f"{n}") for found, n in Counter(seen.attacks).most_common()),
    ]


def targets(seen: Observations, errors: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Return the targets."""
    wrong = len(seen.watch.failures) + len(errors)
    grown = seen.resident[-1] / seen.resident[len(seen.resident) // 2]
    whole = [together for together in seen.together if len(together) == RACERS]
    unfair = max(
        (max(ends) / float(np.median(ends)) for ends in ([w.end for w in t] for t in whole)),
        default=np.nan,
    )
    pages = [answer.seconds for answer in seen.watch.answers if not answer.fragment]
    slow = float(np.quantile(pages, 0.95)) if pages else np.nan
    soon = max((w.news for w in seen.alone), default=np.nan)
    still = max(map(stood, seen.swept))
    shares = sorted(map(through, seen.swept))
    return [
        ("no session and no script of the server fails", f"{wrong}", wrong == 0),
        (
            "server memory at the end at most 1.25 times that in the middle",
            f"{grown:.2f} times",
            grown <= 1.25,
        ),
        (f"95 % of the pages are answered within {PAGE:g} s", f"{slow:.1f} s", slow <= PAGE),
        (
            f"{RACERS} equal runs at once share one queue: the last ends within 2.5 times the "
            "median",
            f"{unfair:.2f}",
            unfair <= 2.5,
        ),
        (
            f"a run alone beside {SWEEPERS} sweeps has its first steps within {SOON:g} s",
            f"{soon:.1f} s",
            soon <= SOON,
        ),
        (
            f"no sweep is without progress for more than {STILL:g} s",
            f"{still:.1f} s",
            still <= STILL,
        ),
        (
            "the slower session completes at least half as many sweeps",
            f"{shares[0]:.2f} of {shares[1]:.2f}",
            shares[0] >= shares[1] / 2 > 0,
        ),
    ]


def soaked(
    seen: Observations, errors: Sequence[str], attackers: int
) -> list[tuple[str, str, bool]]:
    """Return the targets of a soak: nothing fails, and nothing grows in the second half."""
    wrong = len(seen.watch.failures) + len(errors)
    memory, files = settled(seen.resident), settled(seen.descriptors)
    slowest = max((a.seconds for a in seen.watch.answers if not a.fragment), default=np.inf)
    attacked = f"while others attack, a page is answered within {ATTACKED:g} s"
    found = f"{slowest:.1f} s, {count_of(len(seen.attacks), 'attacks')}"
    return [
        *([(attacked, found, slowest <= ATTACKED and bool(seen.attacks))] if attackers else []),
        ("no session and no script of the server fails", f"{wrong}", wrong == 0),
        (
            "server memory at the end at most 1.1 times that in the middle",
            f"{memory:.2f} times",
            memory <= 1.1,
        ),
        (
            (
                # what attackers hold at the end is up to them
                f"{FORGOTTEN:g} s after the last visitor left, no more open file descriptors than "
                "at the start",
                f"{seen.left:,}, {seen.descriptors[0]:,}",
                seen.left <= seen.descriptors[0],
            )
            if attackers
            else (
                "open file descriptors at the end at most 1.1 times those in the middle",
                f"{files:.2f} times",
                files <= 1.1,
            )
        ),
    ]


def counted(messages: Sequence[str]) -> str:
    """Count the messages, and list the distinct ones."""
    return f"{len(messages)}" + "".join(f" ({one})" for one in sorted(set(messages)))


def late(answers: Sequence[Answer]) -> str:
    """Format median, 95th percentile and maximum of the delays."""
    found = (
        np.quantile([a.seconds for a in answers], [0.5, 0.95, 1.0])
        if answers
        else np.full(3, np.nan)
    )
    return ", ".join(f"{1000 * s:,.0f} ms" for s in found)


def mib(found: Sequence[float]) -> str:
    """Format the value at the start, in the middle, at the end, and the maximum."""
    return ", ".join(f"{m:,.0f} MiB" for m in of_interest(found))


def of_interest(found: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the value at the start, in the middle, at the end, and the maximum."""
    return found[0], found[len(found) // 2], found[-1], max(found)


def settled(found: Sequence[float]) -> float:
    """Divide the mean of the last twentieth of the values by that of the twentieth in the
    middle.
    """
    part, middle = max(len(found) // 20, 1), len(found) // 2
    return float(np.mean(found[-part:]) / np.mean(found[middle : middle + part]))


def spread(waits: Sequence[Wait], of: Callable[[Wait], float]) -> str:
    """Format median and maximum."""
    found = [of(one) for one in waits] or [np.nan]
    return f"{np.median(found):.1f} s, {max(found):.1f} s"


def through(reached: Sequence[tuple[float, float]]) -> float:
    """Count the sweeps that a session completed."""
    return reached[-1][1] if reached else 0.0


def stood(reached: Sequence[tuple[float, float]]) -> float:
    """Compute the longest time without progress of a sweep, in seconds."""
    moved = [
        at for (at, share), (_, before) in itertools.pairwise(reversed(reached)) if share > before
    ]
    return max((later - sooner for later, sooner in itertools.pairwise(moved)), default=np.nan)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load.mixed", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds between two runs or sweeps of a session"
    )
    parser.add_argument(
        "--attackers", type=int, default=0, help="visitors that attack, beside the sessions"
    )
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parsed = parser.parse_args(arguments)
    if parsed.sessions < RACERS + SWEEPERS:
        parser.error(f"--sessions is {parsed.sessions}; it must be at least {RACERS + SWEEPERS}")
    section = run(parsed.sessions, parsed.minutes, parsed.pause, parsed.attackers)
    print(section)
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main()
