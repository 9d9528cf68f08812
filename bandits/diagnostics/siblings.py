"""Compare an agent with the agents of the same run that differ from it in one numeric parameter."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from bandits.base.formatting import count_of, number, percent
from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.results import metrics, paired_tests
from bandits.results.metrics import Estimate
from bandits.results.result import Result
from bandits.results.text import interval

from .finding import Direction

MIN_LOSS = 0.05  # of the oracle's gain over random choice, by which a sibling must earn more
SEVERE_LOSS = 0.1  # likewise: from here on an alarm


class Sibling(NamedTuple):
    """An agent that differs in one numeric parameter, explores significantly less or more, and earns clearly more.

    Attributes
    ----------
    direction : {"too little", "too much"}
        What this states about the agent: it is "too much" if the sibling explores less.
    lost : Estimate
        What the agent earned less, paired by replication, as a share of the oracle's gain over random choice; the
        interval is corrected for all pairs of agents of the run (Holm), as in the run's conclusions.
    sentence : str
    """

    direction: Direction
    lost: Estimate
    sentence: str


def better_sibling(result: Result, label: str) -> Sibling | None:
    """Find the sibling that earns most more than the agent; None if none earns clearly more.

    Without the agent's exploration rate, in runs stored by older versions, there is none.
    """
    own, found = result.histories[label], list[Sibling]()
    siblings = _siblings(result, label)
    p_values = _p_values(result) if siblings else {}
    for other, name in siblings.items():
        history = result.histories[other]
        if frozenset((label, other)) not in p_values:
            continue
        size = min(own.size, history.size)
        before, after = (_exploration_rates(each, int(own.grid[size - 1])) for each in (own, history))
        if before is None or after is None:
            continue
        both = own.alive & history.alive
        change, comparison = metrics.estimate((after - before)[both]), result.compare(other, label)
        if not (change.high < 0 or change.low > 0):
            continue
        earned = paired_tests.corrected(comparison, p_values[frozenset((label, other))])
        sums = {field: own.sums[field][size - 1][both] for field in ("best_value", "random_value")}
        gain = float((sums["best_value"] - sums["random_value"]).mean())
        if gain > 0 and earned.low > MIN_LOSS * gain:
            was, now = (percent(float(rate[both].mean())) for rate in (before, after))
            noun = result.experiment.simulator_class().reward_noun
            sentence = f"{other}, with {name}, explores in {now} of its decisions instead of "
            sentence += f"{was} and earned {count_of(earned.mean, f'more {noun}')} ({interval(earned)})."
            lost = Estimate(*(value / gain for value in earned))
            found.append(Sibling("too much" if change.high < 0 else "too little", lost, sentence))
    return max(found, key=lambda one: one.lost.mean, default=None)


def _siblings(result: Result, label: str) -> dict[str, str]:
    """Return the agents that differ in one numeric parameter, and how: exploration bonus 0.5 instead of 1.5."""
    experiment = result.experiment
    agents = dict(zip(experiment.labels, experiment.agents, strict=True))
    own, found = agents[label], dict[str, str]()
    for other, params in agents.items():
        if other not in result.histories or other == label or type(params) is not type(own):
            continue
        changed = [n for n in type(own).model_fields if n != "label" and getattr(own, n) != getattr(params, n)]
        if len(changed) != 1:
            continue
        ours, theirs = getattr(own, changed[0]), getattr(params, changed[0])
        if _is_number(ours) and _is_number(theirs):
            title = str(type(own).model_fields[changed[0]].title)
            found[other] = f"{title[:1].lower()}{title[1:]} {number(theirs)} instead of {number(ours)}"
    return found


def _p_values(result: Result) -> dict[frozenset[str], float]:
    """Test all pairs of agents, corrected by Holm."""
    found = dict[frozenset[str], float]()
    running = {label: history for label, history in result.histories.items() if history.step and history.alive.any()}
    for (a, one), (b, other) in itertools.combinations(running.items(), 2):
        end, both = min(one.size, other.size) - 1, one.alive & other.alive
        gap = one.sums["clicks"][end] - other.sums["clicks"][end]
        found[frozenset((a, b))] = paired_tests.paired_test(gap[both])[1]
    return dict(zip(found, paired_tests.holm(list(found.values())), strict=True))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _exploration_rates(history: History, step: int) -> FloatArray | None:
    """Average the exploration rate of every replication up to a step, (R,); None if it is unknown."""
    known = [check.explored for check in history.exploration_checks if check.step <= step]
    return np.mean(known, axis=0) if known else None
