"""Compare the lane of every linear and context-free agent with that of LinUCB on the pet shop:
``python -m benchmarks.speed.lanes --write``.
"""

from __future__ import annotations

import argparse
from functools import partial

from bandits import Experiment
from bandits.agents import REGISTRY
from bandits.experiments.lockstep import make_lane
from bandits.simulators.petshop import PetShop
from benchmarks.measure import Section, interleave, keep, machine, ratio, stamp, stopwatch

STEPS, ROWS, REPEATS = 2_000, 16, 5
REFERENCE = "linucb"
# times the reference, of an agent without context or with linear models; also of a member of one
MOST = 3.0
PACKAGES = ("bandits.agents.context_free", "bandits.agents.linear")


def kinds() -> list[str]:
    """Name the agents of these packages that learn and run on the pet shop."""
    offered = PetShop.describe(PetShop.Params()).capabilities
    return [
        kind
        for kind, cls in REGISTRY.items()
        if cls.__module__.startswith(PACKAGES)
        and cls.learns
        and cls.requires(cls.Params(kind=kind)) <= offered
    ]


def members(kind: str) -> int:
    """Count the models that an agent with default parameters holds for each arm."""
    return int(getattr(REGISTRY[kind].Params(kind=kind), "members", 1))


def lane(kind: str, steps: int = STEPS, rows: int = ROWS) -> float:
    """Return the seconds of one lane with its simulator."""
    data = {"agents": [{"kind": kind}], "steps": steps, "replications": rows}
    made = make_lane(Experiment.model_validate(data), 0)
    made.agent.prepare()
    return stopwatch(lambda: made.advance(steps))


def run(steps: int = STEPS, repeats: int = REPEATS) -> Section:
    """Time all of them in turn, after one round that compiles."""
    section = Section(
        "Lanes of agents without context and with linear models",
        f"`python -m benchmarks.speed.lanes --write`; {machine()}. Pet shop, {steps:,} steps, "
        f"{ROWS} rows, defaults; {repeats} rounds in turn, processor time with the simulator. Bag "
        f"holds {members('bag')} models and is judged as a whole and per model.",
        ("agent", "µs per decision", "times LinUCB"),
        code=stamp(run),
    )
    sides = {kind: partial(lane, kind, steps) for kind in kinds()}
    interleave(sides, 1)
    times = interleave(sides, repeats)
    for kind, seconds in times.items():
        against = ratio(seconds, times[REFERENCE])
        per_decision = 1e6 * sorted(seconds)[len(seconds) // 2] / (steps * ROWS)
        section.rows.append((kind, f"{per_decision:.2f}", str(against)))
        if kind != REFERENCE:
            words, n = f"{kind}: at most {MOST:g} times LinUCB", members(kind)
            section.targets.append((words, str(against), against.middle <= MOST))
            if n > 1:
                own = ratio(seconds, [n * each for each in times[REFERENCE]])
                section.targets.append((f"{words} per model", str(own), own.middle <= MOST))
    return section


def main() -> None:
    """Print the section; with ``--write``, put it into RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the section into RESULTS.md")
    parsed = parser.parse_args()
    section = run()
    print(section)
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main()
