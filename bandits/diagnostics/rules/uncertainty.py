"""Rules on an agent's stated uncertainty: does it shrink, and is it calibrated?"""

from __future__ import annotations

import numpy as np

from bandits.agents import AgentParams, agent_class
from bandits.base.formatting import percent
from bandits.diagnostics import curves
from bandits.diagnostics.finding import (
    CONSERVATIVE,
    MIN_REPLICATIONS,
    NO_UNCERTAINTY,
    TOO_FEW_SNAPSHOTS,
    Finding,
    at_most,
    requires_replications,
)
from bandits.experiments.history import History
from bandits.experiments.snapshots import BINS, LEVELS
from bandits.results import metrics

# independent ones to which the candidates of a replication amount, roughly
EFFECTIVE_CANDIDATES = 4


def exploration_bonus(history: History, params: AgentParams) -> Finding:
    """Grade how far the bonus (or the posterior standard deviation) of the chosen arm has
    fallen.
    """
    title = "Exploration bonus"
    healthy = (
        "At the last snapshot, the exploration bonus of the chosen arm (or its posterior standard "
        "deviation) is "
    )
    healthy += "at most half of that at the first snapshot."
    band = curves.exploration_bonus(history)
    if band is None:
        return Finding(title, healthy, "none", NO_UNCERTAINTY)
    if agent_class(params).forgets(params):
        reason = "The agent discounts or drops old observations, so its uncertainty grows again."
        return Finding(title, healthy, "none", reason)
    if len(band.x) < 4:
        return Finding(title, healthy, "none", TOO_FEW_SNAPSHOTS)
    if band.mid[0] <= 0:
        return Finding(title, healthy, "alarm", "It is zero: the agent does not explore.")
    share = band.mid[-1] / band.mid[0]
    first, last = (
        f"step {band.x[0]:,.0f} (first snapshot)",
        f"step {band.x[-1]:,.0f} (last snapshot)",
    )
    text = f"At {last} it is {percent(share)} of that at {first}."
    return Finding(title, healthy, at_most(share, healthy=0.5, watch=0.9), text)


def calibration(history: History, params: AgentParams) -> Finding:
    """Grade the empirical coverage of the agent's own intervals.

    A deviation counts only beyond its sampling error.
    """
    title = "Calibration"
    optimistic = _optimistic(params)
    healthy = (
        "The 50, 80 and 95 % intervals contain the true expected reward in 50, 80 and 95 % of "
        "cases, within 10 "
    )
    healthy += "percentage points or sampling error" + (f"; {CONSERVATIVE}." if optimistic else ".")
    bands = {level: metrics.calibration(history, level) for level in LEVELS}
    ends = {
        level: b.mid[-1] for level, b in bands.items() if b is not None and np.isfinite(b.mid[-1])
    }
    if len(ends) < len(LEVELS):
        return Finding(title, healthy, "none", NO_UNCERTAINTY)
    if (n := int(history.alive.sum())) < MIN_REPLICATIONS:
        return Finding(title, healthy, "none", requires_replications(n))
    worst = 0.0
    for level, band in bands.items():
        if band is not None:
            gap = float(min(band.mid[-1] - level, 0.0) if optimistic else band.mid[-1] - level)
            # the interval over replications alone may be far too narrow: four can agree by chance
            binomial = 2 * (level * (1 - level) / (n * EFFECTIVE_CANDIDATES)) ** 0.5
            if abs(gap) > max(band.high[-1] - band.mid[-1], binomial, abs(worst)):
                worst = gap
    verdict = at_most(abs(worst), healthy=0.1, watch=0.25)
    low, middle, high = (f"{100 * end:.0f}" for end in ends.values())
    text = f"Coverage at the end: {low}, {middle} and {high} %."
    if verdict != "healthy":
        text += " The agent is overconfident." if worst < 0 else " The agent is underconfident."
    return Finding(title, healthy, verdict, text)


def pit_histogram(history: History, params: AgentParams) -> Finding:
    """Grade the uniformity of the probability integral transform, by its Kolmogorov-Smirnov
    distance.
    """
    title = "Calibration by quantile (PIT histogram)"
    optimistic = _optimistic(params)
    healthy = (
        "Each tenth of the agent's predictive distribution contains a tenth of the true expected "
        "rewards"
    )
    healthy += f", or the middle contains more: {CONSERVATIVE}." if optimistic else "."
    shares = curves.pit_histogram(history)
    if shares is None:
        return Finding(title, healthy, "none", NO_UNCERTAINTY)
    excess = (
        np.cumsum(curves.pit_histogram_by_replication(history), axis=1)
        - np.arange(1, BINS + 1) / BINS
    )
    if len(excess) < MIN_REPLICATIONS:
        return Finding(title, healthy, "none", requires_replications(len(excess)))
    largest = metrics.estimate(excess[:, int(np.abs(excess.mean(axis=0)).argmax())])
    distance = 0.0 if largest.low <= 0 <= largest.high else abs(largest.mean)
    verdict = at_most(distance, healthy=0.1, watch=0.25)
    mean = float(shares @ (np.arange(BINS) + 0.5) / BINS)
    tails, shape = float(shares[0] + shares[-1]), "are spread evenly over the histogram"
    central = 0.4 <= mean <= 0.6 and tails <= 2 / BINS
    if verdict != "healthy" and central and optimistic:
        verdict, shape = "healthy", "lie mostly in the middle, as conservative intervals imply"
    elif verdict != "healthy":
        shape = (
            "lie mostly above the predictions: the agent underestimates rewards"
            if mean > 0.6
            else "lie mostly below the predictions: the agent overestimates rewards"
            if mean < 0.4
            else "lie mostly in the tails: the agent is overconfident"
            if tails > 2 / BINS
            else "lie mostly in the middle: the agent is underconfident"
        )
    text = (
        f"The true values {shape} (largest deviation from uniform: {percent(abs(largest.mean))})."
    )
    return Finding(title, healthy, verdict, text)


def _optimistic(params: AgentParams) -> bool:
    """Whether its uncertainty is an exploration bonus: an upper confidence bound may be
    conservative.
    """
    return agent_class(params).uncertainty_of(params) == "bonus"
