"""Verdicts on one agent of a run, each with what healthy looks like.

A verdict is a rule of thumb with its threshold in the sentence; it says where to look, not what is true.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Literal, NamedTuple

import numpy as np

from bandits.agents import AgentParams, agent_class
from bandits.base.formatting import number, percent
from bandits.experiments.history import FORMAT, History
from bandits.experiments.snapshots import BINS
from bandits.models.position_bias import Position
from bandits.results import metrics
from bandits.results.metrics import WINDOW, Band
from bandits.results.result import Result

from .curves import (
    doubt,
    effective_dimension,
    foresight,
    places,
    places_by_run,
    random_coverage,
    segment_coverage,
    segment_traffic,
    traffic,
)
from .references import EARLY, GAIN, Line, Oracle, Slots, has_slots

Verdict = Literal["healthy", "watch", "alarm", "none"]
ALIKE = 0.05  # slots that differ by no more may be taken for the same
RUNS = 4  # of which calibration is told, at least: candidates of one run err together,
TIMES = 30.0  # as well known
WORTH = 4  # and all of a run's say about as much as so many that do not
FORGETS = "It forgets on purpose, so its evidence does not add up."
COMING = "What it is compared with is being computed."
NEEDS = {"lock_in": "oracle", "segment_entropy": "oracle", "condition": "line", "line": "line", "slots": "slots"}
OLD = "An older version kept this run, without what this asks for: delete it on the page Runs and run it again."


class Finding(NamedTuple):
    """One diagnostic of one agent.

    Attributes
    ----------
    title, healthy : str
        What it looks at, and what healthy looks like.
    verdict : {"healthy", "watch", "alarm", "none"}
        none: it cannot be said, and ``told`` says why.
    told : str
        This run, in one sentence.
    """

    title: str
    healthy: str
    verdict: Verdict
    told: str


def findings(
    result: Result,
    label: str,
    oracle: Oracle | None = None,
    line: Line | None = None,
    slots: Slots | None = None,
    *,
    coming: Collection[str] = (),
) -> dict[str, Finding]:
    """All diagnostics of one agent, by name; `oracle_of`, `line_of` and `slots_of` make what some compare with.

    Those whose comparison is among ``coming`` (``oracle``, ``line``, ``slots``) are not judged yet.
    """
    history = result.histories[label]
    index = result.experiment.labels.index(label)
    params = result.experiment.agents[index]
    found = _all(history, params, oracle, line)
    if names := result.experiment.simulator_class().segment_names():
        learns = result.experiment.agent_class(index).learns
        found |= _by_segment(history, params, names, learns=learns, oracle=oracle)
    if history.format < FORMAT and not any(h.belief_checks for h in result.histories.values()):
        found |= {name: found[name]._replace(verdict="none", told=OLD) for name in ("doubt", "places", "foresight")}
    if slots is not None or ("slots" in coming and has_slots(result.experiment)):
        found["slots"] = _slots(params, slots)
    needed = {name: need for name, need in NEEDS.items() if need in coming and name in found}
    found |= {name: found[name]._replace(verdict="none", told=COMING) for name in needed}
    too_early = history.step < max(EARLY, history.steps / 10)
    if not history.alive.any() or too_early:
        why = "It is too early to say." if too_early else "No run is left."
        return {name: f._replace(verdict="none", told=why) for name, f in found.items()}
    return found


def _all(history: History, params: AgentParams, oracle: Oracle | None, line: Line | None) -> dict[str, Finding]:
    return {
        "smallest": _smallest(history, params),
        "condition": _condition(history, params, line),
        "dimension": _dimension(history, params),
        "doubt": _doubt(history, params),
        "lock_in": _lock_in(history, oracle),
        "calibration": _calibration(history, params),
        "places": _places(history, params),
        "foresight": _foresight(history),
        "line": _line(params, line),
    }


def _smallest(history: History, params: AgentParams) -> Finding:
    title = "Smallest eigenvalue"
    healthy = "Evidence in the direction least explored grows about like √t; no slower than log t."
    band = metrics.smallest_eigenvalue(history)
    if band is None or not np.isfinite(band.mid).all():
        return Finding(title, healthy, "none", "This agent keeps no covariance.")
    if agent_class(params).forgets(params):
        return Finding(title, healthy, "none", FORGETS)
    growth = _power(band)
    if growth is None:
        return Finding(title, healthy, "none", "There are too few snapshots yet.")
    slow = _power(band._replace(mid=np.log(np.maximum(band.x, 2)))) or 0.0  # what log t itself comes to
    verdict: Verdict = "healthy" if growth >= 0.4 else "watch" if growth >= slow / 2 else "alarm"
    how = {"healthy": "it grows", "watch": "it grows slowly", "alarm": "it stalls"}[verdict]
    power = number(round(growth, 2))
    told = f"At step {band.x[-1]:,.0f} it is {number(band.mid[-1])}; {how}: about t to the power {power} of late"
    told += "." if verdict == "healthy" else f" (log t: {number(round(slow, 2))})."
    return Finding(title, healthy, verdict, told)


def times_as_well(history: History) -> Band | None:
    """How many times as well the best known direction is known as the least known: the condition number's root."""
    band = metrics.condition_number(history)
    if band is None:
        return None
    mid, low, high = (np.sqrt(np.maximum(edge, 0)) for edge in (band.mid, band.low, band.high))
    return band._replace(mid=mid, low=low, high=high)


