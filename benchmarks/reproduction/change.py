"""Agents that forget and agents that do not, while the pet shop changes and while it does not: docs/CHANGE.md.

    python -m benchmarks.reproduction.change --write

Every agent that has a discount factor is run with and without it, LinUCB with a sliding window too, and a network that
was trained before the run. All runs have the same seed, so differences are paired, also between simulators.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from bandits import Experiment, run
from bandits.agents import REGISTRY
from bandits.base.formatting import count
from bandits.base.types import FloatArray
from bandits.results import metrics, paired_tests
from bandits.results.metrics import Estimate
from bandits.results.recovery import LEVEL, WINDOW, Recovery, last_change, recovery_from
from benchmarks.measure import stamp, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "CHANGE.md"
STEPS, REPLICATIONS, LAST = 20_000, 16, 2_000
GAMMA, SLIDING = 0.9995, 5_000
STILL, SHOCK, DRIFT = "no change", "shock at 10,000", "drift 5,000 to 15,000"
DRIFTING = {"kind": "drift", "start": 5_000, "end": 15_000, "from": "new_puppy_parent", "to": "mature_dog_owner"}
CHANGES: dict[str, list[dict[str, Any]]] = {STILL: [], SHOCK: [{"kind": "shock", "at": 10_000}], DRIFT: [DRIFTING]}
OWN: dict[str, dict[str, Any]] = {"linucb": {"alpha": 0.4}}
PLAIN, DISCOUNT, SLIDE = "all steps", f"γ = {GAMMA}", f"window {SLIDING:,}"
WAYS: dict[str, dict[str, Any]] = {PLAIN: {}, DISCOUNT: {"gamma": GAMMA}, SLIDE: {"window": SLIDING}}
STATIC = "static_mlp"
NO_CONTEXT = ("ucb1", "beta_ts")


class Case(NamedTuple):
    """One agent in one simulator."""

    scenario: str
    kind: str
    way: str


class Outcome(NamedTuple):
    """What an agent earned.

    Attributes
    ----------
    clicks, last : float64 (R,)
        Clicks of the whole run, and of its last `LAST` steps.
    recovery : Recovery or None
        From the shock or the end of the drift.
    """

    clicks: FloatArray
    last: FloatArray
    recovery: Recovery | None


def cases() -> Iterator[Case]:
    """Yield all cases, quick agents first."""
    forgetting = [kind for kind, cls in REGISTRY.items() if "gamma" in cls.Params.model_fields]
    for kind in sorted(forgetting, key=lambda kind: kind.startswith("neural")):
        for way in (PLAIN, DISCOUNT, *((SLIDE,) if kind == "linucb" else ())):
            yield from (Case(scenario, kind, way) for scenario in CHANGES)
    yield from (Case(scenario, STATIC, PLAIN) for scenario in CHANGES)


def measure(case: Case, steps: int = STEPS, replications: int = REPLICATIONS) -> Outcome:
    """Run one case in this process."""
    agent = {"kind": case.kind, **OWN.get(case.kind, {}), **WAYS[case.way]}
    simulator = {"kind": "petshop", "changes": CHANGES[case.scenario]}
    data = {"simulator": simulator, "agents": [agent], "steps": steps, "replications": replications}
    experiment = Experiment.model_validate(data)
    (history,) = run(experiment, workers=0, progress=False).histories.values()
    changed, grid = last_change(experiment.simulator), history.grid.tolist()
    clicks = history.sums["clicks"]
    recovered = None if changed is None else recovery_from(history, changed)
    return Outcome(clicks[-1], clicks[-1] - clicks[grid.index(steps - LAST)], recovered)


class Difference(NamedTuple):
    """Clicks of an agent that forgets minus those of the same agent without, paired, corrected over the table."""

    case: Case
    estimate: Estimate
    p_value: float


def differences(found: dict[Case, Outcome]) -> list[Difference]:
    """Compare every agent that forgets with itself, with Holm's correction over all of them."""
    pairs = [case for case in found if case.way != PLAIN]
    gaps = [found[case].clicks - found[case._replace(way=PLAIN)].clicks for case in pairs]
    values = [paired_tests.paired_test(gap)[1] for gap in gaps]
    adjusted = paired_tests.holm(values)
    out = []
    for case, gap, p, corrected in zip(pairs, gaps, values, adjusted, strict=True):
        plain = metrics.estimate(gap)
        comparison = paired_tests.Comparison(plain, len(gap), 0.5, p, None, None, 0.0)
        out.append(Difference(case, paired_tests.corrected(comparison, corrected), corrected))
    return out


