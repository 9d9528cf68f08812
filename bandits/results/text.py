"""Describe results in sentences: comparisons of agents, learning, divergence, single decisions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bandits.agents.guards.params import GuardParams
from bandits.base.formatting import count, count_of, listed, number, percent
from bandits.experiments.experiment import Experiment
from bandits.results import words
from bandits.results.run import Run

from . import metrics
from .change.shock import around_shock
from .comparison import paired_tests, unpaired
from .comparison.paired_tests import Comparison
from .metrics import Estimate

if TYPE_CHECKING:
    from .decision.why import Why

FEW_REWARDS = 20  # clicks in all replications; with fewer, an interval of a mean covers less than stated
_PARTS = (
    "Intervals and bands are 95 % confidence intervals (Student t) over replications, each of which replays a part of "
    "the log of its own. They cover other users under the conditions of the log."
)
FEW = 5  # replications; with fewer, intervals rely on the normal distribution


def describe_experiment(experiment: Experiment) -> str:
    """Describe an experiment in one line: Pet shop with market shock, 20,000 steps, 16 replications, seed 42."""
    runs = count_of(experiment.replications, "replications")
    return f"{describe_simulator(experiment)}, {count(experiment.steps)} steps, {runs}, seed {experiment.seed}"


def describe_simulator(experiment: Experiment) -> str:
    """Name the simulator and the kinds of its changes: Pet shop with market shock."""
    changes = describe_changes(experiment)
    return experiment.simulator_class().title + (f" with {changes}" if changes else "")


def describe_changes(experiment: Experiment) -> str:
    """Name the kinds of changes that begin before the end of a run: market shock and launch; empty without any."""
    begun = [c for c in experiment.simulator.all_changes.values() if c.begins < experiment.steps]
    titles = dict.fromkeys(getattr(change, "title", "") or change.kind for change in begun)  # a plug-in may have none
    return listed(title if title[:2].isupper() else title[0].lower() + title[1:] for title in titles)


def describe_agents(experiment: Experiment) -> str:
    """List the agents with the parameters that differ from their defaults: LinUCB (alpha 0.4), LinTS."""
    return ", ".join(_described(experiment))


def describe_rarest_first(experiments: Sequence[Experiment]) -> list[str]:
    """List the agents of each experiment, first those that fewest of the experiments have.

    The end of a long title is cut: experiments that differ in one agent begin with that one.
    """
    each = [_described(experiment) for experiment in experiments]
    count = Counter(agent for agents in each for agent in agents)
    return [", ".join(sorted(agents, key=count.__getitem__)) for agents in each]


def _described(experiment: Experiment) -> list[str]:
    agents = []
    for label, agent in zip(experiment.labels, experiment.agents, strict=True):
        fields = type(agent).model_fields.items()
        changed = [(n, getattr(agent, n)) for n, f in fields if n != "label" and getattr(agent, n) != f.default]
        values = [f"{name.replace('_', ' ')} {plain_value(value)}" for name, value in changed]
        new = ", ".join(v for v in values if not re.search(rf"(?<![\w.]){re.escape(v)}(?![\w.])", label))
        agents.append(f"{label} ({new})" if new else label)
    return agents


def plain_value(value: object) -> str:
    """Write the value of a parameter: 0.5, 64-32, per arm."""
    if isinstance(value, GuardParams):
        return describe_guard(value)
    if isinstance(value, tuple):
        guards = any(isinstance(each, GuardParams) for each in value)
        shares = any(isinstance(each, float) for each in value)
        return (" in " if guards else " / " if shares else "-").join(map(plain_value, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def describe_guard(guard: GuardParams) -> str:
    """Name a guard, its main values, and what differs from the defaults: exploration floor (epsilon 0.05)."""
    fields, idle = type(guard).model_fields, type(guard).idle(guard.model_dump())
    stated = [
        f"{name.replace('_', ' ')} {plain_value(value)}" for name, field in fields.items()
        if name not in ("kind", *idle)
        and ((value := getattr(guard, name)) != field.default or (name in guard.main and value is not None))
    ]  # fmt: skip
    return guard.title.lower() + (f" ({', '.join(stated)})" if stated else "")


def ranking(result: Run) -> list[str]:
    """Sort the labels by mean reward per step so far, best first; agents without steps come last."""

    def rate(label: str) -> float:
        history = result.histories[label]
        value = metrics.estimate(metrics.click_rate(history)).mean
        return value if math.isfinite(value) else -math.inf

    return sorted(result.histories, key=rate, reverse=True)


def describe_comparison(a: str, b: str, comparison: Comparison, p_value: float, noun: str = "clicks") -> str:
    """Describe the difference between agent ``a``, which is ahead, and agent ``b`` over the whole run.

    Parameters
    ----------
    p_value : float
        Corrected for the number of pairs; the interval in the sentence is widened to agree with it.
    noun : str
        What the simulator counts as reward.
    """
    d, rows = comparison.difference, comparison.rows
    if rows < 2:
        return (
            f"{a} earned {count_of(d.mean, 'more ' + noun)} than {b} in a single replication, which gives no interval."
        )
    if d.low == d.high:
        return f"{a} and {b} differ by {count_of(d.mean, noun)} in each of the {rows} replications."
    evidence = f"{words.interval(paired_tests.corrected(comparison, p_value), 'count')}; {rows} paired replications"
    if p_value >= 0.05:
        return f"{a} and {b} do not differ significantly: {count_of(d.mean, noun)} ({evidence})."
    text = f"{a} earned {count_of(d.mean, f'more {noun}')} than {b} ({evidence})"
    if comparison.break_even_step and comparison.exploration_cost >= 1:  # a lead that changed early is noise
        text += f"; break-even at step {count(comparison.break_even_step)}"
        if comparison.break_even_interval:
            text += words.bracket(Estimate(comparison.break_even_step, *comparison.break_even_interval), "count")
        elif rows < paired_tests.MIN_BREAK_EVEN_ROWS:
            text += f" (no interval: fewer than {paired_tests.MIN_BREAK_EVEN_ROWS} replications)"
        text += f", after trailing by up to {count_of(comparison.exploration_cost, noun)}"
    return text + "."


def leader_comparisons(result: Run) -> list[str]:
    """Compare the leader with each other agent; see `reference_comparisons`."""
    return reference_comparisons(result, None)


def reference_comparisons(result: Run, reference: str | None) -> list[str]:
    """Compare an agent, by default the leader, with each other one, best first.

    P-values and intervals are Holm-corrected over all pairs, as the same data chose the leader: the sentences hold
    together, whichever reference is chosen.
    """
    order = [label for label in ranking(result) if result.histories[label].alive.any()]
    if len(order) < 2:
        return []
    if reference not in order:
        reference = order[0]
    noun = result.experiment.simulator_class().reward_noun
    if result.experiment.offers("replay"):
        return _replay_comparisons(result, order, reference)
    p_values = {
        pair: p
        for pair, (_, p) in paired_tests.compare_pairs({label: result.histories[label] for label in order}).items()
        if reference in pair
    }
    comparisons = {
        (a, b): paired_tests.compare(result.histories[a], result.histories[b]) for (a, b), p in p_values.items()
    }
    return [describe_comparison(a, b, comparisons[a, b], p, noun) for (a, b), p in p_values.items()]


def _replay_comparisons(result: Run, order: list[str], reference: str) -> list[str]:
    """Compare an agent with each other one where a log was replayed, by intervals that pair nothing.

    The intervals are widened to agree with the corrected p-values.
    """
    simulator = result.experiment.simulator_class()
    pairs = unpaired.compare_pairs({label: result.histories[label] for label in order})
    sentences = []
    for (a, b), (found, p) in pairs.items():
        if reference not in (a, b):
            continue
        d = unpaired.corrected(found, p)
        if not math.isfinite(d.low):
            sentences.append(f"{a} and {b}: no interval, as there are too few replications or {simulator.reward_noun}.")
            continue
        gap = f"{number(d.mean)} {simulator.reward_noun} per counted event ({words.interval(d)}; not paired)"
        if p < 0.05:
            sentences.append(f"{a} earned {gap} more than {b}.")
        else:
            sentences.append(f"This log cannot tell {a} and {b} apart: {gap}.")
    return sentences


def replay_notes(result: Run) -> list[str]:
    """State how many events count where a log was replayed, and what is not known; nothing elsewhere."""
    if not result.experiment.offers("replay") or not result.histories:
        return []
    counted = {label: metrics.decisions(h)[-1][h.alive].sum() for label, h in result.histories.items()}
    e, reached = result.experiment, max(h.step for h in result.histories.values())
    length = e.simulator_class().events(e.simulator) or reached
    events = min(reached, length) * e.replications
    ended = f" The log ends at step {count(length)}: later steps count nothing." if reached > length else ""
    low, high = (count(float(value)) for value in (min(counted.values()), max(counted.values())))
    of = f"{low} to {high}" if low != high else low
    return [
        f"Replay of a log: of {count(events)} events, {of} count for an agent: those in which it chose what was "
        "logged. Each agent counts other events, so nothing is paired; true rewards are not known, so there is no "
        f"regret.{ended}"
    ]


def shock_summary(result: Run) -> list[str]:
    """State in one sentence what a shock changed and which agent leads after it; nothing without a shock."""
    around = around_shock(result)
    if around is None:
        return []
    simulator = result.experiment.simulator_class()
    rate = simulator.rate_title
    sentence = (
        f"Market shock at step {count(around.step)}: the {rate[0].lower()}{rate[1:]} of {around.best}, the best agent "
        f"of the whole run, was {words.stated(around.before, 'rate')} before the shock and "
        f"{words.stated(around.after, 'rate')} after it"
    )
    if around.comparison is None:
        return [f"{sentence}."]
    again = around.leader == around.best
    leads = "leads too" if again else f"leads with {words.stated(around.leader_after, 'rate')}"
    difference = count_of(around.comparison.difference.mean, f"more {simulator.reward_noun}")
    certain = words.interval(paired_tests.corrected(around.comparison, around.p_value), "count")
    if around.comparison.rows < 2:
        certain = "one replication"
    elif around.p_value >= 0.05:
        certain += ", not significant"
    return [f"{sentence}; after it, {around.leader} {leads}, {difference} than {around.runner_up} ({certain})."]


def divergence_notes(result: Run) -> list[str]:
    """List the agents with replications that diverged, and the step at which the first one stopped."""
    notes = []
    for label, history in result.histories.items():
        stopped = metrics.stopped(history)
        if len(stopped):
            first = count(float(stopped.min()))
            if history.alive.any():
                some = f"{len(stopped)} of {history.rows} replications of {label} diverged and stopped"
                notes.append(
                    f"{some}, the first near step {first} (×); curves and totals use the remaining replications."
                )
            else:
                notes.append(
                    f"All {history.rows} replications of {label} diverged, the first near step {first}; it has no "
                    "curves and no totals."
                )
    return notes


def rare_reward_notes(result: Run) -> list[str]:
    """Warn of agents with so few clicks that their Student t intervals cover less than stated.

    Applies to rewards that are counts; coverage by number of clicks is in docs/decisions/intervals.md.
    """
    noun = result.experiment.simulator_class().reward_noun
    rare = []
    for label, history in result.histories.items():
        rewards = metrics.total(history, "clicks")[history.alive]
        counted = bool((rewards % 1 == 0).all() and (rewards >= 0).all())
        if len(rewards) > 1 and counted and rewards.sum() < FEW_REWARDS:
            rare.append(f"{label} ({count(float(rewards.sum()))})")
    if not rare:
        return []
    more = "a larger log is needed" if _whole_log(result.experiment) else "use more steps or replications"
    return [
        f"Fewer than {FEW_REWARDS} {noun} in all replications together: {', '.join(rare)}. The 95 % confidence "
        f"intervals of these means may cover as little as 60 %; {more}."
    ]


def _whole_log(experiment: Experiment) -> bool:
    """Tell whether an experiment replays all events of a log."""
    simulator = experiment.simulator_class()
    length = simulator.events(experiment.simulator) if experiment.offers("replay") else None
    more = simulator.obstacle(experiment.simulator, experiment.replications + 1)  # all parts are taken
    return length is not None and experiment.steps >= length and bool(more)


def caveats(result: Run) -> list[str]:
    """State what the numbers of a result cover and what they do not."""
    e = result.experiment
    simulator, runs = e.simulator_class(), e.replications
    if runs > 1:
        intervals = (
            f"Intervals and bands are 95 % confidence intervals (Student t) of the mean over {runs} replications. They "
            "cover new sequences of visitors in this same environment, not other environments."
        )
    else:
        intervals = "There is one replication, so there are no intervals, and differences may be due to chance."
    if e.offers("replay"):
        return [*replay_notes(result), simulator.attribution(e.simulator), *([intervals] if runs == 1 else [_PARTS])]
    notes = [
        f"No real users were served: the rewards come from a simulator ({simulator.title}).",
        intervals,
    ]
    if 1 < runs < FEW:
        notes.append(f"{runs} replications are few: the intervals are wide and rely on nearly normal means.")
    if len(e.agents) > 1:
        notes.append(
            "In each replication all agents receive the same visitors and random numbers (common random numbers). "
            "Differences are paired by replication and corrected for multiple comparisons (Holm)."
        )
        notes.append(
            "The best agent was chosen by the same data, so its mean is slightly optimistic. Agents ran with the "
            "settings listed below; other settings may change their order."
        )
    notes.append("Regret uses the true expected rewards, which are known in a simulation only.")
    return notes


def agent_notes(result: Run) -> list[str]:
    """List the methods that agents with several implementations chose."""
    return [f"{label}: {history.note}." for label, history in result.histories.items() if history.note]


def learning_summary(result: Run) -> str:
    """State the share of the oracle's gain over random choice that the best learning agent reached."""
    if not result.experiment.offers("truth"):
        return "How much could be learned is not known: a log does not show the true rewards."
    learners = {
        label
        for i, label in enumerate(result.experiment.labels)
        if label in result.histories and result.experiment.agent_class(i).learns
    }
    if not learners:
        return "No agent learns during this run."
    label = max(sorted(learners), key=lambda name: _oracle_share(result, name).mean)
    best = _oracle_share(result, label)
    if not math.isfinite(best.mean):
        return "Nothing can be learned here: all choices have the same expected reward."
    if best.low <= 0:
        return "No learning agent is significantly better than random choice."
    among = f", the largest share of the {len(learners)} agents that learn during the run" if len(learners) > 1 else ""
    return (
        f"{label} closed {words.mean(best, 'share')} of the gap between random choice and the oracle"
        f"{words.bracket(best, 'share')}{among}."
    )


