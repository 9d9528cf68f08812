"""What launched flops cost agents that explore them: a section of docs/NEW.md.

    python -m benchmarks.reproduction.flops --write

All runs have the same seed, so differences are paired by replication.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from bandits.base.types import FloatArray
from bandits.results import metrics
from bandits.results.metrics import Estimate
from benchmarks.measure import put, stamp, table
from benchmarks.reproduction.new_items import (
    DOCUMENT,
    LAUNCH,
    PER_ARM,
    REPLICATIONS,
    STEPS,
    clicks,
    experiment,
)

FLOPS = {"kind": "launch", "at": LAUNCH, "items": 10, "quality": 0.5}
OPTIMIST, SAMPLER = "LinUCB per arm", "LinTS per arm"
AGENTS: dict[str, dict[str, Any]] = {OPTIMIST: PER_ARM, SAMPLER: {"kind": "lints"}}


def measure(replications: int = REPLICATIONS) -> dict[str, FloatArray]:
    """Return the clicks that every agent loses per flop, float64 (R,)."""
    # the same items, which never come
    late = {**FLOPS, "at": STEPS - 1}
    found = {}
    for name, agent in AGENTS.items():
        never, now = (
            clicks(experiment(agent, STEPS, replications, changes=[c])) for c in (late, FLOPS)
        )
        found[name] = (never - now) / FLOPS["items"]
    return found


def fine(found: Estimate) -> str:
    """Format a small number of clicks with its interval."""
    return f"{found.mean:.1f} ({found.low:.1f} to {found.high:.1f})"


TEXT = """## Ten flops: clicks lost per flop

The pet shop, {replications} replications; ten products with quality 0.5 are launched at step 10,000 of 20,000.
Clicks of the same run in which the ten are never launched, minus those of the run, divided by ten. The last row is the
paired difference: what optimism loses more than sampling from the posterior. Intervals are 95 % (Student t).

"""


def document(found: Mapping[str, FloatArray]) -> str:
    """Write the section."""
    more = metrics.estimate(found[OPTIMIST] - found[SAMPLER])
    rows = [(name, fine(metrics.estimate(lost))) for name, lost in found.items()]
    rows.append((f"{OPTIMIST} minus {SAMPLER}", fine(more)))
    verdict = "more" if more.low > 0 else "fewer" if more.high < 0 else "about as many"
    text = TEXT.format(replications=REPLICATIONS)
    text += (
        f"- **Optimism**: {OPTIMIST} loses {verdict} clicks per flop compared with {SAMPLER}: "
        f"{fine(more)}.\n\n"
    )
    return f"{text}{table(('agent', 'clicks per flop'), rows)}\n"


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
