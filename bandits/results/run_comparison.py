"""Runs beside each other: what they were set to, what came out, and their paired difference where luck was the same."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History

from . import metrics
from .metrics import Estimate
from .result import Result

MISSING = "–"


class Difference(NamedTuple):
    """A setting in which the runs differ: its dotted path, and its value in each run (``MISSING`` where there is none).

    Agents go by their labels: ``agents.LinUCB.alpha``.
    """

    path: str
    values: tuple[str, ...]


class Outcome(NamedTuple):
    """One agent's metric in each run, over that run's own length; None where it does not take part."""

    label: str
    metric: str
    values: tuple[Estimate | None, ...]


class PairedDifference(NamedTuple):
    """Clicks that an agent earned more in run ``a`` than in run ``b``, row by row, up to a step both have reached."""

    label: str
    a: str
    b: str
    step: int
    difference: Estimate
    rows: int
    p_value: float  # of no difference, after Holm's correction over all pairs that are shown


def settings(experiments: Sequence[Experiment]) -> list[Difference]:
    """Everything in which experiments differ, in the order in which an experiment tells it."""
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
    for name in sorted(data, key=lambda name: isinstance(data[name], dict)):  # steps, runs and seed first
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
    """Click rate, clicks, regret and the way from random (0) to the oracle (1), with 95 % intervals, by agent."""
    measured = [{label: _measure(h) for label, h in r.histories.items()} for r in results]
    return [
        Outcome(label, metric, tuple(m[label][metric] if label in m else None for m in measured))
        for label in dict.fromkeys(itertools.chain(*measured))
        for metric in next(m[label] for m in measured if label in m)
    ]


def _measure(history: History) -> dict[str, Estimate]:
    regret = metrics.total(history, "best_value") - metrics.total(history, "value")
    return {
        "click rate": metrics.estimate(metrics.click_rate(history)),
        "clicks": metrics.estimate(metrics.total(history, "clicks")),
        "regret": metrics.estimate(regret),
        "way to the oracle": metrics.estimate(metrics.oracle_share(history)),
    }


def pairing_obstacle(a: Experiment, b: Experiment) -> str:
    """Why rows of two runs do not pair, as a list of what differs; nothing if they met the same visitors and luck."""
    apart = {
        "world": a.simulator != b.simulator,
        "seed": a.seed != b.seed,
    }
    return " and ".join(name for name, differs in apart.items() if differs)


def paired(results: Mapping[str, Result]) -> list[PairedDifference]:
    """Differences in clicks between runs that pair, for every agent that two of them have in common.

    Visitors and luck of a row depend on world, seed and the row's number alone, so that they are the same in both, as
    far as both have rows. Agents of one name but of two kinds are two agents.
    """
    found: list[PairedDifference] = []
    for (a, first), (b, second) in itertools.combinations(results.items(), 2):
        if not pairing_obstacle(first.experiment, second.experiment):
            kinds = _kinds(second.experiment)
            common = [label for label, kind in _kinds(first.experiment).items() if kinds.get(label) == kind]
            present = [label for label in common if label in first.histories and label in second.histories]
            found += [_pair(label, a, b, first.histories[label], second.histories[label]) for label in present]
    adjusted = metrics.holm([pair.p_value for pair in found])
    return [pair._replace(p_value=p) for pair, p in zip(found, adjusted, strict=True)]


def _kinds(experiment: Experiment) -> dict[str, str]:
    return {label: agent.kind for label, agent in zip(experiment.labels, experiment.agents, strict=True)}


def _pair(label: str, a: str, b: str, x: History, y: History) -> PairedDifference:
    step = int(np.intersect1d(x.grid[: x.size], y.grid[: y.size])[-1])  # runs of other lengths have other grids
    rows = min(x.rows, y.rows)
    clicks = [h.sums["clicks"][np.searchsorted(h.grid, step)][:rows] for h in (x, y)]
    gap = (clicks[0] - clicks[1])[x.alive[:rows] & y.alive[:rows]]
    return PairedDifference(label, a, b, step, metrics.estimate(gap), len(gap), metrics.paired_test(gap)[1])


def reasons(experiments: Mapping[str, Experiment]) -> list[str]:
    """One sentence for every two runs that do not pair."""
    return [
        f"{a} and {b} do not pair, because they differ in {why}: compare their intervals, not their rows."
        for (a, x), (b, y) in itertools.combinations(experiments.items(), 2)
        if (why := pairing_obstacle(x, y))
    ]
