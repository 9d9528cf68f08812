"""How many products until sharing wins, and clicks against privacy: two sections of docs/NEW.md.

    python -m benchmarks.reproduction.new_sweeps --write

Runs the sweeps that are presets of the page Sweep (some three minutes of one processor). All points
of a sweep serve the same visitors with the same random numbers, so differences are paired by
replication."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from bandits.base.formatting import count
from bandits.base.types import FloatArray
from bandits.results import metrics
from bandits.results.metrics import Estimate
from bandits.sweeps import Sweep, read, run
from bandits.sweeps.analysis import wins_from as lead
from bandits.sweeps.presets import presets
from benchmarks.measure import put, stamp, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "NEW.md"
# variety: name of the preset
SHARING = {0.0: "identical", 0.15: "alike", 0.3: "varied"}
NAMES = {
    "per_arm+zero": "per arm",
    "per_arm+category": "per arm, category prior",
    "hybrid+zero": "hybrid",
    "shared+zero": "shared",
}
PER_ARM, PRIOR, HYBRID, SHARED = NAMES
# of the presets' 5,000
STEPS = 3_000
# is not run: it takes most of the time of a sweep
SLOW = (HYBRID, 5000)
PRIVATE = {"LinUCB": "private-linucb", "LinTS": "private-lints"}

# by products and way: clicks per step, (R,)
Rates = Mapping[tuple[int, str], FloatArray]


def narrowed(sweep: Sweep, sizes: list[int], ways: list[str]) -> Sweep:
    """Return a sweep of `STEPS` steps with these values of its two axes."""
    data = sweep.model_dump(mode="json")
    data["experiment"]["steps"] = STEPS
    for axis, values in zip(data["axes"], (sizes, ways), strict=True):
        axis["values"] = values
    return read(data)


def sharing_rates(variety: float) -> Rates:
    """Run the sweep over products and ways to share."""
    preset = presets()[SHARING[variety]].sweep
    sizes, ways = ([*values] for values in preset.values)
    slow, largest = SLOW
    parts = [
        ([n for n in sizes if n != largest], ways),
        ([sizes[0], largest], [w for w in ways if w != slow]),
    ]
    found: dict[tuple[int, str], FloatArray] = {}
    for chosen, with_ways in parts:
        sweep = narrowed(preset, chosen, with_ways)  # type: ignore[arg-type]
        rates = run(sweep).numbers("ctr")
        found |= {sweep.values_at(point): rates[point] for point in range(sweep.size)}  # type: ignore[misc]
    return found


def gap(rates: Rates, size: int, other: str, family: int) -> Estimate:
    """Estimate what sharing earns more than another way, per step, with an interval for ``family``
    comparisons.
    """
    return metrics.estimate(rates[size, SHARED] - rates[size, other], family=family)


def wins_from(rates: Rates, other: str) -> int | None:
    """Return the number of products from which on sharing earns significantly more than another
    way; None if never.
    """
    sizes = sorted({size for size, way in rates if way == other})
    gaps = np.stack([rates[size, SHARED] - rates[size, other] for size in sizes])
    first = lead.wins_from(gaps, len(sizes))
    return None if first is None else sizes[first]


def rate(found: Estimate) -> str:
    """Format a rate with its interval."""
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def sharing_lines(found: Mapping[float, Rates]) -> Iterator[str]:
    """State from how many products on sharing wins, and the tables behind it."""
    for variety, rates in found.items():
        parts = []
        for other in (PER_ARM, PRIOR, HYBRID):
            first = wins_from(rates, other)
            size = (
                "at no number of products up to the largest"
                if first is None
                else f"from {count(first)} products on"
            )
            parts.append(f"{NAMES[other]}: {size}")
        yield f"- **Variety {variety:g}**: sharing earns significantly more than {'; '.join(parts)}."
    for variety, rates in found.items():
        sizes = sorted({size for size, _ in rates})
        rows = []
        for size in sizes:
            cells = [
                rate(metrics.estimate(rates[size, w])) if (size, w) in rates else "not run"
                for w in NAMES
            ]
            gaps = [rate(gap(rates, size, other, len(sizes))) for other in (PER_ARM, PRIOR)]
            rows.append((count(size), *cells, *gaps))
        header = (
            "products",
            *NAMES.values(),
            "shared minus per arm",
            "shared minus category prior",
        )
        yield f"\nVariety {variety:g}:\n\n{table(header, rows)}"


SHARING_TEXT = """## How many products until sharing wins

