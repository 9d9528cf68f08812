"""State what the numbers of a run cover and what they do not."""

from __future__ import annotations

from bandits.base.errors import UserError
from bandits.base.formatting import count, listed, number
from bandits.experiments.experiment import Experiment
from bandits.results import metrics
from bandits.results.run import Run

# clicks in all replications; with fewer, an interval of a mean covers less than stated
FEW_REWARDS = 20
# replications; with fewer, intervals rely on the normal distribution
FEW = 5
_PARTS = (
    "Intervals and bands are 95 % confidence intervals (Student t) over replications, each of "
    "which replays a part of the log of its own. They cover other users under the conditions of "
    "the log."
)


def caveats(result: Run) -> list[str]:
    """State what the numbers of a result cover and what they do not."""
    e = result.experiment
    simulator, runs = e.simulator_class(), e.replications
    if runs > 1:
        intervals = (
            "Intervals and bands are 95 % confidence intervals (Student t) of the mean over "
            f"{runs} replications. {scope(e)}"
        )
    else:
        intervals = (
            "There is one replication, so there are no intervals, and differences may be due to "
            "chance."
        )
    if e.offers("replay"):
        return [
            *replay_notes(result),
            *table_notes(result),
            *agent_notes(result),
            simulator.attribution(e.simulator),
            *([intervals] if runs == 1 else [_PARTS]),
        ]
    notes = [
        f"No real users were served: the rewards come from a simulator ({simulator.title}).",
        *table_notes(result),
        intervals,
    ]
    if 1 < runs < FEW:
        notes.append(
            f"{runs} replications are few: the intervals are wide and rely on nearly normal means."
        )
    if len(e.agents) > 1:
        many = " and corrected for all pairs of agents (Bonferroni)" * (len(e.agents) > 2)
        notes.append(
            "In each replication all agents receive the same visitors and random numbers (common "
            f"random numbers). Differences are paired by replication{many}."
        )
        notes.append(
            "The best agent was chosen by the same data, so its mean is slightly optimistic. "
            "Agents ran with the settings listed below; other settings may change their order."
        )
    notes += agent_notes(result)
    notes.append("Regret uses the true expected rewards, which are known in a simulation only.")
    return notes


def scope(experiment: Experiment) -> str:
    """State what the intervals of a simulated run cover."""
    shared = not experiment.simulator_class().layout_per_row(experiment.simulator)
    trained = [
        label
        for i, label in enumerate(experiment.labels)
        # not those that are trained further: each replication begins with a network of its own
        if "log" in experiment.agent_class(i).needs
    ]
    once = (
        f", nor another training of {listed(trained)}, which all replications share"
        if trained and shared
        else ""
    )
    return (
        "Confidence intervals cover new visitor sequences in this same environment, not other "
        f"environments{once}."
    )


def replay_notes(result: Run) -> list[str]:
    """State how many events count where a log was replayed, and what is not known.

    Nothing elsewhere.
    """
    if not result.experiment.offers("replay") or not result.histories:
        return []
    counted = {
        label: metrics.decisions(h)[-1][h.alive].sum() for label, h in result.histories.items()
    }
    e, reached = result.experiment, max(h.step for h in result.histories.values())
    length = e.simulator_class().events(e.simulator) or reached
    events = min(reached, length) * e.replications
    ended = (
        f" The log ends at step {count(length)}: later steps count nothing."
        if reached > length
        else ""
    )
    low, high = (count(float(value)) for value in (min(counted.values()), max(counted.values())))
    of = f"{low} to {high}" if low != high else low
    return [
        f"Replay of a log: of {count(events)} events, {of} count for an agent: those in which it "
        "chose what was logged. Each agent counts other events, so nothing is paired; true "
        f"rewards are not known, so there is no regret.{ended}"
    ]


def table_notes(result: Run) -> list[str]:
    """State what makes the features of a table hard to learn from; nothing elsewhere."""
    e = result.experiment
    try:
        return e.simulator_class().notes(e.simulator)
    except UserError:
        # the table is not stored here any more
        return []


def beside_table(experiment: Experiment) -> list[str]:
    """State briefly what is reached on a user's table without exploration, and how often a run
    goes through its rows; nothing elsewhere.
    """
    simulator, params, steps = experiment.simulator_class(), experiment.simulator, experiment.steps
    try:
        yardstick, rows = simulator.yardstick(params), simulator.table_rows(params)
    except UserError:
        # the table is not stored here any more
        return []
    found = [f"For comparison: {yardstick}"] if yardstick else []
    if rows and steps >= 2 * rows:
        found.append(f"The run goes through the {count(rows)} rows {number(steps / rows)} times")
    return found


def stopped_notes(result: Run) -> list[str]:
    """State what the intervals of a run mean that is looked at before its end."""
    if result.experiment.replications < 2:
        return []
    return [
        "The run has not reached its end. Intervals and verdicts hold for a length that was "
        "chosen beforehand. Stopping when a difference looks large finds false ones: among equal "
        "agents, 8 replications that are looked at 100 times show a significant difference at "
        "one of the looks in 4 to 5 of 10 runs."
    ]


def divergence_notes(result: Run) -> list[str]:
    """List the agents with replications that diverged, and the step at which the first one
    stopped.
    """
    notes = []
    for label, history in result.histories.items():
        stopped = metrics.stopped(history)
        if len(stopped):
            first = count(float(stopped.min()))
            if history.alive.any():
                some = (
                    f"{len(stopped)} of {history.rows} replications of {label} diverged and stopped"
                )
                notes.append(
                    f"{some}, the first near step {first} (×); curves and totals use the remaining "
                    "replications."
                )
            else:
                notes.append(
                    f"All {history.rows} replications of {label} diverged, the first near step "
                    f"{first}; it has no curves and no totals."
                )
    return notes


def rare_reward_notes(result: Run) -> list[str]:
    """Warn of agents with so few clicks that their Student t intervals cover less than stated.

    Applies to rewards that are counts; coverage by number of clicks is in
    docs/decisions/intervals.md."""
    noun = result.experiment.simulator_class().reward_noun
    rare = []
    for label, history in result.histories.items():
        rewards = metrics.total(history, "clicks")[history.alive]
        counted = bool((rewards % 1 == 0).all() and (rewards >= 0).all())
        if len(rewards) > 1 and counted and rewards.sum() < FEW_REWARDS:
            rare.append(f"{label} ({count(float(rewards.sum()))})")
    if not rare:
        return []
    more = (
        "a larger log is needed"
        if _whole_log(result.experiment)
        else "use more steps or replications"
    )
    return [
        f"Fewer than {FEW_REWARDS} {noun} in all replications together: {', '.join(rare)}. The 95 "
        f"% confidence intervals of these means may cover as little as 60 %; {more}."
    ]


def _whole_log(experiment: Experiment) -> bool:
    """Tell whether an experiment replays all events of a log."""
    simulator = experiment.simulator_class()
    length = simulator.events(experiment.simulator) if experiment.offers("replay") else None
    # all parts are taken
    more = simulator.obstacle(experiment.simulator, experiment.replications + 1)
    return length is not None and experiment.steps >= length and bool(more)


def agent_notes(result: Run) -> list[str]:
    """List the methods that agents with several implementations chose."""
    return [
        f"{label}: {history.note}." for label, history in result.histories.items() if history.note
    ]
