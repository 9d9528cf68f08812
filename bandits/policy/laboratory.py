"""What an agent of a run had learned at the run's end."""

from __future__ import annotations

from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from bandits.agents.params import AgentParams
from bandits.base.errors import UserError
from bandits.base.formatting import listed, short
from bandits.base.types import SimulatorSpec
from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import make_lane
from bandits.simulators import Simulator
from bandits.storage.run_store import Store

from .agents import refuse
from .items import Name
from .schema import Schema


class Learned(NamedTuple):
    """An agent of a run, one replication of it, after all steps."""

    params: AgentParams
    items: list[Name]
    schema: Schema
    state: dict[str, Any]
    spec: SimulatorSpec
    seed: int
    steps: int


def learned(run: Any, agent: str, *, replication: int = 0) -> Learned:
    """Return what an agent of a run had learned at the run's end.

    One replication is computed again, because a run keeps sums and not what its agents know. The
    contexts of the policy are the feature vectors of the run's simulator, one row per candidate or
    one for all; its items are named as there.

    Parameters
    ----------
    run : str, Experiment or Result
        The id of a stored run, or at least 6 digits of it.
    agent : str
        Label of the agent in the run.
    replication : int
        Which one to compute, from 0.

    Raises
    ------
    UserError
        There is no such run or agent, or the agent cannot act outside of a simulator.
    """
    experiment = run if isinstance(run, Experiment) else getattr(run, "experiment", None)
    if experiment is None:
        experiment = stored(run)
    if agent not in experiment.labels:
        raise UserError(
            f"the run has no agent '{short(agent)}'; it has {short(listed(experiment.labels), 200)}"
        )
    if not 0 <= replication < experiment.replications:
        raise UserError(
            f"replication is {replication}; the run has the replications 0 to "
            f"{experiment.replications - 1}"
        )
    index = list(experiment.labels).index(agent)
    params = experiment.agents[index]
    refuse(params, trained=True)
    lane = make_lane(experiment, index, [replication])
    spec, simulator = lane.simulator.spec, lane.simulator
    if spec.slate > 1:
        raise UserError(f"the run shows slates of {spec.slate} items; a policy chooses one item")
    with threadpool_limits(1):
        lane.agent.prepare()
        lane.advance(experiment.steps)
    if not lane.alive[0]:
        raise UserError(f"{agent} has diverged in replication {replication}")
    schema = Schema(spec.n_features, scale=False, constant=False)
    names = item_names(simulator)
    state = lane.agent.state_dict()
    return Learned(params, names, schema, state, spec, experiment.seed, lane.step)


def stored(run: str) -> Experiment:
    """Return the experiment of the stored run that a full or shortened id names."""
    text = str(run)
    if len(text) < 6 or set(text) - set("0123456789abcdef"):
        raise UserError(
            f"the run {short(text)} must be named by 6 to 64 of the digits 0-9 and a-f of its id"
        )
    found = [each for each in Store().runs() if each.id.startswith(text)]
    if len(found) != 1:
        how = "no stored run begins" if not found else f"{len(found)} stored runs begin"
        raise UserError(f"{how} with '{short(text)}'; python -m bandits runs lists them")
    experiment: Experiment = found[0].experiment
    return experiment


def item_names(simulator: Simulator) -> list[Name]:
    """Return the names of a simulator's items: with their index, where some are equal."""
    names = [simulator.name(item, 0) for item in range(simulator.spec.n_items)]
    if len(set(names)) == len(names):
        return list(names)
    return [f"{name} {i}" for i, name in enumerate(names)]
