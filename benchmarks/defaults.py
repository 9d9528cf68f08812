"""Choose the agents' defaults: sweep every agent in five simulators and apply one rule.

python -m benchmarks.defaults [KIND ...] [--store DIR] [--write]
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.agents import REGISTRY
from bandits.base.files import atomic_write
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.history import History
from bandits.experiments.lockstep import make_lane
from bandits.results.metrics import oracle_share
from bandits.simulators import REGISTRY as SIMULATORS

from .measure import machine, put, stamp, table

PAGE = Path(__file__).parents[1] / "docs" / "decisions" / "defaults.md"
# share of the oracle's gain below which no setting of an agent has learned
LEARNED = 0.1
FAST = ("bandits.agents.linear", "bandits.agents.context_free")
MAX_ROWS = 320
# difference of worst cases that counts as none
TIE = 0.05


class Test(NamedTuple):
    """A simulator, the sharing that its features are made for, and steps and replications: of slow
    agents, fewer.
    """

    simulator: dict[str, Any]
    sharing: str
    size: tuple[int, int]
    slow_size: tuple[int, int]


class Grid(NamedTuple):
    """Values that are tried in all combinations, and the fields that are the same at all of its
    points.
    """

    axes: dict[str, Sequence[float]]
    fixed: dict[str, Any]


class Table(NamedTuple):
    """Share of the oracle's gain over random choice of every setting, and the chosen setting.

    Attributes
    ----------
    settings : list of dict
    shares : dict
        By simulator: mean over replications, float64 (P,).
    """

    settings: list[dict[str, Any]]
    shares: dict[str, FloatArray]


BINARY = {"kind": "synthetic", "reward": "bernoulli", "n_features": 8}
TESTS = {
    "pet shop": Test({"kind": "petshop"}, "per_arm", (5000, 8), (3000, 4)),
    "linear": Test({**BINARY, "function": "linear"}, "shared", (5000, 8), (2000, 4)),
    "quadratic": Test({**BINARY, "function": "quadratic"}, "shared", (5000, 8), (2000, 4)),
    "MAGIC": Test(
        {"kind": "classification", "data": "magic", "scale": "norm", "constant": False},
        "shared",
        (5000, 8),
        (2000, 4),
    ),
    "slates": Test(
        {"kind": "ranking", "n_users": 100, "n_items": 200, "n_candidates": 20, "slate": 3},
        "shared",
        (2000, 4),
        (2000, 4),
    ),
}
REPLAY = {"hidden": [32, 16], "training": "replay", "every": 10, "updates": 5}
SELDOM = {**REPLAY, "every": 50, "updates": 25}
SINGLE = {"inverse": "exact", "buffer": 32, "batch": 8, "epsilon": 1.0}
GRIDS: dict[str, list[Grid]] = {
    "linucb": [Grid({"alpha": (0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5)}, {})],
    "lints": [Grid({"sigma2": (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)}, {})],
    "epsilon_greedy": [Grid({"epsilon": (0.01, 0.02, 0.05, 0.1, 0.2)}, {})],
    "squarecb": [Grid({"gap_weight": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)}, {})],
    "logistic_ucb": [
        Grid({"alpha": (0.03, 0.1, 0.3, 0.5, 1.0), "ridge": (0.01, 0.1, 1.0, 3.0)}, {})
    ],
    "logistic_ts": [
        Grid({"sigma2": (0.003, 0.01, 0.03, 0.1, 0.3), "ridge": (0.01, 0.1, 1.0, 3.0)}, {})
    ],
    "logistic_squarecb": [Grid({"gap_weight": (3.0, 10.0, 30.0, 100.0), "ridge": (0.1, 1.0)}, {})],
    "sgd_ts": [
        Grid(
            {"sigma2": (0.01, 0.1, 1.0), "learning_rate": (1.0, 10.0, 30.0), "radius": (2.0, 10.0)},
            {"batch": 50, "ridge": 1.0},
        ),
        Grid(
            {
                "sigma2": (0.01, 0.1, 1.0),
                "learning_rate": (3.0, 10.0, 30.0, 100.0),
                "radius": (10.0, 100.0),
            },
            {"batch": 10, "ridge": 0.1},
        ),
    ],
    "tree_ts": [Grid({"leaf": (10, 30)}, {"depth": depth}) for depth in (2, 4, 6)],
    "neural_greedy": [
        Grid({"learning_rate": (0.003, 0.01, 0.03, 0.1)}, {**REPLAY, "loss": "squared"}),
        Grid({"learning_rate": (0.001, 0.003, 0.01, 0.03)}, {**REPLAY, "loss": "log"}),
    ],
    "neural_ucb": [Grid({"alpha": (0.1, 0.3, 1.0), "learning_rate": (0.01, 0.03, 0.1)}, REPLAY)],
    "neural_ts": [
        Grid({"sigma2": (0.01, 0.1, 0.3, 1.0), "learning_rate": (0.003, 0.01, 0.03)}, REPLAY)
    ],
    "neural_linucb": [
        Grid({"alpha": (0.3, 1.0, 3.0), "learning_rate": (0.001, 0.003, 0.01)}, REPLAY),
        Grid({"alpha": (0.3, 1.0, 3.0), "learning_rate": (0.001, 0.003, 0.01)}, SELDOM),
    ],
    "neural_linear_ts": [
        Grid({"sigma2": (0.05, 0.25, 1.0), "learning_rate": (0.003, 0.01, 0.03)}, SELDOM)
    ],
    "neural_click_ts": [
        Grid({"sigma2": (0.03, 0.1, 0.3, 1.0), "learning_rate": (0.3, 1.0)}, SINGLE)
    ],
    "ensemble": [Grid({"learning_rate": (0.003, 0.01, 0.03)}, {**REPLAY, "members": 5})],
    "mc_dropout": [
        Grid({"dropout": (0.05, 0.1, 0.2), "learning_rate": (0.003, 0.01, 0.03, 0.1)}, REPLAY)
    ],
    "ucb1": [Grid({"alpha": (0.03, 0.1, 0.2, 0.3, 0.5, 1.0)}, {})],
}


def shares(kind: str, test: str, store: Path) -> FloatArray:
    """Run all settings of a kind in a simulator.

    Return the share of the oracle's gain, float64 (P,).
    """
    return np.concatenate([_shares(kind, TESTS[test], grid, store) for grid in GRIDS[kind]])


def _shares(kind: str, test: Test, grid: Grid, store: Path) -> FloatArray:
    """Run the points of a grid as rows of one lane, or of several where they are many."""
    points, file = _points(kind, test, grid), _file(kind, test, grid, store)
    replications = points[0].replications
    if not file.exists():
        rows = [(point, replication) for point in points for replication in range(replications)]
        found = np.concatenate(
            [_learned(rows[at : at + MAX_ROWS]) for at in range(0, len(rows), MAX_ROWS)]
        )
        store.mkdir(parents=True, exist_ok=True)
        atomic_write(file, json.dumps(found.reshape(len(points), replications).tolist()).encode())
    return np.asarray(np.mean(json.loads(file.read_text()), axis=1))


def _points(kind: str, test: Test, grid: Grid) -> list[Experiment]:
    """Return the experiments of a grid."""
    fast = REGISTRY[kind].__module__.startswith(FAST)
    steps, replications = test.size if fast else test.slow_size
    sharing = {"sharing": test.sharing} if "sharing" in REGISTRY[kind].Params.model_fields else {}
    agents = [{"kind": kind, **sharing, **values} for values in _values(grid)]
    # what a grid does not state is the same whenever this is run: defaults 1
    return [
        read(
            {
                "defaults": 1,
                "simulator": test.simulator,
                "steps": steps,
                "replications": replications,
                "agents": [a],
            }
        )
        for a in agents
    ]


def _file(kind: str, test: Test, grid: Grid, store: Path) -> Path:
    """Return where the results of a grid are stored."""
    hashes = " ".join(experiment.hash for experiment in _points(kind, test, grid))
    return store / f"{hashlib.sha256(hashes.encode()).hexdigest()[:16]}.json"


def _learned(rows: Sequence[tuple[Experiment, int]]) -> FloatArray:
    """Run rows in one lane.

    Return the share of the oracle's gain over random choice of each, float64 (R,).
    """
    experiments, replications = zip(*rows, strict=True)
    history = History(experiments[0].steps, len(rows), 0, points=10)
    with threadpool_limits(1):
        lane = make_lane(
            experiments[0], 0, rows=replications, params=[e.agents[0] for e in experiments]
        )
        while lane.step < experiments[0].steps:
            history.extend(lane.advance(min(500, experiments[0].steps - lane.step)))
    # a diverged network counts as random choice
    return np.where(history.alive, oracle_share(history), 0.0)


def _values(grid: Grid) -> Iterator[dict[str, Any]]:
    """Yield the settings of a grid."""
    for values in itertools.product(*grid.axes.values()):
        yield {**grid.fixed, **dict(zip(grid.axes, values, strict=True))}


def settings(kind: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of a kind in the order of `shares`."""
    for grid in GRIDS[kind]:
        yield from _values(grid)