def most_times(params: AgentParams, line: Line | None) -> tuple[float, float]:
    """Up to how many times that is healthy, and how many random choices come to (0: there is nothing to compare)."""
    agent = agent_class(params)
    relative = agent.representation(params) == "features" and agent.spans_arms(params) is False
    usual = math.sqrt(line.condition) if line is not None and relative and math.isfinite(line.condition) else 0.0
    return max(TIMES, 3 * usual), usual


def _condition(history: History, params: AgentParams, line: Line | None) -> Finding:
    title = "Condition number"
    band = times_as_well(history)
    least, usual = most_times(params, line)
    than = f" (random choices: {number(usual)} times)" if usual else ""
    healthy = f"The best known direction is known at most {number(least)} times as well (in standard deviations, the "
    healthy += "root of the condition number) as the least known"
    healthy += ": three times what random choices would come to." if least > TIMES else "."
    if band is None or not np.isfinite(band.mid[-1:]).all():
        return Finding(title, healthy, "none", "This agent keeps no covariance.")
    times = float(band.mid[-1])
    verdict: Verdict = "healthy" if times <= least else "watch" if times <= 10 * least else "alarm"
    return Finding(title, healthy, verdict, f"{number(times)} times as well, at step {band.x[-1]:,.0f}{than}.")


def _dimension(history: History, params: AgentParams) -> Finding:
    title = "Effective dimension"
    healthy = "Nine tenths of all directions are known from data rather than from the prior."
    band = effective_dimension(history, params)
    if band is None or not np.isfinite(band.mid[-1:]).all():
        return Finding(title, healthy, "none", "This agent keeps no covariance.")
    if agent_class(params).forgets(params):
        return Finding(title, healthy, "none", FORGETS)
    all_ = int((~np.isnan(history.spectra[-1].eigenvalues)).sum(axis=2).max())
    share = band.mid[-1] / all_
    verdict: Verdict = "healthy" if share >= 0.9 else "watch" if share >= 0.5 else "alarm"
    return Finding(title, healthy, verdict, f"{number(band.mid[-1])} of {all_}, at step {band.x[-1]:,.0f}.")


def _doubt(history: History, params: AgentParams) -> Finding:
    title = "Exploration bonus"
    healthy = "The doubt in what is shown first shrinks as it is shown, to less than half."
    band = doubt(history)
    if band is None:
        return Finding(title, healthy, "none", "This agent states no doubt.")
    if agent_class(params).forgets(params):
        return Finding(title, healthy, "none", "It forgets on purpose, so its doubt comes back.")
    if len(band.x) < 4:
        return Finding(title, healthy, "none", "There are too few snapshots yet.")
    if band.mid[0] <= 0:
        return Finding(title, healthy, "alarm", "It has no doubt at all, and so no reason to explore.")
    left = band.mid[-1] / band.mid[0]
    verdict: Verdict = "healthy" if left <= 0.5 else "watch" if left <= 0.9 else "alarm"
    told = f"{percent(left)} of what it was at step {band.x[0]:,.0f} is left at step {band.x[-1]:,.0f}."
    return Finding(title, healthy, verdict, told)


