"""What a page offers for a log: agents that record well, and target policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from bandits.agents import agent_class
from bandits.base.errors import UserError
from bandits.experiments.experiment import Experiment
from bandits.storage.run_store import StoredRun

from . import recording
from .evaluation import CLICKS, ROUNDING, range_of_rewards
from .log import DecisionLog
from .recorded_columns import EXAMINED
from .simulated import experiment_of, known_experiment
from .stored_run import DIGITS, KEPT
from .targets import Random

# stored runs whose agents are offered
MOST_RUNS = 10


# of a log that a page records, unless asked for more
DECISIONS = 100_000


def rows_at_first(experiment: Experiment) -> int:
    """Return how many replications a page records: at most about 100,000 decisions, at least one
    replication.
    """
    rows = DECISIONS // (experiment.steps * recording.slots(experiment))
    return max(1, min(recording.most_replications(experiment), rows))


class LogSummary(NamedTuple):
    """What must be known of a log to choose a target policy.

    Attributes
    ----------
    n : int
        Rows.
    names : tuple of str (K,)
        Of the actions.
    columns : tuple of str
        Further numeric columns, which may hold the probabilities of a target.
    propensities : bool
        Whether it has them.
    agents : mapping of str to str
        Agents of the simulated run that can be the target, as JSON by label; empty for other logs.
    experiment : Experiment, optional
        Of the simulated run.
    problem : str
        Why the experiment of a simulated run cannot be used.
    uniform : bool
        Whether each candidate was equally likely, so that the target ``random`` is the policy that
        made the log.
    reward_range : (float, float), optional
        Least and largest possible reward, where the kind of reward states them.
    weighted : bool
        Whether rows have weights.
    notes : tuple of str
        What the reader left out or assumed, in sentences.
    visits : bool
        Whether values are per visit.
    """

    n: int
    names: tuple[str, ...]
    columns: tuple[str, ...] = ()
    propensities: bool = True
    agents: Mapping[str, str] = MappingProxyType({})
    experiment: Experiment | None = None
    problem: str = ""
    uniform: bool = False
    reward_range: tuple[float, float] | None = None
    weighted: bool = False
    notes: tuple[str, ...] = ()
    visits: bool = False


def summarise(log: DecisionLog) -> LogSummary:
    """Summarise a log."""
    experiment, problem = None, ""
    if log.experiment:
        try:
            experiment = experiment_of(log)
        except UserError as error:
            # its data set is not here, say: the log itself can be evaluated all the same
            here = known_experiment(log) is not None
            problem = "" if log.visits is not None and here else str(error)
    agents = target_agents(experiment) if experiment else {}
    known = log.propensities is not None
    columns = tuple(name for name in log.columns if not (log.experiment and name == EXAMINED))
    return LogSummary(
        len(log),
        log.names,
        columns,
        known,
        agents,
        experiment,
        problem,
        _uniform(log),
        range_of_rewards(log),
        log.row_weights is not None,
        log.notes,
        log.visits is not None and known,
    )


def _uniform(log: DecisionLog) -> bool:
    if log.propensities is None:
        return False
    return bool((np.abs(Random().logged(log) / log.propensities - 1) <= ROUNDING).all())


def summarise_run(experiment: Experiment, rows: int, label: str = "") -> LogSummary:
    """Summarise the log of an agent that a run will have with a number of replications.

    Raises
    ------
    UserError
        The decisions of this run cannot be logged.
    """
    recording.check(experiment, range(rows))
    spec = experiment.simulator_class().describe(experiment.simulator)
    names, agents, S = (
        tuple(map(str, range(spec.n_items))),
        target_agents(experiment),
        recording.slots(experiment),
    )
    logger = experiment.agents[experiment.labels.index(label)] if label else None
    uniform = logger is not None and logger.kind == "random" and not logger.guards
    return LogSummary(
        experiment.steps * rows * S,
        names,
        agents=agents,
        experiment=experiment,
        uniform=uniform,
        reward_range=CLICKS if "binary" in spec.capabilities else None,
        visits=experiment.offers("visits"),
    )


def suggested_target(summary: LogSummary, logger: str = "", production: str = "") -> str:
    """Return the target that is offered first: never the policy that made the log.

    Parameters
    ----------
    summary : LogSummary
        Of the log.
    logger : str
        Of a simulated run: the agent that made the log.
    production : str
        Of the Open Bandit sample: the target that is the shop's own policy.

    Returns
    -------
    str
        ``agent:LABEL``, or a text that `read_target` reads.
    """
    others = [label for label in summary.agents if label != logger]
    # of a log that shows some actions rarely, an agent that does not insist on them
    calm = [label for label in others if not explores_for_ever(summary, label)]
    if others:
        return f"agent:{next(iter([*calm, *others]))}"
    if not summary.uniform:
        return "random"
    return production or "greedy:ridge"


def explores_for_ever(summary: LogSummary, label: str) -> bool:
    """Whether an agent that no longer learns goes on exploring what it knows least: its confidence
    bonus does not shrink any more. Not where every action was as likely in the log.
    """
    if summary.uniform:
        return False
    if summary.experiment is None or label not in summary.experiment.labels:
        return False
    agent = summary.experiment.agents[summary.experiment.labels.index(label)]
    cls = agent_class(agent)
    scale = getattr(agent, cls.exploration_param) if cls.exploration_param else 1
    return cls.uncertainty_of(agent) == "bonus" and scale > 0


def target_agents(experiment: Experiment) -> dict[str, str]:
    """Return the agents that can be the target policy, as JSON by label: not those that know the
    truth.

    Nor random choice, which is a target without an agent. None where slates are shown, or where
    what is shown moves the visitor: the agents' visits would be others.
    """
    if recording.slots(experiment) > 1 or experiment.offers("visits"):
        return {}
    pairs = [*zip(experiment.labels, experiment.agents, strict=True)]
    titles = {label: agent_class(agent).title for label, agent in pairs}
    # a kind's title is no label that a file may hold
    return {
        label: agent.model_copy(
            update={"label": None if label == titles[label] else label.replace("/", "-")}
        ).model_dump_json(by_alias=True)
        for label, agent in pairs
        if agent.kind != "random" and "truth" not in agent_class(agent).needs
    }


def kept_agents(
    experiment: Experiment, runs: Sequence[StoredRun], named: Callable[[StoredRun], str]
) -> dict[str, str]:
    """Return the agents of stored runs that can be the target on a log of an experiment: text by
    title.

    Parameters
    ----------
    experiment : Experiment
        Of the log.
    runs : sequence of StoredRun
        The newest first; those with another simulator or seed are left out.
    named : callable
        Titles a run.
    """
    simulator, seed = experiment.simulator, experiment.seed
    fitting = [
        run for run in runs if run.experiment.simulator == simulator and run.experiment.seed == seed
    ]
    return {
        f"{label}, halfway in {named(run)} ({run.id[:DIGITS]})": f"{KEPT}{run.id}:{label}"
        for run in fitting[:MOST_RUNS]
        for label in target_agents(run.experiment)
    }


def suggested_logger(experiment: Experiment) -> str | None:
    """Return the agent whose log can answer most: with a floor, or choosing at random, or with
    exact propensities.

    None where the decisions of this run cannot be logged.
    """
    try:
        recording.check(experiment, range(rows_at_first(experiment)))
    except UserError:
        return None
    pairs = list(zip(experiment.labels, experiment.agents, strict=True))
    floored = [
        label for label, agent in pairs if any(guard.kind == "floor" for guard in agent.guards)
    ]
    exact = [label for label, agent in pairs if agent_class(agent).propensity == "exact"]
    uniform = [label for label, agent in pairs if label in exact and not agent_class(agent).learns]
    return next(iter([*floored, *uniform, *exact, *experiment.labels]))
