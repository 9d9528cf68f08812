"""A stored run: its row of the index, its result, and the values that its parameters have in
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.files import Arrays
from bandits.base.params import hash_content
from bandits.experiments.experiment import Experiment, read
from bandits.results.result import Result
from bandits.results.run import Headline, from_json

# the end of the year 9999, which a wrong clock exceeds and a calendar does not
LAST_TIME = 253_402_128_000.0
# values of a parameter that are listed
MOST = 32

# runs are listed at every refresh of a page
_read_cached = lru_cache(maxsize=4096)(read)


class StoredRun(NamedTuple):
    """A row of the index.

    Attributes
    ----------
    id : str
        The experiment's hash.
    experiment : Experiment
    title, tags, notes : str
        Written by the user.
    created : float
        Time at which the run was stored, in seconds since 1970.
    seconds : float
        Wall time of the run.
    bytes : int
        Size of its file.
    evicted : bool
        Its curves were deleted to save space.
    starred : bool
    headline : Headline or None
        The best agent and its numbers; None if they are not known.
    """

    id: str
    experiment: Experiment
    title: str
    tags: str
    created: float
    seconds: float
    bytes: int
    evicted: bool = False
    starred: bool = False
    notes: str = ""
    headline: Headline | None = None


def stored_run(row: Mapping[str, Any]) -> StoredRun | None:
    """Convert a row of the index; None if this version cannot read its experiment."""
    if (experiment := read_kept(row["experiment"])) is None:
        return None
    converted = {
        **row,
        "experiment": experiment,
        "created": min(max(row["created"], 0.0), LAST_TIME),
        "evicted": bool(row["evicted"]),
        "starred": bool(row["starred"]),
        "headline": from_json(row["headline"]),
    }
    return StoredRun(**{name: converted[name] for name in StoredRun._fields})


def read_kept(text: str) -> Experiment | None:
    """Return the experiment of a stored run; None if this version cannot read it."""
    with suppress(UserError, ValueError, TypeError):
        return _read_cached(text)
    return None


def result_of(experiment: Experiment, arrays: Arrays) -> Result:
    """Return the result of an experiment from the arrays of its file."""
    histories = {}
    for i, label in enumerate(experiment.labels):
        history, prefix = experiment.empty_history(), f"{i}/"
        history.merge({k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)})
        histories[label] = history
    return Result(experiment, histories)


class StoredValue(NamedTuple):
    """A value that a parameter has in a stored run.

    Attributes
    ----------
    value : float
    run : str
        The run's hash.
    label : str
        The agent's name in that run.
    """

    value: float
    run: str
    label: str


def stored_values(
    experiment: Experiment,
    label: str,
    name: str,
    kept: Iterable[tuple[str, Experiment]],
    most: int = MOST,
) -> list[StoredValue]:
    """List the other values that a parameter of an agent has in stored runs, in ascending order.

    Simulator, seed, steps, replications and all other parameters of this agent are the same. The
    run's other agents may differ: they do not influence this one.

    Parameters
    ----------
    label, name : str
        The agent and its parameter.
    kept : iterable of (str, Experiment)
        Hashes and experiments of runs; of several with the same value, the first one counts.
    most : int
        The first so many values are listed.
    """
    agent = experiment.agents[experiment.labels.index(label)]
    rest, surroundings = _rest(agent, name), _surroundings(experiment)
    found: dict[float, StoredValue] = {}
    for run, other in kept:
        if _surroundings(other) != surroundings:
            continue
        for its_label, candidate in zip(other.labels, other.agents, strict=True):
            if candidate.kind != agent.kind or (value := getattr(candidate, name)) == getattr(
                agent, name
            ):
                continue
            if value not in found and len(found) < most and _rest(candidate, name) == rest:
                found[value] = StoredValue(value, run, its_label)
    return [found[value] for value in sorted(found)]


def _rest(agent: Any, name: str) -> dict[str, Any]:
    return {key: value for key, value in hash_content(agent).items() if key not in ("label", name)}


def _surroundings(experiment: Experiment) -> tuple[Any, ...]:
    return experiment.simulator, experiment.seed, experiment.steps, experiment.replications
