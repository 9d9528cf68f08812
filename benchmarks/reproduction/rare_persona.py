"""What a persona of 2 % of the visitors loses, and what a floor gives back: a section of
docs/NEW.md.

    python -m benchmarks.reproduction.rare_persona --write

All runs have the same seed, so differences are paired by replication.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from bandits import Experiment, run
from bandits.base.formatting import count
from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.items.fairness import SegmentFairness, segments
from benchmarks.measure import put, stamp, table
from benchmarks.reproduction.new_items import DOCUMENT, rate

STEPS, REPLICATIONS = 20_000, 16
SHARES = (0.45, 0.30, 0.23, 0.02)
# places among the personas
FREQUENT, RARE = 0, 3
FLOOR = {"kind": "floor", "segments": [0.0, 0.0, 0.0, 0.05]}
SHARED: dict[str, Any] = {"kind": "linucb", "alpha": 1.0, "sharing": "shared"}
AGENTS: dict[str, dict[str, Any]] = {
    "LinUCB shared": SHARED,
    "LinUCB per arm": {"kind": "linucb", "alpha": 0.4},
    "LinTS per arm": {"kind": "lints"},
    "oracle": {"kind": "oracle"},
}
GUARDED = [name for name in AGENTS if name != "oracle"]


class Served(NamedTuple):
    """What an agent did for the personas.

    Attributes
    ----------
    personas : list of SegmentFairness
    ctr : float64 (R, G)
        Click-through rate of each persona.
    """

    personas: list[SegmentFairness]
    ctr: FloatArray


def experiment(agent: dict[str, Any], replications: int) -> Experiment:
    """Make an experiment with one agent; shared models read persona x category."""
    shop = {"features": "interaction"} if agent.get("sharing") == "shared" else {}
    data = {
        "simulator": {"kind": "petshop", "persona_shares": SHARES, **shop},
        "agents": [agent],
        "steps": STEPS,
    }
    return Experiment.model_validate({**data, "replications": replications})


def served(history: History) -> Served:
    """Measure what an agent did for the personas."""
    by_segment, sums = segments(history), history.segment_sums
    assert by_segment is not None
    assert sums is not None
    visits, clicks = (sums.total(name, history.step) for name in ("visits", "clicks"))
    return Served(by_segment, clicks / visits)


def measure(replications: int = REPLICATIONS) -> dict[tuple[str, bool], Served]:
    """Run every agent, and those that can have it with a floor for the rare persona: by agent and
    floor.
    """
    found = {}
    for name, agent in AGENTS.items():
        for floor in (False, True) if name in GUARDED else (False,):
            e = experiment({**agent, "guards": [FLOOR]} if floor else agent, replications)
            (history,) = run(e, workers=0, progress=False).histories.values()
            found[name, floor] = served(history)
    return found


TEXT = """## A persona of 2 %

The pet shop, {steps} steps, {replications} replications; 2 % of the users are fish hobbyists. Shared models read
persona x category, models per arm persona and category. Click-through rate of the rare persona and of the most frequent
one; regret per visit of the rare persona minus that of all others (disparity). *Floor*: 5 % of the decisions for the
rare persona are random. What it gives each persona is paired with the same agent without it; intervals are 95 %
(Student t), those of the pairs hold for all {family} together (Bonferroni).

"""


def document(found: Mapping[tuple[str, bool], Served]) -> str:
    """Write the section."""
    family = 2 * len(GUARDED)
    text = TEXT.format(steps=count(STEPS), replications=REPLICATIONS, family=family)
    gains = {
        name: [
            metrics.estimate((found[name, True].ctr - found[name, False].ctr)[:, g], family=family)
            for g in (RARE, FREQUENT)
        ]
        for name in GUARDED
    }
    for name, (rare, frequent) in gains.items():
        verb = "gains" if rare.low > 0 else "loses" if rare.high < 0 else "shows no change"
        pays = (
            "pays"
            if frequent.high < 0
            else "gains"
            if frequent.low > 0
            else "pays nothing significant"
        )
        text += (
            f"- **{name}**: with the floor, the rare persona {verb} ({rate(rare)} clicks per "
            "visit); the most "
        )
        text += f"frequent one {pays} ({rate(frequent)}).\n"
    rows = []
    for (name, floor), own in found.items():
        rare, frequent = (own.personas[g] for g in (RARE, FREQUENT))
        shown = f"{name}, floor" if floor else name
        rows.append((shown, rate(rare.ctr), rate(frequent.ctr), rate(rare.disparity)))
    return (
        f"{text}\n{table(('agent', 'rare persona', 'most frequent persona', 'disparity'), rows)}\n"
    )


def main() -> None:
    """Measure and print the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write the section of {DOCUMENT.name}"
    )
    parsed = parser.parse_args()
    section = f"{document(measure())}\n{stamp(document)}"
    sys.stdout.write(f"{section}\n")
    if parsed.write:
        put(DOCUMENT, section)


if __name__ == "__main__":
    main()
