"""Time runs on one worker against the same runs on two: *Showdown* at a reduced length, and the
default comparison.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from functools import partial

from bandits.experiments.experiment import Experiment, read
from bandits.experiments.presets import presets
from bandits.runtime.cores import available_cores
from bandits.runtime.pool import Pool
from benchmarks.measure import Section, interleave, keep, machine, ratio, stamp

LENGTHS = {"showdown": 1000, "race": 20_000}
REPEATS, TARGET = 3, 0.6


def _seconds(pool: Pool, experiment: Experiment) -> float:
    """Return the wall time of a run; it is deleted, so that the next one computes it again."""
    began = time.perf_counter()
    job = pool.submit(experiment)
    while job.active:
        time.sleep(0.002)
    taken = time.perf_counter() - began
    assert job.status == "finished", job.error
    pool.delete(job.id)
    return taken


def run(repeats: int = REPEATS) -> Section:
    """Measure; every side runs once before, so that code is compiled and networks are trained."""
    section = Section(
        "Cores: a run on one worker and on two",
        "Wall time from submission to the end, in a pool of one and of two warm workers, in turn "
        f"{repeats} times; networks that are trained on a log come from the cache. Wall times "
        f"need idle cores: the load at the start was {os.getloadavg()[0]:.1f} on "
        f"{available_cores()} cores. {machine()}.",
        ("preset", "steps", "one worker, s", "two workers, s", "ratio"),
        code=stamp(run),
    )
    with closing(Pool(1)) as one, closing(Pool(2)) as two:
        while not (one.ready and two.ready):
            time.sleep(0.1)
        for name, steps in LENGTHS.items():
            source = presets()[name].experiment.model_dump(mode="json")
            experiment = read({**source, "steps": steps})
            sides = {
                "one": partial(_seconds, one, experiment),
                "two": partial(_seconds, two, experiment),
            }
            interleave(sides, 1)
            times = interleave(sides, repeats)
            share = ratio(times["two"], times["one"])
            middle = [f"{sorted(t)[len(t) // 2]:.2f}" for t in times.values()]
            section.rows.append((presets()[name].title, f"{steps:,}", *middle, str(share)))
            what = f"{presets()[name].title}: at most {TARGET} of the time of one worker"
            section.targets.append((what, str(share), share.middle <= TARGET))
    return section


if __name__ == "__main__":
    measured = run()
    print(measured)
    keep(measured)
