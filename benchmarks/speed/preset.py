"""Time a preset of five agents with 16 replications against one replication of the textbook
LinUCB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from statistics import median

from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import Lockstep, run_to_end
from benchmarks.measure import Section, interleave, ratio, stamp, stopwatch

from .textbook import ReplayBuffer

AGENTS: tuple[dict[str, object], ...] = (
    {"kind": "random"},
    {"kind": "epsilon_greedy"},
    {"kind": "linucb", "alpha": 1.5},
    {"kind": "lints"},
    {"kind": "static_mlp"},
)
ROWS, LENGTHS, REPEATS = 16, (20_000, 60_000), 3


def _make_run(steps: int, agents: tuple[dict[str, object], ...] = AGENTS) -> Lockstep:
    return Lockstep(
        Experiment.model_validate({"agents": list(agents), "steps": steps, "replications": ROWS})
    )


def _child(steps: int) -> None:
    """Load compiled code, then time the run from experiment to finished curves, in a new
    process.
    """
    run_to_end(_make_run(600, tuple(a for a in AGENTS if a["kind"] != "static_mlp")))
    print(stopwatch(lambda: run_to_end(_make_run(steps))))


def _in_child(steps: int, home: str) -> float:
    """Time a run in a new process, because only the first training includes the import of torch."""
    command = [sys.executable, "-m", "benchmarks.speed.preset", str(steps)]
    done = subprocess.run(
        command,
        env={**os.environ, "BANDITS_HOME": home},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def _trained(steps: int) -> float:
    with tempfile.TemporaryDirectory() as empty:
        return _in_child(steps, empty)


def run() -> Section:
    """Measure."""
    replay = ReplayBuffer(600)
    section = Section(
        "The whole preset against one replication of the textbook implementation",
        f"Random, ε-greedy, LinUCB (alpha 1.5), LinTS and the static network, {ROWS} replications "
        "each, from experiment to finished curves (choice, simulator, trace, history and spectra "
        "included), in a new process that has loaded its compiled code; compared with one "
        "replication of the textbook LinUCB, scores and learning only, timed on 500 decisions "
        "before each of our runs and scaled linearly to the same number of steps. *With "
        "training*: the cache of weights is empty, so the time includes importing torch and "
        "training the network on 200,000 interactions. *Without*: the weights are read from the "
        f"cache. The sides take turns, {REPEATS} times.",
        (
            "steps",
            "textbook, one replication, s",
            "preset without training, s",
            "preset with training, s",
        ),
        code=stamp(run),
    )
    with tempfile.TemporaryDirectory() as home:
        # trains once: the weights for "without training"
        _in_child(600, home)
        for steps in LENGTHS:
            sides: dict[str, Callable[[], float]] = {
                "textbook": lambda n=steps: 1e-6 * n * replay.listing(),  # type: ignore[misc]
                "without": partial(_in_child, steps, home),
                "textbook again": lambda n=steps: 1e-6 * n * replay.listing(),  # type: ignore[misc]
                "with": partial(_trained, steps),
            }
            times = interleave(sides, REPEATS)
            book = times["textbook"] + times["textbook again"]
            seconds = (f"{median(t):,.2f}" for t in (book, times["without"], times["with"]))
            section.rows.append((f"{steps:,}", *seconds))
            for name, listing in (("without", "textbook"), ("with", "textbook again")):
                share = ratio(times[name], times[listing])
                what = f"{steps:,} steps, {name} training: less than 0.25 of the textbook's time"
                section.targets.append((what, str(share), share.middle < 0.25))
    return section


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _child(int(sys.argv[1]))
    else:
        print(run())
