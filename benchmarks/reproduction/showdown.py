"""Compare linear and neural agents on the pet shop, with and without a market shock.

``python -m benchmarks.reproduction.showdown`` (about 25 minutes) writes docs/SHOWDOWN.md. The
experiment is the preset "showdown"; LinUCB with one shared model on interaction features is added,
in the same shop with the same visitors and random numbers."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits import Experiment, run
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.results.metrics import Estimate, FloatArray
from benchmarks.measure import hardware, stamp, table

OUT = Path(__file__).parents[2] / "docs" / "SHOWDOWN.md"
SHOCK, EARLY, LATE = 10_000, 2_000, 2_000
INTERACTION = "LinUCB shared interaction"
STATIC, ADDITIVE, PER_ARM = (
    "Static MLP",
    "LinUCB shared",
    ("LinUCB per arm", "LinUCB per arm alpha 1.5"),
)


class ClickCurves(NamedTuple):
    """Cumulative clicks (G, R) of every agent on a grid of steps."""

    grid: Any
    clicks: dict[str, FloatArray]

    def between(self, label: str, start: int, end: int) -> FloatArray:
        """Count the clicks from one step to another, float64 (R,)."""
        at = np.searchsorted(self.grid, [start, end])
        assert self.grid[at].tolist() == [start, end]
        earned: FloatArray = self.clicks[label][at[1]] - self.clicks[label][at[0]]
        return earned


def run_preset(
    shock: int | None, interaction: bool, steps: int = 0, replications: int = 0
) -> ClickCurves:
    """Run the preset, or LinUCB on interaction features, with or without a shock."""
    data = presets()["showdown"].experiment.model_dump(mode="json")
    data["simulator"] |= {"shock_step": shock}
    if interaction:
        data["simulator"] |= {"features": "interaction"}
        data["agents"] = [
            {"kind": "linucb", "alpha": 0.4, "sharing": "shared", "label": INTERACTION}
        ]
    if steps:
        data |= {"steps": steps, "replications": replications}
    result = run(Experiment.model_validate(data))
    histories = result.histories
    clicks = {label: h.sums["clicks"] for label, h in histories.items()}
    return ClickCurves(next(iter(histories.values())).grid, clicks)


def both(shock: int | None) -> ClickCurves:
    """Run all agents, on additive and on interaction features."""
    additive, crossed = run_preset(shock, False), run_preset(shock, True)
    return ClickCurves(additive.grid, additive.clicks | crossed.clicks)


def leads(curves: ClickCurves) -> dict[str, list[Estimate]]:
    """Estimate the early lead in clicks of every shared model over each LinUCB per arm, paired by
    replication.
    """
    shared = [label for label in curves.clicks if label not in (STATIC, *PER_ARM)]
    early = {label: curves.between(label, 0, EARLY) for label in curves.clicks}
    return {
        label: [metrics.estimate(early[label] - early[other]) for other in PER_ARM]
        for label in shared
    }


def shared_against_per_arm(curves: ClickCurves) -> list[tuple[str, ...]]:
    """Return the rows of a table of the early clicks and leads."""
    return [
        (label, f"{curves.between(label, 0, EARLY).mean():,.0f}", *map(_signed, gaps))
        for label, gaps in leads(curves).items()
    ]


def verdict(support: list[str], contradict: list[str]) -> str:
    """Judge a claim by the agents whose intervals support it and those whose intervals contradict
    it.
    """
    if support and contradict:
        return "mixed"
    return "confirmed" if support else "refuted" if contradict else "inconclusive"


def claims(early: dict[str, list[Estimate]], rows: list[tuple[str, ...]]) -> str:
    """Judge the two claims; ``early`` is the result of `leads`, ``rows`` that of `recovery`."""
    sentences = []
    for i, other in enumerate(PER_ARM):
        more = [label for label, gaps in early.items() if gaps[i].low > 0]
        fewer = [label for label, gaps in early.items() if gaps[i].high < 0]
        sentences.append(
            f"A shared representation learns faster than {other}: **{verdict(more, fewer)}**. More "
            f"clicks in the first {EARLY:,} steps: {_listed(more)}. Fewer: {_listed(fewer)}."
        )
    online = [row for row in rows if row[0] != STATIC]
    back, lost, open_ = (
        [row[0] for row in online if row[-1] == word] for word in ("yes", "no", "inconclusive")
    )
    sentences.append(
        f"Agents that learn online recover from the shock: **{verdict(back, lost)}**. Recovered at "
        f"the end: {_listed(back)}. Not recovered: {_listed(lost)}. Inconclusive: {_listed(open_)}."
    )
    frozen = [
        [row[0] for row in rows if (row[0], row[-1]) == (STATIC, word)] for word in ("no", "yes")
    ]
    sentences.append(f"The frozen network does not: **{verdict(*frozen)}**.")
    return "\n".join(f"- {sentence}" for sentence in sentences)


def remarks(rows: list[tuple[str, ...]], experiment: Experiment) -> str:
    """Comment on the verdicts.

    A sentence is left out if the ``rows`` of `recovery` do not support it.
    """
    back = {row[0] for row in rows if row[-1] == "yes"}
    before = {row[0]: float(row[1]) for row in rows}
    sentences = []
    if ADDITIVE in back and before[ADDITIVE] < max(before.values()) / 2:
        sentences.append(
            f'{ADDITIVE} "recovers" because it had little to lose: {before[ADDITIVE]:.3f} clicks per step before the '
            f"shock, against {max(before.values()):.3f} of the best agent. Additive features cannot represent which "
            "segment prefers which category."
        )
    networks = [
        (n, a)
        for n, a in zip(experiment.labels, experiment.agents, strict=True)
        if hasattr(a, "training")
    ]
    newest = [label for label, agent in networks if agent.training == "newest"]
    whole = [
        label for label, a in networks if a.training != "newest" and a.buffer >= experiment.steps
    ]
    sentences.append(
        "No agent in these tables forgets: the linear models weigh all observations equally."
    )
    if whole:
        sentences.append(f"The replay buffer of {_listed(whole)} holds all steps.")
    if newest:
        sentences.append(
            f"{_listed(newest)}: the network takes one step on the newest observation only, while "
            "the other networks train on batches from the buffer; the rank of such an agent is "
            "therefore no evidence about its covariance."
        )
    sentences.append(
        "Agents that forget, and networks that are all trained alike from replay, are in "
        "[REPRODUCED.md](REPRODUCED.md), *Showdown, networks trained alike and agents that forget*."
    )
    return " ".join(sentences)


def _listed(labels: list[str]) -> str:
    return ", ".join(labels) or "none"


def recovery(
    curves: ClickCurves, stationary: ClickCurves, shock: int = SHOCK
) -> list[tuple[str, ...]]:
    """Compare clicks per step before the shock, after it and at the end with a run without
    shock.
    """
    steps = int(curves.grid[-1])
    rows = []
    for label in curves.clicks:
        before = curves.between(label, shock - LATE, shock) / LATE
        after = curves.between(label, shock, shock + LATE) / LATE
        last = curves.between(label, steps - LATE, steps) / LATE
        without = stationary.between(label, steps - LATE, steps) / LATE
        lost = metrics.estimate(last - without)
        tolerated = -0.05 * float(without.mean())
        verdict = (
            "yes" if lost.low > tolerated else "no" if lost.high < tolerated else "inconclusive"
        )
        rows.append(
            (
                label,
                f"{before.mean():.3f}",
                f"{after.mean():.3f}",
                f"{last.mean():.3f}",
                _rate(lost),
                verdict,
            )
        )
    return rows


def totals(curves: ClickCurves) -> list[tuple[str, ...]]:
    """Return rows of clicks per step and of the difference from the best agent, best first."""
    steps = int(curves.grid[-1])
    earned = {label: clicks[-1] for label, clicks in curves.clicks.items()}
    order = sorted(earned, key=lambda label: -earned[label].mean())
    rows = []
    for label in order:
        rate = metrics.estimate(earned[label] / steps)
        gap = (
            "–"
            if label == order[0]
            else _signed(metrics.estimate(earned[label] - earned[order[0]]))
        )
        late = curves.between(label, steps - LATE, steps) / LATE
        rows.append((label, _interval(rate), f"{late.mean():.3f}", gap))
    return rows


def main() -> None:
    """Run both experiments in two processes and write the report."""
    began = time.monotonic()
    with ProcessPoolExecutor(2) as pool:
        stationary, shocked = pool.map(both, (None, SHOCK))
    minutes = (time.monotonic() - began) / 60
    steps, replications = int(stationary.grid[-1]), len(next(iter(stationary.clicks.values()))[-1])
    recovered = recovery(shocked, stationary)
    parts = [
        "# Showdown in the pet shop",
        f"The preset *showdown*: {steps:,} steps, {replications} replications of the same shop; "
        "all agents serve the same visitors with the same random numbers (common random "
        "numbers). LinUCB on interaction features is the same experiment with the simulator's "
        "*Features* set to interaction. Intervals are 95 % (Student t over replications, paired "
        "where two agents are compared); they hold for this shop, not for others.",
        f"It took {minutes:.0f} minutes. {hardware()}.",
        stamp(main),
        "## Two claims",
        "*A shared representation learns faster than a model per arm*, and *agents that learn "
        "online recover from a shock, the frozen network does not*. Each claim is judged by 95 % "
        "intervals without correction for multiple comparisons: *confirmed* if intervals of some "
        "agents support it and none contradicts it, *refuted* in the opposite case, *mixed* if "
        "there are both, *inconclusive* if there are neither. Agents that are not named are "
        "inconclusive:",
        claims(leads(stationary), recovered),
        remarks(recovered, presets()["showdown"].experiment),
        "## Stationary",
        table(
            (
                "agent",
                "clicks per step",
                f"in the last {LATE:,}",
                "difference from the best, clicks",
            ),
            totals(stationary),
        ),
        f"## Does a shared representation learn faster? Clicks in the first {EARLY:,} steps",
        table(
            (
                "agent",
                "clicks",
                f"lead over {PER_ARM[0]} (alpha 0.4)",
                "lead over LinUCB per arm, alpha 1.5",
            ),
            shared_against_per_arm(stationary),
        ),
        f"## Market shock: all preferences change at step {SHOCK:,}",
        table(
            (
                "agent",
                "clicks per step",
                f"in the last {LATE:,}",
                "difference from the best, clicks",
            ),
            totals(shocked),
        ),
        f"Clicks per step in the {LATE:,} steps before the shock, in the {LATE:,} after it and in "
        f"the last {LATE:,}. *Effect at the end*: difference in the last steps from a run with "
        "the same visitors without a shock. *Recovered*: whether that loss is below 5 % of the "
        "clicks, by its interval.",
        table(
            ("agent", "before", "just after", "at the end", "effect at the end", "recovered"),
            recovered,
        ),
    ]
    OUT.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(OUT.read_text(encoding="utf-8"))


def _interval(e: Estimate) -> str:
    return f"{e.mean:.4f} ({e.low:.4f} to {e.high:.4f})"


def _signed(e: Estimate) -> str:
    return f"{e.mean:+,.0f} ({e.low:+,.0f} to {e.high:+,.0f})"


def _rate(e: Estimate) -> str:
    return f"{e.mean:+.3f} ({e.low:+.3f} to {e.high:+.3f})"


if __name__ == "__main__":
    main()
