"""Measure what the page *Which should I use?* states, and collect what the documents have measured.

    python -m benchmarks.reproduction.choosing --write

The runs (pet shop, 20,000 steps, ten times as many where clicks are rare, 16 replications, paired)
take some minutes; other lines are read from the tables of generated documents. All goes to
bandits/advice/evidence.json with the command, the machine and a hash of this code."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from bandits import Experiment, Result, run
from bandits.results import metrics
from bandits.results.metrics import Estimate
from bandits.simulators.petshop_rates import CLICK_RATES
from bandits.sweeps.analysis.best_region import compare_with_leader
from bandits.sweeps.analysis.landscape import LEVEL
from benchmarks.defaults import TESTS
from benchmarks.measure import ROOT, code_hash, machine

OUT = ROOT / "bandits" / "advice" / "evidence.json"
STEPS, EARLY, REPLICATIONS = 20_000, 2_000, 16
# clicks are so many times rarer, in so many steps
RARER, RARE_STEPS = 50, 200_000
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0)
RIDGES = (0.01, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
SHARED: dict[str, Any] = {"kind": "linucb", "label": "shared", "alpha": 1.0, "sharing": "shared"}
PER_ARM: dict[str, Any] = {"kind": "linucb", "label": "per arm", "alpha": 0.4}
CONTEXT: tuple[dict[str, Any], ...] = (
    {"kind": "linucb", "label": "LinUCB", "alpha": 0.4},
    {"kind": "ucb1", "label": "UCB1"},
    {"kind": "beta_ts", "label": "Beta Thompson"},
    {"kind": "ab_test", "label": "test for all", "test": 2000},
    {"kind": "ab_test", "label": "test by segment", "test": 5000, "winner": "segment"},
    {"kind": "random", "label": "Random"},
)
RARE: tuple[dict[str, Any], ...] = (
    {"kind": "linucb", "label": "LinUCB", "alpha": 0.05},
    {"kind": "linucb", "label": "LinUCB alpha 0.4", "alpha": 0.4},
    {"kind": "ucb1", "label": "UCB1", "alpha": 0.01},
    {"kind": "ab_test", "label": "test for all", "test": 20_000},
    {"kind": "ab_test", "label": "test by segment", "test": 50_000, "winner": "segment"},
    {"kind": "random", "label": "Random"},
)
RARE_PAIRS: tuple[dict[str, Any], ...] = (
    {"kind": "linucb", "label": "shared", "alpha": 0.05, "sharing": "shared"},
    {"kind": "linucb", "label": "per arm", "alpha": 0.05},
    {"kind": "ab_test", "label": "test by segment", "test": 5_000, "winner": "segment"},
    {"kind": "random", "label": "Random"},
)
RARE_RATES = [[round(r / RARER, 4) for r in row] for row in CLICK_RATES]
RUNS: dict[str, tuple[dict[str, Any], tuple[dict[str, Any], ...]]] = {
    "context": ({}, CONTEXT),
    "rare": ({"click_rates": RARE_RATES}, RARE),
    **{
        f"rare_{name}": (
            {"click_rates": RARE_RATES, "features": "interaction", "n_products": products},
            RARE_PAIRS,
        )
        for name, products in (("pairs", 50), ("many", 5_000))
    },
    **{
        f"{features}_{k}": ({"features": features, "n_products": k}, (PER_ARM, SHARED))
        for features in ("additive", "interaction")
        for k in (50, 500, 1000)
    },
    "alpha": ({}, tuple({"kind": "linucb", "label": f"alpha {a:g}", "alpha": a} for a in ALPHAS)),
    "ridge": (
        {},
        tuple(
            {"kind": "linucb", "label": f"ridge {r:g}", "ridge": r, "alpha": 0.4} for r in RIDGES
        ),
    ),
}
SHOWDOWN, CHANGE, NEW = "docs/SHOWDOWN.md", "docs/CHANGE.md", "docs/NEW.md"
ARTWORK = "docs/ARTWORK.md"
# of the tables by number of products
SHARING = "How many products until sharing wins"
DEFAULTS = "docs/decisions/defaults.md"
TABLES: dict[str, tuple[str, str, dict[str, tuple[str, str]]]] = {
    "networks": (
        SHOWDOWN,
        "Stationary",
        {
            name: (row, "clicks per step")
            for name, row in (
                ("linucb", "LinUCB per arm"),
                ("neural_linear", "Neural-linear TS"),
                ("dropout", "MC dropout"),
                ("ensemble", "Ensemble"),
                ("neural_linucb", "Neural-LinUCB"),
                ("neural_ucb", "NeuralUCB exact 16-8"),
                ("neural_ucb_wide", "NeuralUCB diagonal 128-64"),
                ("static", "Static MLP"),
                ("shared", "LinUCB shared"),
            )
        },
    ),
    "early": (
        SHOWDOWN,
        "Does a shared representation learn faster? Clicks in the first 2,000 steps",
        {
            name: (row, "lead over LinUCB per arm (alpha 0.4)")
            for name, row in (
                ("neural_linear", "Neural-linear TS"),
                ("dropout", "MC dropout"),
                ("ensemble", "Ensemble"),
            )
        },
    ),
    "curved": (
        DEFAULTS,
        "Table",
        {
            name: (row, "quadratic")
            for name, row in (
                ("linucb", "LinUCB"),
                ("greedy", "Neural greedy"),
                ("neural_linear", "Neural-linear TS"),
                ("dropout", "MC dropout"),
                ("ensemble", "Ensemble"),
            )
        },
    ),
    "straight": (
        DEFAULTS,
        "Table",
        {
            name: (row, "linear")
            for name, row in (
                ("linucb", "LinUCB"),
                ("greedy", "Neural greedy"),
                ("neural_linear", "Neural-linear TS"),
                ("lints", "LinTS"),
            )
        },
    ),
    "forgetting": (
        CHANGE,
        "Clicks that forgetting earns",
        {
            name: (row, column)
            for when, column in (
                ("none", "no change"),
                ("shock", "shock at 10,000"),
                ("drift", "drift 5,000 to 15,000"),
            )
            for name, row in (
                (f"gamma_{when}", "LinUCB, γ = 0.9995"),
                (f"window_{when}", "LinUCB, window 5,000"),
                (f"lints_{when}", "LinTS, γ = 0.9995"),
            )
        },
    ),
    "varied": (
        NEW,
        "Products that differ: clicks per step",
        {
            name: (row, "20,000 steps")
            for name, row in (
                ("hints", "shared, with hints, α = 1"),
                ("prior", "per arm, category prior, α = 0.7"),
                ("plain", "per arm, α = 0.7"),
                ("blind", "shared, without hints, α = 1"),
            )
        },
    ),
    "hit": (
        NEW,
        "A hit: who finds it",
        {
            name: (row, "share at the end")
            for name, row in (
                ("plain", "LinUCB per arm"),
                ("pooled", "LinUCB per arm, pooled prior"),
                ("shared", "LinUCB shared"),
            )
        }
        | {"floor": ("LinUCB per arm", "share with the floor")},
    ),
    "sharing_equal": (
        NEW,
        f"{SHARING} / Variety 0",
        {
            "products": ("1,000", "products"),
            "shared": ("1,000", "shared"),
            "per_arm": ("1,000", "per arm"),
            "most_products": ("5,000", "products"),
            "shared_most": ("5,000", "shared"),
            "per_arm_most": ("5,000", "per arm"),
        },
    ),
    "sharing_varied": (
        NEW,
        f"{SHARING} / Variety 0.3",
        {
            f"{name}_{size}": (row, column)
            for size, row in (("few", "200"), ("most", "5,000"))
            for name, column in (
                ("products", "products"),
                ("shared", "shared"),
                ("per_arm", "per arm"),
                ("gap", "shared minus per arm"),
            )
        },
    ),
    "titles": (
        ARTWORK,
        "What sharing earns, by how often a title was shown",
        {
            name: (row, "over one model per title")
            for name, row in (("first", "first 50"), ("late", "after 800"))
        },
    ),
}
# of defaults.md, where linear agents have more decisions
COLUMNS = {"curved": "quadratic", "straight": "linear"}
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")


def experiment(name: str) -> dict[str, Any]:
    """Return the data of one run."""
    simulator, agents = RUNS[name]
    data: dict[str, Any] = {"simulator": {"kind": "petshop", **simulator}, "agents": list(agents)}
    steps = RARE_STEPS if name == "rare" else STEPS
    return {**data, "steps": steps, "replications": REPLICATIONS}


def table_values(name: str) -> dict[str, list[float]]:
    """Read cells ``mean (low to high)`` of a table in a generated document.

    One number stands for all three. A section with several tables is named with the line above the
    table: How many products until sharing wins / Variety 0.
    """
    document, place, wanted = TABLES[name]
    section, _, above = place.partition(" / ")
    text = (ROOT / document).read_text(encoding="utf-8")
    part = next(p for p in text.split("\n## ")[1:] if p.split("\n")[0] == section)
    if above:
        # the next table is another
        part = "\n\n".join(part.split(f"\n{above}:\n")[1].split("\n\n")[:2])
    lines = [
        line.strip().strip("|").split("|") for line in part.split("\n") if line.startswith("|")
    ]
    header = lines[0]
    rows = {line[0].strip(): [cell.strip() for cell in line] for line in lines[2:]}
    columns = [cell.strip() for cell in header]
    found = {}
    for key, (row, column) in wanted.items():
        cell = rows[row][columns.index(column)].replace("−", "-")
        numbers = [float(n.replace(",", "")) for n in NUMBER.findall(cell)]
        found[key] = numbers if len(numbers) == 3 else [numbers[0]] * 3
    if name in COLUMNS:
        test = TESTS[COLUMNS[name]]
        found["linear_decisions"], found["network_decisions"] = (
            [float(test.size[0])] * 3,
            [float(test.slow_size[0])] * 3,
        )
    if name == "early":
        found["decisions"] = [float(EARLY)] * 3
    return found


def run_values(result: Result) -> dict[str, list[float]]:
    """Return clicks per step, clicks of the first `EARLY` steps, and differences from the first
    agent.
    """
    rates = {label: metrics.click_rate(h) for label, h in result.histories.items()}
    early = {label: EARLY * metrics.click_rate(h, EARLY) for label, h in result.histories.items()}
    first = next(iter(rates))
    found: dict[str, Estimate] = {}
    for label, rate in rates.items():
        key = label.replace(" ", "_").replace(".", "_").lower()
        found[key], found[f"early_{key}"] = metrics.estimate(rate), metrics.estimate(early[label])
        if label != first:
            found[f"gap_{key}"] = metrics.estimate(rates[first] - rate)
    return {key: [round(float(x), 5) for x in value] for key, value in found.items()}


def measure() -> dict[str, Any]:
    """Run everything, and read the documents."""
    lines: dict[str, Any] = {}
    for name in RUNS:
        data = experiment(name)
        result = run(Experiment.model_validate(data), workers=0, progress=False)
        lines[name] = {"experiment": data, "values": run_values(result)}
        if name in ("alpha", "ridge"):
            lines[name]["values"] |= best_of(name, result)
        print(name, flush=True)
    for name, (document, section, _) in TABLES.items():
        lines[name] = {"document": document, "section": section, "values": table_values(name)}
    command = "python -m benchmarks.reproduction.choosing --write"
    code = (
        "benchmarks.reproduction.choosing:measure "
        f"{code_hash('benchmarks.reproduction.choosing', 'measure')}"
    )
    return {"command": command, "machine": machine(), "code": code, "lines": lines}


def best_of(name: str, result: Result) -> dict[str, list[float]]:
    """Return the value of a parameter with the most clicks per step, these, and the first and the
    last value that is not significantly worse.
    """
    tried = ALPHAS if name == "alpha" else RIDGES
    rates = np.array([metrics.click_rate(h) for h in result.histories.values()])
    best = int(rates.mean(axis=1).argmax())
    eligible = np.ones(len(tried), np.bool_)
    places = np.flatnonzero(compare_with_leader(rates - rates[best], best, eligible, LEVEL).region)
    # a range in words
    assert len(places) == places[-1] - places[0] + 1, places
    ends = {"alike_low": tried[places[0]], "alike_high": tried[places[-1]]}
    most = [round(float(x), 5) for x in metrics.estimate(rates[best])]
    return {"best": [tried[best]] * 3, "most": most} | {k: [v] * 3 for k, v in ends.items()}


def main() -> None:
    """Measure, and write with ``--write``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    text = json.dumps(measure(), indent=1, ensure_ascii=False) + "\n"
    if write:
        Path(OUT).write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
