"""What guards cost LinUCB and LinTS in the pet shop: docs/GUARDS.md.

    python -m benchmarks.reproduction.guards --write

Every agent is run as it is and with each guard, on the same users and random numbers, so
differences are paired."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits import read, run
from bandits.base.formatting import count, percent
from bandits.base.types import FloatArray
from bandits.results import metrics
from bandits.results.metrics import Estimate
from benchmarks.measure import stamp, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "GUARDS.md"
STEPS, REPLICATIONS = 20_000, 16
LITTLE = 0.05  # of the clicks
AGENTS: dict[str, dict[str, Any]] = {
    "LinUCB per arm": {"kind": "linucb", "alpha": 0.4},
    "LinTS per arm": {"kind": "lints"},
    "LinUCB shared": {"kind": "linucb", "alpha": 0.4, "sharing": "shared"},
    "LinTS shared": {"kind": "lints", "sharing": "shared"},
}
GUARDS: dict[str, dict[str, Any]] = {
    "floor, ε = 0.05": {"kind": "floor"},
    "cap, 0.5 of 1,000 steps": {"kind": "cap"},
    "delay, 500 steps": {"kind": "delay", "steps": 500},
    "batch, 500 steps": {"kind": "batch", "steps": 500},
    "reset, every 5,000 steps": {"kind": "reset", "every": 5000},
    "fallback to random, p99 50 ms": {"kind": "fallback", "median_ms": 2, "p99_ms": 50},
}
LATE = ("delay, 500 steps", "batch, 500 steps")


class Outcome(NamedTuple):
    """Clicks of an agent without a guard, and those with each guard, float64 (R,).

    Share of fallbacks.
    """

    plain: FloatArray
    guarded: dict[str, FloatArray]
    fell_back: float


def measure(name: str, steps: int = STEPS, replications: int = REPLICATIONS) -> Outcome:
    """Run one agent with all guards in this process."""
    agent = AGENTS[name]
    features = "interaction" if agent.get("sharing") == "shared" else "additive"
    stacks = {"plain": [], **{label: [guard] for label, guard in GUARDS.items()}}
    agents = [
        {**agent, "label": f"agent {i}", "guards": stack} for i, stack in enumerate(stacks.values())
    ]
    simulator = {"kind": "petshop", "features": features}
    data = {"simulator": simulator, "agents": agents, "steps": steps, "replications": replications}
    histories = list(run(read(data), workers=0, progress=False).histories.values())
    plain, *guarded = (history.sums["value"][-1] for history in histories)
    fell = histories[-1].sums["fallbacks"][-1].mean() / steps
    return Outcome(plain, dict(zip(GUARDS, guarded, strict=True)), float(fell))


class Cost(NamedTuple):
    """Clicks that a guard costs an agent, with an interval that is corrected over the table
    (Bonferroni).
    """

    agent: str
    guard: str
    estimate: Estimate
    share: Estimate


def costs(found: dict[str, Outcome]) -> list[Cost]:
    """Compare every agent with a guard with itself without."""
    pairs = [(agent, guard) for agent in found for guard in GUARDS]
    out = []
    for agent, guard in pairs:
        lost = metrics.estimate(found[agent].plain - found[agent].guarded[guard], family=len(pairs))
        earned = float(found[agent].plain.mean())
        out.append(Cost(agent, guard, lost, Estimate(*(each / earned for each in lost))))
    return out


def verdicts(found: dict[str, Outcome]) -> Iterator[str]:
    """Compare what was expected with what was measured."""
    by = {(cost.agent, cost.guard): cost for cost in costs(found)}
    for sharing in ("per arm", "shared"):
        late = [by[f"LinUCB {sharing}", guard] for guard in LATE]
        word = "Confirmed" if all(cost.share.high < LITTLE for cost in late) else "Not confirmed"
        parts = " and ".join(f"{amount(cost.estimate)} clicks ({cost.guard})" for cost in late)
        yield (
            f"- **{word}**: late rewards cost LinUCB little, less than {percent(LITTLE)} of its "
            f"clicks; one model {'per arm' if sharing == 'per arm' else 'for all arms'}: {parts}."
        )
        gaps = [
            _lost(found, "LinUCB", sharing, guard) - _lost(found, "LinTS", sharing, guard)
            for guard in LATE
        ]
        estimates = [metrics.estimate(gap, family=len(LATE)) for gap in gaps]
        word = "Confirmed" if all(each.low > 0 for each in estimates) else "Not confirmed"
        parts = " and ".join(
            f"{amount(each)} ({guard})" for each, guard in zip(estimates, LATE, strict=True)
        )
        yield f"- **{word}**: they cost LinTS less, with the same models, by {parts} clicks."


def _lost(found: dict[str, Outcome], agent: str, sharing: str, guard: str) -> FloatArray:
    outcome = found[f"{agent} {sharing}"]
    return np.asarray(outcome.plain - outcome.guarded[guard])


def amount(found: Estimate) -> str:
    """Format a number of clicks with its interval."""
    return f"{count(found.mean)} ({count(found.low)} to {count(found.high)})"


def document(found: dict[str, Outcome]) -> str:
    """Write the document."""
    some = {"steps": f"{STEPS:,}", "replications": REPLICATIONS}
    text = TEXT.format(**some) + "\n".join(verdicts(found)) + EXPLANATION
    by = {(cost.agent, cost.guard): cost for cost in costs(found)}
    plain = [
        ("without a guard: clicks", *(count(float(found[agent].plain.mean())) for agent in found))
    ]
    rows = [(guard, *(amount(by[agent, guard].estimate) for agent in found)) for guard in GUARDS]
    text += table(("guard", *found), [*plain, *rows])
    share = percent(max(outcome.fell_back for outcome in found.values()), 1)
    return (
        f"{text}\n\nThe fallback decides {share} of the time: half of the responses take 2 ms, the "
        "limit is 10 ms.\n"
    )


TEXT = """# What guards cost

Written by `python -m benchmarks.reproduction.guards --write`.

- **Simulator**: the pet shop with 50 products, {steps} steps, {replications} replications. Models per arm read persona
  and category (additive features), shared models persona x category (interaction).
- **Agents**: LinUCB (α = 0.4) and LinTS with default values, once as they are and once with each guard.
- **Cost**: expected clicks of the agent without the guard, minus those with it, paired by replication; a negative
  number is what the guard earns. Intervals are 95 % (Student t); those of the table are corrected over it
  (Bonferroni).

## Statements

"""
EXPLANATION = """

While rewards wait, neither the estimates nor the bonus of LinUCB change. Among equal scores it chooses at random, but
once scores differ it shows each visitor the product with the highest one again, until the rewards arrive; with a model
per arm, they teach it about that product alone. A shared model learns of all products from each of them. Posterior
draws differ from step to step, so that LinTS tries other arms meanwhile.

## Clicks that each guard costs

"""


def main() -> None:
    """Measure all agents and print the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parsed = parser.parse_args()
    with ProcessPoolExecutor(parsed.workers) as pool:
        found = dict(zip(AGENTS, pool.map(measure, AGENTS), strict=True))
    text = f"{document(found)}\n{stamp(document)}\n"
    sys.stdout.write(text)
    if parsed.write:
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
