"""State in sentences which agent leads, by how much, and how much was learned."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from bandits.base.formatting import count, count_of, number
from bandits.results import metrics, words
from bandits.results.change.before_after import around_shock
from bandits.results.comparison import paired_tests, unpaired
from bandits.results.comparison.paired_tests import Comparison
from bandits.results.comparison.run_title import compared_with
from bandits.results.comparison.unpaired import RateDifference
from bandits.results.metric_registry import METRICS, Metric, main_metric
from bandits.results.metrics import Estimate
from bandits.results.run import Run
from bandits.results.visit import per_visit

NOT_PER_VISIT = (
    "No agents are compared: they have reached different steps, or none of their visits ended in "
    "the last fifth of the run."
)
# pairs of agents; what is stated of them holds together
Compared = Mapping[tuple[str, str], Comparison | RateDifference]


def ranking(result: Run) -> list[str]:
    """Sort the labels by `main_metric` so far, best first.

    Agents without steps come last.
    """
    return _sorted_by(result, main_metric(result.experiment))


def _sorted_by(result: Run, metric: Metric) -> list[str]:
    def value(label: str) -> float:
        found = metric.estimate(result.histories[label]).mean
        return found if math.isfinite(found) else -math.inf

    return sorted(result.histories, key=value, reverse=True)


def describe_comparison(a: str, b: str, comparison: Comparison, noun: str = "clicks") -> str:
    """Describe the difference between agent ``a``, which is ahead, and agent ``b`` over the whole
    run.

    ``noun`` names what the simulator counts as reward.
    """
    d, rows = comparison.difference, comparison.rows
    if rows < 2:
        return (
            f"{a} earned {count_of(d.mean, 'more ' + noun)} than {b} in a single replication, "
            "which gives no interval."
        )
    if d.low == d.high:
        return f"{a} and {b} differ by {count_of(d.mean, noun)} in each of the {rows} replications."
    evidence = f"{words.interval(d, 'count')}; {rows} paired replications"
    if comparison.p_value >= 0.05:
        return f"{a} and {b} do not differ significantly: {count_of(d.mean, noun)} ({evidence})."
    text = f"{a} earned {count_of(d.mean, f'more {noun}')} than {b} ({evidence})"
    if comparison.break_even_step is not None and comparison.overtook:
        text += f"; break-even at step {count(comparison.break_even_step)}"
        if comparison.break_even_interval:
            text += words.bracket(
                Estimate(comparison.break_even_step, *comparison.break_even_interval), "count"
            )
        elif rows < paired_tests.MIN_BREAK_EVEN_ROWS:
            text += f" (no interval: fewer than {paired_tests.MIN_BREAK_EVEN_ROWS} replications)"
        text += f", after trailing by up to {count_of(comparison.exploration_cost, noun)}"
    return text + "."


def leader_comparisons(result: Run) -> list[str]:
    """Compare the leader with each other agent; see `reference_comparisons`."""
    return reference_comparisons(result, None)


def reference_comparisons(result: Run, reference: str | None) -> list[str]:
    """Compare an agent, by default the leader, with each other one, best first.

    Verdicts and intervals are corrected for all pairs (Bonferroni), as the same data chose the
    leader: they hold together, whichever reference is chosen."""
    order = _order(result)
    return list(_sentences(result, _compared(result, order), _known(reference, order)).values())


def main_comparison(result: Run, reference: str | None = None) -> tuple[str, list[str]]:
    """Return the comparison that a reader needs first, empty without one, and the others.

    In visits of many steps it is that of `per_visit`: more reward in the same number of steps may
    be less per visit. Else it is that of the leader with the reference; without one, that of the
    best agent that learns with the best A/B test, which states the difference for 1,000 steps too;
    without a test, that of the leader with the second best agent.

    Parameters
    ----------
    reference : str, optional
        Label of the agent to compare with, but for visits; empty for the leader. By default, that
        of `compared_with`.

    Returns
    -------
    first : str
    others : list of str
        The rest of `reference_comparisons`.
    """
    order = _order(result)
    if len(order) < 2:
        return "", []
    if result.experiment.offers("visits"):
        first, *others = per_visit(result) or [NOT_PER_VISIT]
        return first, others
    experiment, compared = result.experiment, _compared(result, order)
    if reference is None:
        reference = compared_with(experiment)
    pairs = _sentences(result, compared, _known(reference, order))
    kinds = {
        label: agent.kind for label, agent in zip(experiment.labels, experiment.agents, strict=True)
    }
    # of several tests, the one that earned most: the better alternative
    test = next((label for label in order if kinds[label] == "ab_test"), None)
    if not reference and test is not None:
        # a network that was trained before the run is no gain of learning in it
        learns = {label for i, label in enumerate(kinds) if experiment.agent_class(i).learns}
        tested = _sentences(result, compared, test)
        pair = next((pair for pair in tested if pair[1] == test and pair[0] in learns), None)
        if pair is not None:
            others = [sentence for other, sentence in pairs.items() if other != pair]
            about = _about_the_test(result, test)
            if not experiment.offers("replay"):
                gap = compared[pair].difference.mean
                about = f"{_for_a_thousand(result, pair, gap)}{about}"
                about += _about_the_leader(result, learns, order, compared)
            return tested[pair] + about, others
    pair = next(iter(pairs))
    return pairs.pop(pair), [*pairs.values()]


def _about_the_test(result: Run, test: str) -> str:
    """State which of its two kinds an A/B test is: they earn differently."""
    agent = result.experiment.agents[result.experiment.labels.index(test)]
    if getattr(agent, "winner", "") != "all":
        return " The test shows each user segment its own winner."
    if result.experiment.simulator_class().segment_names():
        return " The test shows one winner to all users; one for each segment may earn more."
    return " The test shows one winner to all users (not personalized)."


def _about_the_leader(
    result: Run, learns: Container[str], order: Sequence[str], compared: Compared
) -> str:
    """Name the leader that the tiles compare with, where it is an agent that does not learn."""
    leader, names = order[0], result.experiment.names
    if leader in learns:
        return ""
    best = next(label for label in order if label in learns)
    found = compared[leader, best]
    if paired_tests.differs(found.difference, found.p_value):
        return f" {names[leader]} leads, but does not learn."
    return f" {names[leader]}, which does not learn, is not significantly ahead of {names[best]}."


def _for_a_thousand(result: Run, pair: tuple[str, str], difference: float) -> str:
    """State a difference between two agents for 1,000 steps."""
    simulator = result.experiment.simulator_class()
    more = 1000 * difference / min(result.histories[label].step for label in pair)
    served = "visitors" if simulator.reward_noun == "clicks" else "steps"
    return f" That is {number(more)} {simulator.reward_noun} per 1,000 {served}."


def _order(result: Run) -> list[str]:
    """Return the agents with a replication that finished, those with most reward first."""
    order = _sorted_by(result, METRICS["ctr"])
    return [label for label in order if result.histories[label].alive.any()]


def _known(reference: str | None, order: Sequence[str]) -> str:
    """Return the agent to compare with: by default the leader."""
    return reference if reference and reference in order else next(iter(order), "")


def _compared(result: Run, order: Sequence[str]) -> Compared:
    """Compare all pairs of agents, the agent that is ahead first."""
    if result.experiment.offers("replay"):
        return unpaired.compare_pairs(result, order)
    return paired_tests.compare_pairs(result, order)


def _sentences(result: Run, compared: Compared, reference: str) -> dict[tuple[str, str], str]:
    """Describe the pairs with an agent, by pair."""
    experiment, names = result.experiment, result.experiment.names
    noun = experiment.simulator_class().reward_noun
    sentences = {}
    for pair, found in compared.items():
        if reference not in pair:
            continue
        a, b = (names.get(label, label) for label in pair)
        if isinstance(found, Comparison):
            sentences[pair] = describe_comparison(a, b, found, noun)
        else:
            sentences[pair] = _describe_replay(a, b, found, noun)
    return sentences


def _describe_replay(a: str, b: str, found: RateDifference, noun: str) -> str:
    """Describe the difference of two agents where a log was replayed, by an interval that pairs
    nothing.
    """
    d = found.difference
    if not math.isfinite(d.low):
        return f"{a} and {b}: no interval, as there are too few replications or {noun}."
    gap = f"{number(d.mean)} {noun} per counted event ({words.interval(d)}; not paired)"
    if found.p_value < 0.05:
        return f"{a} earned {gap} more than {b}."
    return f"This log cannot tell {a} and {b} apart: {gap}."


def shock_summary(result: Run) -> list[str]:
    """State in one sentence what a shock changed and which agent leads after it.

    Nothing without a shock.
    """
    around = around_shock(result)
    if around is None:
        return []
    simulator = result.experiment.simulator_class()
    rate, names = simulator.rate_title, result.experiment.names
    sentence = (
        f"Market shock at step {count(around.step)}: the {rate[0].lower()}{rate[1:]} of "
        f"{names[around.best]}, the best agent of the whole run, was "
        f"{words.stated(around.before, 'rate')} in the second half of the steps before it and "
        f"{words.stated(around.after, 'rate')} in those after it"
    )
    if around.comparison is None:
        return [f"{sentence}."]
    again = around.leader == around.best
    leads = "leads too" if again else f"leads with {words.stated(around.leader_after, 'rate')}"
    difference = count_of(around.comparison.difference.mean, f"more {simulator.reward_noun}")
    certain = words.interval(around.comparison.difference, "count")
    if around.comparison.rows < 2:
        certain = "one replication"
    elif around.comparison.p_value >= 0.05:
        certain += ", not significant"
    return [
        f"{sentence}; after it, {names[around.leader]} {leads}, {difference} than "
        f"{names[around.runner_up]} "
        f"({certain})."
    ]


def learning_summary(result: Run) -> str:
    """State the share of the oracle's gain over random choice that the best learning agent
    reached.

    Whether it is better than random choice at all is corrected for the number of agents that learn,
    as the same data chose it. Empty for visits of many steps, where this oracle is no optimum.
    """
    if result.experiment.offers("visits"):
        return ""
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
    if _oracle_share(result, label, family=len(learners)).low <= 0:
        return "No learning agent is significantly better than random choice."
    known = result.experiment.simulator_class().oracle_knows
    among = (
        f", the largest share of the {len(learners)} agents that learn during the run"
        if len(learners) > 1
        else ""
    )
    return (
        f"{result.experiment.names[label]} closed {words.mean(best, 'share')} of the gap between "
        f"random choice and the oracle{known}{words.bracket(best, 'share')}{among}."
    )


def _oracle_share(result: Run, label: str, family: int = 1) -> Estimate:
    found = metrics.estimate(metrics.oracle_share(result.histories[label]), family=family)
    return found if math.isfinite(found.mean) else Estimate(-math.inf, -math.inf, -math.inf)
