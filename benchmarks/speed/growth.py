"""Measure how time and memory grow with steps, rows, arms and features."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import Lockstep, make_lane, run_to_end
from benchmarks.measure import Section, interleave, stamp, stopwatch
from benchmarks.peers.linear import ours

REPEATS = 5
# exponents up to this count as linear, because timings on a shared machine vary
LINEAR = 1.1


def _lane(steps: int = 2_000, rows: int = 16, arms: int = 50) -> float:
    """Time LinUCB on the pet shop, in seconds."""
    lane = make_lane(
        Experiment.model_validate(
            {
                "simulator": {"kind": "petshop", "n_products": arms},
                "agents": [{"kind": "linucb"}],
                "steps": steps,
                "replications": rows,
            }
        ),
        0,
    )
    return stopwatch(lambda: lane.advance(steps))


def _dense(features: int, steps: int = 300, rows: int = 4, arms: int = 10) -> float:
    """Time LinUCB per arm on dense features without a simulator, in seconds."""
    generator = np.random.default_rng(7)
    contexts = generator.standard_normal((steps, rows, features)) / np.sqrt(features)
    clicks = generator.integers(0, 2, (steps, rows, arms)).astype(np.float64)
    return 1e-6 * ours(contexts, clicks) * steps * rows


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Fit the slope of a straight line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _measure(work: Callable[[int], float], sizes: Sequence[int]) -> tuple[list[float], float, str]:
    """Return the median seconds at each size, the fitted exponent, and its range over the
    repeats.
    """
    work(sizes[0])
    times = interleave({str(n): partial(work, n) for n in sizes}, REPEATS)
    fits = [exponent(sizes, [times[str(n)][i] for n in sizes]) for i in range(REPEATS)]
    middle = [median(times[str(n)]) for n in sizes]
    return middle, exponent(sizes, middle), f"{min(fits):.2f} to {max(fits):.2f}"


def _peak_memory(steps: int) -> float:
    """Measure the peak memory of a new process that runs this many steps, in MiB."""
    command = [sys.executable, "-m", "benchmarks.speed.growth", str(steps)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _child(steps: int) -> None:
    agents = [{"kind": kind} for kind in ("random", "epsilon_greedy", "linucb", "lints")]
    run_to_end(
        Lockstep(Experiment.model_validate({"agents": agents, "steps": steps, "replications": 16}))
    )
    print(_high_water())


def _high_water() -> float:
    """Read the peak memory of this process, in MiB."""
    status = Path("/proc/self/status")
    # getrusage includes the peak of the parent before the fork
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def run() -> Section:
    """Measure."""
    section = Section(
        "Growth",
        "Processor time of LinUCB per arm, medians; the sizes take turns. The exponent is the "
        "slope of a straight line through the logarithms, with its range over the repeats; the "
        "slope between the last two sizes shows where the models outgrow the processor's caches. "
        "Steps, rows and arms: a whole lane on the pet shop (2,000 steps, R = 16, K = 50; for "
        "arms 500 steps, R = 4, up to sizes at which Python's cost per step is negligible). "
        "Features: dense, K = 10, R = 4, without a simulator. Memory: peak resident size of a "
        "new process that runs random, ε-greedy, LinUCB and LinTS with 16 rows each. Compiled "
        "before measuring.",
        ("varied", "sizes", "seconds (MiB for memory)", "exponent (range)", "last two sizes"),
        code=stamp(run),
    )

    def arms(n: int) -> float:
        return _lane(500, 4, n)

    series: list[tuple[str, Callable[[int], float], tuple[int, ...], float, str]] = [
        (
            "steps",
            _lane,
            (2_000, 4_000, 8_000, 16_000, 32_000),
            LINEAR,
            f"linear in steps: exponent at most {LINEAR}",
        ),
        (
            "rows",
            lambda n: _lane(rows=n),
            (1, 4, 16, 64),
            1.0,
            "sublinear in rows up to 64: exponent below 1",
        ),
        (
            "arms",
            arms,
            (50, 200, 800, 3_200, 12_800),
            LINEAR,
            f"linear in arms: exponent at most {LINEAR}",
        ),
        (
            "features",
            _dense,
            (16, 32, 64, 128, 256),
            2.0,
            "at most quadratic in features: exponent at most 2",
        ),
    ]
    for name, work, sizes, limit, what in series:
        seconds, fitted, spread = _measure(work, sizes)
        measured = f"{fitted:.2f} ({spread})"
        took = "; ".join(f"{s:.3g}" for s in seconds)
        last = f"{exponent(sizes[-2:], seconds[-2:]):.2f}"
        section.rows.append((name, "; ".join(f"{n:,}" for n in sizes), took, measured, last))
        section.targets.append(
            (what, measured, fitted < limit if name == "rows" else fitted <= limit)
        )
    lengths = (5_000, 20_000, 80_000)
    # otherwise the memory of the compiler would be counted
    _peak_memory(lengths[0])
    peaks = [_peak_memory(n) for n in lengths]
    fitted = exponent(lengths, peaks)
    took = "; ".join(f"{p:.0f}" for p in peaks)
    last = f"{exponent(lengths[-2:], peaks[-2:]):.3f}"
    section.rows.append(
        ("steps (memory)", "; ".join(f"{n:,}" for n in lengths), took, f"{fitted:.3f}", last)
    )
    growth = max(peaks) / min(peaks)
    what = "memory of a live run independent of steps: largest within 5 % of smallest"
    section.targets.append((what, f"{growth:.3f} times", growth <= 1.05))
    return section


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _child(int(sys.argv[1]))
    else:
        print(run())
