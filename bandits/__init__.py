"""Bandit Playground: a laboratory for contextual bandits.

from bandits import Experiment, run
result = run(Experiment(agents=[{"kind": "linucb", "alpha": 1.5}, {"kind": "random"}], steps=5_000))
print(result.ctr["LinUCB"].mid[-1])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bandits.experiments.experiment import Experiment, UserError, read
from bandits.experiments.history import History, Trace
from bandits.results.metrics import Band, Comparison, Estimate, compare
from bandits.results.result import Result

__all__ = [
    "Band", "Comparison", "Estimate", "Experiment", "History", "Refused", "Result", "Trace", "UserError",
    "compare", "read", "run", "simulate",
]  # fmt: skip
Refused = UserError  # the name of earlier versions
__version__ = "0.2.0"


def run(experiment: Experiment, *, progress: Callable[[int, int], Any] | None = None) -> Result:
    """Run an experiment here and now.

    Parameters
    ----------
    experiment : Experiment
    progress : callable, optional
        Told (step, steps) every few hundred steps.

    Returns
    -------
    Result
        The same numbers as the app's for the same experiment.
    """
    from bandits.experiments.race import Race, run_to_end

    race = Race(experiment)
    run_to_end(race, progress)
    return Result(experiment, race.histories)


def simulate(experiment: Experiment) -> Iterator[tuple[str, Trace]]:
    """Run an experiment and hand over every step as it happens: pairs of label and `Trace`."""
    from bandits.experiments.race import simulate as steps

    return steps(experiment)
