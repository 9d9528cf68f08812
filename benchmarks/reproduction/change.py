"""Agents that forget and agents that do not, while the pet shop changes and while it does not:
docs/CHANGE.md.

    python -m benchmarks.reproduction.change --write

Every agent that has a discount factor is run with and without it, LinUCB with a sliding window too,
and a network that was trained before the run. All runs have the same seed, so differences are
paired, also between simulators. The network is compared with the learners in more replications.
About 90 minutes of a core."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bandits import Experiment, run
from bandits.agents import REGISTRY
from bandits.base.formatting import count
from bandits.base.types import FloatArray
from bandits.results import metrics
from bandits.results.change.recovery import LEVEL, WINDOW, Recovery, last_change, recovery_from
from bandits.results.metrics import Estimate
from benchmarks.measure import stamp, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "CHANGE.md"
STEPS, REPLICATIONS, LAST = 20_000, 16, 2_000
# replications of the comparisons of the static network with the agents that learn
MORE = 64
# not in these: their heads are refitted to all observations, which is slow
HEADS = (
    "neural_linucb",
    "neural_linear_ts",
)
GAMMA, SLIDING = 0.9995, 5_000
STILL, SHOCK, DRIFT = "no change", "shock at 10,000", "drift 5,000 to 15,000"
DRIFTING = {
    "kind": "drift",
    "start": 5_000,
    "end": 15_000,
    "from": "new_puppy_parent",
    "to": "mature_dog_owner",
}
CHANGES: dict[str, list[dict[str, Any]]] = {
    STILL: [],
    SHOCK: [{"kind": "shock", "at": 10_000}],
    DRIFT: [DRIFTING],
}
OWN: dict[str, dict[str, Any]] = {"linucb": {"alpha": 0.4}}
PLAIN, DISCOUNT, SLIDE = "all steps", f"γ = {GAMMA}", f"window {SLIDING:,}"
WAYS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    DISCOUNT: {"gamma": GAMMA},
    SLIDE: {"window": SLIDING},
}
STATIC = "static_mlp"


class Case(NamedTuple):
    """One agent in one simulator."""

    scenario: str
    kind: str
    way: str


STATIC_DRIFT = Case(DRIFT, STATIC, PLAIN)


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


Found = dict[Case, Outcome]


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
    """Paired difference of two agents in clicks, corrected over its table."""

    case: Case
    estimate: Estimate


def corrected(gaps: Mapping[Case, FloatArray]) -> list[Difference]:
    """Estimate paired differences, float64 (R,) for each case, which hold together (Bonferroni)."""
    return [Difference(case, metrics.estimate(gap, family=len(gaps))) for case, gap in gaps.items()]


def differences(found: Found) -> list[Difference]:
    """Compare every agent that forgets with itself: clicks with forgetting minus clicks without."""
    pairs = [case for case in found if case.way != PLAIN]
    return corrected(
        {case: found[case].clicks - found[case._replace(way=PLAIN)].clicks for case in pairs}
    )


class AgainstStatic(NamedTuple):
    """The network that was trained before the run against every agent that learns, under the drift.

    Attributes
    ----------
    loss : list of Difference
        Clicks that the drift costs the network minus those that it costs the agent.
    end : list of Difference
        Clicks of the agent minus those of the network in the last `LAST` steps.
    behind : set of Case
        Agents that earn significantly fewer clicks than the network there where nothing changes.
    """

    loss: list[Difference]
    end: list[Difference]
    behind: set[Case]


def against_static(found: Found) -> AgainstStatic:
    """Compare the static network with every agent that learns.

    Intervals are corrected over each table (Bonferroni).
    """
    learners = [case for case in found if case.scenario == DRIFT and case.kind != STATIC]

    def loss(case: Case) -> FloatArray:
        return found[case._replace(scenario=STILL)].clicks - found[case].clicks

    def extra_loss(case: Case) -> FloatArray:
        return loss(STATIC_DRIFT)[: len(found[case].clicks)] - loss(case)

    def lead(case: Case) -> FloatArray:
        last = found[case].last
        return last - found[STATIC_DRIFT._replace(scenario=case.scenario)].last[: len(last)]

    still = corrected({case: lead(case._replace(scenario=STILL)) for case in learners})
    return AgainstStatic(
        corrected({case: extra_loss(case) for case in learners}),
        corrected({case: lead(case) for case in learners}),
        {d.case for d in still if d.estimate.high < 0},
    )


def lost(found: Found, case: Case) -> Estimate:
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


def verdicts(found: Found, more: Found) -> Iterator[str]:
    """Judge the statements that the document is written for, each by the intervals of its tables.

    ``more``: the outcomes with and without the drift in `MORE` replications.
    """

    def judged(true: bool, sentence: str, but: Sequence[str] = ()) -> str:
        verdict = ("Confirmed" if not but else "Mixed") if true else "Not confirmed"
        exceptions = f", except {'; '.join(but)}" if but else ""
        return f"- **{verdict}**: {sentence}{exceptions}."

    by = {d.case: d.estimate for d in differences(found)}
    shocked, still = (by[Case(scenario, "linucb", DISCOUNT)] for scenario in (SHOCK, STILL))
    yield judged(
        shocked.low > 0 > still.high,
        "LinUCB with a discount factor earns more clicks than LinUCB with all steps where a "
        f"shock happens, {amount(shocked)}, and fewer where nothing changes, {amount(still)}",
    )
    plain, discounted, window = (found[Case(SHOCK, "linucb", way)].recovery for way in WAYS)
    steps = [None if r is None else r.step for r in (plain, discounted, window)]
    yield judged(
        steps[0] is not None and all(s is not None and s <= steps[0] / 2 for s in steps[1:]),
        "with a discount factor or a window the mean of LinUCB recovers from the shock in at "
        f"most half the steps: {steps_of(discounted)} and {steps_of(window)} instead of "
        f"{steps_of(plain)}",
    )
    against = against_static(more)
    yield judged(
        all(d.estimate.mean > 0 for d in against.loss),
        "the network that was trained before the run loses most to the drift, "
        f"{amount(lost(more, STATIC_DRIFT))} clicks; its loss is significantly larger than that "
        "of every agent that learns",
        [name(d.case) for d in against.loss if d.estimate.low <= 0],
    )
    exceptions = [d for d in against.end if d.estimate.low <= 0]
    yield judged(
        len(exceptions) < len(against.end) / 2,
        f"in the last {LAST:,} steps of the run its click-through rate, "
        f"{rate(more[STATIC_DRIFT].last, LAST)}, is significantly lower than that of every agent "
        "that learns",
        [name(d.case) for d in exceptions],
    )
    able = [d for d in exceptions if d.case not in against.behind]
    yield judged(
        not exceptions or len(able) < len(exceptions),
        "each of these, which are not significantly ahead of it under the drift, earns "
        "significantly fewer clicks than it in the last steps of the run where nothing changes",
        [name(d.case) for d in able],
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
- **Static MLP against the agents that learn**, under the drift: {more} replications, because the losses of some of
  these vary much between replications; of agents with a linear head on a network, which take longest, {replications}.
  The first 16 of the 64 had been looked at before: they left LinTS and Logistic TS undecided. The other tables and
  statements rest on {replications}.
- **Intervals** are 95 % (Student t over replications). Those of *Clicks that forgetting earns* and of each column of
  *Static MLP against the agents that learn* are corrected over their table or column (Bonferroni). All hold for this
  shop, not for others.

## Statements

"""


