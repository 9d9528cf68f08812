"""The document of what guards cost: its verdicts follow from the numbers, and its main statements
hold.
"""

from __future__ import annotations

import numpy as np

from benchmarks.reproduction import guards
from benchmarks.reproduction.guards import AGENTS, DOCUMENT, GUARDS, LATE, Outcome


def found(*, linucb: float, lints: float) -> dict[str, Outcome]:
    """Return outcomes in which late rewards cost so many of 10,000 clicks, and other guards
    none.
    """
    generator = np.random.default_rng(0)
    outcomes = {}
    for name in AGENTS:
        plain = 10_000 + 50 * generator.normal(size=16)
        cost = linucb if name.startswith("LinUCB") else lints
        guarded = {
            g: plain - (cost if g in LATE else 0.0) + 5 * generator.normal(size=16) for g in GUARDS
        }
        outcomes[name] = Outcome(plain, guarded, 0.1)
    return outcomes


def words(outcomes: dict[str, Outcome]) -> list[str]:
    return [line.split("**")[1] for line in guards.verdicts(outcomes)]


def test_verdicts_follow_from_the_numbers() -> None:
    assert words(found(linucb=400, lints=100)) == ["Confirmed"] * 4
    assert words(found(linucb=600, lints=100)) == ["Not confirmed", "Confirmed"] * 2
    assert words(found(linucb=100, lints=100)) == ["Confirmed", "Not confirmed"] * 2
    delay = next(
        c
        for c in guards.costs(found(linucb=400, lints=0))
        if (c.agent, c.guard) == ("LinUCB shared", LATE[0])
    )
    assert delay.estimate.low < 400 < delay.estimate.high
    assert abs(delay.share.mean - 0.04) < 0.001


def test_late_rewards_cost_models_per_arm_much_and_lints_less() -> None:
    lines = [
        line
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
        if line.startswith("- **")
    ]
    judged = [
        line.split("**")[1]
        for line in lines
        if line.split("**")[1] in ("Confirmed", "Not confirmed")
    ]
    assert judged[:3] == ["Not confirmed", "Confirmed", "Confirmed"]