def _lock_in(history: History, oracle: Oracle | None) -> Finding:
    title = "Lock-in"
    healthy = "Choices are spread at least as widely as perfect knowledge would spread them, within 0.1."
    if history.count_size < 2:
        return Finding(title, healthy, "none", "Nothing has been counted yet.")
    steps = WINDOW if oracle is None else oracle.steps
    if history.count_grid[history.count_size - 1] < min(steps, history.steps):
        return Finding(title, healthy, "none", f"It takes {steps:,} steps to say.")
    entropy, rare = traffic(history, steps)
    rings = entropy < 0.5 and rare > 0
    rule = f"entropy {entropy:.2f}, {percent(rare)} of the {history.counted} under 1 % of the traffic"
    if not math.isfinite(entropy):
        return Finding(title, healthy, "none", "No run is left.")
    if oracle is None:
        verdict: Verdict = "watch" if rings else "healthy"
        return Finding(title, healthy, verdict, f"{rule[0].upper()}{rule[1:]}; nobody knows what would be right.")
    beside = f"the oracle itself: {oracle.entropy:.2f}, {percent(oracle.rare)}"
    if entropy < oracle.entropy - 0.1:
        verdict = "alarm" if rings else "watch"
        return Finding(title, healthy, verdict, f"Narrower than it should be: {rule} ({beside}).")
    if rings:
        told = f"The usual alarm (entropy under 0.5) would ring, and be wrong: {rule} ({beside})."
        return Finding(title, healthy, "healthy", told)
    return Finding(title, healthy, "healthy", f"{rule[0].upper()}{rule[1:]} ({beside}).")


def _by_segment(
    history: History, params: AgentParams, names: list[str], *, learns: bool, oracle: Oracle | None
) -> dict[str, Finding]:
    return {
        "segments": _coverage(history, params, names, learns=learns),
        "segment_entropy": _segment_entropy(history, names, oracle),
    }


def _uncounted(history: History) -> str:
    return OLD if history.format < FORMAT else "There are too many items to count them for each group of customers."


def _coverage(history: History, params: AgentParams, names: list[str], *, learns: bool) -> Finding:
    title = "Explored for everyone"
    healthy = "Each group of customers has been shown nine tenths of the items that random choice would have shown it."
    bands, random = segment_coverage(history), random_coverage(history)
    often = segment_coverage(history, 10)
    if bands is None or often is None or random is None:
        return Finding(title, healthy, "none", _uncounted(history))
    shown = np.array([band.mid[-1] for band in bands])
    share = shown / random
    if np.isnan(share).all():
        return Finding(title, healthy, "none", "Nothing has been counted yet.")
    ten_times = np.array([band.mid[-1] for band in often])
    least = int(np.lexsort((ten_times, share))[0])  # NaN, who never came, is last
    told = f"Least for the {names[least]}: {percent(shown[least])} of the items were shown at least once, "
    told += f"{percent(ten_times[least])} at least ten times (random choice: {percent(random[least])} once)."
    if not learns:
        return Finding(title, healthy, "none", f"It learns nothing during the race and need not explore. {told}")
    verdict: Verdict = "healthy" if share[least] >= 0.9 else "watch" if share[least] >= 0.5 else "alarm"
    if verdict == "alarm" and agent_class(params).generalises(params):
        verdict, told = "watch", f"{told} It learns about one item from others like it, so this may do."
    return Finding(title, healthy, verdict, told)


def _segment_entropy(history: History, names: list[str], oracle: Oracle | None) -> Finding:
    title = "Spread within each group"
    healthy = "To nobody is less variety shown than perfect knowledge would show (selection entropy, within 0.1)."
    steps = WINDOW if oracle is None else oracle.steps
    ends = segment_traffic(history, steps)
    if ends is None:
        return Finding(title, healthy, "none", _uncounted(history))
    if history.step < min(steps, history.steps):
        return Finding(title, healthy, "none", f"It takes {steps:,} steps to say.")
    if np.isnan(ends).all():
        return Finding(title, healthy, "none", "Nothing has been counted yet.")
    right = () if oracle is None else oracle.segments
    goals = np.array(right) if len(right) == len(ends) else np.full(len(ends), np.nan)
    apart = np.where(np.isnan(goals), ends, ends - goals)
    least = int(np.nanargmin(apart))
    told = f"Least for the {names[least]}: {ends[least]:.2f}"
    if np.isnan(goals[least]):
        return Finding(title, healthy, "none", f"{told}; nobody knows what would be right.")
    verdict: Verdict = "healthy" if apart[least] >= -0.1 else "watch" if ends[least] >= 0.5 else "alarm"
    return Finding(title, healthy, verdict, f"{told} (the oracle itself: {goals[least]:.2f}).")


