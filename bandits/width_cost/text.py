"""Summarise a cost report in sentences and table cells."""

from __future__ import annotations

import math

import numpy as np

from bandits.base.formatting import count, duration, listed, percent, rounded, size

from .complexity import FULL_MATRIX, NEURAL_METHODS, CostAxis
from .request import LinearRequest
from .results import Agreement, Condition, CostReport

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    if isinstance(report.request, LinearRequest):
        return _of_linucb(report)
    sentences = [
        _exact(report),
        *_full_matrix(report, max_seconds, max_bytes),
        _dual(report, max_seconds, max_bytes),
        _approximations(report),
    ]
    return [sentence for sentence in sentences if sentence]


def conclusion(report: CostReport, max_seconds: float, max_bytes: float) -> str:
    """Name the fastest methods within the limits, or of LinUCB with the condition of A.

    Empty before all are timed.
    """
    if not report.timed:
        return ""
    if isinstance(report.request, LinearRequest):
        return _conclusion_of_linucb(report)
    timings = {kind: timing for kind in report.methods if (timing := report.at_request(kind))}
    within = sorted(
        (timing.seconds, kind)
        for kind, timing in timings.items()
        if timing.seconds <= max_seconds
        and report.methods[kind].memory(report.request.sizes) <= max_bytes
    )
    exact = next((kind for _, kind in within if report.methods[kind].exact), "")
    approximate = next((kind for _, kind in within if not report.methods[kind].exact), "")
    limits = f"{duration(max_seconds)} and {size(max_bytes)}"
    if not exact:
        rest = (
            f"the fastest approximation that does is {_named(report, approximate)}"
            if approximate
            else ""
        )
        return (
            f"No exact method keeps the limits of {limits} at these sizes; "
            f"{rest or 'no approximation does either'}."
        )
    sentence = f"The fastest exact method at these sizes is {_named(report, exact)}"
    if "passes" in timings and exact != "passes":
        ratio = timings["passes"].seconds / timings[exact].seconds
        sentence += f", {rounded(ratio)} times as fast as backward passes with a new inverse"
    return (
        f"{sentence}; the fastest approximation is {_named(report, approximate)}."
        if approximate
        else f"{sentence}."
    )


def _named(report: CostReport, kind: str) -> str:
    memory = size(report.methods[kind].memory(report.request.sizes))
    return f"{report.methods[kind].title} ({_time(report, kind)}, {memory})"


def _time(report: CostReport, kind: str) -> str:
    timing = report.at_request(kind)
    if timing is None:
        return "an unknown time"
    return f"{'' if report.is_measured(kind) else 'about '}{duration(timing.seconds)}"


def _exact(report: CostReport) -> str:
    request = report.request
    return (
        f"For p = {count(request.sizes.p)} weights, K = {count(request.sizes.K)} candidates and t "
        f"= {count(request.sizes.t)} observations, one decision with exact widths and its update "
        f"take {_time(report, 'dual')} with the factored dual, which needs "
        f"{size(report.methods['dual'].memory(request.sizes))} of memory."
    )


def _full_matrix(report: CostReport, max_seconds: float, max_bytes: float) -> list[str]:
    sizes = report.request.sizes
    passes, jacobian = (_time(report, kind) for kind in FULL_MATRIX)
    first = (
        f"The same widths from a p × p matrix, which alone needs {size(4 * sizes.p**2)}, take "
        f"{passes} with one backward pass per arm and a new inverse, and {jacobian} with the "
        "vectorised Jacobian and rank-one updates of the inverse. Their gradients of all "
        f"candidates, K × p numbers, need {size(4 * sizes.K * sizes.p)}."
    )
    texts = {kind: _infeasible(report, kind, "p", max_seconds, max_bytes) for kind in FULL_MATRIX}
    limits = [f"{report.methods[kind].title} at {text}" for kind, text in texts.items() if text]
    return [
        first,
        f"Larger networks make these methods infeasible: {'; '.join(limits)}." if limits else "",
    ]


def _dual(report: CostReport, max_seconds: float, max_bytes: float) -> str:
    text = _infeasible(report, "dual", "t", max_seconds, max_bytes)
    if not text:
        return ""
    return (
        "The time and memory of the dual grow with the square of the number of observations. It "
        f"becomes infeasible at {text}; then it must be replaced by the matrix of all weights, by "
        "a sketch of it (its largest directions) or by its diagonal."
    )


