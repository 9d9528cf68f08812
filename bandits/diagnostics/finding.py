"""The verdict of one diagnostic rule, and the texts that several rules share."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["healthy", "watch", "alarm", "none"]
Direction = Literal["", "too little", "about right", "too much"]

MIN_REPLICATIONS = 4  # for rules on calibration: errors of the candidates within a replication are correlated

CONSERVATIVE = "conservative intervals are acceptable for UCB"
FORGETTING = "The agent discounts or drops old observations, so its information does not accumulate."
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
        Why the verdict is milder than that of the rule alone; the same for several diagnostics of an agent.
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
    return f"{n} {noun} not separate miscalibration from chance: at least {MIN_REPLICATIONS} are required."
