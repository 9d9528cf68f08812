"""What was found, in words, with numbers for people."""

from __future__ import annotations

import math

from bandits.base.formatting import count, duration, percent, rounded, size

from .complexity import SQUARE, WAYS
from .request import Axis
from .results import Agreement, CostReport, Quantity


def verdict(costs: CostReport, patience: float, memory: float) -> list[str]:
    """What the pictures show, in a few sentences; nothing before all times are known.

    Parameters
    ----------
    patience : float
        Seconds that a decision with its update may take.
    memory : float
        Bytes that this machine has.
    """
    if not costs.timed:
        return []
    said = [_exact(costs), *_square(costs, patience, memory), _dual(costs, patience, memory), _cheap(costs)]
    return [sentence for sentence in said if sentence]


def _took(costs: CostReport, kind: str) -> str:
    point = costs.here(kind)
    if point is None:
        return "an unknown time"
    return f"{'' if costs.measured(kind) else 'about '}{duration(point.seconds)}"


def _exact(costs: CostReport) -> str:
    q = costs.question
    return (
        f"With p = {count(q.sizes.p)} weights, K = {count(q.n_candidates)} candidates and t = {count(q.past)} "
        f"observations, a decision with exact widths, and learning from it, takes the factored dual "
        f"{_took(costs, 'dual')}; it holds {size(WAYS['dual'].held(q.sizes))}."
    )


def _square(costs: CostReport, patience: float, memory: float) -> list[str]:
    sizes = costs.question.sizes
    passes, jacobian = (_took(costs, kind) for kind in SQUARE)
    first = (
        f"The same numbers by a p × p matrix, which alone is {size(4 * sizes.p**2)}: {passes} a decision with a "
        f"backward pass per candidate and a fresh inverse, {jacobian} with the vectorised Jacobian and the inverse "
        "kept."
    )
    ends = [f"{WAYS[kind].title} at {told}" for kind in SQUARE if (told := _end(costs, kind, "p", patience, memory))]
    return [first, f"As the network grows, they become infeasible: {', '.join(ends)}." if ends else ""]


def _dual(costs: CostReport, patience: float, memory: float) -> str:
    told = _end(costs, "dual", "t", patience, memory)
    if not told:
        return ""
    return (
        "The dual pays for observations instead: its time and its memory grow with their square, and are too much from "
        f"{told} on; then the matrix of all weights, a sketch of it (its largest directions) or its diagonal must take "
        "over."
    )


def _end(costs: CostReport, kind: str, axis: Axis, patience: float, memory: float) -> str:
    """Where it becomes infeasible: about p = 4,000 (1 s a decision)."""
    limit = costs.limits(kind, axis, patience, memory)
    return "" if limit is None else f"{_where(axis, limit[0])} ({_why(limit[1], patience, memory)})"


def _where(axis: Axis, value: float) -> str:
    return f"any {axis}" if value == 0 else f"about {axis} = {rounded(value)}"


def _why(quantity: Quantity, patience: float, memory: float) -> str:
    return f"{duration(patience)} a decision" if quantity == "seconds" else f"{size(memory)}, all this machine has"


def _cheap(costs: CostReport) -> str:
    named = [f"the {WAYS[kind].title.lower()} {_took(costs, kind)}" for kind in WAYS if not WAYS[kind].exact]
    sentence = f"Cheaper at any t, but other numbers: {' and '.join(named)}."
    shop = [a for a in costs.agreements if not WAYS[a.kind].exact and a.world == costs.agreements[0].world]
    told = [f"{WAYS[a.kind].title.lower()} in {percent(a.same)}" for a in shop]
    if told:
        sentence += f" Of {shop[0].decisions} decisions of one agent in the pet shop they would have made the same: "
        sentence += f"{', '.join(told)}."
    return sentence


def limits(costs: CostReport, kind: str, axis: Axis, patience: float, memory: float) -> str:
    """A cell of a table: where a way becomes infeasible along an axis, and by what."""
    limit = costs.limits(kind, axis, patience, memory)
    if limit is None:
        return "never" if costs.timed else "–"
    return f"{'everywhere' if limit[0] == 0 else rounded(limit[0])} ({'time' if limit[1] == 'seconds' else 'memory'})"


def agreed(agreement: Agreement) -> tuple[str, str, str]:
    """Rank correlation, share of equal choices, and scale of the widths, for a table."""
    rank = f"{agreement.rank:.2f}".replace("-", "−") if math.isfinite(agreement.rank) else "–"
    return rank, percent(agreement.same), f"{agreement.scale:.2f} ×"
