"""Compare runs: settings, outcomes, and paired differences where the random numbers are common.

An agent is named as better in one of two runs only if its paired test is significant after
correction for all pairs of runs and agents (Bonferroni). The error rate is simulated in
`tests/results/test_run_conclusion.py`."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bandits.agents import REGISTRY as AGENTS
from bandits.agents.guards.params import GuardParams
from bandits.base.formatting import count, listed
from bandits.base.params import Params, declaration
from bandits.experiments.experiment import Experiment
from bandits.results import metrics, words
from bandits.results.comparison import paired_tests
from bandits.results.describe import describe_guard
from bandits.results.metric_registry import (
    METRICS,
    Metric,
    gain_metric,
    leaderboard,
    leaderboard_metrics,
)
from bandits.results.metrics import Estimate
from bandits.results.run import Run

MISSING = "–"


class Difference(NamedTuple):
    """A setting that differs between runs.

    Attributes
    ----------
    path : str
        Dotted path; agents are named by their labels: ``agents.LinUCB.alpha``.
    name : str
        The same for people: LinUCB: alpha.
    values : tuple of str
        Its value in each run; ``MISSING`` where the run has no such agent or simulator.
    """

    path: str
    name: str
    values: tuple[str, ...]


class Outcome(NamedTuple):
    """One agent's metric in each run, over the length of that run.

    None where the agent is absent.
    """

    label: str
    metric: str
    values: tuple[Estimate | None, ...]


class Match(NamedTuple):
    """Labels in two experiments of an agent in common.

    They differ where its parameters are equal.
    """

    a: str
    b: str


class PairedDifference(NamedTuple):
    """Reward of an agent in run ``a`` minus run ``b``, paired by replication, up to the last common
    step; that per visit where visits have many steps.

    Interval and p-value are corrected for `compared_pairs` (Bonferroni).
    """

    label: str  # in run ``a``
    a: str
    b: str
    step: int
    difference: Estimate
    rows: int
    p_value: float  # paired t test
    # in run ``b``, where the agent was matched by equal parameters
    other: str = ""


def settings(experiments: Sequence[Experiment]) -> list[Difference]:
    """List the settings in which experiments differ, in the order of an experiment's fields.

    An agent or a simulator that a run does not have is one difference; of its parameters, only
    guards and those of a simulator are listed that differ from their defaults. Parameters of
    different simulators are not compared, whatever their names."""
    flat = [{(path, setting.name): setting for path, setting in _paths(e)} for e in experiments]
    found = []
    for key in dict.fromkeys(itertools.chain(*flat)):
        path, name = key
        present = [f[key] for f in flat if key in f]
        differs = len({setting.text for setting in present}) > 1
        listed = path.startswith("simulator.") or path.rpartition(".")[2].isdigit()  # a guard
        notable = path.endswith(".kind") or (listed and not all(s.default for s in present))
        if differs or (len(present) < len(flat) and notable):
            values = tuple(f[key].text if key in f else MISSING for f in flat)
            found.append(Difference(path, name, values))
    return found


def describe_difference(difference: Difference, names: Sequence[str]) -> str:
    """Describe how the second of two runs differs from the first: LinUCB: alpha 0.5 instead
    of 1.5.
    """
    before, after = difference.values
    if after == MISSING or before == MISSING:
        only, value = (names[0], before) if after == MISSING else (names[1], after)
        if difference.path.endswith(".kind"):
            return f"{difference.name} runs only in {only}"
        return f"{difference.name} {value}, only in {only}"
    name = "Simulator:" if difference.path == "simulator.kind" else difference.name
    return f"{name} {after} instead of {before}"


def describe_settings(experiments: Mapping[str, Experiment]) -> list[str]:
    """Describe how the second of two named runs differs from the first; an agent that has another
    label there is the same one.
    """
    (first, a), (second, b) = experiments.items()
    renamed = {match.a: match.b for match in matches(a, b) if match.a != match.b}
    aside = tuple(f"agents.{label}." for label in (*renamed, *renamed.values()))
    said = [
        describe_difference(difference, (first, second))
        for difference in settings([a, b])
        if not difference.path.startswith(aside)
    ]
    return said + [f"{x} is named {y} in {second}" for x, y in renamed.items()]


class _Setting(NamedTuple):
    name: str
    text: str
    default: bool


def _paths(experiment: Experiment) -> Iterator[tuple[str, _Setting]]:
    simulator = experiment.simulator_class().title
    for name in ("steps", "replications", "seed"):
        yield (
            name,
            _Setting(
                name,
                f"{getattr(experiment, name):,}" if name != "seed" else str(experiment.seed),
                False,
            ),
        )
    yield "simulator.kind", _Setting("simulator", simulator, False)
    for path, title, value, default in _fields("simulator", experiment.simulator):
        yield (
            path,
            _Setting(
                f"{simulator}: {title or path.split('.')[1].replace('_', ' ')}", value, default
            ),
        )
    for label, agent in zip(experiment.labels, experiment.agents, strict=True):
        yield f"agents.{label}.kind", _Setting(label, AGENTS[agent.kind].title, False)
        for path, _, value, default in _fields(f"agents.{label}", agent):
            place = path.removeprefix(f"agents.{label}.").replace("_", " ")
            if "." in place:  # guards.0
                place, _, i = place.partition(".")
                place = f"{place.removesuffix('s')} {int(i) + 1}"
            yield path, _Setting(f"{label}: {place}", value, default)


def _fields(path: str, params: Params) -> Iterator[tuple[str, str, str, bool]]:
    """Yield path, title, value as text, and whether that is the default, of every parameter.

    Tables row by row.
    """
    for name, value in params.model_dump(mode="json").items():
        if name in ("kind", "label"):
            continue
        field = type(params).model_fields[name]
        default = getattr(params, name) == field.get_default(call_default_factory=True)
        title = str(field.title or name.replace("_", " ")).lower()
        given = getattr(params, name)
        # changes, guards
        if isinstance(given, tuple) and any(isinstance(one, Params) for one in given):
            for i, one in enumerate(given):
                yield (
                    f"{path}.{name}.{i}",
                    f"{title.removesuffix('s')} {i + 1}",
                    _describe(one),
                    default,
                )
        elif isinstance(value, list) and any(isinstance(one, list) for one in value):
            rows = (declaration(field)["table"] or {}).get("rows", ())
            for i, inner in enumerate(value):
                row = rows[i] if i < len(rows) else f"row {i + 1}"
                yield f"{path}.{name}.{i}", f"{title}, {row}", _text(inner), default
        else:
            yield f"{path}.{name}", title, _text(value), default


def _describe(entry: Params) -> str:
    """Describe a change or a guard by its title and what differs from the defaults: Market shock
    (at 5,000).
    """
    if isinstance(entry, GuardParams):
        return describe_guard(entry)
    values = entry.model_dump(mode="json", exclude={"kind"}, by_alias=False)
    fields = type(entry).model_fields
    changed = [
        f"{(fields[name].alias or name).replace('_', ' ')} "
        f"{f'{value:,}' if type(value) is int else _text(value)}"
        for name, value in values.items()
        if getattr(entry, name) != fields[name].get_default(call_default_factory=True)
    ]
    title = getattr(entry, "title", "") or entry.model_dump()["kind"]
    return f"{title} ({', '.join(changed)})" if changed else title


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.replace("_", " ")
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return json.dumps(value, ensure_ascii=False).removesuffix(".0")


def outcomes(results: Sequence[Run]) -> list[Outcome]:
    """Estimate the metrics of tables of agents, with 95 % intervals, by agent."""
    measured = [
        {label: leaderboard(r.experiment, h) for label, h in r.histories.items()} for r in results
    ]
    return [
        Outcome(label, metric, values)
        for label in dict.fromkeys(itertools.chain(*measured))
        for metric in _table_metrics([r.experiment for r in results])
        # known in one of the runs
        if any(values := tuple(m.get(label, {}).get(metric) for m in measured))
        and (metric == "ctr" or any(v is not None and math.isfinite(v.mean) for v in values))
    ]


def _table_metrics(experiments: Sequence[Experiment]) -> list[str]:
    return list(dict.fromkeys(itertools.chain(*map(leaderboard_metrics, experiments))))


def metric_titles(experiments: Sequence[Experiment]) -> dict[str, str]:
    """Name the metrics of `outcomes` in the words of the runs' simulators.

    In general ones where these differ.
    """
    alike = (
        len(
            {
                (cls.rate_title, cls.reward_noun)
                for cls in (e.simulator_class() for e in experiments)
            }
        )
        == 1
    )
    general = {} if alike else {"rate": "reward per step", "noun": "reward"}
    names = _table_metrics(experiments)
    return {name: METRICS[name].of(experiments[0], **general).title for name in names}


def pairing_obstacle(a: Experiment, b: Experiment) -> str:
    """Name what prevents pairing the rows of two runs ("simulator and seed").

    Empty if they can be paired.

    Changes during a run may differ: the random numbers stay, and the visitors too unless the
    traffic changes."""
    apart = {
        "simulator": a.simulator.without_changes() != b.simulator.without_changes(),
        "seed": a.seed != b.seed,
    }
    if a.offers("replay") and not any(apart.values()):
        return "the events that their agents count in the log"
    return " and ".join(name for name, differs in apart.items() if differs)


def paired(results: Mapping[str, Run]) -> list[PairedDifference]:
    """Estimate the paired differences in clicks of every agent that two runs have in common.

    The random numbers of a row depend on simulator (apart from its changes), seed and row number
    alone, so the rows that two runs share have common random numbers. See `matches` for what agents
    have in common; those that are equal in both earn the same and count in no correction."""
    found = [
        (match, a, b)
        for a, b in itertools.combinations(results, 2)
        if not pairing_obstacle(results[a].experiment, results[b].experiment)
        for match in matches(results[a].experiment, results[b].experiment)
        if match.a in results[a].histories and match.b in results[b].histories
    ]
    family = compared_pairs({name: result.experiment for name, result in results.items()})
    return [_pair(match, a, b, results, family) for match, a, b in found]


def compared_pairs(experiments: Mapping[str, Experiment]) -> int:
    """Return for how many agents of pairs of runs `paired` corrects: those that are not equal in
    both; at least 1.
    """
    found = 0
    for (_, a), (_, b) in itertools.combinations(experiments.items(), 2):
        if pairing_obstacle(a, b):
            continue
        first, second = (dict(zip(e.labels, e.agents, strict=True)) for e in (a, b))
        found += sum(
            a.simulator != b.simulator
            or _without_label(first[match.a]) != _without_label(second[match.b])
            for match in matches(a, b)
        )
    return max(1, found)


def _without_label(agent: Params) -> dict[str, Any]:
    return agent.model_dump(exclude={"label"})


def matches(a: Experiment, b: Experiment) -> list[Match]:
    """Match the agents of two experiments: by label (of the same kind) first, the others by equal
    parameters.

    An agent is matched at most once. Agents with the same label but different kinds are not
    compared."""
    first, second = (dict(zip(e.labels, e.agents, strict=True)) for e in (a, b))
    found = [
        Match(x, x) for x, agent in first.items() if x in second and second[x].kind == agent.kind
    ]
    others = {label: agent for label, agent in second.items() if label not in first}
    for label, agent in first.items():
        if label in second:
            continue
        same = _without_label(agent)
        equal = next((other for other in others if _without_label(others[other]) == same), None)
        if equal is not None:
            del others[equal]
            found.append(Match(label, equal))
    return found


def _pair(
    match: Match, a: str, b: str, results: Mapping[str, Run], family: int
) -> PairedDifference:
    x, y = results[a].histories[match.a], results[b].histories[match.b]
    # Runs of different lengths have different grids
    step = int(np.intersect1d(x.grid[: x.size], y.grid[: y.size])[-1])
    gap = paired_tests.gaps(x, y, at=step, per_visit=results[a].experiment.offers("visits"))
    gap = gap[np.isfinite(gap)]
    other = match.b if match.b != match.a else ""
    p_value = paired_tests.paired_test(gap, family=family)[1]
    difference = metrics.estimate(gap, family=family)
    return PairedDifference(match.a, a, b, step, difference, len(gap), p_value, other)


def reasons(experiments: Mapping[str, Experiment]) -> list[str]:
    """Explain for every two runs that cannot be paired what differs, and what can be compared
    instead.
    """
    return [
        f"{a} and {b} cannot be paired: they differ in {why}. {_instead(x, y)}"
        for (a, x), (b, y) in itertools.combinations(experiments.items(), 2)
        if (why := pairing_obstacle(x, y))
    ]


def _instead(a: Experiment, b: Experiment) -> str:
    if a.simulator_class() is b.simulator_class():
        return "Compare their intervals instead."
    return "Rates of different simulators are not comparable."


def conclusions(results: Mapping[str, Run], found: Sequence[PairedDifference]) -> list[str]:
    """State for each pair of runs with common random numbers which agents earn more in which of
    them.

    Parameters
    ----------
    results : mapping of str to Run
        By name of the run.
    found : sequence of PairedDifference
        All of `run_comparison.paired`, for which p-values are corrected together.

    Returns
    -------
    list of str
        One sentence for each pair of runs with an agent in common.
    """
    runs = dict.fromkeys((pair.a, pair.b) for pair in found)
    return [
        _sentence(results, [pair for pair in found if (pair.a, pair.b) == names]) for names in runs
    ]


def _sentence(results: Mapping[str, Run], pairs: Sequence[PairedDifference]) -> str:
    a, b, step = pairs[0].a, pairs[0].b, pairs[0].step
    longest = max(results[a].experiment.steps, results[b].experiment.steps)
    until = f" up to step {count(step)}" if step < longest else ""
    rows = {pair.rows for pair in pairs}
    shared = f", {max(rows)} paired replications" if len(rows) == 1 and max(rows) > 1 else ""
    metric, noun = (
        gain_metric(results[a].experiment),
        results[a].experiment.simulator_class().reward_noun,
    )
    counts = metric.form == "count"
    tested = [pair for pair in pairs if pair.rows > 1]
    equal = [pair for pair in tested if pair.difference.low == pair.difference.high == 0]
    apart = [pair for pair in tested if paired_tests.differs(pair.difference, pair.p_value)]
    open_ = [pair for pair in tested if pair not in equal and pair not in apart]
    parts = [
        _earns(pair, noun, metric, "" if shared else f"; {pair.rows} paired replications")
        for pair in sorted(apart, key=lambda pair: -abs(pair.difference.mean))
    ]
    parts += [f"the difference for {_names(open_)} is not significant"] if open_ else []
    parts += [f"{_names(equal)} earn{'s' * (len(equal) == 1)} the same in both"] if equal else []
    for finished, why in (
        (1, "one common replication cannot tell for"),
        (0, f"no replication {'finished' if counts else 'has ended a visit'} in both for"),
    ):
        few = [pair for pair in pairs if pair.rows == finished]
        parts += [f"{why} {_names(few)}"] if few else []
    return f"{b} compared with {a}{until}{shared}: {'; '.join(parts)}."


def _earns(pair: PairedDifference, noun: str, metric: Metric, rows: str) -> str:
    word, gap = (
        ("fewer", pair.difference) if pair.difference.mean > 0 else ("more", -pair.difference)
    )
    evidence = (
        f"({words.interval(gap, metric.form)}{rows})"
        if gap.low < gap.high
        else "in each replication"
    )
    if metric.form == "count":
        amount = f"{words.count_end(gap.mean)} {noun} {word}"
    else:
        amount = f"{words.mean(gap, metric.form)} {word} {noun} per visit"
    return f"{_name(pair)} earns {amount} in {pair.b} {evidence}"


def _names(pairs: Sequence[PairedDifference]) -> str:
    return listed(_name(pair) for pair in pairs)


def _name(pair: PairedDifference) -> str:
    return f"{pair.label} (in {pair.b}: {pair.other})" if pair.other else pair.label