LinUCB (α = 0.7) in pet shops of 20 to 5,000 products, {steps} steps, {replications} replications, each with a shop of
its own; persona x category as features, and a hint of correlation 0.8 with how good a product is. Clicks per step. A
way wins *from n products on* if the interval of its paired difference is above 0 there and at every larger number.
Intervals of differences hold for all sizes of a table together (Bonferroni), others one by one; the claims of a table
are false in at most 5 % of repetitions (three ways, each tested at .025 over the number of sizes). The hybrid model
with 5,000 products is left out, because it takes most of the time. In the app: *Sweep*, presets *From how many
products sharing wins*, with 5,000 steps and that model too.

"""


def sharing(found: Mapping[float, Rates]) -> str:
    """Write the section on the number of products."""
    e = presets()[SHARING[0.0]].sweep.experiment
    text = SHARING_TEXT.format(steps=count(STEPS), replications=e.replications)
    return text + "\n".join(sharing_lines(found)) + "\n"


def private_rates(kind: str) -> dict[float | None, FloatArray]:
    """Run the sweep over the privacy budget of LinUCB or LinTS.

    Returns clicks per step (R,) by budget.
    """
    sweep = presets()[PRIVATE[kind]].sweep
    rates = run(sweep).numbers("ctr")
    return {sweep.values_at(point)[0]: rates[point] for point in range(sweep.size)}  # type: ignore[misc]


PRIVATE_TEXT = """## Clicks against privacy

The pet shop with persona x category as features, one model shared by all arms, {steps} steps, {replications}
replications. ε is the privacy budget of an observation (δ = 0.00001, tree mechanism, Shariff and Sheffet 2018); a
random choice earns about 0.21 clicks per step. *Lost* is paired with the same agent without noise; its intervals hold
for all budgets of an agent together (Bonferroni). In the app: *Sweep*, presets *Clicks against privacy*, as curves with
bands.

"""


def privacy_lines(found: Mapping[str, Mapping[float | None, FloatArray]]) -> Iterator[str]:
    """State from which budget on privacy costs no significant clicks."""
    for kind, rates in found.items():
        budgets = [budget for budget in rates if budget is not None]
        ordered = all(rates[a].mean() < rates[b].mean() for a, b in pairwise(budgets))
        free = None
        for budget in reversed(budgets):
            if metrics.estimate(rates[None] - rates[budget], family=len(budgets)).low > 0:
                break
            free = budget
        cost = (
            "every budget costs clicks"
            if free is None
            else f"no significant clicks are lost from ε = {free:g} on"
        )
        yield (
            f"- **{kind}**: clicks {'rise' if ordered else 'do not always rise'} with the budget; "
            f"{cost}.\n"
        )


def privacy(found: Mapping[str, Mapping[float | None, FloatArray]]) -> str:
    """Write the section on privacy."""
    e = presets()[PRIVATE["LinUCB"]].sweep.experiment
    text = PRIVATE_TEXT.format(steps=count(e.steps), replications=e.replications) + "".join(
        privacy_lines(found)
    )
    header = ("ε", *(f"{kind}{what}" for kind in found for what in ("", ", lost")))
    rows = []
    for budget in next(iter(found.values())):
        cells = []
        for rates in found.values():
            cells.append(rate(metrics.estimate(rates[budget])))
            difference = metrics.estimate(rates[None] - rates[budget], family=len(rates) - 1)
            cells.append("" if budget is None else rate(difference))
        rows.append(("none" if budget is None else f"{budget:g}", *cells))
    return f"{text}\n{table(header, rows)}\n"


def main() -> None:
    """Run the sweeps and print the sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write the sections of {DOCUMENT.name}"
    )
    parsed = parser.parse_args()
    sections = {
        privacy: lambda: privacy({kind: private_rates(kind) for kind in PRIVATE}),
        sharing: lambda: sharing({variety: sharing_rates(variety) for variety in SHARING}),
    }
    for function, make in sections.items():
        section = f"{make()}\n{stamp(function)}"
        sys.stdout.write(f"{section}\n\n")
        sys.stdout.flush()
        if parsed.write:
            put(DOCUMENT, section)


if __name__ == "__main__":
    main()
