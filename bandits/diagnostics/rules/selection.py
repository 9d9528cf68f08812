"""Rules on what an agent shows: does it converge too early, and does it explore in every segment of
users?
"""

from __future__ import annotations

import math

import numpy as np

from bandits.agents import AgentParams, agent_class
from bandits.base.formatting import percent
from bandits.diagnostics import curves
from bandits.diagnostics.finding import (
    NOT_COUNTED,
    STOPPED,
    Finding,
    Verdict,
    at_least,
    requires_steps,
)
from bandits.diagnostics.references import OracleReference
from bandits.experiments.history import History
from bandits.results.metrics import WINDOW

# of selection entropy below the oracle's
TOLERANCE = 0.1
LOW_ENTROPY = 0.5
TOO_MANY_ITEMS = "There are too many items to count them by segment."
CANNOT_CONVERGE = "The agent does not learn during the run, so it cannot converge."
NO_ORACLE = "no oracle is available for comparison"


def premature_convergence(
    history: History, oracle: OracleReference | None, *, learns: bool = True
) -> Finding:
    """Grade the selection entropy against the oracle's.

    Low entropy alone is no defect: where few arms are best, the oracle shows only these.
    """
    title = "Premature convergence (lock-in)"
    healthy = f"Selection entropy is at most {TOLERANCE} below the oracle's."
    if not learns:
        return Finding(title, healthy, "none", CANNOT_CONVERGE)
    if history.count_size < 2:
        return Finding(title, healthy, "none", NOT_COUNTED)
    steps = WINDOW if oracle is None else oracle.steps
    if history.count_grid[history.count_size - 1] < min(steps, history.steps):
        return Finding(title, healthy, "none", requires_steps(steps))
    entropy, rare = curves.recent_entropy(history, steps)
    if not math.isfinite(entropy):
        return Finding(title, healthy, "none", STOPPED)
    narrow = entropy < LOW_ENTROPY and rare > 0
    observed = (
        f"entropy {entropy:.2f}; {percent(rare)} of the {history.counted} receive under 1 % of the "
        "traffic each"
    )
    if oracle is None:
        verdict: Verdict = "watch" if narrow else "healthy"
        return Finding(title, healthy, verdict, f"{observed.capitalize()}; {NO_ORACLE}.")
    reference = f"oracle: {oracle.entropy:.2f}; {percent(oracle.rare)}"
    if entropy < oracle.entropy - TOLERANCE:
        text = f"Less varied than the oracle: {observed} ({reference})."
        return Finding(title, healthy, "alarm" if narrow else "watch", text)
    if narrow:
        likewise = (
            "but so is the oracle's"
            if oracle.entropy < LOW_ENTROPY
            else "but close to the oracle's"
        )
        text = f"Entropy is below {LOW_ENTROPY}, {likewise}: {observed} ({reference})."
        return Finding(title, healthy, "healthy", text)
    return Finding(title, healthy, "healthy", f"{observed.capitalize()} ({reference}).")


def segment_coverage(
    history: History, params: AgentParams, segments: list[str], *, learns: bool
) -> Finding:
    """Grade the share of the items shown to the least explored segment, against uniformly random
    selection.
    """
    title = "Coverage by segment"
    healthy = (
        "Each segment has been shown at least nine tenths of the items that uniformly random "
        "selection would show."
    )
    bands, random = curves.segment_coverage(history), curves.random_coverage(history)
    bands_ten_times = curves.segment_coverage(history, 10)
    if bands is None or bands_ten_times is None or random is None:
        return Finding(title, healthy, "none", TOO_MANY_ITEMS)
    shown, ten_times = (
        np.array([band.mid[-1] for band in each]) for each in (bands, bands_ten_times)
    )
    share = shown / random
    if np.isnan(share).all():
        return Finding(title, healthy, "none", NOT_COUNTED)
    # NaN, a segment without visitors, sorts last
    least = int(np.lexsort((ten_times, share))[0])
    text = (
        f"Lowest for {segments[least]}: {percent(shown[least])} of the items shown at least once, "
    )
    text += (
        f"{percent(ten_times[least])} at least ten times (random selection: "
        f"{percent(random[least])} once)."
    )
    if not learns:
        text = f"The agent does not learn during the run and need not explore. {text}"
        return Finding(title, healthy, "none", text)
    verdict = at_least(share[least], healthy=0.9, watch=0.5)
    if verdict == "alarm" and agent_class(params).generalises(params):
        verdict, text = "watch", f"{text} The model generalises across items, so this may suffice."
    return Finding(title, healthy, verdict, text)


def segment_entropy(
    history: History, segments: list[str], oracle: OracleReference | None, *, learns: bool = True
) -> Finding:
    """Grade the selection entropy within the segment farthest below the oracle's."""
    title = "Entropy by segment"
    healthy = f"Within every segment, selection entropy is at most {TOLERANCE} below the oracle's."
    if not learns:
        return Finding(title, healthy, "none", CANNOT_CONVERGE)
    steps = WINDOW if oracle is None else oracle.steps
    entropies = curves.recent_segment_entropy(history, steps)
    if entropies is None:
        return Finding(title, healthy, "none", TOO_MANY_ITEMS)
    if history.step < min(steps, history.steps):
        return Finding(title, healthy, "none", requires_steps(steps))
    if np.isnan(entropies).all():
        return Finding(title, healthy, "none", NOT_COUNTED)
    known = oracle is not None and len(oracle.segments) == len(entropies)
    targets = (
        np.array(oracle.segments)
        if oracle is not None and known
        else np.full(len(entropies), np.nan)
    )
    gaps = np.where(np.isnan(targets), entropies, entropies - targets)
    least = int(np.nanargmin(gaps))
    text = f"Lowest for {segments[least]}: {entropies[least]:.2f}"
    if np.isnan(targets[least]):
        return Finding(title, healthy, "none", f"{text}; {NO_ORACLE}.")
    if np.nanmax(targets) <= TOLERANCE:
        reason = (
            f"No agent can be {TOLERANCE} below the oracle, which shows each segment the same "
            f"items. {text}."
        )
        return Finding(title, healthy, "none", reason)
    if gaps[least] >= -TOLERANCE:
        verdict: Verdict = "healthy"
    else:
        verdict = "watch" if entropies[least] >= LOW_ENTROPY else "alarm"
    return Finding(title, healthy, verdict, f"{text} (oracle: {targets[least]:.2f}).")