def _oracle_share(result: Run, label: str) -> Estimate:
    found = metrics.estimate(metrics.oracle_share(result.histories[label]))
    return found if math.isfinite(found.mean) else Estimate(-math.inf, -math.inf, -math.inf)


def explain_decision(why: Why) -> list[str]:
    """Explain one decision: the reason, the probabilities of the other choices, and the reward."""
    shown, *rest = why.candidates
    name = f"{shown.name} ({why.item_noun} {shown.item})" if shown.alike > 1 else shown.name
    tied = any(c.score == shown.score for c in rest)
    won = "tied for the highest (the first of the tied candidates is chosen)" if tied else "the highest"
    if why.guard:
        reason = f"A guard chose {name} instead of {why.label}: {why.guard}."
    elif why.randomised:
        reason = f"{why.label} chose {name} at random (exploration)."
    elif math.isinf(shown.width):
        reason = f"{why.label} chose {name}: it had no observations, and such candidates are chosen first."
    elif why.how == "bonus":
        sum_ = f"{number(shown.mean)} + {number(why.scale)} × {number(shown.width)} = {number(shown.score)}"
        scale = " (log-odds)" if why.logit else ""
        reason = f"{why.label} chose {name}: its mean plus bonus, {sum_}{scale}, was {won}; {_counterfactual(why)}."
    elif why.how == "sample":
        values = f"{_value(why, shown.score)}, was {won} (mean {_value(why, shown.mean)})"
        reason = f"{why.label} chose {name}: its sampled value, {values}."
    else:
        noun = "estimated value" if why.how == "greedy" else "score"
        reason = f"{why.label} chose {name}: its {noun}, {_value(why, shown.score)}, was {won}."
    best = next((c for c in why.candidates if c.best), shown)
    compared = ", the highest of all candidates" if shown.best else f"; {best.name}, the best, had {number(best.truth)}"
    slate = " of the slate" if any(c.slot > 1 for c in why.candidates) else ""
    truth = f"The true expected reward of {shown.name} was {number(shown.truth)} {why.reward_noun}{compared}"
    observed = f" Observed reward{slate}: {number(why.reward)}." if math.isfinite(why.reward) else ""
    return [reason, *_chances(why), f"{truth}.{observed}"]