def choose(found: Table) -> int:
    """Apply the rule: the setting with the best worst case, and among equals the one with the best
    mean.

    A setting's case in a simulator is its share of the oracle's gain divided by that of the agent's
    best setting there. Simulators in which no setting learned (`LEARNED`) do not count."""
    cases = np.array(
        [share / share.max() for share in found.shares.values() if share.max() >= LEARNED]
    )
    worst = cases.min(axis=0)
    equal = worst >= worst.max() - TIE
    return int(np.argmax(np.where(equal, cases.mean(axis=0), -np.inf)))


def measure(kind: str, store: Path, *, stored: bool = False) -> Table:
    """Measure all settings of a kind in every simulator it can run in, or read what is stored."""
    needs = REGISTRY[kind].requires(REGISTRY[kind].Params())
    found = {}
    for name, test in TESTS.items():
        cls = SIMULATORS[test.simulator["kind"]]
        possible = needs <= cls.describe(cls.Params.model_validate(test.simulator)).capabilities
        if possible and (
            not stored or all(_file(kind, test, grid, store).exists() for grid in GRIDS[kind])
        ):
            found[name] = shares(kind, name, store)
    return Table(list(settings(kind)), found)


def row(kind: str, found: Table) -> tuple[str, ...]:
    """Describe a kind's choice: chosen values, and by simulator its share beside that of the best
    setting there.
    """
    at = choose(found)
    varied = {name for grid in GRIDS[kind] for name in grid.axes} | _different(found.settings)
    chosen = ", ".join(
        f"{name} {_text(value)}" for name, value in found.settings[at].items() if name in varied
    )
    cells = {name: f"{share[at]:.2f} ({share.max():.2f})" for name, share in found.shares.items()}
    return (
        REGISTRY[kind].title,
        chosen,
        str(len(found.settings)),
        *(cells.get(name, "") for name in TESTS),
    )


