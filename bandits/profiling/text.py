"""Summarise a cost report in sentences and table cells."""

from __future__ import annotations

import math

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
        "the inverse."
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


def _approximations(report: CostReport) -> str:
    times = [f"{_time(report, kind)} ({METHODS[kind].title.lower()})" for kind in METHODS if not METHODS[kind].exact]
    sentence = f"The time of the approximations does not depend on t: {' and '.join(times)}."
    first = report.agreements[0].simulator if report.agreements else ""
    compared = [a for a in report.agreements if not METHODS[a.kind].exact and a.simulator == first]
    if compared:
        shares = " and ".join(f"{percent(a.same)} ({METHODS[a.kind].title.lower()})" for a in compared)
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
