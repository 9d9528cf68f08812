"""Compare an agent with the agents of the same run that differ from it in how much they explore."""

from __future__ import annotations

from typing import NamedTuple

from bandits.agents import agent_class
from bandits.base.formatting import count, count_of, number, percent
from bandits.results import metrics, words
from bandits.results.comparison import paired_tests
from bandits.results.metrics import Estimate
from bandits.results.run import Run

from .finding import Direction

# of the oracle's gain over random choice, by which a sibling must earn more
MIN_LOSS = 0.05
# likewise: from here on an alarm
SEVERE_LOSS = 0.1
# of the exploration rate, by which a sibling must differ
MIN_CHANGE = 0.02


class Sibling(NamedTuple):
    """An agent that differs in the exploration parameter alone, explores less or more, and earns
    clearly more.

    Attributes
    ----------
    direction : {"too little", "too much"}
        What this states about the agent: it is "too much" if the sibling explores less.
    lost : Estimate
        What the agent earned less, paired by replication, as a share of the oracle's gain over
        random choice; the interval is corrected for all pairs of agents of the run, as in
        the run's conclusions.
    sentence : str
    """

    direction: Direction
    lost: Estimate
    sentence: str


def better_sibling(result: Run, label: str) -> Sibling | None:
    """Find the sibling that earns most more than the agent; None if none earns clearly more."""
    own, found = result.histories[label], list[Sibling]()
    siblings = _siblings(result, label)
    family = paired_tests.family_of(result.experiment)
    for other, name in siblings.items():
        history = result.histories[other]
        both = own.alive & history.alive
        if not both.any() or not min(own.step, history.step):
            continue
        size = min(own.size, history.size)
        before, after = (
            metrics.mean_exploration_rate(each, int(own.grid[size - 1])) for each in (own, history)
        )
        if before is None or after is None:
            continue
        change = metrics.estimate((after - before)[both])
        if abs(change.mean) < MIN_CHANGE or not (change.high < 0 or change.low > 0):
            continue
        earned = paired_tests.compare(history, own, family=family).difference
        sums = {field: own.sums[field][size - 1][both] for field in ("best_value", "random_value")}
        gain = float((sums["best_value"] - sums["random_value"]).mean())
        if gain > 0 and earned.low > MIN_LOSS * gain:
            was, now = (percent(float(rate[both].mean())) for rate in (before, after))
            noun = result.experiment.simulator_class().reward_noun
            sentence = f"{other}, with {name}, explores in {now} of its decisions instead of "
            pairs = f", corrected for {count(family)} pairs of agents" * (family > 1)
            sentence += (
                f"{was} and earned {count_of(earned.mean, f'more {noun}')} "
                f"({words.interval(earned, 'count')}{pairs})."
            )
            lost = Estimate(*(value / gain for value in earned))
            found.append(Sibling("too much" if change.high < 0 else "too little", lost, sentence))
    return max(found, key=lambda one: one.lost.mean, default=None)


def _siblings(result: Run, label: str) -> dict[str, str]:
    """Return the agents that differ in the exploration parameter alone, and how: noise variance 0.1
    instead of 1.
    """
    experiment = result.experiment
    agents = dict(zip(experiment.labels, experiment.agents, strict=True))
    own, found = agents[label], dict[str, str]()
    name = agent_class(own).exploration_param
    for other, params in agents.items():
        if name is None or other not in result.histories or type(params) is not type(own):
            continue
        changed = [
            n
            for n in type(own).model_fields
            if n != "label" and getattr(own, n) != getattr(params, n)
        ]
        if changed == [name]:
            title = str(type(own).model_fields[name].title)
            values = f"{number(getattr(params, name))} instead of {number(getattr(own, name))}"
            found[other] = f"{title[:1].lower()}{title[1:]} {values}"
    return found
