"""Helpers that run agents on the environments of the contract and on others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from bandits.simulators import Simulator


class Shuffled(Linear):
    """The linear simulator with its candidates in another order; each arm keeps its identity."""

    title = "Shuffled"

    def round_at(self, step: int) -> Round:
        round = super().round_at(step)
        order = np.random.default_rng(step).permutation(self.params.n_arms)
        values, columns, D = round.contexts
        contexts = Contexts(np.ascontiguousarray(values[:, order]), columns, D)
        return round._replace(items=np.ascontiguousarray(round.items[:, order]), contexts=contexts)


NEURAL = [kind for kind, agent in AGENTS.items() if issubclass(agent, NeuralAgent)]


def make(
    agent: str | Sequence[Any],
    environment: type[Simulator] = Linear,
    *,
    seed: int = 7,
    rows: Sequence[int] = (0, 1, 2),
    options: dict[str, Any] | None = None,
    **params: Any,
) -> Lane:
    """Create a lane: ``agent`` is a kind (with its parameters in ``params``) or the parameters row
    by row.
    """
    if isinstance(agent, str):
        agent = [AGENTS[agent].Params(**params)] * len(rows)
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
