"""What an evaluation means, in sentences: first whether the log can answer, then the answer."""

from __future__ import annotations

import math

from bandits.base.formatting import listed, percent, short

from .evaluation import ALL, Evaluation

UNRELIABLE = (
    "by_place",
    "ess",
    "max_weight",
    "mean_weight",
    "balance",
    "unsupported",
    "unsupported_segment",
    "no_variation",
    "estimated_propensities",
    "model",
    "deterministic",
    "replay",
)


def reliable(found: Evaluation) -> bool:
    """Return whether no alarm contradicts the estimates."""
    return not any(alarm.kind in UNRELIABLE for alarm in found.alarms)


def sentences(found: Evaluation) -> list[str]:
    """State what the target would have earned, against the logging policy and, where it is known,
    against the truth.

    Returns
    -------
    list of str
        The conclusion first; alarms are not repeated.
    """
    policy, e, gain = described(found.target), found.estimates[found.main], found.gain
    digits = decimals(found)
    value, low, high, logged = (f"{x:.{digits}f}" for x in (e.value, e.low, e.high, found.logged))
    earned = (
        f"{value} per {found.unit} ({percent(found.level)} confidence interval {low} to {high})"
    )
    start = f"{policy[0].upper()}{policy[1:]} would have earned {earned}"
    if not math.isfinite(e.value):
        first = (
            f"This log cannot answer what {policy} would have earned: it would never have shown "
            "what was shown."
        )
    elif found.weights is None:
        first = (
            f"This log cannot answer reliably what {policy} would have earned, because it has no "
            f"propensities: {ALL[found.main].title} estimates {value} per {found.unit}, with an "
            "unknown error."
        )
    elif not found.has_intervals:
        first = (
            f"This log cannot answer reliably what {policy} would have earned: "
            f"{ALL[found.main].title} estimates {value} per {found.unit}, and too few "
            f"{found.unit}s carry that for a confidence interval or a comparison with the {logged} "
            "of the logging policy."
        )
    elif not reliable(found):
        first = (
            f"This log cannot answer reliably what {policy} would have earned: "
            f"{ALL[found.main].title} estimates {earned}, but see the alarms."
        )
    elif found.same:
        first = (
            f"{policy[0].upper()}{policy[1:]} is the policy that made this log, which earned "
            f"{logged} per {found.unit}: there is no difference to estimate. Choose another target."
        )
    elif gain.low == gain.high == 0:
        first = f"{start}, the same as the logging policy."
    elif gain.low > 0 or gain.high < 0:
        sign, word = (1, "more") if gain.low > 0 else (-1, "less")
        # of what is printed, so that the numbers subtract
        difference = abs(float(value) - float(logged))
        less, most = sorted((sign * gain.low, sign * gain.high))
        first = (
            f"{start}: {difference:.{digits}f}{_relative(found)} {word} than the logging policy, "
            f"which earned {logged} (interval of the difference {less:.{digits}f} to "
            f"{most:.{digits}f})."
        )
    else:
        first = (
            f"{start}. The logging policy earned {logged}; this log cannot tell the two apart "
            f"(interval of the difference {gain.low:.{digits}f} to {gain.high:.{digits}f})."
        )
    first = first.replace(" -", " −")
    stated = [first]
    if found.truth is not None:
        inside = e.low <= found.truth.value <= e.high
        stated.append(
            f"The simulator knows the true value, {found.truth.value:.{digits}f}"
            + (
                f": the interval {'contains it' if inside else 'misses it'}."
                if found.has_intervals
                else "."
            )
        )
    if found.weights is None:
        stated.append(
            "To answer, record with every decision the probability with which it was made, or "
            "estimate these propensities from the features, if nothing else decided what was "
            "shown."
        )
    silent = found.weights is None or not found.has_intervals
    if silent or not math.isfinite(e.value) or gain.low == gain.high == 0:
        return stated
    if not reliable(found):
        return [
            *stated,
            f"Even if the estimate were right: {found.verdict[0].lower() + found.verdict[1:]}",
        ]
    paired = (
        f" Both are measured on the same {found.unit}s, so that their difference is known better "
        "than their values."
    )
    narrow = gain.high - gain.low < (e.high - e.low) / 2
    return [*stated, found.verdict + (paired if narrow else "")]


def how_to_read(found: Evaluation) -> str:
    """State how to read the intervals of a table of the estimates; empty where each is its own."""
    if not found.has_intervals:
        return f"No intervals: too few {found.unit}s carry the estimates (see the alarms)."
    if found.weights is None:
        return ""
    biased: dict[str, list[str]] = {}
    for name in found.estimates:
        if reference := ALL[name].reference:
            biased.setdefault(reference, []).append(ALL[name].title)
    return " ".join(
        f"The values of {listed(titles)} are biased, and their own spread does not show it: by "
        f"design they have the interval of {ALL[reference].title}, extended to the value where "
        "it is outside."
        for reference, titles in biased.items()
    )


def _relative(found: Evaluation) -> str:
    """State the difference as a share of what the logging policy earned, in parentheses.

    Empty where such a share means nothing.
    """
    if not found.relative:
        return ""
    share = abs(found.gain.value) / found.logged
    return f" ({percent(share, 0 if share >= 0.1 else 1)})"


def decimals(found: Evaluation) -> int:
    """Return the decimals that show three significant digits of what the logging policy earned.

    Where it may earn less than nothing: of the larger of the values and the interval.
    """
    value, width = found.estimates[found.main].value, found.gain.high - found.gain.low
    scale = abs(found.logged) or abs(value)
    if not found.relative:
        scale = max(abs(x) for x in (found.logged, value, width) if math.isfinite(x))
    return (
        min(max(2 - math.floor(math.log10(scale)), 0), 8)
        if scale > 0 and math.isfinite(scale)
        else 3
    )


def described(target: str) -> str:
    """Name a target policy in a sentence."""
    kind, _, rest = target.partition(":")
    if target == "random":
        return "choosing at random"
    if kind == "always" and rest:
        return f"always choosing {short(rest)}"
    if kind == "column" and rest:
        return f"the policy in the column {short(rest)}"
    if kind in ("greedy", "greedy_ips"):
        return f"the best item by a {rest or 'ridge'} model of the log"
    if kind == "bts":
        return "the shop's own Thompson sampling with its published prior"
    return short(target)
