"""Time lanes with guards against the same lane without, and monitors against the lane that they
observe.

python -m benchmarks.speed.guards --write
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

from bandits import read
from bandits.experiments.lane import Trace
from bandits.experiments.lockstep import make_lane
from bandits.monitoring import REGISTRY, Steps
from bandits.monitoring.replay import setting_of
from benchmarks.measure import Section, interleave, keep, machine, ratio, stamp, stopwatch

ROWS, STEPS = 16, 2000
GUARDS: dict[str, list[dict[str, Any]]] = {
    "floor": [{"kind": "floor"}],
    "floor for new arms": [{"kind": "floor", "shows": 100}],
    "cap": [{"kind": "cap"}],
    "delay": [{"kind": "delay"}],
    "batch": [{"kind": "batch"}],
    "reset": [{"kind": "reset", "every": 1000}],
    "reset by Page-Hinkley": [{"kind": "reset", "monitor": "page_hinkley"}],
    "reset by ADWIN": [{"kind": "reset", "monitor": "adwin"}],
    "fallback": [{"kind": "fallback"}],
}
# of rewards and items alone
MONITORS = ("page_hinkley", "adwin", "entropy", "coverage")


def _experiment(guards: list[dict[str, Any]]) -> Any:
    agent = {"kind": "linucb", "alpha": 0.4, "guards": guards}
    return read(
        {"simulator": {"kind": "petshop"}, "agents": [agent], "steps": STEPS, "replications": ROWS}
    )


def _lane(guards: list[dict[str, Any]], *, compiled: bool = False) -> float:
    lane = make_lane(_experiment(guards), 0)
    lane.use_compiled = compiled
    lane.advance(1)
    return stopwatch(partial(lane.advance, STEPS - 1))


def _observed(kind: str, trace: Trace) -> float:
    lane = make_lane(_experiment([]), 0)
    monitor = REGISTRY[kind](
        REGISTRY[kind].Params(kind=kind), setting_of(lane, "LinUCB", tuple(range(ROWS)))
    )
    steps = Steps(trace.start, trace.items, trace.segments, trace.rewards)
    began = time.process_time()
    for _ in monitor.feed(steps):
        pass
    return time.process_time() - began


def measure(repeats: int = 7) -> Section:
    """Measure each guard against the stepwise lane, and each monitor against the compiled one."""
    section = Section(
        "Guards and monitors: against the lane that they are in",
        f"LinUCB in the pet shop, {STEPS:,} steps, {ROWS} rows; processor time, in turn {repeats} "
        "times. A lane with a guard advances step by step; the lane without guards is measured "
        "step by step too, and, in the first row, compiled, as it runs otherwise. Monitors are "
        f"compared with the lane step by step. {machine()}.",
        ("what", "ratio to the lane step by step"),
        code=stamp(measure),
    )
    for guards in GUARDS.values():
        _lane(guards)  # compiles
    plain = partial(_lane, [])
    times = interleave({"plain": plain, "compiled": partial(_lane, [], compiled=True)}, repeats)
    section.rows.append(("no guard, compiled", str(ratio(times["compiled"], times["plain"]))))
    for name, guards in GUARDS.items():
        times = interleave({"plain": plain, "guarded": partial(_lane, guards)}, repeats)
        share = ratio(times["guarded"], times["plain"])
        section.rows.append((name, str(share)))
        section.targets.append((f"{name}: at most 1.3", f"{share.middle:.2f}", share.middle <= 1.3))
    lane = make_lane(_experiment([]), 0)
    trace = lane.advance(STEPS)
    for kind in MONITORS:
        _observed(kind, trace)
        times = interleave({"plain": plain, "monitor": partial(_observed, kind, trace)}, repeats)
        share = ratio(times["monitor"], times["plain"])
        section.rows.append((f"monitor {kind}", str(share)))
        section.targets.append(
            (f"monitor {kind}: at most 0.1", f"{share.middle:.3f}", share.middle <= 0.1)
        )
    return section


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.guards")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    asked, measured = parser.parse_args(), measure()
    print(measured)
    if asked.write:
        keep(measured)