def _different(found: Sequence[Mapping[str, Any]]) -> set[str]:
    """Names of the fields that are not the same in all settings."""
    return {name for name in found[0] if len({str(each[name]) for each in found}) > 1}


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print one line per kind as it is found, and rewrite the table if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"{', '.join(GRIDS)}; all by default"
    )
    parser.add_argument(
        "--store",
        type=Path,
        default=Path(gettempdir()) / "bandits-defaults",
        help="folder of finished parts, from which an interrupted run continues",
    )
    parser.add_argument(
        "--stored", action="store_true", help="leave out the simulators that are not finished"
    )
    parser.add_argument("--write", action="store_true", help=f"rewrite the table of {PAGE.name}")
    parsed = parser.parse_args(arguments)
    if unknown := set(parsed.kinds) - set(GRIDS):
        parser.error(f"unknown kind {', '.join(sorted(unknown))}; allowed are {', '.join(GRIDS)}")
    began, rows = machine(), []
    for kind in parsed.kinds or GRIDS:
        rows.append(row(kind, measure(kind, parsed.store, stored=parsed.stored)))
        print(" | ".join(rows[-1]), flush=True)
    if parsed.write:
        text = table(("agent", "chosen", "settings", *TESTS), rows)
        put(
            PAGE,
            "## Table\n\nWritten by `python -m benchmarks.defaults --write`. "
            f"{began}.\n\n{text}\n\n{stamp(main)}\n",
        )


if __name__ == "__main__":
    main()
