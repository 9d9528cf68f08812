"""Whether a log can answer for a target policy: support, weights, and alarms in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bandits.base.formatting import count, number, percent, rounded, short
from bandits.base.types import BoolArray, FloatArray, IntArray

from .estimators import weighted
from .log import DecisionLog
from .targets import Target, blocks

MIN_ESS, MIN_ESS_SHARE = 100.0, 0.01
MAX_SHARE = 0.10
# standard errors
MAX_DISTANCE = 4.0
# differences of weights, and distances of their mean, that are rounding
CONSTANT = 1e-9
MAX_UNSUPPORTED = 0.01
# effective number; with fewer, intervals by the normal distribution cover less than stated
FEW_REWARDS = 20
POWER = 0.8


class Alarm(NamedTuple):
    """A reason why the log may not answer.

    Attributes
    ----------
    kind : str
    sentence : str
        One plain sentence with the measured value and its bound.
    """

    kind: str
    sentence: str


class Support(NamedTuple):
    """How well the logged actions support the target policy.

    Attributes
    ----------
    ess : float
        Effective sample size (sum w)² / sum w².
    max_weight : float
    largest_share : float
        Largest share of one event in the sum of weights.
    mean_weight, mean_weight_error : float
        Mean weight, 1 in expectation where the log supports the target, and its standard error.
    unsupported_mass : float
        Mean probability of the target on actions that the log never takes; NaN where it is not
        known.
    by_segment : mapping of str to float
        The same by segment, with the actions that the log never takes in that segment.
    exact_error : float
        Standard error of the mean weight by the propensities of all actions, rows taken as
        independent; NaN where these are not known.
    """

    ess: float
    max_weight: float
    largest_share: float
    mean_weight: float
    mean_weight_error: float
    unsupported_mass: float
    by_segment: Mapping[str, float]
    exact_error: float = float("nan")


def measure(log: DecisionLog, target: Target, weights: FloatArray | None) -> Support:
    """Measure the support of a target policy in a log.

    Parameters
    ----------
    log : DecisionLog
        n rounds.
    target : Target
    weights : float64 (n,), optional
        Importance weights; without them all but the masses is NaN.

    References
    ----------
    Owen (2013), Monte Carlo theory, methods and examples, section 9.3 (effective sample size,
    equation 9.13)."""
    overall, by_segment = unsupported(log, target) if target.whole else (float("nan"), {})
    if weights is None:
        unknown = float("nan")
        return Support(unknown, unknown, unknown, unknown, unknown, overall, by_segment)
    n, groups, u = len(weights), log.groups, log.row_weights
    each = weighted(weights, u)
    weights = weights if u is None else weights * (u / u.mean())
    total = float(weights.sum())
    per_event = weights if groups is None else np.bincount(groups, weights=weights)
    squares = float(weights @ weights)
    return Support(
        ess=total**2 / squares if squares else 0.0,
        max_weight=float(weights.max()),
        largest_share=float(per_event.max()) / total if total else 1.0,
        mean_weight=total / n,
        mean_weight_error=float(each.std(ddof=1)) / n**0.5 if n > 1 else float("nan"),
        exact_error=_exact_error(log, target),
        unsupported_mass=overall,
        by_segment=by_segment,
    )


def _exact_error(log: DecisionLog, target: Target) -> float:
    """Compute the standard error of the mean weight from the propensities of all actions.

    NaN where they are not known.

    Observed weights vary less than that where actions with heavy weights are too rare to be in the
    log."""
    if log.distributions is None or not target.whole:
        return float("nan")
    variance, u = 0.0, _row_weights(log)
    for rows in blocks(log):
        wanted, stated = target.probabilities(log, rows), log.distributions[rows]
        there = stated > 0
        second = np.divide(wanted**2, stated, out=np.zeros(stated.shape), where=there).sum(axis=1)
        each = second - (wanted * there).sum(axis=1) ** 2
        variance += float((u[rows] ** 2 * each).sum())
    return math.sqrt(max(variance, 0.0)) / float(u.sum())


def _row_weights(log: DecisionLog) -> FloatArray:
    return np.ones(len(log)) if log.row_weights is None else log.row_weights


def unsupported(log: DecisionLog, target: Target) -> tuple[float, dict[str, float]]:
    """Average the target's probability of actions that the log never takes, over all rows and over
    each segment.

    With vectors of propensities an action is never taken in a row where its propensity is 0;
    otherwise where no row, or no row of the segment, shows it.

    Returns
    -------
    overall : float
    by_segment : dict of str to float
        Empty without segments.
    """
    taken = np.bincount(log.actions, minlength=log.n_actions) > 0
    names, place = _segments(log)
    seen = np.zeros((len(names), log.n_actions), bool)
    if len(names):
        seen[place, log.actions] = True
    mass, mass_in_segment, u = 0.0, np.zeros(len(names)), _row_weights(log)
    if log.distributions is None and taken.all() and seen.all():
        return 0.0, dict.fromkeys(names, 0.0)
    for rows in blocks(log):
        p = target.probabilities(log, rows)
        if log.distributions is not None:
            missing = _missing(p, log.distributions[rows] > 0)
            mass += float((u[rows] * missing).sum())
            in_segment = missing
        else:
            mass += float((u[rows] * (p @ (~taken).astype(np.float64))).sum())
            in_segment = _missing(p, seen[place[rows]]) if len(names) else np.zeros(0)
        if len(names):
            mass_in_segment += np.bincount(
                place[rows], weights=u[rows] * in_segment, minlength=len(names)
            )
    # every segment has a row
    sizes = np.bincount(place, weights=u, minlength=len(names)) if len(names) else np.zeros(0)
    return mass / float(u.sum()), dict(zip(names, (mass_in_segment / sizes).tolist(), strict=True))


def alarms(n: int, support: Support, unit: str = "decision") -> tuple[Alarm, ...]:
    """Raise an alarm for each bound that is crossed.

    Parameters
    ----------
    n : int
        Rows of the log, or visits.
    support : Support
    unit : {"decision", "visit"}
    """
    found = []
    least = max(MIN_ESS, MIN_ESS_SHARE * n)
    if support.ess < least:
        text = (
            f"The effective sample size is {count(support.ess)} of {count(n)} {unit}s; at least "
            f"{count(least)} is required. "
        )
        # the effective sample size grows with the log: the same share of a longer one
        helps = (
            "A longer log, or one that takes the target's actions more often, would help."
            if support.ess >= MIN_ESS_SHARE * n
            else "A log that takes the target's actions more often would help, a longer one not."
        )
        found.append(Alarm("ess", text + helps))
    if support.largest_share > MAX_SHARE:
        name = "event" if unit == "decision" else unit
        of = "its rows have weights" if unit == "decision" else "it has a weight"
        text = (
            f"One {name} has {percent(support.largest_share)} of the sum of all weights ({of} of "
            f"up to {number(support.max_weight)}); at most {percent(MAX_SHARE)} is allowed."
        )
        found.append(Alarm("max_weight", text))
    found += _mean_weight(support)
    bound = f"at most {percent(MAX_UNSUPPORTED)} is allowed."
    if support.unsupported_mass > MAX_UNSUPPORTED:
        text = (
            f"The target gives {percent(support.unsupported_mass, 1)} of its probability to "
            "actions that the log never "
        )
        found.append(Alarm("unsupported", f"{text}takes; {bound}"))
    for segment, mass in support.by_segment.items():
        if mass > MAX_UNSUPPORTED and mass != support.unsupported_mass:
            text = (
                f"In the segment {short(segment)} the target gives {percent(mass, 1)} of its "
                "probability to actions "
            )
            found.append(
                Alarm("unsupported_segment", f"{text}that the log never takes there; {bound}")
            )
    return tuple(found)


def few_rewards(
    weights: FloatArray, rewards: FloatArray, unit: str = "decision"
) -> tuple[Alarm, ...]:
    """Warn where an estimate rests on few rewarded decisions.

    Parameters
    ----------
    weights, rewards : float64 (n,)
    unit : {"decision", "visit"}

    Returns
    -------
    tuple of Alarm
        One if the effective number (sum |w r|)² / sum (w r)² is below `FEW_REWARDS`: the number of
        clicks where all weights are equal."""
    carried = np.abs(weights * rewards)
    squares = float(carried @ carried)
    number_of = float(carried.sum()) ** 2 / squares if squares else 0.0
    if number_of >= FEW_REWARDS:
        return ()
    text = (
        f"The estimate rests on the rewards of {number(number_of)} {unit}s (effective number), "
        f"fewer than {FEW_REWARDS}: its intervals may cover as little as 60 %. The effective "
        f"sample size counts all {unit}s, each by its weight; this number only those with a "
        "reward, each by weight times reward."
    )
    return (Alarm("few_rewards", text),)


def _mean_weight(support: Support) -> list[Alarm]:
    """Compare the mean weight with 1, and name the cause where the propensities of all actions tell
    it.

    They never prove themselves wrong: a single rare action can have a weight of thousands.
    """
    mean, error, exact = support.mean_weight, support.mean_weight_error, support.exact_error
    if not abs(mean - 1) > max(MAX_DISTANCE * error, CONSTANT):
        return []
    expected = (
        1.0
        if np.isnan(exact) or np.isnan(support.unsupported_mass)
        else 1 - support.unsupported_mass
    )
    # False where it is not known
    usual = abs(mean - expected) <= max(MAX_DISTANCE * exact, CONSTANT)
    if usual and expected < 1 and abs(mean - expected) <= max(MAX_DISTANCE * error, CONSTANT):
        mass = percent(support.unsupported_mass, 1)
        cause = f"the log never takes actions with {mass} of the target's probability."
    elif usual and mean < expected:
        cause = (
            "few of the target's rare actions are in the log; by its propensities this can happen."
        )
    else:
        cause = "propensities are wrong, or the log hardly ever takes actions of the target."
    distance = (
        f"{number(abs(mean - 1) / error)} standard errors from 1 (allowed: {number(MAX_DISTANCE)})"
        if error > CONSTANT
        else "which all weights are, instead of 1"
    )
    return [Alarm("mean_weight", f"The mean weight is {number(mean)}, {distance}: {cause}")]


def decisions_required(
    n: int, value: float, standard_error: float, *, difference: float = 0.1
) -> float:
    """Compute how many decisions of this kind would tell a relative difference apart.

    With the power of 80 % at the level of 5 %: n ((z_.975 + z_.8) se / (difference V))².

    Parameters
    ----------
    n : int
        Rows of the log.
    value, standard_error : float
        Of the quantity, and of the difference from it, on this log.
    difference : float
        Relative to the value.
    """
    if not value or not np.isfinite(standard_error):
        return float("nan")
    z = float(ndtri(0.975) + ndtri(POWER))
    return n * (z * standard_error / (difference * value)) ** 2


def verdict(
    n: int,
    logged: float,
    standard_error: float,
    level: float = 0.95,
    *,
    relative: bool = True,
    unit: str = "decision",
) -> str:
    """State in words which differences from the logging policy the log can tell apart.

    Parameters
    ----------
    n : int
        Rows of the log.
    logged : float
        Mean reward of the log.
    standard_error : float
        Of the difference.
    level : float
        Of the interval of the difference.
    relative : bool
        Whether a share of what the logging policy earned means something: rewards are not negative
        and not all 0. Otherwise differences are stated in the unit of the reward.
    unit : {"decision", "visit"}
    """
    if not np.isfinite(standard_error):
        return "The log is too small: the difference from the logging policy has no interval."
    if not standard_error:
        return "The target chooses as the logging policy does."
    if not relative:
        least = float(ndtri(0.975) + ndtri(POWER)) * standard_error
        half = float(ndtri((1 + level) / 2)) * standard_error
        return (
            f"The {count(n)} evaluated {unit}s find a difference of {number(least)} per {unit} "
            f"from the logging policy in {percent(POWER)} of such logs; four times as many find "
            f"half of it. The interval of the difference is now ±{number(half)}."
        )
    required = decisions_required(n, logged, standard_error)
    least = 0.1 * (required / n) ** 0.5
    own = f"find a difference of {_share(least)}" if least < 1 else "do not even find a doubling"
    half = float(ndtri((1 + level) / 2)) * standard_error / abs(logged)
    needed = (
        f"about {rounded(max(required, 1))} evaluated {unit}s are needed; the {count(n)} of this "
        "log"
    )
    if required < n:
        # rounded up, it would be more than all
        shown = rounded(max(required, 1)) if required < 0.95 * n else count(n)
        needed = f"about {shown} of the {count(n)} evaluated {unit}s are enough; all of them"
    return (
        f"To find a difference of 10 % from the logging policy in {percent(POWER)} of such logs, "
        f"{needed} {own} as often. The interval of the difference is now ±{_share(half)}."
    )


def _share(value: float) -> str:
    return percent(value, 0 if value >= 0.1 else 1)


def _segments(log: DecisionLog) -> tuple[list[str], IntArray]:
    """Return the names of the segments, and the index of each row's."""
    if log.segments is None:
        return [], np.zeros(0, np.int64)
    import pandas as pd

    codes, names = pd.factorize(log.segments, sort=True)
    return [str(name) for name in names], codes.astype(np.int64)


def _missing(p: FloatArray, taken: BoolArray) -> FloatArray:
    """Add up the probabilities of actions that are not taken, float64 (m,)."""
    missing: FloatArray = np.einsum("mk,mk->m", p, ~taken)
    return missing