def _optimistic(params: AgentParams) -> bool:
    """Whether its doubt is a bonus: an upper bound, which does right to be too wide."""
    return agent_class(params).uncertainty_of(params) == "bonus"


def _few(runs: int) -> str:
    return f"Of {runs} {'run' if runs == 1 else 'runs'} nothing can be told from chance: it takes {RUNS}."


def _calibration(history: History, params: AgentParams) -> Finding:
    title = "Calibration"
    healthy = "Its 50, 80 and 95 % intervals hold the truth in 50, 80 and 95 % of the cases, within 10 (or by chance)"
    healthy += ", or more: an upper bound does right to be wide." if _optimistic(params) else "."
    bands = {level: metrics.calibration(history, level) for level in (0.5, 0.8, 0.95)}
    ends = {level: b.mid[-1] for level, b in bands.items() if b is not None and np.isfinite(b.mid[-1])}
    if len(ends) < 3:
        return Finding(title, healthy, "none", "This agent states no doubt.")
    if (runs := int(history.alive.sum())) < RUNS:
        return Finding(title, healthy, "none", _few(runs))
    worst = 0.0
    for level, b in bands.items():
        if b is not None:
            gap = float(min(b.mid[-1] - level, 0.0) if _optimistic(params) else b.mid[-1] - level)
            least = 2 * (level * (1 - level) / (runs * WORTH)) ** 0.5  # four runs may agree by chance
            if abs(gap) > max(b.high[-1] - b.mid[-1], least, abs(worst)):
                worst = gap
    verdict: Verdict = "healthy" if abs(worst) <= 0.1 else "watch" if abs(worst) <= 0.25 else "alarm"
    held = ", ".join(f"{100 * end:.0f}" for end in ends.values())
    why = "" if verdict == "healthy" else " It is too sure of itself." if worst < 0 else " It doubts too much."
    return Finding(title, healthy, verdict, f"They hold it in {held} %, at the end.{why}")


def _places(history: History, params: AgentParams) -> Finding:
    title = "Where the truth lies"
    healthy = "Each tenth of what it believes possible holds a tenth of the truths"
    healthy += ", or the middle holds more: an upper bound does right to be wide." if _optimistic(params) else "."
    found = places(history)
    if found is None:
        return Finding(title, healthy, "none", "This agent states no doubt.")
    by_run = np.cumsum(places_by_run(history), axis=1) - np.arange(1, BINS + 1) / BINS
    if len(by_run) < RUNS:
        return Finding(title, healthy, "none", _few(len(by_run)))
    farthest = metrics.estimate(by_run[:, int(np.abs(by_run.mean(axis=0)).argmax())])
    distance = 0.0 if farthest.low <= 0 <= farthest.high else abs(farthest.mean)
    verdict: Verdict = "healthy" if distance <= 0.1 else "watch" if distance <= 0.25 else "alarm"
    middle = float(found @ (np.arange(BINS) + 0.5) / BINS)
    outer, told = float(found[0] + found[-1]), "evenly"
    centred = 0.4 <= middle <= 0.6 and outer <= 2 / BINS
    if verdict != "healthy" and centred and _optimistic(params):
        verdict, told = "healthy", "in the middle, as they may"
    elif verdict != "healthy":
        told = (
            "mostly above what it expects: it thinks too little of the arms" if middle > 0.6
            else "mostly below what it expects: it hopes too much" if middle < 0.4
            else "at the edges: it is too sure of itself" if outer > 2 / BINS
            else "in the middle: it doubts too much"
        )  # fmt: skip
    return Finding(title, healthy, verdict, f"They lie {told} (farthest from even: {percent(abs(farthest.mean))}).")


