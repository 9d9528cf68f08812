"""Compare with Vowpal Wabbit on the pet shop, clicks and time, and its explorers with ours on three
problems, each at its default and at its best: ``python -m benchmarks.peers.vowpal [explorers]
--write``.

Vowpal Wabbit runs in an environment of its own, on the same shops, visitors and random numbers as
our agents. It multiplies persona and category itself (``-q SA``); our shared models get the same
products as interaction features."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
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


# of the comparison of explorers: steps, runs that choose a setting, runs that are reported
SHORT, TUNING, REPORTED = 1_000, 3, 8
# costs are from -1 to 0
COSTS = "--cb_min_cost -1 --cb_max_cost 0"
PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "pet shop": (SHOP, "shared"),
    "digits": ({"kind": "classification", "data": "digits", "encoding": "context"}, "per_arm"),
    "census income": (
        {"kind": "classification", "data": "adult", "encoding": "context"},
        "per_arm",
    ),
}
# three settings each, the default first
THEIR_EXPLORERS = {
    "squarecb": [
        f"--squarecb {COSTS}{more}" for more in ("", " --gamma_scale 100", " --gamma_scale 1000")
    ],
    "cover": ["--cover 5", "--cover 16", "--cover 5 --psi 0.1"],
    "bag": ["--bag 5", "--bag 10", "--bag 10 --greedify"],
    "softmax": ["--softmax", "--softmax --lambda 10", "--softmax --lambda 100"],
    "regcb": [
        f"--regcb {COSTS}{more}" for more in ("", " --mellowness 0.01", " --mellowness 0.001")
    ],
}
OUR_EXPLORERS: dict[str, list[dict[str, Any]]] = {
    "squarecb": [{}, {"gap_weight": 10.0}, {"gap_weight": 1000.0}],
    "bag": [{}, {"members": 5}, {"members": 30}],
    "linucb": [{}, {"alpha": 0.2}, {"alpha": 1.0}],
    "lints": [{}, {"sigma2": 0.05}, {"sigma2": 0.25}],
    "epsilon_greedy": [{}, {"epsilon": 0.01}, {"epsilon": 0.2}],
}


def explorers(steps: int = SHORT, runs: int = REPORTED) -> Section:
    """Compare explorers of both sides on three problems, each at its default and at the best of
    three settings.
    """
    version = install(["vowpalwabbit"])["vowpalwabbit"]
    section = Section(
        f"Explorers of Vowpal Wabbit and ours: share of decisions with a reward, {steps:,} steps",
        f"`python -m benchmarks.peers.vowpal explorers --write`; {machine()}. {runs} runs, 95 % "
        f"intervals. Each side has three settings; {TUNING} other runs choose the best. Vowpal "
        f"Wabbit {version} with `-q SA`: a linear model per class, or products of persona and "
        "category. Ours: the same models. In brackets: the setting that was chosen.",
        ("explorer", *(f"{name}, {which}" for name in PROBLEMS for which in ("default", "best"))),
        code=stamp(explorers),
    )
    cells: dict[str, list[str]] = {}
    for name, (simulator, sharing) in PROBLEMS.items():
        for explorer, (default, best, setting) in _problem(simulator, sharing, steps, runs):
            print(name, explorer, default.mean(), best.mean(), setting, file=sys.stderr, flush=True)
            chosen = f" [{setting}]" if setting else ""
            cells.setdefault(explorer, []).extend(
                [_interval(estimate(default)), f"{_interval(estimate(best))}{chosen}"]
            )
    section.rows = [(explorer, *found) for explorer, found in cells.items()]
    return section


def _problem(
    simulator: Mapping[str, Any], sharing: str, steps: int, runs: int
) -> Iterator[tuple[str, tuple[FloatArray, FloatArray, str]]]:
    """Yield each explorer with its rewards at the default and at its best, and that setting."""
    with tempfile.TemporaryDirectory() as folder:
        tuning, reported = Path(folder) / "tuning.npz", Path(folder) / "reported.npz"
        sizes = {tuning: (1, TUNING), reported: (2, runs)}
        for file, (seed, rows) in sizes.items():
            np.savez(file, **_drawn(simulator, steps, rows, seed))

        def vowpal(setting: str, file: Path) -> FloatArray:
            return theirs(f"{BASE} {setting}", file, sizes[file][1], steps)[0]

        def own(agent: Mapping[str, Any], file: Path) -> FloatArray:
            seed, rows = sizes[file]
            lane = _seeded({**agent, "sharing": sharing}, simulator, steps, rows, seed)
            return np.asarray(lane.advance(steps).rewards.mean(axis=0))

        for name, settings in THEIR_EXPLORERS.items():
            words = [s.replace(COSTS, "").replace("  ", " ").strip() for s in settings]
            yield f"VW: {name}", _at_best(settings, words, vowpal, tuning, reported)
        for kind, changes in OUR_EXPLORERS.items():
            agents = [{"kind": kind, **change} for change in changes]
            words = [", ".join(f"{k} {v:g}" for k, v in change.items()) for change in changes]
            yield f"ours: {kind}", _at_best(agents, words, own, tuning, reported)


def _at_best(
    settings: Sequence[Any],
    words: Sequence[str],
    play: Callable[[Any, Path], FloatArray],
    tuning: Path,
    reported: Path,
) -> tuple[FloatArray, FloatArray, str]:
    """Return the rewards at the default and at the setting that is best on other runs, and the
    words of that setting; empty if it is the default.
    """
    best = int(np.argmax([play(setting, tuning).mean() for setting in settings]))
    default = play(settings[0], reported)
    if best == 0:
        return default, default, ""
    return default, play(settings[best], reported), words[best]


def _seeded(
    agent: Mapping[str, Any], simulator: Mapping[str, Any], steps: int, runs: int, seed: int
) -> Any:
    size = {"steps": steps, "replications": runs, "seed": seed}
    lane = make_lane(
        Experiment.model_validate({"simulator": simulator, "agents": [agent], **size}), 0
    )
    lane.agent.prepare()
    return lane


def _drawn(simulator: Mapping[str, Any], steps: int, runs: int, seed: int) -> dict[str, Any]:
    """Return what happens whatever is shown, as `vowpal_child` reads it: each step is a kind of
    visitor.
    """
    lane = _seeded({"kind": "random"}, simulator, steps, runs, seed)
    world = lane.simulator
    segments, rates, features, uniforms = [], [], [], []
    for step in range(steps):
        round = world.round_at(step)
        rates.append(world.probabilities(round))
        segments.append(round.segments)
        features.append(round.features[:, 0])
        uniforms.append(world.uniforms.at(step)[:, 0])
    found = {
        "uniforms": np.array(uniforms),
        "personas": np.repeat(np.arange(steps)[:, None], runs, axis=1),
        "rates": np.array(rates).swapaxes(0, 1),
    }
    if simulator["kind"] == "petshop":
        # the persona instead of the step: what is learned of one holds for its next visits
        persona = np.array(segments)
        table = np.empty((runs, int(persona.max()) + 1, world.spec.n_items))
        for row in range(runs):
            table[row, persona[:, row]] = found["rates"][row]
        names = [
            [world.name(item, row) for item in range(world.spec.n_items)] for row in range(runs)
        ]
        categories = np.char.replace(np.array(names), " ", "_")
        return {**found, "categories": categories, "personas": persona, "rates": table}
    classes = np.array([f"class_{item}" for item in range(world.spec.n_items)])
    x = np.array(features).swapaxes(0, 1)
    return {**found, "categories": np.tile(classes, (runs, 1)), "features": x}


def _interval(e: Estimate) -> str:
    return f"{e.mean:.4f} ({e.low:.4f} to {e.high:.4f})"


def main() -> None:
    """Print the section; with ``--write``, put it into RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "part", nargs="?", choices=["explorers"], help="the second comparison alone"
    )
    parser.add_argument("--write", action="store_true", help="put the section into RESULTS.md")
    parser.add_argument("--steps", type=int, help=f"by default {STEPS:,}, of explorers {SHORT:,}")
    parser.add_argument("--runs", type=int, help=f"by default {RUNS}, of explorers {REPORTED}")
    parsed = parser.parse_args()
    sizes = {name: size for name in ("steps", "runs") if (size := getattr(parsed, name))}
    for part in (explorers,) if parsed.part else (run, explorers):
        section = part(**sizes)
        print(section)
        if parsed.write:
            keep(section)


if __name__ == "__main__":
    main()
