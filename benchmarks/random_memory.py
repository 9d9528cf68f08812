"""Measure the memory that random experiments take, in the server and its worker together, against
the estimate that the ledger of memory enters.

    python -m benchmarks.random_memory [N] [SEED] [--from I] [--write]

Simulators and agents are drawn in turn, their parameters at random within their bounds; what is
refused is drawn again. Each run has a new pool with one worker, as behind the pages: after a short
run of the same kind, the peak of the worker begins anew (Linux: VmHWM); the server's memory is
looked at every 10 ms, without the files that it maps. Runs are stopped after `SECONDS`."""

from __future__ import annotations

import gc
import itertools
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits import Experiment, UserError, read
from bandits.agents import REGISTRY as AGENTS
from bandits.base import malloc
from bandits.base.formatting import count_of, size
from bandits.runtime.pool import Pool
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.storage.run_store import Store
from benchmarks.measure import Section, keep, machine, stamp

# peak over estimate
LIMIT = 1.1
# estimates that are measured: others are small beside the libraries, or large beside this machine
LEAST, MOST = 48 * 2**20, 2**30
# of a run, which then has its whole state and part of its history
SECONDS = 40.0
# fields that other fields depend on, or that name files and texts
FIXED = {"kind", "label", "guards", "data", "log", "pretrain", "device"}


class Taken(NamedTuple):
    """What a run was estimated to take, in bytes, and by how much both processes grew."""

    name: str
    estimate: int
    server: int
    worker: int
    status: str

    @property
    def ratio(self) -> float:
        """Growth of both processes over the estimate."""
        return (self.server + self.worker) / self.estimate


def experiments(n: int, seed: int = 0, start: int = 0) -> Iterator[Experiment]:
    """Draw accepted experiments; each depends on the seed and its number alone."""
    worlds = [kind for kind in SIMULATORS if kind != "logged"]
    for i in range(start, start + n):
        rng = np.random.default_rng([seed, i])
        for attempt in itertools.count():
            kinds = list(rng.choice(list(AGENTS), int(rng.integers(1, 4)), replace=False))
            if attempt < 20:
                # each agent and simulator has its turn; some pairs do not fit
                kinds[0] = list(AGENTS)[i % len(AGENTS)]
            world = worlds[i % len(worlds)] if attempt < 10 else str(rng.choice(worlds))
            data = {
                "simulator": {"kind": world, **_parameters(SIMULATORS[world].Params, rng)},
                "agents": [
                    {"kind": str(kind), **_parameters(AGENTS[kind].Params, rng)} for kind in kinds
                ],
                "steps": int(10 ** rng.uniform(1.3, 3.5)),
                "replications": int(2 ** rng.uniform(0, 9)),
            }
            try:
                found = read(data)
            except UserError:
                continue
            if LEAST <= found.memory() <= MOST:
                yield found
                break


def _parameters(params: type[Any], rng: np.random.Generator) -> dict[str, Any]:
    """Draw a third of the parameters within their bounds; the others keep their defaults."""
    drawn = {}
    for name, field in params.model_json_schema()["properties"].items():
        if name not in FIXED and rng.random() < 1 / 3:
            value = _drawn(field, rng)
            if value is not None:
                drawn[name] = value
    return drawn


def _drawn(field: dict[str, Any], rng: np.random.Generator) -> Any:
    if "enum" in field:
        return field["enum"][int(rng.integers(len(field["enum"])))]
    kind = field.get("type")
    if kind == "boolean":
        return bool(rng.integers(2))
    if kind == "array" and field.get("items", {}).get("type") == "integer":
        return [int(2 ** rng.uniform(2, 8)) for _ in range(int(rng.integers(1, 3)))]
    if kind not in ("integer", "number"):
        return None
    low = field.get("minimum", field.get("exclusiveMinimum", 0))
    high = field.get("maximum", field.get("exclusiveMaximum", max(10.0, 2 * low)))
    share = rng.random()
    if kind == "integer" and high > 100 * max(low, 1):
        return round(max(low, 1) * (high / max(low, 1)) ** share)
    value = low + (high - low) * share
    return round(value) if kind == "integer" else float(value)


