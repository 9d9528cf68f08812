"""The document of agents that forget: its verdicts follow from the numbers, and its main statements
hold.
"""

from __future__ import annotations

import numpy as np

from bandits.results import metrics
from bandits.results.change.recovery import Recovery
from benchmarks.reproduction import change
from benchmarks.reproduction.change import (
    DISCOUNT,
    DOCUMENT,
    DRIFT,
    PLAIN,
    SHOCK,
    SLIDE,
    STATIC,
    STILL,
    Case,
    Found,
    Outcome,
)


def found(
    *,
    after_shock: float = 100.0,
    steps: int = 900,
    kept: float = 0.0,
    weak: float = 0.0,
    stuck: float = 0.0,
) -> Found:
    """Return outcomes of LinUCB and the network.

    ``after_shock``: clicks that forgetting earns with a shock. ``steps``: its recovery. ``kept``:
    what the network keeps of the 500 clicks that the drift costs it. ``weak``: clicks that LinUCB
    with a window lacks in the last steps of every run; ``stuck``: of the run with the drift alone.
    """
    noise = np.random.default_rng(0).normal(size=16)
    outcomes = {}
    for case in change.cases():
        if case.kind not in ("linucb", STATIC):
            continue
        forgets, static = case.way != PLAIN, case.kind == STATIC
        lost = {STILL: 0.0, SHOCK: 300.0, DRIFT: 500.0 - kept if static else 50.0}[case.scenario]
        earned = (after_shock if case.scenario == SHOCK else -20.0) if forgets else 0.0
        last = 900.0 if static and case.scenario == DRIFT else 1000.0
        step = steps if forgets else 2000
        wide = 30 * np.resize([1.0, -1.0], 16) if case.scenario == DRIFT and not static else 0.0
        clicks = 9000 - lost + earned + noise * (1 + forgets) + wide
        if case.way == SLIDE:
            last -= weak + stuck * (case.scenario == DRIFT)
        outcomes[case] = Outcome(
            clicks, last + noise * static, Recovery(step, step - 10, step + 10, 1.0)
        )
    return outcomes


def verdicts(outcomes: Found) -> list[str]:
    return [line.split("**")[1] for line in change.verdicts(outcomes, outcomes)]


def test_verdicts_follow_from_the_numbers() -> None:
    assert verdicts(found()) == ["Confirmed"] * 5
    assert verdicts(found(after_shock=-5.0))[0] == "Not confirmed"
    assert verdicts(found(steps=1001))[1] == "Not confirmed"
    assert verdicts(found(kept=480.0))[2] == "Not confirmed"
    assert verdicts(found(kept=440.0))[2] == "Mixed"
    assert verdicts(found(weak=150.0))[3:] == ["Mixed", "Confirmed"]
    assert verdicts(found(stuck=150.0))[3:] == ["Mixed", "Not confirmed"]


def test_statements_on_the_static_network_are_corrected_for_all_learners() -> None:
    against = change.against_static(found(weak=150.0))
    assert {d.case for d in against.loss} == {
        Case(DRIFT, "linucb", way) for way in (PLAIN, DISCOUNT, SLIDE)
    }
    assert against.behind == {Case(DRIFT, "linucb", SLIDE)}
    outcomes = found(kept=440.0)
    still = {
        case: outcomes[case._replace(scenario=STILL)].clicks - outcomes[case].clicks
        for case in outcomes
    }
    static = still[Case(DRIFT, STATIC, PLAIN)]
    loss = change.against_static(outcomes).loss
    for d in loss:
        assert d.estimate == metrics.estimate(static - still[d.case], family=3)


def test_differences_are_paired_and_corrected() -> None:
    by = {d.case: d for d in change.differences(found())}
    assert {case.way for case in by} == {DISCOUNT, SLIDE}
    shocked = by[Case(SHOCK, "linucb", DISCOUNT)]
    assert abs(shocked.estimate.mean - 100) < 1
    assert shocked.estimate.low > 0


def test_the_main_statements_hold_in_the_document() -> None:
    lines = [
        line
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
        if line.startswith("- **")
    ]
    judged = [
        line for line in lines if line.split("**")[1] in ("Confirmed", "Mixed", "Not confirmed")
    ]
    assert [line.split("**")[1] for line in judged[:2]] == ["Confirmed", "Confirmed"]
    assert "Not confirmed" not in " ".join(judged[:3])
