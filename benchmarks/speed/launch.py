"""Does a launch of 1,000 items stall a run?

python -m benchmarks.speed.launch --write
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from bandits import Experiment
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from benchmarks.measure import Section, keep, machine, stamp, stopwatch

PRODUCTS, LAUNCHED, AT, ROWS, BEFORE, AFTER = 5_000, 1_000, 150, 16, 100, 50
# milliseconds of a step
MOST = 50.0
AGENTS: dict[str, dict[str, Any]] = {
    "LinUCB per arm": {"kind": "linucb"},
    "LinUCB per arm, category prior": {"kind": "linucb", "prior": "category"},
    "LinUCB shared": {"kind": "linucb", "sharing": "shared"},
    "Beta Thompson": {"kind": "beta_ts"},
}


def running(simulator: dict[str, Any], agent: dict[str, Any], first: int, more: int) -> Lane:
    """Start `ROWS` replications of an agent, with kernels that ``first`` steps compile, and
    ``more`` steps to come.
    """
    data = {"simulator": simulator, "agents": [agent], "steps": first + more, "replications": ROWS}
    lane = make_lane(Experiment.model_validate(data), 0)
    lane.agent.prepare()
    lane.advance(first)
    return lane


def steps(agent: dict[str, Any]) -> list[float]:
    """Return the processor time of each step around the launch, in milliseconds.

    At `BEFORE` is the launch.
    """
    launch = {"kind": "launch", "at": AT, "items": LAUNCHED}
    shop = {"kind": "petshop", "n_products": PRODUCTS, "changes": [launch]}
    lane = running(shop, agent, AT - BEFORE, BEFORE + AFTER)
    return [1000 * stopwatch(partial(lane.advance, 1)) for _ in range(BEFORE + AFTER)]


def measure() -> Section:
    """Measure the steps around a launch, with kernels that are compiled."""
    section = Section(
        "A launch of 1,000 items: the longest step",
        f"Pet shop of {PRODUCTS:,} products, of which {LAUNCHED:,} are launched at once; {ROWS} "
        "replications together, kernels compiled. Milliseconds of processor time of single "
        f"steps: the median, the step of the launch, and the longest of the {AFTER} from the "
        f"launch on. {machine()}.",
        ("agent", "median step", "step of the launch", "longest after it"),
        code=stamp(measure),
    )
    worst = 0.0
    for name, agent in AGENTS.items():
        # compiles what runs before and after it
        steps(agent)
        times = steps(agent)
        after = times[BEFORE:]
        section.rows.append((name, *(f"{t:.1f}" for t in (median(times), after[0], max(after)))))
        worst = max(worst, *after)
    section.targets.append((f"no step above {MOST:g} ms", f"{worst:.1f} ms", worst <= MOST))
    return section


def main(doc: str | None, measure: Callable[[], Section]) -> None:
    """Measure and print a section; with ``--write``, put it into RESULTS.md."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the section into RESULTS.md")
    parsed = parser.parse_args()
    section = measure()
    sys.stdout.write(f"{section}\n")
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main(__doc__, measure)
