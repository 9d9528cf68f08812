"""What the visitors of a run would have clicked: merit of every item, and the share that launched
items deserve.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.experiment import Experiment, read
from bandits.simulators.changes import Change
from bandits.simulators.launches import Launch

# of the run, evenly spaced
ROUNDS = 2000
# fewer say too little
LEAST = 100
# expected rewards that are looked at
CELLS = 50_000_000


class Cohort(NamedTuple):
    """The items of one launch.

    Attributes
    ----------
    step : int
        At which they were launched.
    items : bool (R, K)
    deserved : float64 (n,)
        At each of `Demand.steps`: the probability that an optimal choice shows one of them; of
        equally good items, each counts in equal part. NaN before the launch. Averaged over the
        visitors between two changes of the simulator, but where visitors have different candidates:
        there `launches.fair_share` averages over steps.
    slate : int
        Items that a decision shows, S: shares are those of its slots.
    """

    step: int
    items: BoolArray
    deserved: FloatArray
    slate: int = 1


class Demand(NamedTuple):
    """Expected rewards over the visitors of a run.

    Attributes
    ----------
    steps : int64 (n,)
        Those looked at.
    merit : float64 (R, K) or None
        Mean expected reward of each item, 0 while it cannot be shown; None where visitors have
        different candidates.
    cohorts : list of Cohort
    best : float64 (G, C) or None
        Share of each category in the optimal choices for each user segment; None where the
        simulator names no segments, or no categories.
    """

    steps: IntArray
    merit: FloatArray | None
    cohorts: list[Cohort]
    best: FloatArray | None = None


def demand(experiment: Experiment) -> Demand | None:
    """Measure it; None for simulators whose items have no identity, that are too large, or whose
    data are gone.

    Where visitors have different candidates, launches alone are measured: None without any.
    """
    if (n := measurable(experiment)) is None:
        return None
    return _measure(without_agents(experiment), n)


def without_agents(experiment: Experiment) -> str:
    """Write an experiment with a random agent alone: what its simulator and visitors depend on."""
    bare = {**experiment.model_dump(mode="json", by_alias=True), "agents": [{"kind": "random"}]}
    return json.dumps(bare, sort_keys=True)


def measurable(experiment: Experiment) -> int | None:
    """Return how many steps `demand` looks at; None where it measures nothing."""
    try:
        spec = experiment.simulator_class().describe(experiment.simulator)
    except (UserError, ValueError):
        return None
    everything = spec.n_candidates == spec.n_items
    n = min(ROUNDS, experiment.steps, CELLS // (experiment.replications * spec.n_items))
    # the rounds of a visit depend on what was shown before
    visits = "visits" in spec.capabilities
    if visits or not {"ids", "truth"} <= spec.capabilities or n < min(LEAST, experiment.steps):
        return None
    launches = any(map(_is_launch, experiment.simulator.all_changes.values()))
    if (launches and spec.bucket_size != 1) or not (everything or launches):
        # items of a bucket are counted together
        return None
    return n


def _is_launch(change: Change) -> bool:
    return isinstance(change, Launch)


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
    everything = simulator.spec.n_candidates == simulator.spec.n_items
    merit = np.zeros((e.replications, simulator.spec.n_items if everything else 0))
    rows = np.arange(e.replications)[:, None]
    deserved = {i: np.full(len(steps), np.nan) for i in members}
    segments, categories = simulator.segment_names(), simulator.category_names()
    best = np.zeros((len(segments), len(categories)))
    for at, step in enumerate(steps.tolist()):
        round = simulator.round_at(step)
        p = np.where(round.available, simulator.probabilities(round), 0.0)
        if everything:
            merit[rows, round.items] += p
        chosen = _optimal(p, round.available, simulator.spec.slate)
        if best.size:
            own = simulator.categories()[rows, round.items]
            np.add.at(best, (round.segments[:, None], own), chosen)
        for i, new in members.items():
            if step >= begins[i]:
                among = np.where(new[rows, round.items], chosen, 0.0)
                deserved[i][at] = float(among.sum(axis=1).mean() / simulator.spec.slate)
    cohorts = [
        Cohort(begins[i], members[i], deserved[i], simulator.spec.slate) for i in sorted(members)
    ]
    moments = sorted({m for c in changes for m in (c.begins, c.ends) if m is not None})
    pieces = np.searchsorted(moments, steps, side="right")
    if not everything:
        for values in deserved.values():
            for piece in np.unique(pieces):
                values[pieces == piece] = _smoothed(values[pieces == piece])
        return Demand(steps, None, cohorts)
    merit /= len(steps)
    if not simulator.layout_per_row(e.simulator):
        merit[:] = merit.mean(axis=0)
    for values in deserved.values():
        for piece in np.unique(pieces):
            values[pieces == piece] = values[pieces == piece].mean()
    return Demand(steps, merit, cohorts, by_rows(best) if best.size else None)


def by_rows(amounts: FloatArray) -> FloatArray:
    """Divide each row of ``amounts (G, C)`` by its sum; NaN in rows of zeros."""
    total = amounts.sum(axis=1, keepdims=True)
    none = np.full(amounts.shape, np.nan)
    return np.asarray(np.divide(amounts, total, out=none, where=total > 0), np.float64)


def _optimal(p: FloatArray, available: BoolArray, slate: int) -> FloatArray:
    """Return how much of a slot each candidate gets in optimal slates, float64 (R, K).

    Of candidates that are equally good, each counts in equal part.

    Parameters
    ----------
    p : float64 (R, K)
        Expected rewards, 0 where a candidate cannot be shown.
    available : bool (R, K)
    slate : int
        Slots, S.
    """
    least = -np.partition(-p, slate - 1, axis=1)[:, slate - 1 : slate]
    better, equal = (p > least) & available, (p == least) & available
    left = slate - better.sum(axis=1, keepdims=True)
    return np.asarray(better + equal * (left / equal.sum(axis=1, keepdims=True)))


def _smoothed(values: FloatArray) -> FloatArray:
    """Average each value with a fifth of all, around it: the candidates of a few visitors say
    little of a share.

    The mean of all stays.
    """
    half, ends = len(values) // 10, np.arange(len(values))
    low, high = np.maximum(ends - half, 0), np.minimum(ends + half + 1, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    smooth = (sums[high] - sums[low]) / (high - low)
    smooth += values.mean() - smooth.mean()
    return np.asarray(smooth, np.float64)
