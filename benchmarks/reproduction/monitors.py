"""False alarms, detections and delays of the monitors, where the changes are known:
docs/MONITORS.md.

    python -m benchmarks.reproduction.monitors --write

LinUCB runs in the pet shop without a change, with a market shock, with a drift and with a broken
feature, many replications each; every monitor that fits is fed by an exact replay. A second table
feeds the two change detectors with clicks of known probability."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bandits import Experiment
from bandits.base.formatting import count, percent
from bandits.experiments.lockstep import make_lane
from bandits.models.detectors import Adwin, Detector, PageHinkley
from bandits.monitoring import REGISTRY, Alarm, Monitor, Score, Steps, observe, score
from bandits.monitoring.replay import feed, setting_of
from benchmarks.measure import Ratio, stamp, stopwatch

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "MONITORS.md"
STEPS, CHANGE, REPLICATIONS, BLOCK = 20_000, 10_000, 200, 50
MONITORS = (
    "page_hinkley",
    "adwin",
    "ctr_range",
    "feature_drift",
    "entropy",
    "segment_entropy",
    "coverage",
    "correlation",
    "calibration",
    "exploration",
)
# without samples
SIMPLE, OTHERS = ("page_hinkley", "adwin", "entropy", "coverage"), ("ctr_range", "segment_entropy")
CHANGES: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "shock": [{"kind": "shock", "at": CHANGE}],
    "drift": [{"kind": "drift", "start": CHANGE, "end": CHANGE + 5000}],
    "feature": [{"kind": "features", "at": CHANGE, "column": 0, "how": "missing"}],
}
STREAMS, LENGTH, BEFORE, AFTER = 256, 10_000, 0.5, (0.14, 0.40)


class Trial(NamedTuple):
    """One detector on clicks of known probability: false alarms per 10,000 steps, and median delays
    by new level.
    """

    title: str
    false_alarms: float
    delays: dict[float, float]


class Row(NamedTuple):
    """One monitor over all replications.

    Attributes
    ----------
    kind : str
    learning, learned : float
        False alarms per 10,000 steps without a change, in the first and in the second half of the
        run.
    chance : float
        Share of the replications without a change that have an alarm in the second half.
    scores : dict of str to Score
        By scenario with a change.
    """

    kind: str
    learning: float
    learned: float
    chance: float
    scores: dict[str, Score]


def experiment(scenario: str, replications: int = REPLICATIONS) -> Experiment:
    """Return the experiment of one scenario."""
    simulator = {"kind": "petshop", "changes": CHANGES[scenario]}
    data = {"simulator": simulator, "agents": [{"kind": "linucb", "alpha": 0.4}], "steps": STEPS}
    return Experiment.model_validate({**data, "replications": replications})


def measure(scenario: str, rows: Sequence[int]) -> list[Alarm]:
    """Run some replications of a scenario and collect all alarms."""
    with threadpool_limits(1):
        lane = make_lane(experiment(scenario), 0, rows=rows)
        setting = setting_of(lane, "LinUCB", tuple(rows))
        return feed(
            lane,
            [REGISTRY[kind](REGISTRY[kind].Params(kind=kind), setting) for kind in MONITORS],
            STEPS,
        )


def table(found: dict[str, list[Alarm]], replications: int) -> list[Row]:
    """Derive false alarms, detections and delays of every monitor."""
    rows = []
    for kind in MONITORS:
        mine = {
            name: [alarm for alarm in each if alarm.monitor == kind] for name, each in found.items()
        }
        late = [alarm for alarm in mine["none"] if alarm.step > CHANGE]
        early = len(mine["none"]) - len(late)
        steps = replications * CHANGE / 1e4
        scores = {
            name: score(each, experiment(name).simulator, rows=replications, steps=STEPS)
            for name, each in mine.items()
            if name != "none"
        }
        chance = len({alarm.row for alarm in late}) / replications
        rows.append(Row(kind, early / steps, len(late) / steps, chance, scores))
    return rows


def trials(streams: int = STREAMS) -> list[Trial]:
    """Feed the detectors with clicks of probability .50 that changes in the middle, or does not."""
    uniforms = np.random.default_rng(0).random((LENGTH, streams))
    middle = LENGTH // 2
    found = []
    kinds: dict[str, type[Detector]] = {
        "ADWIN, δ = .002": Adwin,
        "Page-Hinkley, δ = .005, λ = 50": PageHinkley,
    }
    for title, detector in kinds.items():
        quiet = detector(streams).detect((uniforms < BEFORE).astype(np.float64)).there
        delays = {}
        for level in AFTER:
            clicks = uniforms < np.where(np.arange(LENGTH)[:, None] < middle, BEFORE, level)
            after = detector(streams).detect(clicks.astype(np.float64)).there[middle:]
            delays[level] = float(
                np.median(np.where(after.any(axis=0), after.argmax(axis=0) + 1.0, np.inf))
            )
        found.append(Trial(title, float(quiet.sum() / streams * 1e4 / LENGTH), delays))
    return found


def time_shares(repeats: int = 7) -> dict[str, Ratio]:
    """Divide the processor time of each monitor by that of the lane that it watches, at 16
    replications.
    """
    e = experiment("none", 16)
    found: dict[str, list[float]] = {}
    with threadpool_limits(1):
        for repeat in range(repeats + 1):
            lane, chunks = make_lane(e, 0), list[Steps]()
            setting = setting_of(lane, "LinUCB", tuple(range(16)))
            monitors = {
                kind: REGISTRY[kind](REGISTRY[kind].Params(kind=kind), setting)
                for kind in (*SIMPLE, *OTHERS)
            }
            lane.advance(500)
            alone = stopwatch(lambda: chunks.extend(observe(lane, STEPS, frozenset())))  # noqa: B023
            spent = {
                kind: stopwatch(partial(_fed, monitor, chunks))
                for kind, monitor in monitors.items()
            }
            if repeat == 0:
                # it has loaded what is compiled
                continue
            for kind, seconds in {**spent, "together": sum(spent[kind] for kind in SIMPLE)}.items():
                found.setdefault(kind, []).append(seconds / alone)
    return {kind: Ratio(median(each), min(each), max(each)) for kind, each in found.items()}


def _fed(monitor: Monitor, chunks: Iterable[Steps]) -> None:
    for steps in chunks:
        monitor.feed(steps)


TEXT = """# Monitors: false alarms and delays

