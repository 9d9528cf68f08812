"""Report one decision: sentences that explain it, and a figure of each candidate's score and true
value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bandits.base.formatting import count, number, percent
from bandits.base.types import FloatArray
from bandits.results.decision import Candidate, Why
from bandits.results.figures.parts import axis, drawing, line, named_rows, points, ring
from bandits.results.figures.style import RATE, REFERENCE, Spec, Style, faint

_NOTES = {
    "bonus": (
        "Dot: estimated mean. Bar: exploration bonus. The candidate with the highest sum is "
        "shown (ring)."
    ),
    "sample": (
        "Dot and bar: mean ± one standard deviation. Diamond: sampled value. The candidate with "
        "the highest sample is shown (ring)."
    ),
    "greedy": "Dot: estimated mean. The candidate with the highest mean is shown (ring).",
    "score": (
        "Diamond: score. Dot: estimated mean, where there is one; it has no part in the score. "
        "The candidate with the highest score is shown (ring)."
    ),
    "": "Random choice (ring: shown).",
}
# candidates in a figure of one decision
_DRAWN = 12


def decision(why: Why, style: Style, most: int = _DRAWN) -> Spec:
    """Draw one decision: a line per candidate, with the agent's estimate and the true expected
    reward.

    At most so many candidates are drawn.
    """
    drawn = _worth_drawing(why.candidates, most)
    rows = np.arange(len(drawn), dtype=np.float64)

    def column(name: str) -> FloatArray:
        values = np.array([getattr(c, name) for c in drawn], dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan)

    def on_axis(values: FloatArray) -> FloatArray:
        return 1 / (1 + np.exp(-values)) if why.logit else values

    mean, score, spread, truth = (column(name) for name in ("mean", "score", "spread", "truth"))
    ends = (mean - spread, mean + spread) if why.how == "sample" else (mean, score)
    # a mean has no part in the score
    ends = ends if why.how != "score" else (mean, mean)
    alike = [
        (x, y) for y, c in zip(rows, drawn, strict=True) for x in c.others[:200] if np.isfinite(x)
    ]
    others = np.array(alike).reshape(-1, 2)
    decided = np.where(
        np.isnan(score), np.where(np.isnan(mean), truth, on_axis(mean)), on_axis(score)
    )
    shown, never = (
        np.array([c.slot > 0 for c in drawn]),
        np.array([np.isinf(c.width) for c in drawn]),
    )

    def marks(
        name: str, x: FloatArray, y: FloatArray, size: int, symbol: str = "circle", **more: Any
    ) -> Spec:
        color = faint(style.color, 0.45) if name == "same name" else style.color
        return points(
            name,
            x,
            y,
            color,
            size,
            symbol,
            hovertemplate=f"%{{x:{RATE}}}<extra>{name}</extra>",
            **more,
        )

    def bars(
        name: str,
        x: Sequence[FloatArray],
        y: Sequence[FloatArray],
        color: str,
        width: int,
        **more: Any,
    ) -> Spec:
        gap = np.full(len(rows), np.nan)
        along, across = (np.stack([*values, gap], axis=1).ravel() for values in (x, y))
        return line(name, along, across, color, width=width, hoverinfo="skip", **more)

    wide = 4 if why.how == "sample" else 10
    data = [
        bars(
            "uncertainty",
            [on_axis(end) for end in ends],
            [rows, rows],
            faint(style.color, 0.4),
            wide,
        ),
        marks("same name", on_axis(others[:, 0]), others[:, 1], 4),
        bars("truth", [truth, truth], [rows - 0.36, rows + 0.36], REFERENCE, 2, meta="reference"),
        marks("mean", on_axis(mean), rows, 9),
    ]
    if why.how in ("sample", "score"):
        data.append(marks("score", on_axis(score), rows, 12, "diamond"))
    data.append(ring("shown", decided[shown], rows[shown], style.color, 20))
    if never.any():
        texts = {"text": ["  no observations"] * int(never.sum()), "textposition": "middle right"}
        unseen = points("", truth[never], rows[never], style.color, hoverinfo="skip", **texts)
        data.append({**unseen, "mode": "text"})
    who = f"Visitor: {why.visitor}. " if why.visitor else ""
    small = " Small dots: other candidates with the same name." if alike else ""
    left_out = len(why.candidates) - len(drawn)
    rest = f" Not drawn: {left_out:,} more." if left_out else ""
    x = np.concatenate([trace["x"] for trace in data])
    low, high = np.nanmin(x), np.nanmax(x)
    room = 0.06 * (high - low) or 0.1
    how = "" if why.randomised and not np.isfinite(mean).any() else why.how
    y = named_rows(
        [_tick(c) for c in drawn],
        [len(drawn) - 0.4, -0.6],
        showgrid=False,
        ticks="",
        fixedrange=True,
    )
    span = [float(low - room), float(high + room)]
    return drawing(
        data,
        f"{why.label} at step {why.step:,}",
        f"{who}{_NOTES[how]}{small} Vertical line: true expected reward.{rest}",
        x=axis(f"expected {why.reward_noun}", range=span, hoverformat=RATE, showspikes=False),
        y=y,
        hovermode="closest",
    )


def _worth_drawing(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Select the candidates to draw: those shown, the best, and those with the next highest
    scores.
    """
    kept = [c for c in candidates if c.slot or c.best][:most]
    room = most - len(kept)
    more = [c for c in candidates if not (c.slot or c.best)][: max(room, 0)]
    return [c for c in candidates if c in kept or c in more]


