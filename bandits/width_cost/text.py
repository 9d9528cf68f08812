"""Summarise a cost report in sentences and table cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bandits.base.formatting import count, duration, percent, rounded, size

from .complexity import FULL_MATRIX, METHODS
from .request import CostAxis
from .results import Agreement, CostReport, Quantity


def summary(report: CostReport, max_seconds: float, max_bytes: float) -> list[str]:
    """Summarise the report in a few sentences; none before all methods are timed.

    Parameters
    ----------
    report : CostReport
    max_seconds : float
        Limit of the time of a decision with its update.
    max_bytes : float
        Memory of the machine.
    """
    if not report.timed:
        return []
    sentences = [
        _exact(report),
        *_full_matrix(report, max_seconds, max_bytes),
        _dual(report, max_seconds, max_bytes),
        _approximations(report),
    ]
    return [sentence for sentence in sentences if sentence]


def conclusion(report: CostReport, max_seconds: float, max_bytes: float) -> str:
    """Name the fastest exact method and the fastest approximation within the limits; empty before all are timed."""
    if not report.timed:
        return ""
    timings = {kind: timing for kind in METHODS if (timing := report.at_request(kind))}
    within = sorted(
        (timing.seconds, kind)
        for kind, timing in timings.items()
        if timing.seconds <= max_seconds and METHODS[kind].memory(report.request.sizes) <= max_bytes
    )
    exact = next((kind for _, kind in within if METHODS[kind].exact), "")
    approximate = next((kind for _, kind in within if not METHODS[kind].exact), "")
    limits = f"{duration(max_seconds)} and {size(max_bytes)}"
    if not exact:
        rest = f"the fastest approximation that does is {_named(report, approximate)}" if approximate else ""
        return f"No exact method keeps the limits of {limits} at these sizes; {rest or 'no approximation does either'}."
    sentence = f"The fastest exact method at these sizes is {_named(report, exact)}"
    if "passes" in timings and exact != "passes":
        ratio = timings["passes"].seconds / timings[exact].seconds
        sentence += f", {rounded(ratio)} times as fast as backward passes with a new inverse"
    return f"{sentence}; the fastest approximation is {_named(report, approximate)}." if approximate else f"{sentence}."


def _named(report: CostReport, kind: str) -> str:
    memory = size(METHODS[kind].memory(report.request.sizes))
    return f"{METHODS[kind].title} ({_time(report, kind)}, {memory})"


def _time(report: CostReport, kind: str) -> str:
    timing = report.at_request(kind)
    if timing is None:
        return "an unknown time"
    return f"{'' if report.is_measured(kind) else 'about '}{duration(timing.seconds)}"


def _exact(report: CostReport) -> str:
    request = report.request
    return (
        f"For p = {count(request.sizes.p)} weights, K = {count(request.n_candidates)} candidates and "
        f"t = {count(request.past)} observations, one decision with exact widths and its update take "
        f"{_time(report, 'dual')} with the factored dual, which needs {size(METHODS['dual'].memory(request.sizes))} of "
        "memory."
    )


def _full_matrix(report: CostReport, max_seconds: float, max_bytes: float) -> list[str]:
    sizes = report.request.sizes
    passes, jacobian = (_time(report, kind) for kind in FULL_MATRIX)
    first = (
        f"The same widths from a p × p matrix, which alone needs {size(4 * sizes.p**2)}, take {passes} with one "
        f"backward pass per arm and a new inverse, and {jacobian} with the vectorised Jacobian and rank-one updates of "
        f"the inverse. Their gradients of all candidates, K × p numbers, need {size(4 * sizes.K * sizes.p)}."
    )
    texts = {kind: _infeasible(report, kind, "p", max_seconds, max_bytes) for kind in FULL_MATRIX}
    limits = [f"{METHODS[kind].title} at {text}" for kind, text in texts.items() if text]
    return [first, f"Larger networks make these methods infeasible: {'; '.join(limits)}." if limits else ""]


def _dual(report: CostReport, max_seconds: float, max_bytes: float) -> str:
    text = _infeasible(report, "dual", "t", max_seconds, max_bytes)
    if not text:
        return ""
    return (
        "The time and memory of the dual grow with the square of the number of observations. It becomes infeasible at "
        f"{text}; then it must be replaced by the matrix of all weights, by a sketch of it (its largest directions) or "
        "by its diagonal."
    )


def _infeasible(report: CostReport, kind: str, axis: CostAxis, max_seconds: float, max_bytes: float) -> str:
    """Describe where a method becomes infeasible: about p = 4,000 (1 s per decision)."""
    limit = report.infeasible_from(kind, axis, max_seconds, max_bytes)
    if limit is None:
        return ""
    where = f"any {axis}" if limit[0] == 0 else f"about {axis} = {rounded(limit[0])}"
    seconds = limit[1] == "seconds"
    why = f"{duration(max_seconds)} per decision" if seconds else f"{size(max_bytes)}, the memory of this machine"
    return f"{where} ({why})"


def listed(texts: Sequence[str]) -> str:
    """Join texts with commas, and the last one with "and"."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def _within_sentence(kind: str) -> str:
    """Return the title of a method without its capital, unless it begins with an abbreviation."""
    title = METHODS[kind].title
    return title if title[1].isupper() else title[0].lower() + title[1:]


def _approximations(report: CostReport) -> str:
    times = [f"{_time(report, kind)} ({_within_sentence(kind)})" for kind in METHODS if not METHODS[kind].exact]
    sentence = f"The time of the approximations does not depend on t: {listed(times)}."
    first = report.agreements[0].simulator if report.agreements else ""
    compared = [a for a in report.agreements if not METHODS[a.kind].exact and a.simulator == first]
    if compared:
        shares = " and ".join(f"{percent(a.same)} ({_within_sentence(a.kind)})" for a in compared)
        sentence += " In the pet shop they lead to the same choice as exact widths in "
        sentence += f"{shares} of {compared[0].decisions} decisions."
    return sentence


def infeasible_cell(report: CostReport, kind: str, axis: CostAxis, max_seconds: float, max_bytes: float) -> str:
    """Format the size from which a method is infeasible, and why, for a table."""
    limit: tuple[float, Quantity] | None = report.infeasible_from(kind, axis, max_seconds, max_bytes)
    if limit is None:
        return "never" if report.timed else "–"
    return f"{'everywhere' if limit[0] == 0 else rounded(limit[0])} ({'time' if limit[1] == 'seconds' else 'memory'})"


def agreement_cells(agreement: Agreement) -> tuple[str, str, str]:
    """Format rank correlation, share of equal choices and width ratio for a table."""
    rank = f"{agreement.rank:.2f}".replace("-", "−") if math.isfinite(agreement.rank) else "–"
    return rank, percent(agreement.same), f"{agreement.scale:.2f} ×"
