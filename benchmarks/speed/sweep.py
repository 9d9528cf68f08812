"""A sweep against a loop over its runs, on two workers against one, and on Dask against the pool.

python -m benchmarks.speed.sweep --write

63 points of LinUCB, 16 runs each. A cluster is started on this machine, as README says. Needs what the tests need
(`make setup-dev`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from bandits import run, sweeps
from bandits.base.files import Arrays
from bandits.runtime.pool import Pool
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps.analysis.run_metrics import METRICS
from bandits.sweeps.blocks import Block, compute
from bandits.sweeps.execution.dask_client import DaskExecutor
from bandits.sweeps.execution.executors import Executor, PoolExecutor
from benchmarks.measure import Ratio, Section, interleave, keep, machine, ratio, stopwatch

SAMPLE = 40  # runs of the loop that are timed; the rest are as long
HEADER = ("way", "seconds on the clock", "seconds of processor time, all processes")


class Timed(NamedTuple):
    """A sweep from its first block to its last."""

    wall: float
    processor: float
    landscape: Landscape


def the_sweep(steps: int) -> Sweep:
    """9 values of alpha, 7 of the ridge, 16 runs."""
    axes = [
        {"path": "agents.0.alpha", "low": 0.03, "high": 10, "number": 9, "scale": "log"},
        {"path": "agents.0.ridge", "low": 0.01, "high": 10, "number": 7, "scale": "log"},
    ]
    experiment = {"agents": [{"kind": "linucb"}], "steps": steps, "replications": 16}
    return sweeps.read({"experiment": experiment, "axes": axes})


def equal(a: Landscape, b: Landscape) -> bool:
    """To the bit."""
    return all(np.array_equal(a.numbers(m), b.numbers(m), equal_nan=True) for m in METRICS)


def loop(sweep: Sweep) -> tuple[Section, Landscape]:
    """All rows together in this process, against one run after the other."""
    replications = sweep.experiment.replications
    total = sweep.size * replications
    sample = np.random.default_rng(1).choice(total, SAMPLE, replace=False)
    rows = [divmod(int(i), replications) for i in sample]
    # a run as whoever loops would ask for it: a seed of its own for each replication
    single = [sweep.points[p].model_copy(update={"replications": 1, "seed": 100 + r}) for p, r in rows]
    bare: list[Arrays] = []
    here: list[Landscape] = []
    compute(sweep, Block((rows[0],)))  # compiled before anything is timed
    run(single[0])
    sides = {
        "together": lambda: stopwatch(lambda: here.append(sweeps.run(sweep))),
        "runs": lambda: stopwatch(lambda: [run(e) for e in single]) * total / SAMPLE,
        "lanes": lambda: stopwatch(lambda: bare.extend(compute(sweep, Block((row,))) for row in rows)) * total / SAMPLE,
    }
    times = interleave(sides, 1)
    landscape = here[0]
    found = {name: times[name][0] / times["together"][0] for name in ("runs", "lanes")}
    regret = landscape.numbers("pseudo_regret")
    same = all(
        regret[row] == (each["sum.best_value"][-1] - each["sum.value"][-1])[0]
        for row, each in zip(rows, bare, strict=True)
    )
    section = Section(
        "Sweep: rows together or one by one",
        f"{machine()}.\n\nLinUCB on the pet shop, {' x '.join(map(str, sweep.shape))} points of alpha x ridge, "
        f"{replications} runs of {sweep.experiment.steps:,} steps; processor time on one thread, in this process. Of "
        f"the {total:,} one-row runs a random {SAMPLE} are timed and scaled up. `bandits.run` is how a user loops; a "
        "bare lane keeps nothing but what the sweep keeps.",
        ("way", "seconds of processor time", "over all rows together"),
        [
            ("all rows together", f"{times['together'][0]:,.1f}", "1"),
            ("a loop of `bandits.run`", f"{times['runs'][0]:,.1f}", f"{found['runs']:.2f}"),
            ("a loop of one-row lanes", f"{times['lanes'][0]:,.1f}", f"{found['lanes']:.2f}"),
        ],
    )
    section.targets += [
        ("at least 5 times faster than the loop", f"{found['runs']:.2f}", found["runs"] >= 5),
        ("the lanes' numbers are the sweep's, to the bit", f"{SAMPLE} of {SAMPLE}" if same else "no", same),
    ]
    return section, landscape


def workers(sweep: Sweep, here: Landscape, repeats: int) -> Section:
    """One worker, two of them, and two on a cluster, in turn."""
    with pool(1) as one, pool(2) as two, dask(2) as away:
        ways = {"one": one, "two": two, "dask": away}
        found: dict[str, list[Timed]] = {name: [] for name in ways}

        def side(name: str) -> Callable[[], float]:
            def timed() -> float:
                found[name].append(clocked(sweep, ways[name]))
                return found[name][-1].wall

            return timed

        for executor in ways.values():  # every worker has compiled, and loaded, what it needs
            clocked(the_sweep(200), executor)
        times = interleave({name: side(name) for name in ways}, repeats)
    seconds = {name: [each.processor for each in found[name]] for name in ways}
    twice: Ratio = ratio(times["one"], [2 * t for t in times["two"]])
    over: Ratio = ratio(times["dask"], times["two"])
    same = all(equal(each.landscape, here) for name in ways for each in found[name])
    names = {"one": "pool, 1 worker", "two": "pool, 2 workers", "dask": "Dask, 2 workers"}
    section = Section(
        "Sweep workers: one, two, and a cluster",
        f"{machine()}.\n\nThe same sweep from its first block to its last, {repeats} times in turn, workers warm. "
        "Processor time is that of this process, the workers and the scheduler. Medians.",
        HEADER,
        [(names[n], f"{median(times[n]):,.1f}", f"{median(seconds[n]):,.1f}") for n in ways],
    )
    section.targets += [
        ("two workers against one: efficiency at least 0.85", str(twice), twice.middle >= 0.85),
        ("Dask at most 10 % over the pool", str(over), over.middle <= 1.10),
        ("the same bits here, on the pool and on Dask", "yes" if same else "no", same),
    ]
    return section


def clocked(sweep: Sweep, executor: Executor) -> Timed:
    """Run a sweep, by the wall's clock too: what waiting costs is a part of the question."""
    spent, began = processor(), time.perf_counter()
    landscape = sweeps.run(sweep, executor)
    return Timed(time.perf_counter() - began, processor() - spent, landscape)


def processor() -> float:
    """Seconds of processor time so far of this process and all that it has started."""
    import psutil

    this = psutil.Process()
    return sum(sum(each.cpu_times()[:2]) for each in [this, *this.children(recursive=True)])


@contextmanager
def pool(workers: int) -> Iterator[Executor]:
    """Worker processes of ours."""
    made = Pool(workers)
    try:
        yield PoolExecutor(made)
    finally:
        made.close()


@contextmanager
def dask(workers: int) -> Iterator[Executor]:
    """A scheduler and workers on this machine."""
    from tests.slow.cluster_support import Dask

    with tempfile.TemporaryDirectory() as folder:
        started = Dask(Path(folder), workers=workers)
        try:
            found = DaskExecutor(started.address)
            found._client.wait_for_workers(workers, timeout=60)
            yield found
            found.close()
        finally:
            started.end()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.sweep", description=str(__doc__).split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    told = parser.parse_args(arguments)

    def show(section: Section) -> None:
        print(section, flush=True)
        if told.write:
            keep(section)

    sweep = the_sweep(told.steps)
    with threadpool_limits(1):
        section, landscape = loop(sweep)
        show(section)
        show(workers(sweep, landscape, told.repeats))


if __name__ == "__main__":
    main()
