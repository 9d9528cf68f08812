"""The conclusion of all diagnostics of one agent, in one or two sentences, and the order of its findings."""

from __future__ import annotations

from typing import NamedTuple

from .finding import Direction, Finding, Verdict

SEVERITY: dict[Verdict, int] = {"alarm": 0, "watch": 1, "none": 2, "healthy": 3}
FIRST = ("exploration", "regret")  # the diagnostics that state what the others may explain


class Conclusion(NamedTuple):
    """What the findings on an agent amount to.

    Attributes
    ----------
    verdict : {"healthy", "watch", "alarm", "none"}
    exploration : {"", "too little", "about right", "too much"}
        Empty where it cannot be decided.
    text : str
        Begins with the regret, where it is known; no name of the agent.
    """

    verdict: Verdict
    exploration: Direction
    text: str


def conclude(found: dict[str, Finding]) -> Conclusion:
    """Summarise the findings on an agent: what the rule on exploration concludes, and alarms that it leaves open.

    Parameters
    ----------
    found : dict of str to Finding
        From `findings`.
    """
    exploration = found["exploration"]
    if not exploration.summary:
        return Conclusion("none", "", exploration.text)
    direction, text = exploration.direction, exploration.summary
    others = [f for name, f in found.items() if name not in FIRST and f.verdict == "alarm"]
    verdict = exploration.verdict
    if not direction and "regret" in found:  # a cause that cannot be decided does not make the loss smaller
        verdict = min(verdict, found["regret"].verdict, key=SEVERITY.__getitem__)
    if others and direction in ("", "about right"):
        verdict = min(verdict, "watch", key=SEVERITY.__getitem__)
        text += f" See {', '.join(f.title.split(' (')[0] for f in others)}."
    return Conclusion(verdict, direction, text)


def by_severity(found: dict[str, Finding]) -> dict[str, Finding]:
    """Order findings: exploration and regret first, then alarms, watches, those without verdict, healthy ones."""
    first = {name: found[name] for name in FIRST if name in found}
    rest = sorted((name for name in found if name not in first), key=lambda name: SEVERITY[found[name].verdict])
    return first | {name: found[name] for name in rest}