Written by `python -m benchmarks.reproduction.monitors --write`. A monitor sees what a system in production sees:
rewards, items, features and the agent's own statements, never an expected reward. Here the changes are known, so that
its false alarms and delays are too.

- **Runs**: LinUCB (α = 0.4) in the pet shop, {steps} steps, {replications} replications of each scenario: no change; a
  market shock at step {change}; a drift of one persona from step {change} to {end}; a feature (one persona's) that is 0
  from step {change} on.
- **False alarms**: alarms per 10,000 steps without a change. In the first half the agent learns, its reward rises, and
  monitors that report this are right, but of no use.
- **Detected**: share of the replications with an alarm after the change. Compare it with the share *by chance*: the
  replications without a change that have an alarm in the same steps.
- **Delay**: steps from the change to the first alarm after it, the median over replications with one.
- Rules on windows raise an alarm at the end of a window that breaks the rule, if the window before did not. A rule that
  is broken before the change cannot detect it.
- All parameters have their defaults. `fallbacks` needs an agent with a fallback and `importance_weight` an agent that
  chooses at random; neither fits LinUCB.

| monitor | false alarms, steps 0 to {change} | false alarms, later | by chance | shock | drift | broken feature |
|---|---|---|---|---|---|---|
"""


def document(
    rows: list[Row], tried: list[Trial], shares: dict[str, Ratio], replications: int
) -> str:
    """Write the document: scenarios, clicks of known probability, time."""
    numbers = {"steps": count(STEPS), "replications": replications, "change": count(CHANGE)}
    text = TEXT.format(**numbers, end=count(CHANGE + 5000))
    for row in rows:
        cells = [f"{row.learning:.2f}", f"{row.learned:.2f}", percent(row.chance, 1)]
        for scored in row.scores.values():
            delay = f", {count(scored.median_delay)} steps" if len(scored.delays) else ""
            cells.append(f"{percent(scored.detected, 1)}{delay}")
        text += f"| `{row.kind}` | {' | '.join(cells)} |\n"
    text += f"""
## Clicks of known probability

Both detectors on {STREAMS} streams of {LENGTH:,} clicks with probability {BEFORE:.2f}: false alarms per 10,000 steps,
and the median delay where the probability changes after {LENGTH // 2:,} steps.

| detector | false alarms | delay to {AFTER[0]:.2f} | delay to {AFTER[1]:.2f} |
|---|---|---|---|
"""
    for trial in tried:
        delays = " | ".join(count(delay) for delay in trial.delays.values())
        text += f"| {trial.title} | {trial.false_alarms:.2f} | {delays} |\n"
    text += """
The sums of the Page-Hinkley test forget with the factor .9999, as in river, so that within some ten thousand steps the
tolerance δ loses its hold on them. A larger δ avoids false alarms before that only; a larger λ does throughout.

## The rule on percentiles

`ctr_range` compares the 5th and the 95th percentile of the CTR of windows of 500 steps. On single clicks the same rule
is void: the 5th percentile is 0 and the 95th 0 or 1, whatever the CTR is.

## Time

Processor time of each monitor, divided by that of the lane that it watches, at 16 replications (median, smallest and
largest of seven runs); *together* are the first four. Monitors of features, means and probabilities cost more, because
they interrupt compiled stepping at every tenth step.

| monitor | share of the time of the lane |
|---|---|
"""
    for kind, share in shares.items():
        name = "together" if kind == "together" else f"`{kind}`"
        text += (
            f"| {name} | {percent(share.middle, 1)} ({percent(share.low, 1)} to "
            f"{percent(share.high, 1)}) |\n"
        )
    return text


def main() -> None:
    """Measure all scenarios and print the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parsed = parser.parse_args()
    blocks = [range(start, start + BLOCK) for start in range(0, REPLICATIONS, BLOCK)]
    work = [(scenario, block) for scenario in CHANGES for block in blocks]
    shares = time_shares()
    found: dict[str, list[Alarm]] = {scenario: [] for scenario in CHANGES}
    with ProcessPoolExecutor(parsed.workers) as pool:
        for (scenario, _), alarms in zip(
            work, pool.map(measure, *zip(*work, strict=True)), strict=True
        ):
            found[scenario] += alarms
    text = (
        document(table(found, REPLICATIONS), trials(), shares, REPLICATIONS)
        + f"\n{stamp(document)}\n"
    )
    sys.stdout.write(text)
    if parsed.write:
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
