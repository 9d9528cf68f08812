"""Measure the memory that runs take against its estimate, for simulators and agents near their
bounds.

    python -m benchmarks.memory [--write | --every N] [GROUP ...]

Each run has a process of its own, forked where all libraries are loaded, in which a short run of
the same kind has ended: what is measured is the growth from there to the peak (Linux: VmHWM).
``tests/slow/test_memory_estimates.py`` runs every 24th run of all groups, under ``make stress``
all."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from bandits import Experiment, read
from bandits.base import malloc
from bandits.base.formatting import size
from benchmarks.measure import Section, keep, machine, stamp

# peak over estimate
LIMIT = 1.25
Part = dict[str, Any]


def _pet(products: int = 50, **changes: Any) -> Part:
    return {"kind": "petshop", "n_products": products, **changes}


def _rows(data: str, encoding: str = "block") -> Part:
    return {"kind": "classification", "data": data, "encoding": encoding}


def _known(arms: int, features: int, **changes: Any) -> Part:
    return {"kind": "synthetic", "n_arms": arms, "n_features": features, **changes}


def _ranking(**changes: Any) -> Part:
    return {"kind": "ranking", **changes}


def _agent(kind: str, **changes: Any) -> Part:
    return {"kind": kind, **changes}


SHARED, HYBRID = {"sharing": "shared"}, {"sharing": "hybrid"}
RANDOM = _agent("random")
# simulator, agent, steps, replications
CASES: dict[str, list[tuple[Part, Part, int, int]]] = {
    "simulators": [
        (_pet(2_000_000), RANDOM, 5, 1),
        (_pet(200_000, features="both"), RANDOM, 20, 8),
        (_pet(100_000, layout="per_row"), RANDOM, 20, 8),
        (_pet(n_users=5_000_000), RANDOM, 20, 8),
        (_pet(2), RANDOM, 300_000, 16),
        (_rows("magic"), RANDOM, 200, 64),
        (_rows("adult"), RANDOM, 200, 64),
        (_known(10_000, 20), RANDOM, 20, 4),
        (_known(100, 500, function="form"), RANDOM, 40, 4),
        (_known(4, 300, function="form", layout="per_row"), RANDOM, 40, 16),
        ({"kind": "wheel"}, _agent("linucb"), 200, 256),
    ],
    "ranking": [
        (_ranking(choice="catalogue"), RANDOM, 60, 8),
        (_ranking(choice="catalogue", n_users=500, n_items=100_000), RANDOM, 60, 2),
        (_ranking(choice="catalogue", n_users=200, layout="per_row"), RANDOM, 60, 8),
        (_ranking(n_items=1_000_000), RANDOM, 20, 2),
        (_ranking(n_items=200_000, retrieval="nearest"), RANDOM, 20, 2),
        (_ranking(n_items=200_000, retrieval="exact"), RANDOM, 20, 4),
        (_ranking(n_items=100_000, layout="per_row"), RANDOM, 20, 16),
        (_ranking(n_items=50_000, noise=0.1, layout="per_row"), RANDOM, 20, 16),
        (_ranking(n_candidates=5000), _agent("lints", **SHARED), 30, 8),
        (
            _ranking(embedding=64, features="both", n_candidates=2000),
            _agent("linucb", **SHARED),
            5,
            4,
        ),
        (_ranking(n_candidates=2000), _agent("neural_click_ts"), 15, 8),
        (_ranking(n_candidates=2000), _agent("neural_greedy"), 30, 8),
    ],
    "context-free": [
        (_pet(100_000), _agent("ucb1"), 8, 8),
        (_pet(100_000), _agent("beta_ts"), 8, 8),
        (_pet(100_000), _agent("popularity"), 20, 8),
    ],
    "linear": [
        (_pet(20_000), _agent("linucb"), 10, 8),
        (_pet(3_000, features="both"), _agent("linucb"), 200, 8),
        (_pet(100_000), _agent("linucb", **SHARED), 8, 8),
        (_pet(5_000), _agent("linucb", **HYBRID), 60, 8),
        (_pet(5_000), _agent("linucb", gamma=0.999), 30, 8),
        (_pet(5_000), _agent("linucb", window=5000), 60, 8),
        (_pet(), _agent("linucb"), 100_000, 16),
        (_pet(10_000), _agent("lints"), 40, 8),
        (_pet(100_000), _agent("lints", **SHARED), 10, 8),
        (_pet(10_000), _agent("epsilon_greedy"), 12, 8),
        (_rows("digits"), _agent("linucb"), 200, 1),
        (_rows("digits"), _agent("linucb", **SHARED), 15, 8),
        (_rows("digits", "context"), _agent("linucb"), 200, 64),
        (_rows("digits"), _agent("lints", **HYBRID), 200, 1),
        (_rows("digits", "context"), _agent("lints", **HYBRID), 200, 32),
        (_rows("digits", "context"), _agent("lints"), 200, 32),
        (_rows("adult"), _agent("linucb", **SHARED), 200, 8),
        (_known(10, 400), _agent("linucb", **SHARED), 8, 8),
        (_known(10, 250), _agent("linucb"), 8, 8),
        (_known(10, 200), _agent("lints", **HYBRID), 6, 8),
        (_known(10, 20), _agent("linucb", fourier=300, **SHARED), 40, 8),
    ],
    "logistic": [
        (_pet(5_000), _agent("logistic_ts"), 30, 8),
        (_pet(5_000), _agent("logistic_ucb"), 60, 8),
        (_pet(20_000), _agent("sgd_ts"), 60, 8),
        (_rows("digits"), _agent("logistic_ts", **SHARED), 40, 8),
        (_rows("digits", "context"), _agent("logistic_ucb"), 100, 16),
    ],
    "neural": [
        (_pet(20_000), _agent("neural_greedy"), 30, 8),
        (_pet(2_000), _agent("neural_ucb"), 20, 8),
        (_pet(2_000), _agent("neural_ts"), 20, 8),
        (_pet(5_000), _agent("neural_linear_ts"), 30, 8),
        (_pet(5_000), _agent("neural_linucb"), 30, 8),
        (_pet(5_000), _agent("neural_click_ts"), 30, 8),
        (_pet(5_000), _agent("mc_dropout"), 30, 8),
        (_pet(5_000), _agent("ensemble"), 30, 8),
        (_pet(2_000), _agent("static_mlp"), 20, 8),
        (_rows("digits"), _agent("neural_ucb"), 60, 4),
        (_known(10, 100), _agent("neural_ucb"), 60, 8),
        (_known(10, 200), _agent("neural_ts", hidden=[300, 300]), 30, 2),
        (_known(50, 500), _agent("neural_greedy", hidden=[1024, 1024]), 20, 8),
    ],
}


class Peak(NamedTuple):
    """Bytes that a run was estimated to take, and took, and its seconds."""

    name: str
    estimate: int
    taken: int
    seconds: float


def experiment(case: tuple[Part, Part, int, int]) -> Experiment:
    """Return the experiment of a case."""
    simulator, agent, steps, replications = case
    return read(
        {"simulator": simulator, "agents": [agent], "steps": steps, "replications": replications}
    )


def peaks(group: str, every: int = 1) -> list[Peak]:
    """Measure the cases of a group, or some of them evenly spaced, each in a forked process."""
    from bandits.runtime import kernels

    for agent in kernels.USUAL:
        kernels.compile_for(agent)
    return [_peak(case) for case in CASES[group][::every]]


def _peak(case: tuple[Part, Part, int, int]) -> Peak:
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        taken = -1
        try:
            taken = _taken(experiment(case))
        finally:
            os.write(target, str(taken).encode())
            os._exit(0)
    began = time.perf_counter()
    os.close(target)
    with os.fdopen(source) as answer:
        taken = int(answer.read() or -1)
    os.waitpid(child, 0)
    return Peak(
        _name(case), experiment(case).memory(), taken, round(time.perf_counter() - began, 1)
    )


def _taken(measured: Experiment) -> int:
    """Return the bytes by which this process grows up to the peak of a run."""
    from bandits import run

    run(measured.model_copy(update={"steps": 3, "replications": 1}), workers=0)
    gc.collect()
    malloc.trim()
    # the peak begins anew
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    run(measured, workers=0)
    return _status("VmHWM") - before


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return 1024 * int(found[1])


def _name(case: tuple[Part, Part, int, int]) -> str:
    *_, steps, replications = case
    parts = [
        " ".join([str(part["kind"]), *(f"{k} {v}" for k, v in part.items() if k != "kind")])
        for part in case[:2]
    ]
    return f"{', '.join(parts)}, {steps:,} x {replications}"


def section(groups: list[str]) -> Section:
    """Make the table of all cases."""
    made = Section(
        "Memory: what runs take, and what was estimated",
        "Growth of a process from the end of a short run of the same kind to the peak of the "
        f"run, and the estimate by which a run is admitted (`Experiment.memory`). {machine()}.",
        ("run", "estimate", "taken", "taken / estimate"),
        code=stamp(section),
    )
    found = [peak for group in groups for peak in peaks(group)]
    for name, estimate, taken, _ in found:
        made.rows.append((name, size(estimate), size(taken), f"{taken / estimate:.2f}"))
    worst = max(taken / estimate for _, estimate, taken, _ in found)
    made.targets.append(
        (f"at most {LIMIT} of the estimate, {len(found)} runs", f"{worst:.2f}", worst <= LIMIT)
    )
    return made


def main(arguments: list[str]) -> None:
    """Print the peaks of some groups as JSON lines, or write the table of all."""
    if "--write" in arguments:
        keep(section(list(CASES)))
        return
    every = 1
    if arguments[:1] == ["--every"]:
        every, arguments = int(arguments[1]), arguments[2:]
    for group in arguments or list(CASES):
        for peak in peaks(group, every):
            print(json.dumps(peak._asdict()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