def _tick(c: Candidate) -> str:
    name = (c.name if len(c.name) <= 20 else f"{c.name[:19]}…").replace("<", "&lt;")
    name = f"<b>{name}</b>" if c.slot else name
    return f"{name} ×{c.alike}" if c.alike > 1 else name


def explain_decision(why: Why) -> list[str]:
    """Explain one decision: the reason, the probabilities of the other choices, and the reward."""
    shown, *rest = why.candidates
    name = f"{shown.name} ({why.item_noun} {shown.item})" if shown.alike > 1 else shown.name
    tied = any(c.score == shown.score for c in rest)
    won = (
        "tied for the highest (the first of the tied candidates is chosen)"
        if tied
        else "the highest"
    )
    if why.guard:
        reason = f"A guard chose {name} instead of {why.label}: {why.guard}."
    elif why.randomised:
        reason = f"{why.label} chose {name} at random (exploration)."
    elif math.isinf(shown.width):
        reason = (
            f"{why.label} chose {name}: it had no observations, and such candidates are chosen "
            "first."
        )
    elif why.how == "bonus":
        sum_ = (
            f"{number(shown.mean)} + {number(why.scale)} × {number(shown.width)} = "
            f"{number(shown.score)}"
        )
        scale = " (log-odds)" if why.logit else ""
        reason = (
            f"{why.label} chose {name}: its mean plus bonus, {sum_}{scale}, was {won}; "
            f"{_counterfactual(why)}."
        )
    elif why.how == "sample":
        values = f"{_value(why, shown.score)}, was {won} (mean {_value(why, shown.mean)})"
        reason = f"{why.label} chose {name}: its sampled value, {values}."
    else:
        noun = "estimated value" if why.how == "greedy" else "score"
        reason = f"{why.label} chose {name}: its {noun}, {_value(why, shown.score)}, was {won}."
    best = next((c for c in why.candidates if c.best), shown)
    compared = (
        ", the highest of all candidates"
        if shown.best
        else f"; {best.name}, the best, had {number(best.truth)}"
    )
    slate = " of the slate" if any(c.slot > 1 for c in why.candidates) else ""
    truth = (
        f"The true expected reward of {shown.name} was {number(shown.truth)} "
        f"{why.reward_noun}{compared}"
    )
    observed = (
        f" Observed reward{slate}: {number(why.reward)}." if math.isfinite(why.reward) else ""
    )
    return [reason, *_chances(why), f"{truth}.{observed}"]


def _value(why: Why, score: float) -> str:
    return number(1 / (1 + math.exp(-score))) if why.logit else number(score)


def _counterfactual(why: Why) -> str:
    """Name the candidates that the nearest smaller and larger exploration coefficients would have
    chosen.
    """
    switches = []
    for side, switch in (("below", why.below), ("above", why.above)):
        if switch is not None:
            digits = next(
                d for d in range(3, 18) if d == 17 or float(f"{switch.at:.{d}g}") != why.scale
            )
            switches.append(
                f"with {why.parameter} {side} {switch.at:.{digits}g}, {switch.name} would have "
                "been chosen"
            )
    if not switches:
        return f"no other value of {why.parameter} would have changed the choice"
    return "; ".join(switches)


def _chances(why: Why) -> list[str]:
    """List the most probable choices over the agent's random draws."""
    possible = sorted((c for c in why.candidates if c.chance > 0), key=lambda c: -c.chance)
    if not possible:
        return []
    # not those of 0 %
    likely = [c for c in possible if c.chance >= min(0.005, possible[0].chance)]
    parts, left = [f"{c.name} ({percent(c.chance)})" for c in likely[:3]], likely[3:]
    shown = [c for c in why.candidates if c.slot]
    if len(shown) == 1 and shown[0] not in likely[:3]:
        parts.append(f"the one shown ({percent(shown[0].chance, 1)})")
        left = [c for c in left if c not in shown]
    parts += [f"others ({percent(sum(c.chance for c in left))})"] if left else []
    how = f"estimated from {count(why.redraws)} samples" if why.redraws else "exact"
    return [f"Choice probabilities ({how}): {', '.join(parts)}."]
