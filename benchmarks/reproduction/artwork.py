"""A picture for each visitor: one model for all titles, one per title or per picture:
docs/ARTWORK.md.

    python -m benchmarks.reproduction.artwork --write

All agents serve the same visitors with the same random numbers, so differences are paired by
replication."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits import Experiment
from bandits.base.types import FloatArray
from bandits.experiments.lockstep import make_lane
from bandits.results import metrics
from bandits.results.metrics import Estimate
from bandits.simulators.artwork import Artwork
from benchmarks.measure import stamp, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "ARTWORK.md"
STEPS, REPLICATIONS, CHUNK, LAST, LEVEL = 50_000, 16, 1_000, 10_000, 0.6
# impressions of a title
BUCKETS = (50, 200, 800)
SHARED, TITLE, PICTURE = "LinUCB shared", "LinUCB per title", "LinUCB per picture"
APART = {TITLE: "models per title", PICTURE: "models per picture"}
AGENTS: dict[str, dict[str, Any]] = {
    "oracle": {"kind": "oracle"},
    SHARED: {"kind": "linucb", "sharing": "shared", "alpha": 0.3},
    TITLE: {"kind": "linucb", "sharing": "per_category", "alpha": 0.3},
    PICTURE: {"kind": "linucb", "alpha": 0.3},
    "popularity": {"kind": "popularity"},
    "Beta Thompson": {"kind": "beta_ts"},
    "default": {"kind": "default"},
}


class Earned(NamedTuple):
    """What an agent earned.

    Attributes
    ----------
    takes : float64 (R,)
        Clicks per impression in the whole run.
    last : float64 (R,)
        Expected clicks per impression in the last `LAST` steps.
    value : float64 (n, R)
        Expected clicks per impression in every `CHUNK` steps.
    by_impression : float64 (len(BUCKETS) + 1, R)
        The same by how often the title was shown before.
    """

    takes: FloatArray
    last: FloatArray
    value: FloatArray
    by_impression: FloatArray


Outcomes = dict[str, Earned]


def measure(steps: int = STEPS, replications: int = REPLICATIONS, **simulator: Any) -> Outcomes:
    """Run every agent."""
    found = {}
    for name, agent in AGENTS.items():
        data = {"simulator": {"kind": "artwork", **simulator}, "agents": [agent], "steps": steps}
        found[name] = earned(Experiment.model_validate({**data, "replications": replications}))
    return found


def earned(e: Experiment) -> Earned:
    """Run one agent; sum its expected clicks by time, and by the impressions of the title."""
    lane, R = make_lane(e, 0), e.replications
    assert isinstance(lane.simulator, Artwork)
    title_of = np.stack([lane.simulator.catalogue(r).title_of for r in range(R)])
    rows, clicks, value = np.arange(R), np.zeros(R), []
    seen = np.zeros((R, title_of.max() + 1), np.int64)
    sums, times = np.zeros((len(BUCKETS) + 1, R)), np.zeros((len(BUCKETS) + 1, R))
    for _ in range(e.steps // CHUNK):
        trace = lane.advance(CHUNK)
        clicks += trace.rewards.sum(axis=0)
        value.append(trace.value.mean(axis=0))
        for items, worth in zip(trace.items[:, :, 0], trace.value, strict=True):
            titles = title_of[rows, items]
            bucket = np.searchsorted(BUCKETS, seen[rows, titles], side="right")
            sums[bucket, rows] += worth
            times[bucket, rows] += 1
            seen[rows, titles] += 1
    by_time = np.stack(value)
    last = by_time[-max(1, min(LAST, e.steps // 5) // CHUNK) :].mean(axis=0)
    return Earned(clicks / e.steps, last, by_time, sums / np.maximum(times, 1))


def impressions_needed(found: Outcomes, name: str) -> FloatArray:
    """Count the steps until an agent closes `LEVEL` of the gap between default and oracle, float64
    (R,); inf: never.
    """
    low, high = (found[each].value.mean(axis=0) for each in ("default", "oracle"))
    closed = (found[name].value - low) / (high - low) >= LEVEL
    return np.where(closed.any(axis=0), (1.0 + closed.argmax(axis=0)) * CHUNK, np.inf)


def factor(found: Outcomes, name: str) -> Estimate | None:
    """Estimate how many times as many impressions an agent needs as shared.

    None if some replication never gets there.

    The interval is that of the mean logarithm.
    """
    ratio = impressions_needed(found, name) / impressions_needed(found, SHARED)
    if not np.isfinite(ratio).all():
        return None
    return Estimate(*np.exp(metrics.estimate(np.log(ratio))))


def gains(found: Outcomes, name: str) -> list[Estimate]:
    """Estimate what sharing earns more per impression than an agent, by how often the title was
    shown before.
    """
    difference = found[SHARED].by_impression - found[name].by_impression
    return [metrics.estimate(each) for each in difference]


def rate(found: Estimate) -> str:
    """Format a rate with its interval."""
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def difference(found: Estimate) -> str:
    """Format a difference with its interval: one digit more, small ones have a sign that
    matters.
    """
    return f"{found.mean:.4f} ({found.low:.4f} to {found.high:.4f})"


def late(found: Outcomes, name: str) -> str:
    """State which side earns more per impression where titles were shown most."""
    gain = gains(found, name)[-1]
    start = f"after {BUCKETS[-1]} impressions of a title, "
    if gain.low > 0:
        return (
            f"{start}one shared model still earns {difference(gain)} more per impression than "
            f"{APART[name]}"
        )
    if gain.high < 0:
        opposite = Estimate(-gain.mean, -gain.high, -gain.low)
        return (
            f"{start}{APART[name]} earn {difference(opposite)} more per impression than one shared "
            "model"
        )
    return (
        f"{start}one shared model and {APART[name]} are not shown to differ: {difference(gain)} "
        "per impression"
    )


def verdicts(found: Outcomes) -> Iterator[str]:
    """Judge the statements that the document is written for, each by the intervals of its
    tables.
    """

    def judged(true: bool, sentence: str) -> str:
        return f"- **{'Confirmed' if true else 'Not confirmed'}**: {sentence}."

    chain = ["oracle", SHARED, "popularity", "default"]
    takes = [metrics.estimate(found[name].takes) for name in chain]
    yield judged(
        all(a.low > b.high for a, b in pairwise(takes)),
        "oracle, contextual (LinUCB shared), context-free (popularity) and default picture have "
        f"take fractions in this order, with disjoint intervals ({', '.join(map(rate, takes))})",
    )
    for name, spoken in APART.items():
        needed = factor(found, name)
        words = "some never get there"
        if needed is not None:
            words = f"{needed.mean:.1f} ({needed.low:.1f} to {needed.high:.1f})"
        yield judged(
            needed is not None and needed.low > 1,
            f"{spoken} need more impressions than one shared model until they close "
            f"{LEVEL * 100:.0f} % of the gap between default and oracle: times {words}",
        )
        first, *others = gains(found, name)
        yield judged(
            all(first.low > other.high for other in others),
            f"compared with {spoken}, sharing gains most in the first {BUCKETS[0]} impressions of "
            f"a title: {difference(first)} per impression, against "
            f"{'; '.join(map(difference, others))} later; {late(found, name)}",
        )


def document(found: Outcomes) -> str:
    """Write the document."""
    names = [
        f"first {BUCKETS[0]}",
        *(f"{a} to {b}" for a, b in pairwise(BUCKETS)),
        f"after {BUCKETS[-1]}",
    ]
    rows = [
        (name, rate(metrics.estimate(each.takes)), rate(metrics.estimate(each.last)))
        for name, each in found.items()
    ]
    by_name = [map(difference, gains(found, name)) for name in APART]
    sharing = list(zip(names, *by_name, strict=True))
    parts = [
        "# Artwork: a picture for each visitor",
        "Written by `python -m benchmarks.reproduction.artwork --write`.",
        "- **Simulator**: `artwork` at its defaults (200 titles of 5 to 20 pictures, 1,000 users "
        f"in eight taste clusters, colour warmth not observed), {STEPS:,} steps, {REPLICATIONS} "
        "replications of one catalogue.\n- **Take fraction**: clicks per impression. The title "
        "is the retrieval's choice, the same for all agents; only the picture differs.\n- "
        "**Pairs**: all agents have the same visitors and random numbers, so every difference is "
        "paired by replication.\n- **Intervals** are 95 % (Student t over replications), not "
        "corrected for their number. All hold for this catalogue.",
        "## Statements",
        "\n".join(verdicts(found)),
        "## Take fractions",
        table(("agent", f"{STEPS:,} steps", f"expected, last {LAST:,} steps"), rows),
        "## What sharing earns, by how often a title was shown",
        "Expected clicks per impression of LinUCB shared minus those of the other two, by the "
        "impressions that the title had before.",
        table(
            ("impressions of the title", "over one model per title", "over one per picture"),
            sharing,
        ),
        stamp(document),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, and print or write the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="write docs/ARTWORK.md instead of printing it"
    )
    options = parser.parse_args()
    text = document(measure())
    if options.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
