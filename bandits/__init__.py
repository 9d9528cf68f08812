"""Bandit Playground: simulate and compare contextual bandits.

>>> from bandits import Experiment, run
>>> agents = [{"kind": "linucb", "alpha": 1.5}, {"kind": "random"}]
>>> result = run(Experiment(agents=agents, steps=1000, replications=4))
>>> result.compare("LinUCB", "Random").difference.mean > 0
True

Every public name is imported at its first use, so that ``import bandits`` is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bandits.results.decision import why as why

    from .base.errors import UserError as UserError
    from .experiments.experiment import Experiment as Experiment
    from .experiments.experiment import read as read
    from .experiments.history import History as History
    from .experiments.kinds import Kinds
    from .experiments.lane import Trace as Trace
    from .monitoring import alarms as alarms
    from .policy import Policy as Policy
    from .results.change.recovery import recovery as recovery
    from .results.comparison.paired_tests import Comparison as Comparison
    from .results.comparison.paired_tests import compare as compare
    from .results.export import report as report
    from .results.metrics import Band as Band
    from .results.metrics import Estimate as Estimate
    from .results.preview import Preview as Preview
    from .results.result import Result as Result
    from .runtime.cores import lost as lost
    from .sweeps.at_best import at_best as at_best

__version__ = "1.0.0"

_MODULES = {
    "base.errors": ["UserError"],
    "experiments.experiment": ["Experiment", "read"],
    "experiments.history": ["History"],
    "experiments.lane": ["Trace"],
    "monitoring": ["alarms"],
    "policy": ["Policy"],
    "results.change.recovery": ["recovery"],
    "results.comparison.paired_tests": ["Comparison", "compare"],
    "results.decision": ["why"],
    "results.export": ["report"],
    "results.preview": ["Preview"],
    "results.metrics": ["Band", "Estimate"],
    "results.result": ["Result"],
    "runtime.cores": ["lost"],
    "sweeps.at_best": ["at_best"],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted([*_HOME, "list_agents", "list_simulators", "register", "run", "simulate"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bandits' has no attribute '{name}'")
    return getattr(import_module(f"bandits.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def run(
    experiment: Experiment,
    *,
    progress: Callable[[int, int], Any] | bool | None = None,
    workers: int | None = None,
    unchanged: bool = False,
) -> Result:
    """Run an experiment and return its result.

    Parameters
    ----------
    experiment : Experiment
    progress : callable or bool, optional
        A callable is called as ``progress(step, steps)`` every few hundred steps. By default a
        progress bar appears in a terminal or a notebook, and nothing elsewhere; False turns it off,
        True always shows it.
    workers : int, optional
        Processes that a long run may use, by default one per processor; the numbers are the same.
        0: this process alone.
    unchanged : bool
        Run the experiment without its changes too; the summary then states the clicks lost to them.

    Returns
    -------
    Result
        The same numbers as in the app for the same experiment.

    Examples
    --------
    >>> from bandits import Experiment, run
    >>> result = run(Experiment(agents=[{"kind": "oracle"}, {"kind": "random"}], steps=500,
    ...     replications=2))
    >>> sorted(result.ctr)
    ['Oracle', 'Random']
    """
    from bandits.experiments.progress import reporting
    from bandits.results.result import Result
    from bandits.runtime.cores import run_to_end, run_unchanged

    from .results.change.lost_clicks import without_changes

    if unchanged:
        # fails before the run, not after it
        without_changes(experiment)
    with reporting(progress, experiment.steps) as report:
        result = Result(experiment, run_to_end(experiment, workers, report))
    if not unchanged:
        return result
    with reporting(progress, experiment.steps) as report:
        return run_unchanged(result, workers, report)


def simulate(experiment: Experiment) -> Iterator[tuple[str, Trace]]:
    """Run an experiment and yield its steps as they happen: pairs of agent label and `Trace`.

    Examples
    --------
    >>> from bandits import Experiment, simulate
    >>> experiment = Experiment(agents=[{"kind": "random"}], steps=100, replications=2)
    >>> sum(len(trace.rewards) for label, trace in simulate(experiment))
    100
    """
    from .experiments.lockstep import simulate as steps

    return steps(experiment)


def register(file: str | Path) -> list[str]:
    """Register the agents and simulators that a Python file defines, and return their kinds.

    They are then known to experiments, sweeps and worker processes of this session. After an edit
    of the file, register it again. ``python -m bandits check FILE`` runs the contract on it.

    Parameters
    ----------
    file : str or path

    Raises
    ------
    UserError
        There is no such file, it cannot be imported, or a class or kind is refused.
    """
    from .experiments import plugins
    from .experiments.experiment import Experiment
    from .sweeps.sweep import Sweep

    kinds = plugins.add(Path(file))
    Experiment.accept_new_kinds()
    # it holds the validator of an experiment as it was
    Sweep.model_rebuild(force=True)
    return kinds


def list_agents() -> Kinds:
    """List the registered agents: kind, title, family and one-line summary.

    Examples
    --------
    >>> import bandits
    >>> [agent.kind for agent in bandits.list_agents() if agent.family == "linear"]
    ['linucb', 'lints', 'epsilon_greedy', 'squarecb', 'bag']
    """
    from bandits.experiments.kinds import agent_kinds

    return agent_kinds()


def list_simulators() -> Kinds:
    """List the registered simulators: kind, title and one-line summary.

    Examples
    --------
    >>> import bandits
    >>> bandits.list_simulators()[0].kind
    'petshop'
    """
    from bandits.experiments.kinds import simulator_kinds

    return simulator_kinds()
