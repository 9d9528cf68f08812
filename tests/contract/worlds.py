"""Helpers that run agents on the environments of the contract and on others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents import REGISTRY as AGENTS
from bandits.agents.neural.base import NeuralAgent
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Round
from bandits.contract.environments import Cascade as Cascade
from bandits.contract.environments import Changing as Changing
from bandits.contract.environments import Linear as Linear
from bandits.experiments.lane import COLUMNS, Lane, Trace, build_lane
from bandits.experiments.lane import join as join
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators import Simulator
from bandits.simulators.sessions import Sessions


class Shuffled(Linear):
    """The linear simulator with its candidates in another order; each arm keeps its identity."""

    title = "Shuffled"

    def round_at(self, step: int) -> Round:
        round = super().round_at(step)
        order = np.random.default_rng(step).permutation(self.params.n_arms)
        values, columns, D = round.contexts
        contexts = Contexts(np.ascontiguousarray(values[:, order]), columns, D)
        return round._replace(items=np.ascontiguousarray(round.items[:, order]), contexts=contexts)


class Visits(Sessions):
    """Short visits whose state agents observe."""

    class Params(Sessions.Params):
        kind: Literal["test_visits"] = "test_visits"  # type: ignore[assignment]
        n_products: int = 10
        n_users: int = 40
        observed: Literal["history", "mood", "nothing"] = "mood"
        limit: int | None = 8

    title = "Visits"


NEURAL = [kind for kind, agent in AGENTS.items() if issubclass(agent, NeuralAgent)]


def fits(params: Any, environment: type[Simulator]) -> bool:
    """Return whether an environment has what an agent requires with these parameters."""
    model: Any = environment.Params
    return AGENTS[params.kind].requires(params) <= environment.describe(model()).capabilities


def home(params: Any, *preferred: type[Simulator]) -> type[Simulator]:
    """Return the first environment that has what an agent requires: of the preferred ones, then
    pet shop and visits.
    """
    return next(e for e in (*preferred, SIMULATORS["petshop"], Visits) if fits(params, e))


def make(
    agent: Any,
    environment: type[Simulator] = Linear,
    *,
    seed: int = 7,
    rows: Sequence[int] = (0, 1, 2),
    options: dict[str, Any] | None = None,
    **params: Any,
) -> Lane:
    """Create a lane: ``agent`` is a kind (with its parameters in ``params``), the parameters of all
    rows, or those row by row.
    """
    if isinstance(agent, str):
        agent = AGENTS[agent].Params(**params)
    if not isinstance(agent, Sequence):
        agent = [agent] * len(rows)
    simulator = environment(environment.Params(**(options or {})), Streams(seed, rows))
    return build_lane(AGENTS[agent[0].kind], agent, simulator)


def same(a: Trace, b: Trace) -> bool:
    """Return whether two traces are bit-identical, NaN included."""
    names = ("start", *COLUMNS, "alive")
    pairs = ((np.asarray(getattr(a, name)), getattr(b, name)) for name in names)
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in pairs)


def take(trace: Trace, rows: Sequence[int]) -> Trace:
    """Return some rows of a trace."""
    return Trace(
        trace.start, *(getattr(trace, name)[:, rows] for name in COLUMNS), trace.alive[list(rows)]
    )
