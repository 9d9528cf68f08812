"""Rules on an agent's reward model: does it predict, is a linear function enough, does it correct
for position?
"""

from __future__ import annotations

import math

import numpy as np

from bandits.agents import AgentParams, agent_class
from bandits.base.formatting import number, percent
from bandits.diagnostics import curves
from bandits.diagnostics.finding import Finding, Verdict
from bandits.diagnostics.references import MAX_NETWORK_GAIN, LinearityCheck, PositionBias
from bandits.diagnostics.regret import Plateau
from bandits.experiments.history import History
from bandits.models.position_bias import Position
from bandits.results import words
from bandits.results.metrics import Estimate

MIN_R2 = 0.5
# of click probabilities relative to slot 1, below which slots count as equivalent
MAX_SLOT_DIFFERENCE = 0.05
# p-value of the curvature test
SIGNIFICANT = 0.01
OF_POSITION: dict[Position, tuple[Verdict, str]] = {
    "aware": ("healthy", "The agent corrects for the position of an item"),
    "examined": (
        "watch",
        "The agent learns from examined slots only, as if all slots were equivalent",
    ),
    "ignored": ("alarm", "The agent treats every slot as examined"),
}


def predictive_r2(history: History) -> Finding:
    """Grade the share of the variance of the true rewards that the predictions explain."""
    title = "Predictive R²"
    healthy = (
        f"At least {MIN_R2}: the predictions explain half the variance of the true expected "
        "rewards between the "
    )
    healthy += "candidates of a round."
    band = curves.predictive_r2(history)
    if band is None or not np.isfinite(band.mid[-1]):
        reason = (
            "This agent reports no predictions, or the expected rewards of all candidates are "
            "equal."
        )
        return Finding(title, healthy, "none", reason)
    r2 = band.mid[-1]
    text = f"R² is {number(round(float(r2), 3))} at step {band.x[-1]:,.0f}."
    if r2 < 0:
        text = "R² is negative: over all candidates, a constant would predict better. "
        text += "The agent may still rank the best arm first."
    return Finding(title, healthy, "healthy" if r2 >= MIN_R2 else "watch", text)


def linearity(
    params: AgentParams, check: LinearityCheck | None, plateau: Plateau | None = None
) -> Finding:
    """Compare a linear model with a network, on randomly logged data, and look for a plateau of the
    reward.

    A plateau alone is a watch: an agent that stopped exploring too early has one too.
    """
    title = "Linearity check"
    healthy = (
        f"A network explains at most {percent(MAX_NETWORK_GAIN)} more variance than a linear "
        "model, and residuals "
    )
    healthy += (
        "are not curved; the reward per step has not stopped rising below the oracle's (plateau)."
    )
    agent = agent_class(params)
    if not agent.linear or agent.representation(params) not in ("features", "fourier"):
        return Finding(
            title, healthy, "none", "Applies only to agents whose model is linear in the features."
        )
    if check is None:
        return Finding(title, healthy, "none", "No randomly logged data are available.")
    if math.isnan(check.gain):
        reason = (
            "On some thousand randomly logged rewards, neither a linear model nor a network "
            "explains any variance."
        )
        return Finding(title, healthy, "none", reason)
    if agent.representation(params) == "fourier":
        return Finding(
            title,
            healthy,
            "none",
            "The agent's random Fourier features can express nonlinear rewards.",
        )
    curved, stuck = check.p_value < SIGNIFICANT, plateau is not None and plateau.reached
    third = _third_sign(plateau)
    if check.gain > MAX_NETWORK_GAIN and check.beyond <= 2:
        text = (
            "A network seems to explain more variance, but there are too few observations to be "
            "sure."
        )
        text += " Residuals are curved." if curved else ""
        return Finding(title, healthy, "watch" if curved or stuck else "none", text + third)
    if check.gain > MAX_NETWORK_GAIN:
        per_arm = bool(agent.spans_arms(params))
        text = (
            "On randomly logged data a network explains "
            f"{_more(check.gain)}{' and residuals are curved' * curved}, "
        )
        text += "so one shared linear model underfits" if per_arm else "so a linear model underfits"
        text += (
            f"; per-arm models may {'underfit too' if stuck else 'still suffice'}."
            if per_arm
            else "."
        )
        return Finding(title, healthy, "watch" if per_arm else "alarm", text + third)
    gain = "no more variance" if check.gain <= 0 else f"{percent(check.gain)} more variance"
    text = (
        f"A network explains {gain}; residuals are {'' if curved else 'not '}curved (p = "
        f"{check.p_value:.2g})."
    )
    if stuck and not curved:
        third += " The cause may also be that the agent stopped exploring too early."
    return Finding(title, healthy, "watch" if curved or stuck else "healthy", text + third)


def _third_sign(plateau: Plateau | None) -> str:
    """State slope and distance to the oracle over the last third, as a continuation.

    Empty where unknown.
    """
    if plateau is None:
        return ""
    state = (
        "Plateau"
        if plateau.reached
        else "No plateau"
        if plateau.slope.low > 0
        else "No evidence of a plateau"
    )
    slope = Estimate(*(1000 * end for end in plateau.slope))
    text = (
        f" {state}: over the last third the reward per step changes by {words.stated(slope)} per "
        "1,000 "
    )
    return (
        f"{text}steps relative to the oracle's, and is {words.stated(plateau.distance)} below it "
        "(without exploration)."
    )


def _more(gain: float) -> str:
    """State how much more variance a network explains."""
    if math.isinf(gain):
        return "some variance and a linear model none"
    return (
        f"{1 + gain:.0f} times as much variance" if gain >= 1 else f"{percent(gain)} more variance"
    )


def position_bias(params: AgentParams, bias: PositionBias | None) -> Finding:
    """Compare how an agent treats the slots of a slate with the position bias of the simulator."""
    title = "Position bias"
    healthy = (
        "The agent weights an impression by the click probability of its slot relative to slot 1."
    )
    treatment = agent_class(params).slot_treatment(params)
    if treatment is None or bias is None:
        return Finding(title, healthy, "none", "This agent does not learn from slates.")
    verdict, method = OF_POSITION[treatment]
    times = f"{number(bias.true[-1])} times as often"
    if np.abs(bias.true - 1).max() <= MAX_SLOT_DIFFERENCE:
        times = "as often"
        if treatment == "examined":
            verdict, method = (
                "healthy",
                "The agent learns from examined slots only, and all slots are equivalent",
            )
    text = f"{method}. In slot {len(bias.true)} an item is clicked {times} as in slot 1"
    estimate, half = round(float(bias.estimated[-1]), 3), round(1.96 * float(bias.error[-1]), 3)
    text += (
        f" (estimated from clicks: {number(estimate)} ± {number(half)})."
        if math.isfinite(estimate)
        else "."
    )
    return Finding(title, healthy, verdict, text)
