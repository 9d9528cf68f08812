"""Compare with Vowpal Wabbit on the pet shop, clicks and time: ``python -m benchmarks.peers.vowpal
--write``.

Vowpal Wabbit runs in an environment of its own, on the same shops, visitors and random numbers as
our agents. It multiplies persona and category itself (``-q SA``); our shared models get the same
products as interaction features."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bandits import Experiment
from bandits.base.types import FloatArray
from bandits.experiments.lockstep import make_lane
from bandits.results.metrics import Estimate, estimate
from benchmarks.measure import Section, keep, machine, stamp, stopwatch

from .linear import HERE, PYTHON, install

STEPS, RUNS = 5_000, 32
SHOP: dict[str, Any] = {"kind": "petshop", "features": "interaction", "layout": "per_row"}
OURS: dict[str, dict[str, Any]] = {
    "LinUCB, alpha .7": {"kind": "linucb", "sharing": "shared", "alpha": 0.7},
    "LinTS, sigma² .1": {"kind": "lints", "sharing": "shared", "sigma2": 0.1},
    "Logistic UCB": {"kind": "logistic_ucb", "sharing": "shared"},
    "Epsilon-greedy, epsilon .05": {"kind": "epsilon_greedy", "sharing": "shared", "epsilon": 0.05},
}
BASE = "--cb_explore_adf"
POLICIES = {
    "softmax, lambda 10": f"{BASE} --softmax --lambda 10",
    "bag 10, greedify": f"{BASE} --bag 10 --greedify",
    "bag 5": f"{BASE} --bag 5",
    "cover 5": f"{BASE} --cover 5",
    "squarecb": f"{BASE} --squarecb",
    "epsilon .05": f"{BASE} --epsilon 0.05",
}


def _lane(agent: Mapping[str, Any], steps: int, runs: int) -> Any:
    data = {"simulator": SHOP, "agents": [agent], "steps": steps, "replications": runs}
    lane = make_lane(Experiment.model_validate(data), 0)
    lane.agent.prepare()
    return lane


def ours(agent: Mapping[str, Any], steps: int, runs: int) -> tuple[FloatArray, float]:
    """Return our agent's CTR of each run, and the microseconds per decision with learning and
    simulation.
    """
    _lane(agent, 50, runs).advance(50)  # compiles
    lane = _lane(agent, steps, runs)
    traces: list[Any] = []
    seconds = stopwatch(lambda: traces.append(lane.advance(steps)))
    return traces[0].rewards.mean(axis=0), 1e6 * seconds / (steps * runs)


def visitors(steps: int, runs: int) -> dict[str, Any]:
    """Return what happens in the shops whatever is shown: the arrays that `vowpal_child` reads."""
    simulator = _lane({"kind": "random"}, steps, runs).simulator
    parts, step = [], 0
    while step < steps:
        parts.append(simulator.predraw(step, steps - step))
        step += len(parts[-1].users)
    rates = parts[0].probabilities.reshape(runs, -1, simulator.spec.n_items)
    categories = [
        [simulator.name(item, row) for item in range(simulator.spec.n_items)] for row in range(runs)
    ]
    return {
        "personas": np.concatenate([part.segments for part in parts]),
        "uniforms": np.concatenate([part.uniforms for part in parts]),
        "categories": np.char.replace(np.array(categories), " ", "_"),
        "rates": rates,
    }


def theirs(options: str, data: Path, runs: int, steps: int) -> tuple[FloatArray, float]:
    """Return the CTR of each run of Vowpal Wabbit, and the median microseconds per decision with
    learning.
    """
    command = [str(PYTHON), str(HERE / "vowpal_child.py"), str(data)]
    asked = "".join(f"{run} {options}\n" for run in range(runs))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    ctr = np.array([answer["clicks"] for answer in answers]) / steps
    return ctr, median(answer["microseconds"] for answer in answers)


def run(steps: int = STEPS, runs: int = RUNS) -> Section:
    """Play all policies, and ours, in the same shops."""
    version = install(["vowpalwabbit"])["vowpalwabbit"]
    section = Section(
        "Vowpal Wabbit on the pet shop",
        f"`python -m benchmarks.peers.vowpal --write`; {machine()}. {steps:,} steps, {runs} runs, "
        f"each with its own shop of 50 products; 95 % intervals. Vowpal Wabbit {version}: "
        "predict, draw, learn through Python, features persona and category with `-q SA`. Ours: "
        "one model shared by all products on the 20 products of persona and category, all runs "
        "together; their time includes the simulator. The difference of CTR to our first agent "
        "is paired: same shops, visitors and random numbers.",
        ("policy", "CTR", "difference", "µs per decision"),
        code=stamp(run),
    )
    with threadpool_limits(1):
        found = {f"ours: {name}": ours(agent, steps, runs) for name, agent in OURS.items()}
        oracle = ours({"kind": "oracle"}, steps, runs)[0]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        np.savez(data, **visitors(steps, runs))
        found |= {
            f"VW: {name}": theirs(options, data, runs, steps) for name, options in POLICIES.items()
        }
    (first, (ctr, own)), *others = found.items()
    section.rows.append((first, _interval(estimate(ctr)), "", f"{own:,.2f}"))
    for name, (of, spent) in others:
        section.rows.append(
            (name, _interval(estimate(of)), _interval(estimate(of - ctr)), f"{spent:,.2f}")
        )
    section.rows.append(
        ("oracle", _interval(estimate(oracle)), _interval(estimate(oracle - ctr)), "")
    )
    fastest = min(spent for name, (_, spent) in found.items() if name.startswith("VW"))
    best = max(
        (name for name in found if name.startswith("VW")),
        key=lambda name: float(found[name][0].mean()),
    )
    gain = estimate(ctr - found[best][0])
    section.targets += [
        (
            f"more clicks than the best policy of Vowpal Wabbit ({best[4:]})",
            _interval(gain),
            gain.low > 0,
        ),
        (
            "at least 10 times faster than its fastest policy",
            f"{fastest / own:,.1f}",
            fastest / own >= 10,
        ),
    ]
    return section


def _interval(e: Estimate) -> str:
    return f"{e.mean:.4f} ({e.low:.4f} to {e.high:.4f})"


def main() -> None:
    """Print the section; with ``--write``, put it into RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the section into RESULTS.md")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parsed = parser.parse_args()
    section = run(parsed.steps, parsed.runs)
    print(section)
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main()
