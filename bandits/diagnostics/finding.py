"""The verdict of one diagnostic rule, and the texts that several rules share."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["healthy", "watch", "alarm", "none"]
Direction = Literal["", "too little", "about right", "too much"]

# for rules on calibration: errors of the candidates within a replication are correlated
MIN_REPLICATIONS = 4

CONSERVATIVE = "conservative intervals are acceptable for UCB"
FORGETTING = (
    "The agent discounts or drops old observations, so its information does not accumulate."
)
NO_DESIGN_MATRIX = "This agent has no design matrix."
NO_UNCERTAINTY = "This agent reports no uncertainty."
NOTHING_TO_GAIN = "Nothing can be gained over random choice here, or the run is too short."
NOT_COUNTED = "No selections have been counted yet."
PENDING = "The reference values are being computed."
STOPPED = "All replications stopped early."
TOO_EARLY = "Too early: at least 100 steps and a tenth of the run are required."
TOO_FEW_SNAPSHOTS = "Too few snapshots so far."


class Finding(NamedTuple):
    """One diagnostic of one agent.

    Attributes
    ----------
    title, healthy : str
        The name of the diagnostic, and the rule for a healthy agent with its threshold.
    verdict : {"healthy", "watch", "alarm", "none"}
        none: the rule does not apply; ``text`` states the reason.
    text : str
        The observation on this run, in one or two sentences.
    direction : {"", "too little", "about right", "too much"}
        Of the exploration; empty for all other diagnostics, and where it cannot be decided.
    summary : str
        What the regret amounts to and why, in one or two sentences; of the exploration only.
    reservation : str
        Why the verdict is milder than that of the rule alone; the same for several diagnostics of
        an agent.
    """

    title: str
    healthy: str
    verdict: Verdict
    text: str
    direction: Direction = ""
    summary: str = ""
    reservation: str = ""

    def without_verdict(self, reason: str) -> Finding:
        """Replace the verdict by none, for this reason."""
        return self._replace(verdict="none", text=reason, direction="", summary="")


def at_least(value: float, *, healthy: float, watch: float) -> Verdict:
    """Grade a value of which more is better."""
    return "healthy" if value >= healthy else "watch" if value >= watch else "alarm"


def at_most(value: float, *, healthy: float, watch: float) -> Verdict:
    """Grade a value of which less is better."""
    return "healthy" if value <= healthy else "watch" if value <= watch else "alarm"


def requires_steps(steps: int) -> str:
    """State how many steps a rule requires."""
    return f"Too early: {steps:,} steps are required."


def requires_replications(n: int) -> str:
    """State how many replications a rule requires."""
    noun = "replication does" if n == 1 else "replications do"
    return (
        f"{n} {noun} not separate miscalibration from chance: at least {MIN_REPLICATIONS} are "
        "required."
    )


SEVERITY: dict[Verdict, int] = {"alarm": 0, "watch": 1, "none": 2, "healthy": 3}
# the diagnostics that state what the others may explain
FIRST = ("exploration", "regret")


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
    """Summarise the findings on an agent: what the rule on exploration concludes, and alarms that
    it leaves open.

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
    # a cause that cannot be decided does not make the loss smaller
    if not direction and "regret" in found:
        verdict = min(verdict, found["regret"].verdict, key=SEVERITY.__getitem__)
    if others and direction in ("", "about right"):
        verdict = min(verdict, "watch", key=SEVERITY.__getitem__)
        text += f" See {', '.join(f.title.split(' (')[0] for f in others)}."
    return Conclusion(verdict, direction, text)


def by_severity(found: dict[str, Finding]) -> dict[str, Finding]:
    """Order findings: exploration and regret first, then alarms, watches, those without verdict,
    healthy ones.
    """
    first = {name: found[name] for name in FIRST if name in found}
    rest = sorted(
        (name for name in found if name not in first),
        key=lambda name: SEVERITY[found[name].verdict],
    )
    return first | {name: found[name] for name in rest}