def measure(experiment: Experiment) -> Taken:
    """Run an experiment on a new worker, and return by how much it and this process grew."""
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(1, Store(Path(folder)), limited=False)
        try:
            # with so few arms that what is refitted is fitted, and all libraries are loaded
            levers = {"kind": "levers", "n_arms": 2}
            for a in experiment.agents:
                soon = {"every": 1} if "every" in type(a).model_fields else {}
                agents = [{**a.model_dump(mode="json"), **soon}]
                libraries = {"simulator": levers, "agents": agents, "steps": 100, "replications": 1}
                with suppress(UserError):
                    _wait(pool, read(libraries), 600.0)
            short = {"steps": min(30, experiment.steps), "replications": 1, "seed": 1}
            _wait(pool, experiment.model_copy(update=short), 600.0)
            worker = _children()[-1]
            gc.collect()
            malloc.trim()
            before, own = _begin(worker), _anonymous()
            status, peak, grown = _wait(pool, experiment, SECONDS, worker)
        finally:
            pool.close()
    kinds = ", ".join(agent.kind for agent in experiment.agents)
    name = f"{experiment.simulator.kind}: {kinds}, {experiment.steps:,} x {experiment.replications}"
    estimate = experiment.memory() + experiment.server_memory()
    return Taken(name, estimate, peak - own, grown - before, status)


def _wait(
    pool: Pool, experiment: Experiment, seconds: float, worker: str = "self"
) -> tuple[str, int, int]:
    """Run an experiment; stop it after some seconds.

    Return its status, and the most that this process and its worker held meanwhile.
    """
    job, end, peak, grown = pool.submit(experiment), math.inf, 0, 0
    while job.active or pool._supervisor.division.shares(job):
        time.sleep(0.01)
        peak = max(peak, _anonymous())
        # a worker that does not leave its step is killed
        with suppress(OSError, AssertionError):
            grown = _status(worker, "VmHWM")
        if job.status == "running" and job.step and end == math.inf:
            end = time.monotonic() + seconds
        if job.active and time.monotonic() > end:
            pool.stop(job)
    return job.status, peak, grown


def _children() -> list[str]:
    found = Path("/proc/self/task").glob("*/children")
    return sorted(" ".join(path.read_text(encoding="ascii") for path in found).split(), key=int)


def _begin(process: str) -> int:
    """Let the peak of a process begin anew; return its resident bytes."""
    Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")
    return _status(process, "VmRSS")


def _anonymous() -> int:
    """Return the resident bytes of this process, but for files that the system can take back."""
    return _status("self", "RssAnon") + _status("self", "RssShmem")


def _status(process: str, name: str) -> int:
    text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    found = re.search(rf"{name}:\s+(\d+) kB", text)
    assert found is not None
    return 1024 * int(found[1])


def section(n: int = 200, seed: int = 0, start: int = 0) -> Section:
    """Measure random experiments; the table has those with the largest ratios."""
    made = Section(
        "Memory of random experiments: server and worker, and what the ledger enters",
        "Growth of the server and of its worker from the end of a short run of the same kind to "
        f"the peak of the run, and the estimate. Runs end after {SECONDS:.0f} s. {machine()}.",
        ("run", "estimate", "server", "worker", "both / estimate"),
        code=stamp(section),
    )
    found = list[Taken]()
    # what this process loads once
    measure(read({"agents": [{"kind": "linucb"}], "steps": 3000, "replications": 64}))
    for experiment in experiments(n, seed, start):
        found.append(measure(experiment))
        shown = {**found[-1]._asdict(), "ratio": round(found[-1].ratio, 2)}
        print(json.dumps(shown), flush=True)
        if found[-1].ratio > LIMIT:
            print(experiment.model_dump_json(exclude_defaults=True), flush=True)
    for one in sorted(found, key=lambda one: -one.ratio)[:12]:
        sizes = (size(one.estimate), size(one.server), size(one.worker))
        made.rows.append((one.name, *sizes, f"{one.ratio:.2f}"))
    worst = max(one.ratio for one in found)
    target = f"at most {LIMIT} of the estimate, {count_of(len(found), 'random experiments')}"
    made.targets.append((target, f"{worst:.2f}", worst <= LIMIT))
    return made


def main(arguments: list[str]) -> int:
    """Measure, and write the table if asked; return the exit status."""
    numbers = [int(text) for text in arguments if text.isdecimal()]
    start = numbers.pop() if "--from" in arguments else 0
    made = section(*(numbers + [200, 0][len(numbers) :]), start)
    if "--write" in arguments:
        keep(made)
    return int(not all(met for *_, met in made.targets))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