def _value(why: Why, score: float) -> str:
    return number(1 / (1 + math.exp(-score))) if why.logit else number(score)


def _counterfactual(why: Why) -> str:
    """Name the candidates that the nearest smaller and larger exploration coefficients would have chosen."""
    switches = []
    for side, switch in (("below", why.below), ("above", why.above)):
        if switch is not None:
            digits = next(d for d in range(3, 18) if d == 17 or float(f"{switch.at:.{d}g}") != why.scale)
            switches.append(f"with {why.parameter} {side} {switch.at:.{digits}g}, {switch.name} would have been chosen")
    if not switches:
        return f"no other value of {why.parameter} would have changed the choice"
    return "; ".join(switches)


def _chances(why: Why) -> list[str]:
    """List the most probable choices over the agent's random draws."""
    possible = sorted((c for c in why.candidates if c.chance > 0), key=lambda c: -c.chance)
    if not possible:
        return []
    likely = [c for c in possible if c.chance >= min(0.005, possible[0].chance)]  # not those of 0 %
    parts, left = [f"{c.name} ({percent(c.chance)})" for c in likely[:3]], likely[3:]
    shown = [c for c in why.candidates if c.slot]
    if len(shown) == 1 and shown[0] not in likely[:3]:
        parts.append(f"the one shown ({percent(shown[0].chance, 1)})")
        left = [c for c in left if c not in shown]
    parts += [f"others ({percent(sum(c.chance for c in left))})"] if left else []
    how = f"estimated from {count(why.redraws)} samples" if why.redraws else "exact"
    return [f"Choice probabilities ({how}): {', '.join(parts)}."]
