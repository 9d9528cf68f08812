"""New items and products that differ, in the pet shop: docs/NEW.md.

    python -m benchmarks.reproduction.new_items --write

All runs have the same seed, so differences are paired by replication, also between simulators.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits import Experiment, run
from bandits.base.formatting import count
from bandits.base.types import FloatArray
from bandits.results import metrics
from bandits.results.items.demand import demand
from bandits.results.items.launches import Launched, cohort_shares, launches
from bandits.results.items.new_items import NEVER
from bandits.results.metrics import Estimate
from benchmarks.measure import put, stamp, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "NEW.md"
STEPS, LONG, REPLICATIONS, LAUNCH, LAST = 20_000, 60_000, 16, 10_000, 2_000
VARIED: dict[str, Any] = {"n_products": 1000, "variety": 0.3, "layout": "per_row"}
HINTS, PAIRS = {"hints": 0.8, "features": "interaction"}, {"features": "interaction"}
SHARED: dict[str, Any] = {"kind": "linucb", "alpha": 1.0, "sharing": "shared"}
PER_ARM: dict[str, Any] = {"kind": "linucb", "alpha": 0.4}
PRIOR: dict[str, Any] = {**PER_ARM, "prior": "category"}
ORDER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # shop, agent
    "oracle": ({}, {"kind": "oracle"}),
    "shared, with hints, α = 1": (HINTS, SHARED),
    "per arm, category prior, α = 0.7": (PAIRS, {**PRIOR, "alpha": 0.7}),
    "per arm, category prior, α = 0.4": (PAIRS, PRIOR),
    "per arm, α = 0.7": (PAIRS, {**PER_ARM, "alpha": 0.7}),
    "per arm, α = 0.4": (PAIRS, PER_ARM),
    "per arm, α = 0.1": (PAIRS, {**PER_ARM, "alpha": 0.1}),
    "shared, without hints, α = 1": (PAIRS, SHARED),
}
HIT = {"kind": "launch", "at": LAUNCH, "items": 1, "category": "Fish", "quality": 1.5}
FLOOR = {"kind": "floor", "epsilon": 0.0, "shows": 200, "new": 0.05}
FINDERS: dict[str, dict[str, Any]] = {
    "LinUCB per arm": PER_ARM,
    "LinUCB per arm, category prior": {**PER_ARM, "prior": "category"},
    "LinUCB per arm, pooled prior": {**PER_ARM, "prior": "pooled"},
    "LinUCB shared": {**SHARED, "alpha": 0.4},
    "LinUCB hybrid": {**PER_ARM, "sharing": "hybrid"},
    "Beta Thompson": {"kind": "beta_ts"},
    "Popularity": {"kind": "popularity"},
}


class Found(NamedTuple):
    """What an agent did after a launch.

    Attributes
    ----------
    clicks, before : float64 (R,)
        Of the whole run, and before the launch.
    launched : Launched
    late : float64 (R,)
        Share of the new items in the last `LAST` steps.
    """

    clicks: FloatArray
    before: FloatArray
    launched: Launched
    late: FloatArray


class Outcomes(NamedTuple):
    """Everything that the document states."""

    # clicks per step after STEPS and after LONG steps, (2, R)
    order: dict[str, FloatArray]
    # by agent, and whether it has the floor
    hit: dict[tuple[str, bool], Found]


def experiment(
    agent: dict[str, Any], steps: int, replications: int, **simulator: Any
) -> Experiment:
    """Make an experiment with one agent in the pet shop."""
    data = {"simulator": {"kind": "petshop", **simulator}, "agents": [agent], "steps": steps}
    return Experiment.model_validate({**data, "replications": replications})


def clicks(e: Experiment) -> FloatArray:
    """Run an experiment; return the clicks of every replication."""
    (history,) = run(e, workers=0, progress=False).histories.values()
    return metrics.total(history, "clicks")


def found_hit(agent: dict[str, Any], replications: int) -> Found:
    """Launch a hit."""
    shop = PAIRS if agent.get("sharing") == "shared" else {}
    e = experiment(agent, STEPS, replications, changes=[HIT], **shop)
    (history,) = run(e, workers=0, progress=False).histories.values()
    wanted = demand(e)
    assert wanted is not None
    (launched,) = launches(history, wanted)
    grid, shown = cohort_shares(history, wanted.cohorts[0])
    late = int(np.searchsorted(grid, STEPS - LAST))
    sums = history.sums["clicks"]
    before = sums[int(np.searchsorted(history.grid, LAUNCH))]
    return Found(sums[-1], before, launched, (shown[-1] - shown[late]) / (grid[-1] - grid[late]))


def measure(replications: int = REPLICATIONS) -> Outcomes:
    """Run everything."""
    order = {}
    for name, (shop, agent) in ORDER.items():
        e = experiment(agent, LONG, replications, **VARIED, **shop)
        (history,) = run(e, workers=0, progress=False).histories.values()
        order[name] = np.stack([metrics.click_rate(history, step) for step in (STEPS, LONG)])
    hit = {}
    for name, agent in FINDERS.items():
        for floor in (False, True):
            hit[name, floor] = found_hit(
                {**agent, "guards": [FLOOR]} if floor else agent, replications
            )
    return Outcomes(order, hit)


def rate(found: Estimate) -> str:
    """Format a rate with its interval."""
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def amount(found: Estimate) -> str:
    """Format a number of clicks with its interval."""
    return f"{count(found.mean)} ({count(found.low)} to {count(found.high)})"


def verdicts(found: Outcomes) -> Iterator[str]:
    """Judge the statements that the document is written for, each by the intervals of its
    tables.
    """

    def judged(true: bool, sentence: str) -> str:
        return f"- **{'Confirmed' if true else 'Not confirmed'}**: {sentence}."

    def gap(a: str, b: str) -> Estimate:
        return metrics.estimate(found.order[a][0] - found.order[b][0])

    chain = [
        "oracle",
        "shared, with hints, α = 1",
        *(f"per arm, {way}" for way in ("category prior, α = 0.4", "α = 0.4")),
    ]
    gaps = [gap(a, b) for a, b in pairwise([*chain, "per arm, α = 0.1"])]
    yield judged(
        all(each.low > 0 for each in gaps),
        "with 1,000 products that differ, sharing with hints is next to the oracle, then models "
        "per arm with a category prior, then plain models per arm with α = 0.4, then with 0.1 "
        f"(differences {', '.join(map(rate, gaps))})",
    )
    earned = gap("per arm, category prior, α = 0.4", "shared, without hints, α = 1")
    yield judged(
        earned.low > 0,
        f"a category prior beats sharing without hints, by {rate(earned)} clicks per step",
    )
    plain = gap("shared, without hints, α = 1", "per arm, α = 0.4")
    yield judged(
        plain.low > 0,
        f"sharing without hints beats plain models per arm with α = 0.4 (by {rate(plain)})",
    )
    moved = [
        metrics.estimate(late - early)
        for early, late in (found.order[f"per arm, α = {a}"] for a in ("0.4", "0.1"))
    ]
    yield judged(
        all(each.high < 0.02 for each in moved),
        "from 20,000 to 60,000 steps the clicks per step of plain models per arm rise by less "
        f"than 0.02 ({', '.join(map(rate, moved))})",
    )
    shorter = []
    for name in FINDERS:
        without, with_floor = (found.hit[name, floor].launched for floor in (False, True))
        if with_floor.high is not None and (without.low is None or with_floor.high < without.low):
            shorter.append(name)
    spoken = ", ".join(shorter) or "no agent"
    way = (
        "a floor of 5 % for new items shortens the way to the fair share, with disjoint intervals,"
    )
    yield judged(bool(shorter), f"{way} of {spoken}")
    popular = found.hit["Popularity", False].late
    yield judged(
        float((popular < 0.01).mean()) > 0.5,
        "popularity does not find the hit: its share is below 1 % at the end of "
        f"{(popular < 0.01).sum()} of {len(popular)} replications",
    )


TEXT = """# New items, products that differ, and a rare persona

