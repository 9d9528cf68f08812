"""The rows of a sweep, packed into blocks that one lane can take.

A row is a point and a replication. Rows share a block if they live in the same world and agree in all structural
parameters; a block is as large as these limits allow, by arithmetic, so that it takes seconds, fits beside its
neighbours and there are enough of them for everybody to have work:

- `MEMORY` bytes, as `Experiment.memory` counts them;
- `WEIGHT` bytes times steps, because the time of a step grows with what a row holds;
- `ROWS` rows;
- a `SHARE` of all rows, or a `BATCH_SHARE` of those of a batch of proposals.

The packing depends on the sweep alone, not on who computes it. So the numbers do not either, networks included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base.files import Arrays
from bandits.base.params import structural_key
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.experiments.race import make_lane

from .sweep import Sweep

MEMORY = 256 * 2**20
WEIGHT = 256e9
ROWS = 256
SHARE = 24
BATCH_SHARE = 8
CURVE_POINTS = 200  # points of a stored curve

Row = tuple[int, int]


class Block(NamedTuple):
    """Rows that are computed together: (point, replication) of each."""

    rows: tuple[Row, ...]


class StoppedError(Exception):
    """Somebody has ended the sweep while a block was being computed."""


def coarse_to_fine(sweep: Sweep) -> list[int]:
    """All points, so that the first of them are spread over the whole landscape."""
    levels = [
        _levels(len(values)) if axis.values is None else [0] * len(values)
        for axis, values in zip(sweep.axes, sweep.values, strict=True)
    ]
    level = np.max([np.take(levels[i], at) for i, at in enumerate(np.indices(sweep.shape))], axis=0).ravel()
    return [int(p) for p in np.argsort(level, kind="stable")]


def _levels(n: int) -> list[int]:
    """Of each of n values in a row: 0 for the ends, 1 for the middle, 2 for the middles of the halves, ..."""
    level, gaps = [0] * n, [(0, n - 1, 1)]
    while gaps:
        low, high, depth = gaps.pop()
        if high - low > 1:
            middle = (low + high) // 2
            level[middle] = depth
            gaps += [(low, middle, depth + 1), (middle, high, depth + 1)]
    return level


def pack(sweep: Sweep, rows: Sequence[Row]) -> list[Block]:
    """Blocks of these rows; the order is kept as far as it can be."""
    alike = {p: _kind(sweep.point(p)) for p in sorted({point for point, _ in rows})}
    first = {key: p for p, key in reversed(alike.items())}
    most = {key: _most(sweep, first[key]) for key in first}
    open_: dict[str, list[Row]] = {key: [] for key in alike.values()}
    found: list[Block] = []
    for row in rows:
        key = alike[row[0]]
        open_[key].append(row)
        if len(open_[key]) == most[key]:
            found.append(Block(tuple(open_[key])))
            open_[key] = []
    return found + [Block(tuple(waiting)) for waiting in open_.values() if waiting]


def _kind(point: Experiment) -> str:
    """Text that is equal for points whose rows can share a block."""
    return point.simulator.model_dump_json() + structural_key(point.agents[0])


def _most(sweep: Sweep, point: int) -> int:
    """Rows of a block of this point's kind."""
    one, two = (_memory(sweep.point(point), n) for n in (1, 2))
    each = two - one
    share = -(-sweep.size * sweep.experiment.replications // SHARE)
    if not sweep.is_grid:  # nobody goes on before a batch is done: there is work for many in each
        share = -(-min(sweep.batch, sweep.size) * sweep.experiment.replications // BATCH_SHARE)
    limits = (max(MEMORY - (one - each), 0) // each, WEIGHT // (each * sweep.experiment.steps), ROWS, share)
    return max(1, int(min(limits)))


def _memory(point: Experiment, rows: int) -> int:
    """Bytes of a block of so many rows: its history is thinner than an experiment's."""
    whole = Experiment.model_validate({**dict(point), "replications": rows})
    cls = whole.simulator_class()
    world, groups = cls.describe(whole.simulator), len(cls.segment_names())
    usual = History.memory(whole.steps, rows, world.n_items, groups, bucket_size=world.bucket_size)
    return whole.memory() - usual + 40 * (CURVE_POINTS + 1) * rows


def compute(
    sweep: Sweep, block: Block, told: Callable[[int], None] | None = None, stop: Callable[[], bool] | None = None
) -> Arrays:
    """Live through a block, here and now.

    Parameters
    ----------
    sweep, block
    told : callable, optional
        Given the step, many times a second.
    stop : callable, optional
        Asked as often whether to give up.

    Returns
    -------
    dict of arrays
        ``rows (R, 2)``, and what `History.since` gives of a history without arms.

    Raises
    ------
    Stopped
    """
    points, replications = zip(*block.rows, strict=True)
    experiments = {p: sweep.point(p) for p in dict.fromkeys(points)}
    shared = experiments[points[0]]
    params = [experiments[p].agents[0] for p in points]
    steps = sweep.experiment.steps
    with threadpool_limits(1):  # the same bits alone or beside others
        lane = make_lane(shared, 0, rows=replications, params=params)
        lane.agent.prepare()
        history = History(steps, len(block.rows), 0, points=CURVE_POINTS)
        chunk = 20
        while lane.step < steps:
            if stop is not None and stop():
                raise StoppedError
            before = lane.seconds
            history.extend(lane.advance(min(chunk, steps - lane.step)))
            # chunks of a tenth of a second: long enough to be cheap, short enough to stop soon
            chunk = int(np.clip(chunk * 0.1 / max(lane.seconds - before, 1e-3), 10, 5000))
            if told is not None:
                told(lane.step)
    history.seconds = lane.seconds
    kept = {name: np.asarray(value) for name, value in history.since(0).items() if name != "note"}
    return {"rows": np.array(block.rows, np.int64), **kept}


def block_history(sweep: Sweep, arrays: Arrays) -> History:
    """The history of all rows of a computed block."""
    history = History(sweep.experiment.steps, len(arrays["rows"]), 0, points=CURVE_POINTS)
    history.merge(arrays)
    return history


def point_history(sweep: Sweep, parts: Sequence[Arrays], point: int) -> History:
    """The history of one point, whose rows may be spread over blocks, by replication."""
    found: dict[int, tuple[Arrays, int]] = {}
    for arrays in parts:
        for row in np.flatnonzero(arrays["rows"][:, 0] == point).tolist():
            found[int(arrays["rows"][row, 1])] = (arrays, row)
    history = History(sweep.experiment.steps, len(found), 0, points=CURVE_POINTS)
    for at, run in enumerate(sorted(found)):
        arrays, r = found[run]
        for name, sums in history.sums.items():
            sums[:, at] = arrays[f"sum.{name}"][:, r]
        history.alive[at] = arrays["alive"][r]
    history.step = sweep.experiment.steps
    return history
