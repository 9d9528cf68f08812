"""A lower bound of the time that a run takes, to refuse runs that cannot end within the limit."""

from __future__ import annotations

import os

from bandits.base.errors import UserError
from bandits.experiments.experiment import Experiment
from bandits.models.neural import mlp

# seconds of one decision at least: a quarter of what the fastest agent was measured to take
DECISION = 50e-9
# floating-point operations per second at most, of one core or one device
OPERATIONS = {"cpu": 4e11, "cuda": 2e14}


def least_seconds(experiment: Experiment, workers: int, device: str = "cpu") -> float:
    """Compute the wall time that a run takes at least.

    One that is close to it takes many times as long.

    Parameters
    ----------
    experiment : Experiment
    workers : int
        Processes that its agents are spread over.
    device : {"cpu", "cuda"}
        Where networks are trained.
    """
    spec = experiment.simulator_class().describe(experiment.simulator)
    steps, rows = experiment.steps, experiment.replications
    agents = [
        rows
        * (
            steps * DECISION
            + experiment.agent_class(i).least_work(agent, spec, steps) / OPERATIONS[device]
        )
        for i, agent in enumerate(experiment.agents)
    ]
    return max(*agents, sum(agents) / max(workers, 1))


def require_end(experiment: Experiment, workers: int, limit: float) -> None:
    """Check that a run can end within a limit in seconds.

    Raises
    ------
    UserError
    """
    if least_seconds(experiment, workers) <= limit:
        return
    # this loads torch
    device = "cpu" if os.environ.get("BANDITS_DEVICE") == "cpu" else mlp.device()
    if device == "cpu" or least_seconds(experiment, workers, device) > limit:
        raise UserError(
            f"this run cannot end within {limit / 60:.0f} minutes, the limit for one run: use "
            "fewer steps or replications, smaller networks, fewer steps per training, or python "
            "-m bandits run"
        )
