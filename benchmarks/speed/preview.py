"""Time the recomputation of one agent (`bandits.Preview`) against `bandits.run` of the same
experiment.

python -m benchmarks.speed.preview --write
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

from bandits import Preview, read, run
from benchmarks.measure import Section, interleave, keep, machine, ratio, stamp, stopwatch

AGENTS: dict[str, dict[str, Any]] = {
    "LinUCB, alpha": {"kind": "linucb"},
    "LinUCB shared, alpha": {"kind": "linucb", "sharing": "shared"},
    "LinTS, sigma2": {"kind": "lints"},
    "LinTS shared, sigma2": {"kind": "lints", "sharing": "shared"},
    "ε-greedy, epsilon": {"kind": "epsilon_greedy"},
    "ε-greedy shared, epsilon": {"kind": "epsilon_greedy", "sharing": "shared"},
    "UCB1, alpha": {"kind": "ucb1"},
}
# steps and replications, and the milliseconds of the target
SIZES = {(2000, 4): 10.0, (5000, 8): 40.0}


def _update(preview: Preview, label: str, parameter: str, values: Iterator[int]) -> float:
    change: dict[str, Any] = {parameter: 0.05 + 0.001 * next(values)}
    return stopwatch(partial(preview.update, label, **change))


def measure(repeats: int = 7) -> Section:
    """Measure every agent at both sizes; the parameter has another value every time."""
    section = Section(
        "Preview: one agent recomputed, against a run",
        "Processor time of `Preview.update` with a new value of the parameter, and of `run` of "
        "the same experiment, which also takes snapshots; pet shop (shared models: interaction "
        f"features), in turn {repeats} times. {machine()}.",
        ("agent, parameter", "steps x replications", "preview, ms", "run, ms", "ratio"),
        code=stamp(measure),
    )
    for (name, agent), ((steps, replications), most) in itertools.product(
        AGENTS.items(), SIZES.items()
    ):
        simulator = {
            "kind": "petshop",
            "features": "interaction" if "sharing" in agent else "additive",
        }
        e = read(
            {
                "simulator": simulator,
                "agents": [agent],
                "steps": steps,
                "replications": replications,
            }
        )
        values = itertools.count(1)
        update = partial(_update, Preview(e), e.labels[0], name.rpartition(" ")[2], values)
        sides = {"preview": update, "run": partial(stopwatch, partial(run, e, workers=0))}
        interleave(sides, 1)
        times = interleave(sides, repeats)
        middle = {side: 1000 * median(taken) for side, taken in times.items()}
        share = ratio(times["preview"], times["run"])
        shown = [f"{milliseconds:.1f}" for milliseconds in middle.values()]
        section.rows.append((name, f"{steps:,} x {replications}", *shown, str(share)))
        what = f"{name}, {steps:,} x {replications}: at most {most:.0f} ms"
        section.targets.append((what, f"{middle['preview']:.1f} ms", middle["preview"] <= most))
    return section


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.preview")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    asked, measured = parser.parse_args(), measure()
    print(measured)
    if asked.write:
        keep(measured)
