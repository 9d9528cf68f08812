"""What the visitors of a run would have clicked: merit of every item, and the share that launched items deserve."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.experiment import Experiment, read

ROUNDS = 2000  # of the run, evenly spaced
LEAST = 100  # fewer say too little
CELLS = 50_000_000  # expected rewards that are looked at


class Cohort(NamedTuple):
    """The items of one launch.

    Attributes
    ----------
    step : int
        At which they were launched.
    items : bool (R, K)
    deserved : float64 (n,)
        At each of `Demand.steps`: the probability that an optimal choice shows one of them, averaged over the visitors
        between two changes of the simulator; of equally good items, each counts in equal part. NaN before the launch.
    """

    step: int
    items: BoolArray
    deserved: FloatArray


class Demand(NamedTuple):
    """Expected rewards over the visitors of a run.

    Attributes
    ----------
    steps : int64 (n,)
        Those looked at.
    merit : float64 (R, K)
        Mean expected reward of each item, 0 while it cannot be shown.
    cohorts : list of Cohort
    """

    steps: IntArray
    merit: FloatArray
    cohorts: list[Cohort]


def demand(experiment: Experiment) -> Demand | None:
    """Measure it; None for simulators whose items have no identity, that are too large, or whose data are gone."""
    try:
        spec = experiment.simulator_class().describe(experiment.simulator)
    except (UserError, ValueError):
        return None
    n = min(ROUNDS, experiment.steps, CELLS // (experiment.replications * spec.n_items))
    if (
        not {"ids", "truth"} <= spec.capabilities
        or spec.n_candidates != spec.n_items
        or n < min(LEAST, experiment.steps)
    ):
        return None
    bare = {**experiment.model_dump(mode="json", by_alias=True), "agents": [{"kind": "random"}]}
    return _measure(json.dumps(bare, sort_keys=True), n)


@lru_cache(maxsize=4)
def _measure(experiment: str, n: int) -> Demand:
    e = read(experiment)
    simulator = e.simulator_class()(e.simulator, Streams(e.seed, range(e.replications)))
    steps = np.unique(np.linspace(0, e.steps - 1, n).astype(np.int64))
    changes = list(e.simulator.all_changes.values())
    members: dict[int, BoolArray] = {}
    for i, items in simulator.launched().items():
        members[i] = np.zeros((e.replications, simulator.spec.n_items), np.bool_)
        for r, own in enumerate(items):
            members[i][r, own] = True
    begins = {i: changes[i].begins for i in members}
    merit = np.zeros((e.replications, simulator.spec.n_items))
    deserved = {i: np.full(len(steps), np.nan) for i in members}
    for at, step in enumerate(steps.tolist()):
        round = simulator.round_at(step)
        p = np.where(round.available, simulator.probabilities(round), 0.0)
        merit += p
        best = (p == p.max(axis=1, keepdims=True)) & round.available
        for i, new in members.items():
            if step >= begins[i]:
                deserved[i][at] = float(((best & new).sum(axis=1) / best.sum(axis=1)).mean())
    merit /= len(steps)
    if not simulator.layout_per_row(e.simulator):
        merit[:] = merit.mean(axis=0)
    moments = sorted({m for c in changes for m in (c.begins, c.ends) if m is not None})
    pieces = np.searchsorted(moments, steps, side="right")
    for values in deserved.values():
        for piece in np.unique(pieces):
            values[pieces == piece] = values[pieces == piece].mean()
    return Demand(steps, merit, [Cohort(begins[i], members[i], deserved[i]) for i in sorted(members)])