def _foresight(history: History) -> Finding:
    title = "Foresight"
    healthy = "It foresees at least half of what makes candidates differ."
    band = foresight(history)
    if band is None or not np.isfinite(band.mid[-1]):
        return Finding(title, healthy, "none", "This agent does not say what it expects, or all arms are alike.")
    share = band.mid[-1]
    verdict: Verdict = "healthy" if share >= 0.5 else "watch"
    told = f"{percent(share)} of the variance of their true worth, at step {band.x[-1]:,.0f}."
    if share < 0:
        told = "Taken over all candidates it is farther off than calling them alike; the best it may know all the same."
    return Finding(title, healthy, verdict, told)


def _line(params: AgentParams, line: Line | None) -> Finding:
    title = "Is a line enough?"
    healthy = f"A network foresees at most {percent(GAIN)} more than a line does, and residuals are even."
    agent = agent_class(params)
    if not agent.linear or agent.representation(params) not in ("features", "fourier"):
        return Finding(title, healthy, "none", "This is for agents that are linear in the reward.")
    if line is None:
        return Finding(title, healthy, "none", "No random choices were looked at.")
    if math.isnan(line.gain):
        return Finding(
            title, healthy, "none", "Neither a line nor a network foresees anything of a few thousand choices."
        )
    if agent.representation(params) == "fourier":
        return Finding(title, healthy, "none", "It sees waves of the features, with which its lines can bend.")
    curved = line.p_value < 0.01
    if line.gain > GAIN and line.beyond <= 2:
        told = "A network seems to foresee more, but there are too few choices to tell."
        return Finding(title, healthy, "watch" if curved else "none", f"{told} Residuals bend." if curved else told)
    if line.gain > GAIN:
        more = (
            "something where a line foresees nothing" if math.isinf(line.gain)
            else f"{1 + line.gain:.0f} times as much" if line.gain >= 1 else f"{percent(line.gain)} more"
        )  # fmt: skip
        told = f"Of random choices a network foresees {more}{', and residuals bend' if curved else ''}: a line fails."
        own = agent.spans_arms(params)
        told += " A line per arm, as this agent has, may still do." if own else ""
        return Finding(title, healthy, "watch" if own else "alarm", told)
    gain = "no more" if line.gain <= 0 else f"{percent(line.gain)} more"
    residuals = f"residuals are {'not ' if curved else ''}even (p = {line.p_value:.2g})"
    return Finding(title, healthy, "watch" if curved else "healthy", f"A network foresees {gain}; {residuals}.")


def _slots(params: AgentParams, slots: Slots | None) -> Finding:
    title = "Slots of the slate"
    healthy = "It counts an item further down as shown less, by as much as it is clicked less there."
    how = agent_class(params).slot_treatment(params)
    if how is None or slots is None:
        return Finding(title, healthy, "none", "This agent learns nothing from slates.")
    verdict, does = _WAYS[how]
    times = f"{number(slots.true[-1])} times as often"
    if np.abs(slots.true - 1).max() <= ALIKE:
        times = "as often"
        if how == "examined":
            verdict, does = "healthy", "learns from what was looked at, and all slots are alike"
    last = f"In slot {len(slots.true)} an item is clicked {times} as in the first"
    guess, error = round(float(slots.estimated[-1]), 3), round(1.96 * float(slots.error[-1]), 3)
    told = f" (from clicks alone: {number(guess)} ± {number(error)})" if math.isfinite(guess) else ""
    return Finding(title, healthy, verdict, f"It {does}. {last}{told}.")


_WAYS: dict[Position, tuple[Verdict, str]] = {
    "aware": ("healthy", "does"),
    "examined": ("watch", "learns from what was looked at, as if all slots were alike"),
    "ignored": ("alarm", "takes every slot for looked at"),
}


def _power(band: Band) -> float | None:
    """Slope of log y on log t over the second half of the steps, by least squares."""
    late = (band.x >= band.x[-1] / 2) & (band.mid > 0)
    if late.sum() < 4:
        return None
    return float(np.polyfit(np.log(band.x[late]), np.log(band.mid[late]), 1)[0])
