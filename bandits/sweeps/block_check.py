"""Judge the arrays of a block that another process computed, before they are used."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.files import Arrays
from bandits.base.types import BoolArray, FloatArray
from bandits.experiments.history import History

from .blocks import CURVE_POINTS, Block
from .sweep import Sweep

_SUMS = tuple(f"sum.{name}" for name in History.SUMS)
_NEEDED = {"rows", "from", "counts", "alive", "step", "seconds", "format", *_SUMS}
_KNOWN = {f"sum.{name}" for name in History.MORE_SUMS}
# one choice can lose more than a step can earn: the rest of a visit
_UNLIMITED = {"sum.lost"}
# written where curves were deleted
_STORED = {"thin"}
# relative, of sums of expected rewards
_ROUNDING = 1e-6


def block_problem(sweep: Sweep, block: Block, arrays: Arrays, *, stored: bool = False) -> str:
    """Describe the first thing that makes arrays impossible as the result of a block.

    Empty if there is none.

    Names, types, shapes, rows, finite values and ranges are checked. Numbers that are possible but
    wrong pass: only computing the block again shows them.

    Parameters
    ----------
    sweep, block
    arrays : dict of arrays
    stored : bool
        Whether the curves may have been deleted.
    """
    names = set(arrays)
    if missing := sorted(_NEEDED - names):
        return f"has no {missing[0]}"
    if unknown := sorted(names - _NEEDED - _KNOWN - (_STORED if stored else set())):
        return f"has an unknown array {unknown[0][:40]!r}"
    if any(not isinstance(array, np.ndarray) for array in arrays.values()):
        return "has a value that is no array"
    history = History(sweep.experiment.steps, len(block.rows), 0, points=CURVE_POINTS)
    expected = {name: np.asarray(value) for name, value in _expected(history).items()}
    for name, like in expected.items():
        if name in arrays and (
            arrays[name].dtype.kind != like.dtype.kind or arrays[name].shape != like.shape
        ):
            return f"has {name} of type {arrays[name].dtype} and shape {arrays[name].shape}"
    if not np.array_equal(arrays["rows"], np.array(block.rows)):
        return "has other rows"
    if arrays["from"].any() or int(arrays["step"]) != sweep.experiment.steps:
        return "does not cover all steps"
    if not 0 <= float(arrays["seconds"]) < np.inf:
        return "states an impossible duration"
    return _sums_problem(sweep, block, arrays, history)


def _expected(history: History) -> dict[str, Any]:
    """Return arrays of the type and shape of each array of a block."""
    rows = history.rows
    return {
        "rows": np.empty((rows, 2), np.int64),
        "from": np.empty(2, np.int64),
        "alive": np.empty(rows, np.bool_),
        "counts": np.empty((len(history.count_grid), rows, 0), np.int32),
        "step": np.int64(0),
        "seconds": np.float64(0),
        "format": np.int64(0),
        "thin": np.bool_(True),
        **{f"sum.{name}": sums for name, sums in history.sums.items()},
        **dict.fromkeys(_KNOWN, history.sums["clicks"]),
    }


def _sums_problem(sweep: Sweep, block: Block, arrays: Arrays, history: History) -> str:
    """Describe the first impossible cumulative sum; empty without any."""
    point = sweep.point(block.rows[0][0])
    spec = point.simulator_class().describe(point.simulator)
    known, alive = np.ones(len(history.grid), np.bool_), arrays["alive"]
    if bool(arrays.get("thin", False)):
        known[1:-1] = np.isfinite(arrays["sum.clicks"][1:-1]).any(axis=1)
    limit = np.diff(history.grid[known])[:, None] * float(spec.slate)
    for name in [*_SUMS, *sorted(_KNOWN & set(arrays))]:
        sums: FloatArray = arrays[name][known]
        if np.isinf(sums).any() or not _nan_only_at_the_end(sums, alive):
            return f"has values of {name} that are not finite"
        if (sums[0] != 0).any():
            return f"has values of {name} before the first step"
        if "binary" not in spec.capabilities:
            continue
        with np.errstate(invalid="ignore"):
            added = np.diff(sums, axis=0)
            slack = _ROUNDING * (1 + history.grid[-1])
            above = (added > limit + slack).any() and name not in _UNLIMITED
            if (added < -slack).any() or above:
                return f"has values of {name} that no run can reach"
            if name.endswith("clicks") and (np.rint(sums) != sums)[np.isfinite(sums)].any():
                return f"has values of {name} that are no counts"
    return ""


def _nan_only_at_the_end(sums: FloatArray, alive: BoolArray) -> bool:
    """Whether rows that ended alive are complete, and others have no value after a missing one."""
    missing = np.isnan(sums)
    return not missing[:, alive].any() and bool(
        (np.diff(missing.astype(np.int8), axis=0) >= 0).all()
    )
