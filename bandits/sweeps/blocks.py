"""Pack the rows of a sweep into blocks, and compute a block in one lane.

A row is a point and a replication. Rows share a block if their points have the same simulator and
equal structural parameters. The size of a block is limited so that it takes seconds, fits in memory
beside others, and leaves enough blocks to keep all workers busy:

- `MAX_BYTES` bytes, as `Experiment.memory` estimates them;
- `MAX_BYTE_STEPS` bytes times steps, because the time per step grows with the size of a row;
- `MAX_BLOCK_ROWS` rows;
- a share of 1 / `MIN_BLOCKS` of all rows, or of 1 / `MIN_BATCH_BLOCKS` of the rows of a batch of
  proposals.

The packing depends on the sweep alone, not on the executor. Therefore the numbers do not either,
networks included."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base.files import Arrays
from bandits.base.params import structural_key
from bandits.base.types import IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.experiments.lockstep import make_lane

from .sweep import Sweep, read_with_proposals

MAX_BYTES = 256 * 2**20
MAX_BYTE_STEPS = 256e9
MAX_BLOCK_ROWS = 256
MIN_BLOCKS = 24
MIN_BATCH_BLOCKS = 8
# points of a stored curve
CURVE_POINTS = 200

Row = tuple[int, int]


class Block(NamedTuple):
    """Rows that are computed together: (point, replication) of each."""

    rows: tuple[Row, ...]


class StoppedError(Exception):
    """The sweep was stopped while a block was being computed."""


def coarse_to_fine(sweep: Sweep) -> list[int]:
    """Order all points so that the first of them are spread over the whole grid."""
    levels = [
        _levels(len(values)) if axis.values is None else [0] * len(values)
        for axis, values in zip(sweep.axes, sweep.values, strict=True)
    ]
    level = np.max(
        [np.take(levels[i], at) for i, at in enumerate(np.indices(sweep.shape))], axis=0
    ).ravel()
    return [int(p) for p in np.argsort(level, kind="stable")]


def _levels(n: int) -> list[int]:
    """Return the bisection level of n ordered values: 0 for the ends, 1 for the middle, 2 for the
    quarters, ...
    """
    level, gaps = [0] * n, [(0, n - 1, 1)]
    while gaps:
        low, high, depth = gaps.pop()
        if high - low > 1:
            middle = (low + high) // 2
            level[middle] = depth
            gaps += [(low, middle, depth + 1), (middle, high, depth + 1)]
    return level


def pack(sweep: Sweep, rows: Sequence[Row]) -> list[Block]:
    """Pack rows into blocks, in their order as far as possible."""
    keys = {p: _block_key(sweep.point(p)) for p in sorted({point for point, _ in rows})}
    first_point = {key: p for p, key in reversed(keys.items())}
    max_rows = {key: _max_rows(sweep, first_point[key]) for key in first_point}
    waiting: dict[str, list[Row]] = {key: [] for key in keys.values()}
    blocks: list[Block] = []
    for row in rows:
        key = keys[row[0]]
        waiting[key].append(row)
        if len(waiting[key]) == max_rows[key]:
            blocks.append(Block(tuple(waiting[key])))
            waiting[key] = []
    return blocks + [Block(tuple(rest)) for rest in waiting.values() if rest]


def _block_key(point: Experiment) -> str:
    """Return text that is equal for points whose rows can share a block."""
    return point.simulator.model_dump_json() + structural_key(point.agents[0])


def _max_rows(sweep: Sweep, point: int) -> int:
    """Return the maximum number of rows of a block with this point's key."""
    one, two = (_memory(sweep.point(point), n) for n in (1, 2))
    per_row = two - one
    share = -(-len(sweep.new_points) * sweep.experiment.replications // MIN_BLOCKS)
    # the next batch waits for this one: it must keep several workers busy
    if not sweep.is_grid:
        share = -(-min(sweep.batch, sweep.size) * sweep.experiment.replications // MIN_BATCH_BLOCKS)
    limits = (
        max(MAX_BYTES - (one - per_row), 0) // per_row,
        MAX_BYTE_STEPS // (per_row * sweep.experiment.steps),
        MAX_BLOCK_ROWS,
        share,
    )
    return max(1, int(min(limits)))


def block_memory(sweep: Sweep, block: Block) -> int:
    """Estimate the bytes of a block, before anything is allocated."""
    return _memory(sweep.point(block.rows[0][0]), len(block.rows))


def _memory(point: Experiment, rows: int) -> int:
    """Estimate the bytes of a block with this many rows.

    Its history is smaller than an experiment's.
    """
    experiment = Experiment.model_validate({**dict(point), "replications": rows})
    cls = experiment.simulator_class()
    spec, groups = cls.describe(experiment.simulator), len(cls.segment_names())
    history = History.memory(
        experiment.steps, rows, spec.n_items, groups, bucket_size=spec.bucket_size
    )
    return experiment.memory() - history + 40 * (CURVE_POINTS + 1) * rows


def compute(
    sweep: Sweep,
    block: Block,
    on_step: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Arrays:
    """Compute a block in this process.

    Parameters
    ----------
    sweep, block
    on_step : callable, optional
        Called with the step that was reached, about ten times a second.
    stop : callable, optional
        Called as often; the computation ends if it returns True.

    Returns
    -------
    dict of arrays
        ``rows (R, 2)``, and the arrays of `History.since` for a history without item counts.

    Raises
    ------
    StoppedError
        If ``stop`` returned True.
    """
    points, replications = zip(*block.rows, strict=True)
    experiments = {p: sweep.point(p) for p in dict.fromkeys(points)}
    params = [experiments[p].agents[0] for p in points]
    steps = sweep.experiment.steps
    # the same bits, whatever else this machine computes
    with threadpool_limits(1):
        lane = make_lane(experiments[points[0]], 0, rows=replications, params=params)
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
            if on_step is not None:
                on_step(lane.step)
    history.seconds = lane.seconds
    arrays = {name: np.asarray(value) for name, value in history.since(0).items() if name != "note"}
    return {"rows": np.array(block.rows, np.int64), **arrays}


def renumber(arrays: Arrays, points: IntArray) -> Arrays:
    """Replace the points of a block of a sweep's earlier stage by their numbers in the sweep
    (`Sweep.points_of`).
    """
    rows = arrays["rows"].copy()
    rows[:, 0] = points[rows[:, 0]]
    return {**arrays, "rows": rows}


def block_history(sweep: Sweep, arrays: Arrays) -> History:
    """Restore the history of all rows of a computed block."""
    history = History(sweep.experiment.steps, len(arrays["rows"]), 0, points=CURVE_POINTS)
    history.merge(arrays)
    return history


def point_history(sweep: Sweep, blocks: Sequence[Arrays], point: int) -> History:
    """Collect the history of one point, by replication.

    Its rows may be spread over several blocks.
    """
    rows: dict[int, tuple[Arrays, int]] = {}
    for arrays in blocks:
        for row in np.flatnonzero(arrays["rows"][:, 0] == point).tolist():
            rows[int(arrays["rows"][row, 1])] = (arrays, row)
    history = History(sweep.experiment.steps, len(rows), 0, points=CURVE_POINTS)
    for at, replication in enumerate(sorted(rows)):
        arrays, row = rows[replication]
        for name, sums in history.sums.items():
            sums[:, at] = arrays[f"sum.{name}"][:, row]
        history.alive[at] = arrays["alive"][row]
    history.step = sweep.experiment.steps
    return history


def handle(
    header: dict[str, Any], tick: Callable[[int], None], stop: Callable[[], bool]
) -> Arrays | None:
    """Compute the block that a message describes.

    Returns None if ``stop`` returned True before the end.
    """
    block = Block(tuple((point, replication) for point, replication in header["rows"]))
    try:
        return compute(read_cached(json.dumps(header["sweep"])), block, tick, stop)
    except StoppedError:
        return None


@lru_cache(maxsize=4)
def read_cached(text: str) -> Sweep:
    """Read a sweep; validated once for its many blocks."""
    return read_with_proposals(text)
