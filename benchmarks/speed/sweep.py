"""Time a sweep against a loop over its rows, on two workers against one, and on Dask against the
pool.

python -m benchmarks.speed.sweep --write

63 points of LinUCB, 16 replications each. A cluster is started on this machine, as docs/cluster.md
describes. Requires the test requirements (`make setup-dev`)."""

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
from bandits.results.metric_registry import OBJECTIVES
from bandits.runtime.pool import Pool
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps.blocks import Block, compute
from bandits.sweeps.execution.dask_client import DaskExecutor
from bandits.sweeps.execution.executors import Executor, PoolExecutor
from benchmarks.measure import Ratio, Section, interleave, keep, machine, ratio, stamp, stopwatch

# rows of the loop that are timed; the others take as long
SAMPLE = 40
HEADER = ("method", "seconds of wall time", "seconds of processor time, all processes")


class Timed(NamedTuple):
    """A sweep from its first block to its last."""

    wall: float
    processor: float
    landscape: Landscape


def the_sweep(steps: int) -> Sweep:
    """Return a sweep of 9 values of alpha and 7 of the ridge, 16 replications."""
    axes = [
        {"path": "agents.0.alpha", "low": 0.03, "high": 10, "number": 9, "scale": "log"},
        {"path": "agents.0.ridge", "low": 0.01, "high": 10, "number": 7, "scale": "log"},
    ]
    experiment = {"agents": [{"kind": "linucb"}], "steps": steps, "replications": 16}
    return sweeps.read({"experiment": experiment, "axes": axes})


def equal(a: Landscape, b: Landscape) -> bool:
    """Whether all metrics are equal to the bit."""
    return all(np.array_equal(a.numbers(m), b.numbers(m), equal_nan=True) for m in OBJECTIVES)


def loop(sweep: Sweep) -> tuple[Section, Landscape]:
    """Time all rows together in this process against one row after the other."""
    replications = sweep.experiment.replications
    total = sweep.size * replications
    sample = np.random.default_rng(1).choice(total, SAMPLE, replace=False)
    rows = [divmod(int(i), replications) for i in sample]
    # a loop of a user has a separate seed for each replication
    single = [
        sweep.points[p].model_copy(update={"replications": 1, "seed": 100 + r}) for p, r in rows
    ]
    bare: list[Arrays] = []
    here: list[Landscape] = []
    # compiled before anything is timed
    compute(sweep, Block((rows[0],)))
    run(single[0])
    sides = {
        "together": lambda: stopwatch(lambda: here.append(sweeps.run(sweep))),
        "runs": lambda: stopwatch(lambda: [run(e) for e in single]) * total / SAMPLE,
        "lanes": lambda: (
            stopwatch(lambda: bare.extend(compute(sweep, Block((row,))) for row in rows))
            * total
            / SAMPLE
        ),
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
        f"{machine()}.\n\nLinUCB on the pet shop, {' x '.join(map(str, sweep.shape))} points of "
        f"alpha x ridge, {replications} replications of {sweep.experiment.steps:,} steps; "
        f"processor time on one thread, in this process. Of the {total:,} one-row runs, {SAMPLE} "
        "random ones are timed and scaled up. A user would loop over `bandits.run`; a one-row "
        "lane stores only what the sweep stores.",
        ("method", "seconds of processor time", "relative to all rows together"),
        [
            ("all rows together", f"{times['together'][0]:,.1f}", "1"),
            ("a loop of `bandits.run`", f"{times['runs'][0]:,.1f}", f"{found['runs']:.2f}"),
            ("a loop of one-row lanes", f"{times['lanes'][0]:,.1f}", f"{found['lanes']:.2f}"),
        ],
        code=stamp(loop),
    )
    section.targets += [
        ("at least 5 times faster than the loop", f"{found['runs']:.2f}", found["runs"] >= 5),
        (
            "the lanes and the sweep give the same bits",
            f"{SAMPLE} of {SAMPLE}" if same else "no",
            same,
        ),
    ]
    return section, landscape


def workers(sweep: Sweep, here: Landscape, repeats: int) -> Section:
    """Time one worker, two workers, and two workers of a cluster, in turn."""
    with pool(1) as one, pool(2) as two, dask(2) as cluster:
        executors = {"one": one, "two": two, "dask": cluster}
        found: dict[str, list[Timed]] = {name: [] for name in executors}

        def side(name: str) -> Callable[[], float]:
            def timed() -> float:
                found[name].append(clocked(sweep, executors[name]))
                return found[name][-1].wall

            return timed

        # every worker has compiled and loaded its code
        for executor in executors.values():
            clocked(the_sweep(200), executor)
        times = interleave({name: side(name) for name in executors}, repeats)
    seconds = {name: [each.processor for each in found[name]] for name in executors}
    twice: Ratio = ratio(times["one"], [2 * t for t in times["two"]])
    over: Ratio = ratio(times["dask"], times["two"])
    same = all(equal(each.landscape, here) for name in executors for each in found[name])
    names = {"one": "pool, 1 worker", "two": "pool, 2 workers", "dask": "Dask, 2 workers"}
    section = Section(
        "Sweep workers: one, two, and a cluster",
        f"{machine()}.\n\nThe same sweep from its first block to its last, {repeats} times in "
        "turn, with warm workers. Processor time is that of this process, the workers and the "
        "scheduler. Medians.",
        HEADER,
        [(names[n], f"{median(times[n]):,.1f}", f"{median(seconds[n]):,.1f}") for n in executors],
        code=stamp(workers),
    )
    section.targets += [
        ("two workers against one: efficiency at least 0.85", str(twice), twice.middle >= 0.85),
        ("Dask takes at most 10 % longer than the pool", str(over), over.middle <= 1.10),
        ("the same bits in this process, on the pool and on Dask", "yes" if same else "no", same),
    ]
    return section


def clocked(sweep: Sweep, executor: Executor) -> Timed:
    """Run a sweep; measure wall time, which includes waiting, and processor time."""
    spent, began = processor(), time.perf_counter()
    landscape = sweeps.run(sweep, executor)
    return Timed(time.perf_counter() - began, processor() - spent, landscape)


def processor() -> float:
    """Sum the processor seconds so far of this process and all processes it has started."""
    import psutil

    this = psutil.Process()
    return sum(sum(each.cpu_times()[:2]) for each in [this, *this.children(recursive=True)])


@contextmanager
def pool(workers: int) -> Iterator[Executor]:
    """Start a pool of worker processes."""
    made = Pool(workers)
    try:
        yield PoolExecutor(made)
    finally:
        made.close()


@contextmanager
def dask(workers: int) -> Iterator[Executor]:
    """Start a Dask scheduler and workers on this machine."""
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

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.sweep", description=str(__doc__).split("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parsed = parser.parse_args(arguments)

    def show(section: Section) -> None:
        print(section, flush=True)
        if parsed.write:
            keep(section)

    sweep = the_sweep(parsed.steps)
    with threadpool_limits(1):
        section, landscape = loop(sweep)
        show(section)
        show(workers(sweep, landscape, parsed.repeats))


if __name__ == "__main__":
    main()
