"""Run an experiment without its changes, and state what they cost an agent."""

from __future__ import annotations

from bandits.results.change import lost_clicks
from bandits.results.change.lost_clicks import without_changes
from bandits.results.metrics import Estimate
from bandits.results.result import Result

from .cores import Keep, Progress, run_to_end


def run_unchanged(
    result: Result, workers: int | None = None, progress: Progress | None = None, keep: Keep | None = None
) -> Result:
    """Return a result together with the run of the same experiment without changes (``unchanged``).

    See `bandits.runtime.cores.run_to_end` for the parameters.

    Raises
    ------
    UserError
        Nothing changes in the experiment.
    """
    experiment = without_changes(result.experiment)
    histories = run_to_end(experiment, workers, progress, keep)
    return Result(result.experiment, result.histories, unchanged=Result(experiment, histories))


def lost(result: Result, label: str, *, unchanged: Result | None = None, workers: int | None = None) -> Estimate:
    """Estimate the clicks that an agent lost to the changes of its run.

    These are the clicks of the same run without the changes, minus those of the run, paired by replication. Both have
    the same seed: the same users and random numbers. Part of the loss is the optimal choice's own, if the changes made
    it worse: `bandits.results.change.lost_clicks.lost_between` with ``best_value``; the rest is the agent's. The loss
    is negative where the changes helped.

    Parameters
    ----------
    result : Result
    label : str
        Of the agent.
    unchanged : Result, optional
        The result without the changes, if there is one already, with this agent. Otherwise this agent alone is run.
    workers : int, optional
        Processes of that run; see `bandits.run`.

    Returns
    -------
    Estimate
        Mean and 95 % interval (Student t of paired differences); NaN ends with one replication.

    Raises
    ------
    UserError
        Nothing changes in the experiment, there is no such agent, or ``unchanged`` is another experiment.

    Examples
    --------
    >>> from bandits import lost, read, run
    >>> shock = {"kind": "petshop", "changes": [{"kind": "shock", "at": 500}]}
    >>> result = run(read({"simulator": shock, "agents": [{"kind": "linucb"}], "steps": 1000, "replications": 4}))
    >>> lost(result, "LinUCB").mean > 0
    True
    """
    if unchanged is None:
        unchanged = result.unchanged
    if unchanged is not None:
        return lost_clicks.lost(result, unchanged, label)
    experiment = without_changes(result.experiment, label)
    (history,) = run_to_end(experiment, workers).values()
    return lost_clicks.lost_between(result.histories[label], history)
