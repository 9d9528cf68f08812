"""Compare runs: settings, outcomes, and paired differences where the random numbers are common."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History

from . import metrics, paired_tests
from .metrics import Estimate
from .result import Result

MISSING = "–"


class Difference(NamedTuple):
    """A setting that differs between runs: its dotted path and its value in each run (``MISSING`` where absent).

    Agents are named by their labels: ``agents.LinUCB.alpha``.
    """

    path: str
    values: tuple[str, ...]


class Outcome(NamedTuple):
    """One agent's metric in each run, over the length of that run; None where the agent is absent."""

    label: str
    metric: str
    values: tuple[Estimate | None, ...]


class PairedDifference(NamedTuple):
    """Reward of an agent in run ``a`` minus run ``b``, paired by replication, up to the last common step."""

    label: str
    a: str
    b: str
    step: int
    difference: Estimate
    rows: int
    p_value: float  # paired t test, Holm-corrected over all pairs shown


def settings(experiments: Sequence[Experiment]) -> list[Difference]:
    """List the settings in which experiments differ, in the order of an experiment's fields."""
    flat = [dict(_paths(e)) for e in experiments]
    found = []
    for path in dict.fromkeys(itertools.chain(*flat)):
        values = tuple(f.get(path, MISSING) for f in flat)
        if len(set(values)) > 1:
            found.append(Difference(path, values))
    return found


def _paths(experiment: Experiment) -> Iterator[tuple[str, str]]:
    data = experiment.model_dump(mode="json")
    agents = dict(zip(experiment.labels, data.pop("agents"), strict=True))
    for agent in agents.values():
        del agent["label"]
    for name in sorted(data, key=lambda name: isinstance(data[name], dict)):  # steps, replications and seed first
        yield from _leaves(name, data[name])
    yield from _leaves("agents", agents)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner)
    elif isinstance(value, list) and any(isinstance(v, (list, dict)) for v in value):
        for i, inner in enumerate(value):
            yield from _leaves(f"{path}.{i}", inner)
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).strip("[]")


def outcomes(results: Sequence[Result]) -> list[Outcome]:
    """Estimate click-through rate, clicks, regret and share of the oracle's gain, with 95 % intervals, by agent."""
    measured = [{label: _measure(h) for label, h in r.histories.items()} for r in results]
    return [
        Outcome(label, metric, tuple(m[label][metric] if label in m else None for m in measured))
        for label in dict.fromkeys(itertools.chain(*measured))
        for metric in next(m[label] for m in measured if label in m)
    ]


def _measure(history: History) -> dict[str, Estimate]:
    regret = metrics.total(history, "best_value") - metrics.total(history, "value")
    return {
        "click-through rate": metrics.estimate(metrics.click_rate(history)),
        "clicks": metrics.estimate(metrics.total(history, "clicks")),
        "regret": metrics.estimate(regret),
        "share of the oracle's gain": metrics.estimate(metrics.oracle_share(history)),
    }


def pairing_obstacle(a: Experiment, b: Experiment) -> str:
    """Name what prevents pairing the rows of two runs ("simulator and seed"); empty if they can be paired."""
    apart = {
        "simulator": a.simulator != b.simulator,
        "seed": a.seed != b.seed,
    }
    return " and ".join(name for name, differs in apart.items() if differs)


def paired(results: Mapping[str, Result]) -> list[PairedDifference]:
    """Estimate the paired differences in clicks of every agent that two runs have in common.

    The visitors and random numbers of a row depend on simulator, seed and row number alone, so the rows that two runs
    share have common random numbers. Agents with the same label but different kinds are not compared.
    """
    found: list[PairedDifference] = []
    for (a, first), (b, second) in itertools.combinations(results.items(), 2):
        if not pairing_obstacle(first.experiment, second.experiment):
            kinds = _kinds(second.experiment)
            common = [label for label, kind in _kinds(first.experiment).items() if kinds.get(label) == kind]
            present = [label for label in common if label in first.histories and label in second.histories]
            found += [_pair(label, a, b, first.histories[label], second.histories[label]) for label in present]
    adjusted = paired_tests.holm([pair.p_value for pair in found])
    return [pair._replace(p_value=p) for pair, p in zip(found, adjusted, strict=True)]


def _kinds(experiment: Experiment) -> dict[str, str]:
    return {label: agent.kind for label, agent in zip(experiment.labels, experiment.agents, strict=True)}


def _pair(label: str, a: str, b: str, x: History, y: History) -> PairedDifference:
    step = int(np.intersect1d(x.grid[: x.size], y.grid[: y.size])[-1])  # runs of different lengths have different grids
    rows = min(x.rows, y.rows)
    clicks = [h.sums["clicks"][np.searchsorted(h.grid, step)][:rows] for h in (x, y)]
    gap = (clicks[0] - clicks[1])[x.alive[:rows] & y.alive[:rows]]
    return PairedDifference(label, a, b, step, metrics.estimate(gap), len(gap), paired_tests.paired_test(gap)[1])


def reasons(experiments: Mapping[str, Experiment]) -> list[str]:
    """Explain for every two runs that cannot be paired what differs."""
    return [
        f"{a} and {b} cannot be paired: they differ in {why}. Compare their intervals instead."
        for (a, x), (b, y) in itertools.combinations(experiments.items(), 2)
        if (why := pairing_obstacle(x, y))
    ]