Written by `python -m benchmarks.reproduction.new_items --write`.

- **Simulator**: the pet shop, {replications} replications. *Products that differ*: 1,000 products, variety 0.3, a shop
  of its own in every replication, persona x category as features; hints 0.8 where stated. *A hit*: 50 products, of
  which one (Fish, quality 1.5) is launched at step 10,000 of 20,000.
- **Floor**: 5 % of the decisions show a new item, until it was shown 200 times.
- **Pairs**: all runs have the same visitors and random numbers, so every difference is paired by replication.
- **Intervals** are 95 % (Student t over replications), not corrected for their number. All hold for these shops.

## Statements

"""


def document(found: Outcomes) -> str:
    """Write the document."""
    text = TEXT.format(replications=REPLICATIONS) + "\n".join(verdicts(found))
    text += "\n\n## Products that differ: clicks per step\n\n"
    rows = [
        (name, *(rate(metrics.estimate(part)) for part in values))
        for name, values in found.order.items()
    ]
    text += table(("agent", "20,000 steps", "60,000 steps"), rows)
    text += "\n\n## A hit: who finds it\n\n"
    fair = next(iter(found.hit.values())).launched.fair_share
    text += (
        "Steps from the launch until the share of the next 1,000 steps stays within 20 % of that "
        "of an optimal "
    )
    text += (
        f"choice ({fair:.3f}): median of the replications, and 95 % interval by order statistics. "
        "Its share of the "
    )
    text += (
        "last 2,000 steps. What the floor costs before the launch, where every product is new "
        "until it was shown "
    )
    text += (
        "200 times, and in the whole run. Shown too little or too much: most of the replications "
    )
    text += "that never reach it end on that side.\n\n"

    def spoken(steps: int | None) -> str:
        return "never" if steps is None else count(steps)

    def reached(launched: Launched) -> str:
        if launched.low is None:
            return (
                f"never{NEVER[launched.side]} (of {REPLICATIONS}: "
                f"{round(launched.reached * REPLICATIONS)})"
            )
        never = NEVER[launched.side] if launched.steps_to_fair_share is None else ""
        return (
            f"{spoken(launched.steps_to_fair_share)}{never} ({spoken(launched.low)} to "
            f"{spoken(launched.high)})"
        )

    rows = []
    for name in FINDERS:
        plain, floor = found.hit[name, False], found.hit[name, True]
        steps = (reached(each.launched) for each in (plain, floor))
        shares = (rate(metrics.estimate(each.late)) for each in (plain, floor))
        costs = (
            metrics.estimate(a - b)
            for a, b in ((plain.before, floor.before), (plain.clicks, floor.clicks))
        )
        rows.append((name, *steps, *shares, *map(amount, costs)))
    header = ("agent", "steps", "steps with the floor", "share at the end", "share with the floor")
    text += table((*header, "clicks the floor costs before", "in all"), rows)
    return text.rstrip() + "\n"


def main() -> None:
    """Measure everything and print the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parsed = parser.parse_args()
    text = f"{document(measure())}\n{stamp(document)}\n"
    sys.stdout.write(text)
    if parsed.write:
        parts = DOCUMENT.read_text(encoding="utf-8").split("\n## ")
        DOCUMENT.write_text(text, encoding="utf-8")
        others = ("flops", "new_sweeps", "rare_persona")
        for part in parts:
            if any(f"<!-- code: benchmarks.reproduction.{name}:" in part for name in others):
                put(DOCUMENT, part)


if __name__ == "__main__":
    main()