def _infeasible(
    report: CostReport, kind: str, axis: CostAxis, max_seconds: float, max_bytes: float
) -> str:
    """Describe where a method becomes infeasible: about p = 4,000 (1 s per decision)."""
    limit = report.infeasible_from(kind, axis, max_seconds, max_bytes)
    if limit is None:
        return ""
    where = f"any {axis}" if limit[0] == 0 else f"about {axis} = {rounded(limit[0])}"
    seconds = limit[1] == "seconds"
    why = (
        f"{duration(max_seconds)} per decision"
        if seconds
        else f"{size(max_bytes)}, the memory of this machine"
    )
    return f"{where} ({why})"


def _within_sentence(kind: str) -> str:
    """Return the title of a method without its capital, unless it begins with an abbreviation."""
    title = NEURAL_METHODS[kind].title
    return title if title[1].isupper() else title[0].lower() + title[1:]


def _approximations(report: CostReport) -> str:
    times = [
        f"{_time(report, kind)} ({_within_sentence(kind)})"
        for kind in report.methods
        if not report.methods[kind].exact
    ]
    sentence = f"The time of the approximations does not depend on t: {listed(times)}."
    first = report.agreements[0].simulator if report.agreements else ""
    compared = [
        a for a in report.agreements if not report.methods[a.kind].exact and a.simulator == first
    ]
    if compared:
        shares = " and ".join(f"{percent(a.same)} ({_within_sentence(a.kind)})" for a in compared)
        sentence += " In the pet shop they lead to the same choice as exact widths in "
        sentence += f"{shares} of {compared[0].decisions} decisions."
    return sentence


def infeasible_cell(
    report: CostReport, kind: str, axis: CostAxis, max_seconds: float, max_bytes: float
) -> str:
    """Format the size from which a method is infeasible, and why, for a table."""
    limit = report.infeasible_from(kind, axis, max_seconds, max_bytes)
    if limit is None:
        return "never" if report.timed else "–"
    return (
        f"{'everywhere' if limit[0] == 0 else rounded(limit[0])} "
        f"({'time' if limit[1] == 'seconds' else 'memory'})"
    )


def agreement_cells(agreement: Agreement) -> tuple[str, str, str]:
    """Format rank correlation, share of equal choices and width ratio for a table."""
    rank = f"{agreement.rank:.2f}".replace("-", "−") if math.isfinite(agreement.rank) else "–"
    return rank, percent(agreement.same), f"{agreement.scale:.2f} ×"


def _conclusion_of_linucb(report: CostReport) -> str:
    """Compare the fastest method with an inverse at each step, and state the condition of A."""
    timings = {kind: timing for kind in report.methods if (timing := report.at_request(kind))}
    if "inverse" not in timings:
        return ""
    seconds, kind = min((timing.seconds, kind) for kind, timing in timings.items())
    about = "" if report.is_measured(kind) else "about "
    sentence = (
        f"The fastest method at these sizes is {report.methods[kind].title} "
        f"({about}{duration(seconds)}"
    )
    ratio = timings["inverse"].seconds / seconds
    sentence += (
        f", {rounded(ratio)} times as fast as an inverse at each step)" if ratio >= 1.5 else ")"
    )
    if not report.conditions:
        return f"{sentence}."
    worst = max(report.conditions, key=lambda condition: condition.largest)
    return (
        f"{sentence}; the condition number of A before inversion is at most "
        f"{rounded(worst.largest)} (after t = {count(worst.t)} observations), so that about "
        f"{correct_digits(worst)} of 16 digits are correct."
    )


def _of_linucb(report: CostReport) -> list[str]:
    """Describe memory and rounding errors."""
    sizes = report.request.sizes
    memory = {kind: size(method.memory(sizes)) for kind, method in report.methods.items()}
    sentences = [
        f"K = {count(sizes.K)} matrices of d × d numbers, d = {count(sizes.d)}, need "
        f"{memory['rank_one']} as inverses alone, and {memory['inverse']} together with A."
    ]
    if report.conditions:
        last = report.conditions[-1]
        errors = listed(
            [f"{error_text(e)} ({report.methods[kind].title})" for kind, e in last.errors.items()]
        )
        sentences.append(
            f"The largest entry of |A A⁻¹ − I| after t = {count(last.t)} observations is {errors}."
        )
        if (last.d, last.arms) != (sizes.d, sizes.K):
            sentences.append(
                f"Condition numbers and errors are of {last.arms} arms with {last.d} features, "
                "with their share of the observations."
            )
    return sentences


def correct_digits(condition: Condition) -> int:
    """Return the decimal digits of float64 that remain after solving with A: 16 minus log10 of the
    condition.
    """
    return max(0, math.floor(-math.log10(np.finfo(float).eps * condition.largest)))


def error_text(value: float) -> str:
    """Format a rounding error as a power of ten."""
    exponent = f"{math.log10(value):.0f}" if value > 0 else ""
    return f"10{exponent.translate(_RAISED)}" if exponent else "0"
