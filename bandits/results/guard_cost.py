"""What a guard costs: agents with it against the same agents without it, on the same users and random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandits.base.formatting import count_of, percent
from bandits.experiments.experiment import Experiment

from .metrics import total
from .paired_tests import compare, corrected, holm
from .text import describe_guard, interval

if TYPE_CHECKING:
    from .result import Result


def guarded_pairs(experiment: Experiment) -> dict[str, str]:
    """Return by label the agents that are otherwise equal to another one without their outermost guard."""
    plain = {
        agent.model_dump_json(exclude={"label"}): label
        for label, agent in zip(experiment.labels, experiment.agents, strict=True)
    }
    pairs = {}
    for label, agent in zip(experiment.labels, experiment.agents, strict=True):
        without = agent.model_copy(update={"guards": agent.guards[:-1]}).model_dump_json(exclude={"label"})
        if agent.guards and without in plain:
            pairs[label] = plain[without]
    return pairs


def sentences(result: Result) -> list[str]:
    """State what each guard costs its agent in clicks, with intervals that are Holm-corrected over the agents."""
    noun, histories = result.experiment.simulator_class().reward_noun, result.histories
    agents = dict(zip(result.experiment.labels, result.experiment.agents, strict=True))
    pairs = {a: b for a, b in guarded_pairs(result.experiment).items() if a in histories and b in histories}
    costs = {a: compare(histories[b], histories[a]) for a, b in pairs.items()}
    p_values = holm([cost.p_value for cost in costs.values()])
    texts = []
    for (label, cost), p in zip(costs.items(), p_values, strict=True):
        plain, earned = pairs[label], float(total(histories[pairs[label]], "clicks").mean())
        fewer = cost.difference.mean >= 0
        shown = cost if fewer else compare(histories[label], histories[plain])  # so that all numbers are positive
        text = f"{plain} earns {count_of(shown.difference.mean, ('fewer ' if fewer else 'more ') + noun)}"
        if earned > 0:
            text += f", {percent(shown.difference.mean / earned, 1)},"
        evidence = "one replication: no interval"
        if shown.rows > 1:
            evidence = f"{interval(corrected(shown, p))}; {shown.rows} paired replications"
        guard = describe_guard(agents[label].guards[-1])
        evidence += ", not significant" if p >= 0.05 else ""
        texts.append(f"{guard[0].upper()}{guard[1:]}: {text} than without it ({evidence}).")
    return texts
