"""The five agents of the preset at 16 replications, against ONE replication of the textbook's LinUCB."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from statistics import median

from bandits.experiments.experiment import Experiment
from bandits.experiments.race import Race, run_to_end
from benchmarks.measure import Section, interleave, ratio, stopwatch

from .textbook import ReplayBuffer

AGENTS: tuple[dict[str, object], ...] = (
    {"kind": "random"},
    {"kind": "epsilon_greedy"},
    {"kind": "linucb", "alpha": 1.5},
    {"kind": "lints"},
    {"kind": "static_mlp"},
)
ROWS, LENGTHS, REPEATS = 16, (20_000, 60_000), 3


def _race(steps: int, agents: tuple[dict[str, object], ...] = AGENTS) -> Race:
    return Race(Experiment.model_validate({"agents": list(agents), "steps": steps, "replications": ROWS}))


def _child(steps: int) -> None:
    """In a process of its own: load what is compiled, then time the race from experiment to finished curves."""
    run_to_end(_race(600, tuple(a for a in AGENTS if a["kind"] != "static_mlp")))
    print(stopwatch(lambda: run_to_end(_race(steps))))


def _in_child(steps: int, home: str) -> float:
    """A fresh process, because only the first training pays for importing torch."""
    command = [sys.executable, "-m", "benchmarks.speed.preset", str(steps)]
    done = subprocess.run(command, env={**os.environ, "BANDITS_HOME": home}, check=True, capture_output=True, text=True)
    return float(done.stdout)


def _trained(steps: int) -> float:
    with tempfile.TemporaryDirectory() as empty:
        return _in_child(steps, empty)


def run() -> Section:
    """Measure."""
    replay = ReplayBuffer(600)
    section = Section(
        "The whole preset against one replication of the textbook",
        f"Random, ε-greedy, LinUCB (alpha 1.5), LinTS and the static network, {ROWS} replications each, from "
        "experiment to finished curves (choice, world, trace, history and spectra included), in a fresh process "
        "that has loaded its compiled code; against ONE replication of the listing's LinUCB, scores and learning "
        "only, timed on 500 decisions before each of our runs and scaled linearly to the same number of steps. "
        f"*With training*: the weights' cache is empty, so that torch is imported and the network trained on 200,000 "
        f"interactions within the time. *Without*: its weights are read back. Sides in turn, {REPEATS} times.",
        ("steps", "textbook, one replication, s", "preset without training, s", "preset with training, s"),
    )
    with tempfile.TemporaryDirectory() as home:
        _in_child(600, home)  # trains once: "without training" finds the weights here
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
