"""The policy of a stored run as a target: what an agent had learned by its own choices when it was
frozen.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base.errors import UserError
from bandits.base.formatting import count, short
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import CHUNK, make_lane
from bandits.storage.run_store import Store

from .log import DecisionLog
from .recorded_columns import by_item
from .simulated import check_cells, check_single, experiment_of, replications_of, rounds_of, split
from .targets import Matrix

KEPT = "run:"
# of a run's id in names
DIGITS = 8


def stored_policy(log: DecisionLog, spec: str) -> tuple[DecisionLog, Matrix]:
    """Return the part of a log that a stored run's agent had not seen when it was frozen, and its
    policy there.

    Parameters
    ----------
    log : DecisionLog
        Of a simulated run.
    spec : str
        ``run:ID:LABEL``; of the id, the first digits suffice.

    Raises
    ------
    UserError
        There is no such run or agent, or see `frozen_policy`.
    """
    # other logs are refused first
    experiment_of(log)
    run, _, label = spec.removeprefix(KEPT).partition(":")
    found = [kept.experiment for kept in Store().runs() if run and kept.id.startswith(run)]
    if len(found) != 1:
        known = "no stored run has" if not found else f"{len(found)} stored runs have"
        raise UserError(f"target run:{short(run)}: {known} this id")
    return frozen_policy(log, found[0], label)


def frozen_policy(
    log: DecisionLog, experiment: Experiment, label: str
) -> tuple[DecisionLog, Matrix]:
    """Freeze an agent of a run after the first half of the log's steps, or after its last one if it
    is shorter.

    The run has the users of the log, so that only later decisions of the log are new to the agent.
    They are returned with its probabilities; decisions of replications that the run lacks are left
    out.

    Raises
    ------
    UserError
        The log is not one of a simulated run or is too large; the run has no such agent, or another
        simulator or seed: other users and items.
    """
    logged = experiment_of(log)
    check_single(logged)
    if label not in experiment.labels:
        raise UserError(
            f"target: the run has no agent '{short(label)}'; its agents are "
            f"{', '.join(experiment.labels)}"
        )
    if experiment.simulator != logged.simulator or experiment.seed != logged.seed:
        raise UserError(
            "target: the stored run must have the simulator and the seed of the log; otherwise "
            "its users and items are others"
        )
    log = log.select(np.asarray(log.rows) < experiment.replications)
    first, rest = split(log, experiment.steps)
    check_cells(rest)
    steps = int(np.asarray(first.steps).max()) + 1
    lane = make_lane(experiment, experiment.labels.index(label), rows=replications_of(rest))
    found: FloatArray = np.empty((len(rest), log.n_actions))
    # as in a run: the same bits
    with threadpool_limits(1):
        lane.agent.prepare()
        while lane.step < steps:
            lane.advance(min(CHUNK, steps - lane.step))
        for round, places, index in rounds_of(rest, lane.simulator):
            found[index] = by_item(round, lane.agent.probabilities(round), log.n_actions)[places]
    return rest, Matrix(
        found, f"{label} after step {count(steps)} of the run {experiment.hash[:DIGITS]}"
    )
