"""Explain one decision in sentences."""

from __future__ import annotations

import math

from bandits.base.formatting import count, number, percent
from bandits.results.decision.why import Why


def explain_decision(why: Why) -> list[str]:
    """Explain one decision: the reason, the probabilities of the other choices, and the reward."""
    shown, *rest = why.candidates
    name = f"{shown.name} ({why.item_noun} {shown.item})" if shown.alike > 1 else shown.name
    tied = any(c.score == shown.score for c in rest)
    won = "tied for the highest (the first of the tied candidates is chosen)" if tied else "the highest"
    if why.guard:
        reason = f"A guard chose {name} instead of {why.label}: {why.guard}."
    elif why.randomised:
        reason = f"{why.label} chose {name} at random (exploration)."
    elif math.isinf(shown.width):
        reason = f"{why.label} chose {name}: it had no observations, and such candidates are chosen first."
    elif why.how == "bonus":
        sum_ = f"{number(shown.mean)} + {number(why.scale)} × {number(shown.width)} = {number(shown.score)}"
        scale = " (log-odds)" if why.logit else ""
        reason = f"{why.label} chose {name}: its mean plus bonus, {sum_}{scale}, was {won}; {_counterfactual(why)}."
    elif why.how == "sample":
        values = f"{_value(why, shown.score)}, was {won} (mean {_value(why, shown.mean)})"
        reason = f"{why.label} chose {name}: its sampled value, {values}."
    else:
        noun = "estimated value" if why.how == "greedy" else "score"
        reason = f"{why.label} chose {name}: its {noun}, {_value(why, shown.score)}, was {won}."
    best = next((c for c in why.candidates if c.best), shown)
    compared = ", the highest of all candidates" if shown.best else f"; {best.name}, the best, had {number(best.truth)}"
    slate = " of the slate" if any(c.slot > 1 for c in why.candidates) else ""
    truth = f"The true expected reward of {shown.name} was {number(shown.truth)} {why.reward_noun}{compared}"
    observed = f" Observed reward{slate}: {number(why.reward)}." if math.isfinite(why.reward) else ""
    return [reason, *_chances(why), f"{truth}.{observed}"]


def _value(why: Why, score: float) -> str:
    return number(1 / (1 + math.exp(-score))) if why.logit else number(score)


def _counterfactual(why: Why) -> str:
    """Name the candidates that the nearest smaller and larger exploration coefficients would have chosen."""
    switches = []
    for side, switch in (("below", why.below), ("above", why.above)):
        if switch is not None:
            digits = next(d for d in range(3, 18) if d == 17 or float(f"{switch.at:.{d}g}") != why.scale)
            switches.append(f"with {why.parameter} {side} {switch.at:.{digits}g}, {switch.name} would have been chosen")
    if not switches:
        return f"no other value of {why.parameter} would have changed the choice"
    return "; ".join(switches)


def _chances(why: Why) -> list[str]:
    """List the most probable choices over the agent's random draws."""
    possible = sorted((c for c in why.candidates if c.chance > 0), key=lambda c: -c.chance)
    if not possible:
        return []
    likely = [c for c in possible if c.chance >= min(0.005, possible[0].chance)]  # not those of 0 %
    parts, left = [f"{c.name} ({percent(c.chance)})" for c in likely[:3]], likely[3:]
    shown = [c for c in why.candidates if c.slot]
    if len(shown) == 1 and shown[0] not in likely[:3]:
        parts.append(f"the one shown ({percent(shown[0].chance, 1)})")
        left = [c for c in left if c not in shown]
    parts += [f"others ({percent(sum(c.chance for c in left))})"] if left else []
    how = f"estimated from {count(why.redraws)} samples" if why.redraws else "exact"
    return [f"Choice probabilities ({how}): {', '.join(parts)}."]
