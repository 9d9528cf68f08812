"""The conclusion of all diagnostics of one agent, in one or two sentences, and the order of its findings."""

from __future__ import annotations

import math
from typing import NamedTuple

from bandits.base.formatting import percent
from bandits.results.result import Result

from .finding import Direction, Finding, Verdict
from .regret import RegretShares, regret_shares, regret_sources
from .rules.exploration import LOW_REGRET

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
        Begins with the regret; no name of the agent.
    """

    verdict: Verdict
    exploration: Direction
    text: str


def conclude(result: Result, label: str, found: dict[str, Finding]) -> Conclusion:
    """Summarise the findings on an agent: the regret in plain words, then its cause.

    Parameters
    ----------
    result : Result
    label : str
        The agent.
    found : dict of str to Finding
        From `findings`.
    """
    history = result.histories[label]
    learns = result.experiment.agent_class(result.experiment.labels.index(label)).learns
    exploration = found["exploration"]
    direction, shares = exploration.direction, regret_shares(history)
    if shares is None:
        return Conclusion("none", "", exploration.text)
    text, step = _wasted(float(shares.total.mean())), f"step {history.step:,}"
    sources = regret_sources(history)
    rate = math.nan if sources is None else float(sources.late_rate.mean())
    if direction == "too much":
        share = "" if math.isnan(rate) else f", in {percent(rate)} of its decisions"
        text += f": it still explores at {step}{share}. Less exploration would earn more."
    elif direction == "too little":
        text += ": it stopped exploring before it had found the best choices. More exploration would earn more."
    elif direction == "about right":
        text += _about_right(shares, step)
    elif not learns:
        text += ". It does not learn during the run."
    else:
        text += f". {_last_sentence(exploration.text)}"
    others = [f for name, f in found.items() if name not in FIRST and f.verdict == "alarm"]
    verdict = exploration.verdict
    if others and direction in ("", "about right"):
        verdict = "watch"
        text += f" See {', '.join(f.title.split(' (')[0] for f in others)}."
    return Conclusion(verdict, direction, text)


def _about_right(shares: RegretShares, step: str) -> str:
    if shares.total.mean() > LOW_REGRET > shares.late.mean():
        return f", most of it early on: by {step} its regret has reached a plateau. It explores about right."
    return ". It explores about right."


def by_severity(found: dict[str, Finding]) -> dict[str, Finding]:
    """Order findings: exploration and regret first, then alarms, watches, those without verdict, healthy ones."""
    first = {name: found[name] for name in FIRST if name in found}
    rest = sorted((name for name in found if name not in first), key=lambda name: SEVERITY[found[name].verdict])
    return first | {name: found[name] for name in rest}


def _last_sentence(text: str) -> str:
    return text.rsplit(". ", 1)[-1]


def _wasted(share: float) -> str:
    """State a regret relative to the oracle's gain over random choice as a share of the traffic."""
    if share >= 1:
        return "It wastes all of its traffic (it earns no more than random choice)"
    return f"It wastes {percent(share)} of its traffic"