def document(found: Found, more: Found) -> str:
    """Write the document."""
    some = {
        "steps": f"{STEPS:,}",
        "replications": REPLICATIONS,
        "gamma": GAMMA,
        "sliding": f"{SLIDING:,}",
    }
    text = TEXT.format(**some, memory=f"{round(1 / (1 - GAMMA)):,}", more=MORE)
    text += "\n".join(verdicts(found, more))
    agents = list(dict.fromkeys((case.kind, case.way) for case in found))

    def rows(cell: Any, scenarios: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [
            (name(Case("", *agent)), *(cell(Case(scenario, *agent)) for scenario in scenarios))
            for agent in agents
        ]

    text += "\n\n## Clicks per step over the whole run\n\n"
    text += table(
        ("agent", *CHANGES), rows(lambda case: rate(found[case].clicks, STEPS), tuple(CHANGES))
    )
    text += "\n\n## Clicks that forgetting earns\n\n"
    text += (
        "Clicks of the agent that forgets, minus those of the same agent with all steps. "
        "Corrected intervals.\n\n"
    )
    by = {d.case: d for d in differences(found)}
    forgetting = [agent for agent in agents if agent[1] != PLAIN]
    text += table(
        ("agent", *CHANGES),
        [
            (
                name(Case("", *agent)),
                *(amount(by[Case(scenario, *agent)].estimate) for scenario in CHANGES),
            )
            for agent in forgetting
        ],
    )
    text += "\n\n## Steps until recovery\n\n"
    text += (
        "Steps from the shock, or the end of the drift, until the expected clicks of the last "
        f"{WINDOW} steps "
    )
    text += (
        f"are back at {100 * LEVEL:.0f} % of those of the best choice; 0: no more steps than this "
        "average needs.\n\n"
    )
    text += table(
        ("agent", SHOCK, DRIFT), rows(lambda case: steps_of(found[case].recovery), (SHOCK, DRIFT))
    )
    text += "\n\n## Clicks lost to the change\n\n"
    text += (
        "Clicks of the same agent without the change, minus those with it. The drift makes the "
        "best choice better: "
    )
    text += "an agent that follows it gains clicks, which is a negative loss.\n\n"
    text += table(
        ("agent", SHOCK, DRIFT), rows(lambda case: amount(lost(found, case)), (SHOCK, DRIFT))
    )
    text += "\n\n## Static MLP against the agents that learn\n\n"
    text += "Loss: what the drift costs Static MLP minus what it costs the agent, clicks of the "
    text += (
        f"whole run. End: clicks of the agent minus those of Static MLP in the last {LAST:,} steps "
        "of the drift's "
    )
    text += (
        "run. Behind: whether the agent earns significantly fewer there where nothing changes. "
        "Corrected intervals."
    )
    text += "\n\n"
    against = against_static(more)
    text += table(
        (
            "agent",
            "replications",
            "loss, Static MLP minus agent",
            "end, agent minus Static MLP",
            "behind without a change",
        ),
        [
            (
                name(d.case),
                f"{len(more[d.case].clicks)}",
                amount(d.estimate),
                amount(e.estimate),
                "yes" if d.case in against.behind else "no",
            )
            for d, e in zip(against.loss, against.end, strict=True)
        ],
    )
    text += f"\n\n## Clicks per step in the last {LAST:,} steps\n\n"
    text += table(
        ("agent", *CHANGES), rows(lambda case: rate(found[case].last, LAST), tuple(CHANGES))
    )
    return text.rstrip() + "\n"


def main() -> None:
    """Measure all cases and print the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parsed = parser.parse_args()
    with ProcessPoolExecutor(parsed.workers) as pool:
        found = dict(zip(cases(), pool.map(measure, cases()), strict=True))
        drifting = [case for case in cases() if case.scenario != SHOCK]
        again = [case for case in drifting if case.kind not in HEADS]
        repeated = dict(
            zip(again, pool.map(partial(measure, replications=MORE), again), strict=True)
        )
        more = {case: repeated.get(case, found[case]) for case in drifting}
    text = f"{document(found, more)}\n{stamp(document)}\n"
    sys.stdout.write(text)
    if parsed.write:
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