def lost(found: dict[Case, Outcome], case: Case) -> Estimate:
    """Estimate the clicks lost to a change: those without it minus those with it, paired."""
    return metrics.estimate(found[case._replace(scenario=STILL)].clicks - found[case].clicks)


def name(case: Case) -> str:
    """Name the agent and its way to forget."""
    title = REGISTRY[case.kind].title
    return title if case.kind == STATIC else f"{title}, {case.way}"


def rate(clicks: FloatArray, steps: int) -> str:
    """Format clicks per step with the 95 % interval."""
    found = metrics.estimate(clicks / steps)
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def amount(found: Estimate) -> str:
    """Format a number of clicks with its interval."""
    return f"{count(found.mean)} ({count(found.low)} to {count(found.high)})"


def steps_of(found: Recovery | None) -> str:
    """Format the steps until recovery with their interval."""
    if found is None or found.step is None:
        return "not within the run"
    if found.low is None:
        return count(found.step)
    end = "beyond the run" if found.high is None else count(found.high)
    return f"{count(found.step)} ({count(found.low)} to {end})"


def verdicts(found: dict[Case, Outcome]) -> Iterator[str]:
    """Judge the statements that the document is written for, each by the intervals of its tables."""

    def judged(true: bool, sentence: str, but: Sequence[str] = ()) -> str:
        verdict = ("Confirmed" if not but else "Mixed") if true else "Not confirmed"
        exceptions = f", except {'; '.join(but)}" if but else ""
        return f"- **{verdict}**: {sentence}{exceptions}."

    by = {d.case: d.estimate for d in differences(found)}
    shocked, still = (by[Case(scenario, "linucb", DISCOUNT)] for scenario in (SHOCK, STILL))
    yield judged(
        shocked.low > 0 > still.high,
        "LinUCB with a discount factor earns more clicks than LinUCB with all steps where a shock happens, "
        f"{amount(shocked)}, and fewer where nothing changes, {amount(still)}",
    )
    plain, discounted, window = (found[Case(SHOCK, "linucb", way)].recovery for way in WAYS)
    steps = [None if r is None else r.step for r in (plain, discounted, window)]
    yield judged(
        steps[0] is not None and all(s is not None and s <= steps[0] / 2 for s in steps[1:]),
        "with a discount factor or a window the mean of LinUCB recovers from the shock in at most half the steps: "
        f"{steps_of(discounted)} and {steps_of(window)} instead of {steps_of(plain)}",
    )
    static = Case(DRIFT, STATIC, PLAIN)
    others = [case for case in found if case.scenario == DRIFT and case.kind != STATIC]
    losses = {case: found[case._replace(scenario=STILL)].clicks - found[case].clicks for case in (static, *others)}
    yield judged(
        all(losses[static].mean() > losses[case].mean() for case in others),
        f"the network that was trained before the run loses most to the drift, {amount(lost(found, static))} clicks; "
        "its loss is significantly larger than that of every agent that learns",
        [name(case) for case in others if metrics.estimate(losses[static] - losses[case]).low <= 0],
    )
    readers = [case for case in others if case.kind not in NO_CONTEXT]
    ahead = {case: metrics.estimate(found[case].last - found[static].last) for case in readers}
    yield judged(
        sum(d.low > 0 for d in ahead.values()) > len(readers) / 2,
        f"in the last {LAST:,} steps of the drift its click-through rate, {rate(found[static].last, LAST)}, is "
        "significantly lower than that of every agent that learns from the context",
        [name(case) for case, difference in ahead.items() if difference.low <= 0],
    )


