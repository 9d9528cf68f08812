"""Draw one decision: the score of each candidate, and its true value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bandits.base.types import FloatArray
from bandits.results.decision.why import Candidate, Why
from bandits.results.figures.style import RATE, REFERENCE, Spec, Style, faint

_NOTES = {
    "bonus": "Dot: estimated mean. Bar: exploration bonus. The candidate with the highest sum is shown (ring).",
    "sample": "Dot and bar: mean ± one standard deviation. Diamond: sampled value. The candidate with the highest "
    "sample is shown (ring).",
    "greedy": "Dot: estimated mean. The candidate with the highest mean is shown (ring).",
    "score": "Diamond: score. Dot: estimated mean, where there is one; it has no part in the score. The candidate with "
    "the highest score is shown (ring).",
    "": "Random choice (ring: shown).",
}
_DRAWN = 12  # candidates in a figure of one decision


def decision(why: Why, style: Style, most: int = _DRAWN) -> Spec:
    """Draw one decision: a line per candidate, with the agent's estimate and the true expected reward.

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
    ends = ends if why.how != "score" else (mean, mean)  # a mean has no part in the score
    alike = [(x, y) for y, c in zip(rows, drawn, strict=True) for x in c.others[:200] if np.isfinite(x)]
    others = np.array(alike).reshape(-1, 2)
    decided = np.where(np.isnan(score), np.where(np.isnan(mean), truth, on_axis(mean)), on_axis(score))
    shown, never = np.array([c.slot > 0 for c in drawn]), np.array([np.isinf(c.width) for c in drawn])

    def marks(name: str, x: FloatArray, y: FloatArray, marker: Spec, **more: Any) -> Spec:
        hover = {"hovertemplate": f"%{{x:{RATE}}}<extra>{name}</extra>"}
        return {"type": "scatter", "mode": "markers", "name": name, "x": x, "y": y, "marker": marker, **hover, **more}

    def bars(name: str, x: Sequence[FloatArray], y: Sequence[FloatArray], **more: Any) -> Spec:
        gap = np.full(len(rows), np.nan)
        broken = {"x": np.stack([*x, gap], axis=1).ravel(), "y": np.stack([*y, gap], axis=1).ravel()}
        return {"type": "scatter", "mode": "lines", "name": name, "hoverinfo": "skip", **broken, **more}

    data = [
        bars("uncertainty", [on_axis(end) for end in ends], [rows, rows],
             line={"width": 4 if why.how == "sample" else 10, "color": faint(style.color, 0.4)}),
        marks("same name", on_axis(others[:, 0]), others[:, 1], {"size": 4, "color": faint(style.color, 0.45)}),
        bars("truth", [truth, truth], [rows - 0.36, rows + 0.36], line={"width": 2, "color": REFERENCE},
             meta="reference"),
        marks("mean", on_axis(mean), rows, {"size": 9, "color": style.color}),
    ]  # fmt: skip
    if why.how in ("sample", "score"):
        data.append(marks("score", on_axis(score), rows, {"size": 12, "color": style.color, "symbol": "diamond"}))
    ring = {"size": 20, "color": style.color, "symbol": "circle-open", "line": {"width": 2}}
    data.append(marks("shown", decided[shown], rows[shown], ring, hoverinfo="skip", hovertemplate=None))
    if never.any():
        data.append(marks("", truth[never], rows[never], {}, mode="text", text=["  no observations"] * int(never.sum()),
                          textposition="middle right", hoverinfo="skip", hovertemplate=None))  # fmt: skip
    who = f"Visitor: {why.visitor}. " if why.visitor else ""
    small = " Small dots: other candidates with the same name." if alike else ""
    left_out = len(why.candidates) - len(drawn)
    rest = f" Not drawn: {left_out:,} more." if left_out else ""
    x = np.concatenate([trace["x"] for trace in data])
    low, high = np.nanmin(x), np.nanmax(x)
    room = 0.06 * (high - low) or 0.1
    how = "" if why.randomised and not np.isfinite(mean).any() else why.how
    layout: Spec = {
        "title": {"text": f"{why.label} at step {why.step:,}"},
        "meta": {"note": f"{who}{_NOTES[how]}{small} Vertical line: true expected reward.{rest}"},
        "xaxis": {
            "title": {"text": f"expected {why.reward_noun}"}, "range": [float(low - room), float(high + room)],
            "hoverformat": RATE, "showspikes": False,
        },
        "yaxis": {
            "tickvals": rows.tolist(), "ticktext": [_tick(c) for c in drawn], "range": [len(drawn) - 0.4, -0.6],
            "automargin": True, "showgrid": False, "ticks": "", "fixedrange": True,
        },
        "hovermode": "closest",
        "showlegend": False,
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _worth_drawing(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Select the candidates to draw: those shown, the best, and those with the next highest scores."""
    kept = [c for c in candidates if c.slot or c.best][:most]
    room = most - len(kept)
    more = [c for c in candidates if not (c.slot or c.best)][: max(room, 0)]
    return [c for c in candidates if c in kept or c in more]


def _tick(c: Candidate) -> str:
    name = (c.name if len(c.name) <= 20 else f"{c.name[:19]}…").replace("<", "&lt;")
    name = f"<b>{name}</b>" if c.slot else name
    return f"{name} ×{c.alike}" if c.alike > 1 else name
