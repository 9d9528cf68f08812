"""Summarise a report on LinUCB in sentences."""

from __future__ import annotations

import math

import numpy as np

from bandits.base.formatting import count, duration, rounded, size
from bandits.width_cost.text import listed

from .results import Condition, LinearReport

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def conclusion(report: LinearReport) -> str:
    """Compare the fastest method with an inverse at each step, and state the condition; empty before all is timed."""
    timings = {kind: timing for kind in report.methods if (timing := report.at_request(kind))}
    if not report.timed or "inverse" not in timings:
        return ""
    seconds, kind = min((timing.seconds, kind) for kind, timing in timings.items())
    about = "" if report.is_measured(kind) else "about "
    sentence = f"The fastest method at these sizes is {report.methods[kind].title} ({about}{duration(seconds)}"
    ratio = timings["inverse"].seconds / seconds
    sentence += f", {rounded(ratio)} times as fast as an inverse at each step)" if ratio >= 1.5 else ")"
    if not report.conditions:
        return f"{sentence}."
    worst = max(report.conditions, key=lambda condition: condition.largest)
    return (
        f"{sentence}; the condition number of A before inversion is at most {condition_text(worst.largest)} (after "
        f"t = {count(worst.t)} observations), so that about {correct_digits(worst)} of 16 digits are correct."
    )


def summary(report: LinearReport) -> list[str]:
    """Describe memory and rounding errors; none before all methods are timed."""
    if not report.timed:
        return []
    sizes = report.request.sizes
    memory = {kind: size(method.memory(sizes)) for kind, method in report.methods.items()}
    sentences = [
        f"K = {count(sizes.K)} matrices of d × d numbers, d = {count(sizes.d)}, need {memory['rank_one']} as inverses "
        f"alone, and {memory['inverse']} together with A."
    ]
    if report.conditions:
        last = report.conditions[-1]
        errors = listed([f"{error_text(e)} ({report.methods[kind].title})" for kind, e in last.errors.items()])
        sentences.append(f"The largest entry of |A A⁻¹ − I| after t = {count(last.t)} observations is {errors}.")
        if (last.d, last.arms) != (sizes.d, sizes.K):
            sentences.append(
                f"Condition numbers and errors are of {last.arms} arms with {last.d} features, with their share of the "
                "observations."
            )
    return sentences


def correct_digits(condition: Condition) -> int:
    """Return the decimal digits of float64 that remain after solving with A: 16 minus log10 of the condition."""
    return max(0, math.floor(-math.log10(np.finfo(float).eps * condition.largest)))


def condition_text(value: float) -> str:
    """Format a condition number: 1,300, or 10^9 from there on."""
    return rounded(value)


def error_text(value: float) -> str:
    """Format a rounding error as a power of ten."""
    exponent = f"{math.log10(value):.0f}" if value > 0 else ""
    return f"10{exponent.translate(_RAISED)}" if exponent else "0"