TEXT = """# Agents that forget, in a changing pet shop

Written by `python -m benchmarks.reproduction.change --write`.

- **Simulator**: the pet shop with 50 products, {steps} steps and {replications} replications. *No change*; a *shock* at
  step 10,000, after which every persona has the preferences of the next one; a *drift* between steps 5,000 and 15,000,
  in which new puppy parents become mature dog owners.
- **Agents**: all that have a discount factor, with default values (LinUCB: α = 0.4), with γ = {gamma} and without;
  LinUCB with a window of {sliding} steps too; and Static MLP, a network trained on logged visits before the run. γ is
  the same for all agents: 1 / (1 − γ) = {memory} steps of memory. It is not tuned for each of them.
- **Pairs**: all runs have the same visitors and random numbers, so every difference is paired by replication.
- **Intervals** are 95 % (Student t over replications). Those of *Clicks that forgetting earns* are Holm-corrected over
  their table. All hold for this shop, not for others.

## Statements

"""


def document(found: dict[Case, Outcome]) -> str:
    """Write the document."""
    some = {"steps": f"{STEPS:,}", "replications": REPLICATIONS, "gamma": GAMMA, "sliding": f"{SLIDING:,}"}
    text = TEXT.format(**some, memory=f"{round(1 / (1 - GAMMA)):,}")
    text += "\n".join(verdicts(found))
    agents = list(dict.fromkeys((case.kind, case.way) for case in found))

    def rows(cell: Any, scenarios: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [(name(Case("", *agent)), *(cell(Case(scenario, *agent)) for scenario in scenarios)) for agent in agents]

    text += "\n\n## Clicks per step over the whole run\n\n"
    text += table(("agent", *CHANGES), rows(lambda case: rate(found[case].clicks, STEPS), tuple(CHANGES)))
    text += "\n\n## Clicks that forgetting earns\n\n"
    text += "Clicks of the agent that forgets, minus those of the same agent with all steps. Corrected intervals.\n\n"
    by = {d.case: d for d in differences(found)}
    forgetting = [agent for agent in agents if agent[1] != PLAIN]
    text += table(
        ("agent", *CHANGES),
        [
            (name(Case("", *agent)), *(amount(by[Case(scenario, *agent)].estimate) for scenario in CHANGES))
            for agent in forgetting
        ],
    )
    text += "\n\n## Steps until recovery\n\n"
    text += f"Steps from the shock, or the end of the drift, until the expected clicks of the last {WINDOW} steps "
    text += (
        f"are back at {100 * LEVEL:.0f} % of those of the best choice; 0: no more steps than this average needs.\n\n"
    )
    text += table(("agent", SHOCK, DRIFT), rows(lambda case: steps_of(found[case].recovery), (SHOCK, DRIFT)))
    text += "\n\n## Clicks lost to the change\n\n"
    text += "Clicks of the same agent without the change, minus those with it. The drift makes the best choice better: "
    text += "an agent that follows it gains clicks, which is a negative loss.\n\n"
    text += table(("agent", SHOCK, DRIFT), rows(lambda case: amount(lost(found, case)), (SHOCK, DRIFT)))
    text += f"\n\n## Clicks per step in the last {LAST:,} steps\n\n"
    text += table(("agent", *CHANGES), rows(lambda case: rate(found[case].last, LAST), tuple(CHANGES)))
    return text.rstrip() + "\n"


def main() -> None:
    """Measure all cases and print the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parsed = parser.parse_args()
    with ProcessPoolExecutor(parsed.workers) as pool:
        found = dict(zip(cases(), pool.map(measure, cases()), strict=True))
    text = f"{document(found)}\n{stamp(document)}\n"
    sys.stdout.write(text)
    if parsed.write:
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
