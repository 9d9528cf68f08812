"""How long does a decision take in the artwork simulator?

python -m benchmarks.speed.artwork --write
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.measure import Section, machine, stamp, stopwatch
from benchmarks.speed.launch import ROWS, main, running

FIRST, STEPS, TIMES = 500, 1_000, 5
# microseconds of a decision
MOST = 20.0
AGENTS: dict[str, dict[str, Any]] = {
    "LinUCB shared": {"kind": "linucb", "sharing": "shared"},
    "LinUCB per title": {"kind": "linucb", "sharing": "per_category"},
    "LinUCB per picture": {"kind": "linucb"},
}


def decision(agent: dict[str, Any]) -> float:
    """Return the processor time of one decision of one replication, in microseconds: the fastest of
    `TIMES` parts.
    """
    lane = running({"kind": "artwork"}, agent, FIRST, TIMES * STEPS)
    return 1e6 * min(stopwatch(partial(lane.advance, STEPS)) for _ in range(TIMES)) / STEPS / ROWS


def measure() -> Section:
    """Measure a decision with everything that belongs to it: retrieval, features, choice, click,
    learning.
    """
    section = Section(
        "Artwork: the time of a decision",
        f"The simulator at its defaults, {ROWS} replications together, kernels compiled, the "
        "catalogue made. Processor time of a decision of one replication, with its simulator: "
        f"the fastest of {TIMES} times {STEPS:,} steps. {machine()}.",
        ("agent", "microseconds per decision"),
        code=stamp(measure),
    )
    found = {name: decision(agent) for name, agent in AGENTS.items()}
    section.rows += [(name, f"{time:.1f}") for name, time in found.items()]
    worst = max(found.values())
    section.targets.append((f"at most {MOST:g} microseconds", f"{worst:.1f}", worst <= MOST))
    return section


if __name__ == "__main__":
    main(__doc__, measure)
