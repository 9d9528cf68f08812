"""Comparisons in words, with numbers for people."""

from __future__ import annotations

import itertools
import math
import re

from bandits.base.formatting import count, count_of, number, percent
from bandits.experiments.experiment import Experiment

from . import metrics
from .decision import Why
from .metrics import Comparison, Estimate
from .result import Result


def interval(estimate: Estimate) -> str:
    """95 % interval 380 to 445."""
    return f"95 % interval {count(estimate.low)} to {count(estimate.high)}"


def interval_ends(estimate: Estimate) -> str:
    """The ends of an interval with three digits: 0.413 to 0.42; nothing where none is known."""
    return f"{number(estimate.low)} to {number(estimate.high)}" if math.isfinite(estimate.low) else "one run"


def describe_experiment(experiment: Experiment) -> str:
    """An experiment in one line: Pet shop, 20,000 steps, 16 runs, seed 42."""
    runs = f"{experiment.replications} run{'s' if experiment.replications > 1 else ''}"
    return f"{experiment.simulator_class().title}, {count(experiment.steps)} steps, {runs}, seed {experiment.seed}"


def describe_agents(experiment: Experiment) -> str:
    """Who races, with what is not as usual: LinUCB (alpha 0.4), LinTS."""
    told = []
    for label, agent in zip(experiment.labels, experiment.agents, strict=True):
        fields = type(agent).model_fields.items()
        changed = [(n, getattr(agent, n)) for n, f in fields if n != "label" and getattr(agent, n) != f.default]
        values = [f"{name.replace('_', ' ')} {_plain(value)}" for name, value in changed]
        new = ", ".join(v for v in values if not re.search(rf"(?<![\w.]){re.escape(v)}(?![\w.])", label))
        told.append(f"{label} ({new})" if new else label)
    return ", ".join(told)


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return "-".join(map(_plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def ranking(result: Result) -> list[str]:
    """Labels by mean clicks per step so far, best first; agents that have not started come last."""

    def rate(label: str) -> float:
        history = result.histories[label]
        value = metrics.estimate(metrics.click_rate(history)).mean
        return value if math.isfinite(value) else -math.inf

    return sorted(result.histories, key=rate, reverse=True)


def describe_comparison(a: str, b: str, comparison: Comparison, p_value: float, noun: str = "clicks") -> str:
    """Agent a, who is ahead, against agent b, after the run.

    ``p_value`` is corrected for the number of pairs, and so is the interval told; ``noun`` is what the world counts.
    """
    d, rows = comparison.difference, comparison.rows
    if rows < 2:
        return f"{a} earned {count(d.mean)} more {noun} than {b} in this one run; one run proves nothing."
    if d.low == d.high:
        return f"{a} and {b} are {count_of(d.mean, noun)} apart in each of the {rows} runs."
    wide = interval(metrics.corrected(comparison, p_value))
    if p_value >= 0.05:
        return f"{a} and {b} are too close to call: {count_of(d.mean, noun)} apart ({wide})."
    text = f"{a} earns {count(d.mean)} more {noun} than {b} ({wide})"
    if comparison.break_even_step and comparison.exploration_cost >= 1:  # a lead that changed early is noise
        text += f"; it broke even at step {count(comparison.break_even_step)}"
        if comparison.break_even_interval:
            low, high = comparison.break_even_interval
            text += f" ({count(low)} to {count(high)})"
        text += f" after having been {count_of(comparison.exploration_cost, noun)} behind"
    return text + "."


def leader_comparisons(result: Result) -> list[str]:
    """The leader against each of the others, Holm-corrected over all pairs: the leader was picked by the same data."""
    order = [label for label in ranking(result) if result.histories[label].alive.any()]
    if len(order) < 2:
        return []
    leader, noun = order[0], result.experiment.simulator_class().reward_noun
    found = {pair: result.compare(*pair) for pair in itertools.combinations(order, 2)}
    adjusted = dict(zip(found, metrics.holm([c.p_value for c in found.values()]), strict=True))
    return [describe_comparison(leader, b, found[a, b], adjusted[a, b], noun) for a, b in found if a == leader]


def divergence_notes(result: Result) -> list[str]:
    """Which runs stopped before their time because an agent's numbers were none any more, and where."""
    told = []
    for label, history in result.histories.items():
        stopped = metrics.stopped(history)
        if len(stopped):
            first = count(float(stopped.min()))
            some = (
                f"{len(stopped)} of {history.rows} runs of {label} diverged, the first about step {first}, and stopped"
            )
            all_ = f"All {history.rows} runs of {label} diverged, the first about step {first}"
            told.append(
                f"{some} there (×): curves and totals rest on the others." if history.alive.any()
                else f"{all_}: it has neither curves nor a total."
            )  # fmt: skip
    return told


def agent_notes(result: Result) -> list[str]:
    """How each agent keeps what it knows, where it has chosen among several ways by itself."""
    return [f"{label}: {history.note}." for label, history in result.histories.items() if history.note]


def learning_summary(result: Result) -> str:
    """Did anyone learn? The best learner's way from random to the oracle, which both do not count as learners."""
    learners = {
        label
        for i, label in enumerate(result.experiment.labels)
        if label in result.histories and result.experiment.agent_class(i).learns
    }
    if not learners:
        return "Nobody learns during this race."
    label = max(sorted(learners), key=lambda name: _learned(result, name).mean)
    best = _learned(result, label)
    if not math.isfinite(best.mean):
        return "Nothing could be learned here: every choice is worth the same."
    if best.low <= 0:
        return "Did anyone learn? Nothing that can be told from luck: random choice does as well."
    spread = f" ({percent(best.low)} to {percent(best.high)})" if math.isfinite(best.low) else ""
    return (
        f"Did anyone learn? Of those that learn during the race, {label} came {percent(best.mean)} of the way from "
        f"random choice (0 %) to the oracle (100 %), averaged over the run{spread}."
    )


def _learned(result: Result, label: str) -> Estimate:
    found = metrics.estimate(metrics.oracle_share(result.histories[label]))
    return found if math.isfinite(found.mean) else Estimate(-math.inf, -math.inf, -math.inf)


def explain_decision(why: Why) -> list[str]:
    """One decision in sentences: why this arm, what else it might have been, and what came of it."""
    shown, *rest = why.candidates
    name = f"{shown.name} ({why.item_noun} {shown.item})" if shown.alike > 1 else shown.name
    level = any(c.score == shown.score for c in rest)
    won = "as high as any, and the first of equals is shown" if level else "the highest"
    if why.randomised:
        reason = f"{why.label} rolled its dice and showed {name}."
    elif math.isinf(shown.width):
        reason = f"{why.label} chose {name}: it had never been shown before, and such come first."
    elif why.how == "bonus":
        sum_ = f"{number(shown.mean)} + {number(why.scale)} × {number(shown.width)} = {number(shown.score)}"
        scale = " (in log-odds)" if why.logit else ""
        reason = f"{why.label} chose {name}: its mean plus bonus, {sum_}{scale}, was {won}; {_otherwise(why)}."
    elif why.how == "sample":
        values = f"{_value(why, shown.score)}, was {won} (its mean is {_value(why, shown.mean)})"
        reason = f"{why.label} chose {name}: what it drew for it, {values}."
    else:
        what = "estimate" if why.how == "greedy" else "score"
        reason = f"{why.label} chose {name}: its {what}, {_value(why, shown.score)}, was {won}."
    best = next((c for c in why.candidates if c.best), shown)
    compared = ", the most there was" if shown.best else f", and {best.name}, the best, {number(best.truth)}"
    it = "the slate" if any(c.slot > 1 for c in why.candidates) else "it" if shown.best else "what was shown"
    worth = f"{number(shown.truth)} {why.reward_noun} on average{compared}"
    came = f"In truth {shown.name} was worth {worth}; this time {it} earned {number(why.reward)}."
    return [reason, *_chances(why), came]


def _value(why: Why, score: float) -> str:
    return number(1 / (1 + math.exp(-score))) if why.logit else number(score)


def _otherwise(why: Why) -> str:
    """At which other alpha the choice would have been another one."""
    turns = []
    for side, turn in (("below", why.below), ("above", why.above)):
        if turn is not None:
            digits = next(d for d in range(3, 18) if d == 17 or float(f"{turn.at:.{d}g}") != why.scale)
            turns.append(f"{side} {turn.at:.{digits}g} {turn.name}")
    if not turns:
        return f"no other {why.parameter} would have changed that"
    return f"with {why.parameter} " + " and ".join(turns) + " would have been shown"


def _chances(why: Why) -> list[str]:
    """Who else might have been shown by luck."""
    likely = sorted((c for c in why.candidates if c.chance > 0), key=lambda c: -c.chance)
    if not likely:
        return []
    told = ", ".join(f"{c.name} ({percent(c.chance)})" for c in likely[:3])
    more = f" or another ({percent(sum(c.chance for c in likely[3:]))})" if len(likely) > 3 else ""
    how = f"In {count(why.redraws)} other draws" if why.redraws else "Over all its draws"
    return [f"{how} it would have shown {told}{more}."]
