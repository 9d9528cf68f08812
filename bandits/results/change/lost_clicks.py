"""Clicks that an agent loses to the changes of a simulator: the same run without them, minus the
run.

The run without changes has the same seed, so each replication has the same users and random
numbers, and the difference is paired by replication."""

from __future__ import annotations

from bandits.base.errors import UserError
from bandits.base.formatting import count
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import words
from bandits.results.comparison import paired_tests
from bandits.results.metrics import Estimate, estimate
from bandits.results.run import Run


def without_changes(experiment: Experiment, label: str | None = None) -> Experiment:
    """Return the experiment without the changes of its simulator, with all agents or one.

    Raises
    ------
    UserError
        Nothing changes in the experiment, or it has no such agent.
    """
    if not experiment.simulator.all_changes:
        raise UserError("nothing changes during this experiment: simulator.changes is empty")
    agents = experiment.agents if label is None else (experiment.agents[_index(experiment, label)],)
    return experiment.model_copy(
        update={"simulator": experiment.simulator.without_changes(), "agents": agents}
    )


def lost_between(changed: History, unchanged: History, name: str = "clicks") -> Estimate:
    """Estimate what changes cost: the sum of an unchanged run minus that of the changed run, up to
    their last step.

    Parameters
    ----------
    changed, unchanged : History
        One agent's, with and without the changes, on the same random numbers.
    name : str
        A sum of `History`. ``clicks``: what the agent lost. ``best_value``: what the optimal choice
        lost, a part that no agent could have kept; negative where the changes improved the best
        choice.

    Returns
    -------
    Estimate
        Mean over the replications that finished in both runs, with a 95 % interval (Student t of
        paired differences).
    """
    return estimate(paired_tests.gaps(unchanged, changed, name))


def lost(result: Run, unchanged: Run, label: str) -> Estimate:
    """Estimate the clicks that one agent of a result lost to the changes.

    Raises as `lost_by_row`.
    """
    return estimate(lost_by_row(result, unchanged, label))


def lost_by_row(result: Run, unchanged: Run, label: str) -> FloatArray:
    """Return the clicks that one agent lost to the changes in each replication, float64 (R,).

    NaN where it diverged.

    Raises
    ------
    UserError
        ``unchanged`` is not the result of the same experiment without changes.
    """
    wanted = without_changes(result.experiment)
    given = unchanged.experiment
    same = given.model_copy(update={"agents": wanted.agents}) == wanted
    if (
        not same
        or label not in unchanged.histories
        or given.agents[_index(given, label)] != _agent(wanted, label)
    ):
        raise UserError(
            f"unchanged is not the run of {label} without changes: it has other agents, sizes, "
            "simulator or seed"
        )
    return paired_tests.gaps(unchanged.histories[label], result.histories[label], "clicks")


def sentences(result: Run, unchanged: Run | None = None) -> list[str]:
    """State what each agent lost to the changes, or earned by them, and whether the best choice
    improved.

    Parameters
    ----------
    result : Run
    unchanged : Run, optional
        The same run without changes; by default `Result.unchanged`. Nothing is stated where it is
        not at hand.
    """
    unchanged = unchanged or result.unchanged
    if unchanged is None:
        return []
    noun, parts, gained = result.experiment.simulator_class().reward_noun, [], False
    for label, history in result.histories.items():
        if history.alive.any():
            found = lost(result, unchanged, label)
            gained |= found.mean < 0
            parts.append(f"{label} {_spoken(found, noun)}")
    if not parts:
        return []
    rows = f"{result.experiment.replications} paired replications"
    text = (
        f"{noun.capitalize()} lost to the changes, against the same run without them ({rows}): "
        f"{'; '.join(parts)}."
    )
    best = _optimum_gained(result, unchanged) if gained else 0.0
    if best < 1:
        return [text]
    more = f"The best choice earns {count(best)} {noun} more with the changes than without them"
    return [text, f"{more}: agents that find it can earn more too."]


def _spoken(found: Estimate, noun: str) -> str:
    """State a loss; a negative one as what was earned more."""
    more = found.mean < 0 and count(found.mean) != "0"
    if not more:
        return words.stated(found, "count")
    gained = -found
    return (
        f"earned {words.mean(gained, 'count')} {noun} more than without the "
        f"changes{words.bracket(gained, 'count')}"
    )


def _optimum_gained(result: Run, unchanged: Run) -> float:
    """Compute what the best choice earns more with the changes: the users and the optimum are those
    of all agents.
    """
    label = next(label for label, history in result.histories.items() if history.alive.any())
    return -lost_between(result.histories[label], unchanged.histories[label], "best_value").mean


def _index(experiment: Experiment, label: str) -> int:
    if label not in experiment.labels:
        raise UserError(
            f"there is no agent '{label}'; the agents are {', '.join(experiment.labels)}"
        )
    return experiment.labels.index(label)


def _agent(experiment: Experiment, label: str) -> object:
    return experiment.agents[_index(experiment, label)]
