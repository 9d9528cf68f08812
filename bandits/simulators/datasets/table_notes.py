"""State what makes the features of a table hard to learn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bandits.base.formatting import count, listed, percent, short
from bandits.base.types import BoolArray, FloatArray

from .scaling import Scale, prepared

# rows that are looked at, evenly spread
ROWS = 10_000
# share of the squared length above which one column hides the others
DOMINANT = 0.95
# share of the rows, of distinct ones and of those that are 0, that is worth a sentence
MANY = 0.1
# share of a column's variance that the columns before it leave unexplained, as rounding leaves it
REST = 1e-6
# columns that a sentence names
NAMED = 5


def table_notes(
    features: FloatArray,
    names: Sequence[str],
    scale: Scale = "standard",
    *,
    constant: bool = True,
) -> list[str]:
    """State in a sentence each what hides columns or rows of a table from a linear model.

    Parameters
    ----------
    features : float64 (n, d)
        As in the table, before scaling; finite.
    names : sequence of str (d,)
    scale, constant
        What agents see: see `prepared`.
    """
    raw = features[:: -(-len(features) // ROWS)]
    # squares of the largest numbers stay finite
    raw = raw / np.maximum(np.abs(raw).max(axis=0), 1.0)
    seen = prepared(features, scale, constant=constant)[:: -(-len(features) // ROWS)]
    flat = np.ptp(raw, axis=0) == 0
    return [
        *_hidden(seen, names, scale),
        *_merged(raw, seen, scale),
        *_zero(seen),
        *_named(names, flat, "has the same value in every row", "have the same value in every row"),
        *_named(
            names,
            _dependent(raw) & ~flat,
            "is a linear function of other columns: its weight has no meaning of its own",
            "are linear functions of other columns: their weights have no meaning of their own",
        ),
    ]


def _hidden(seen: FloatArray, names: Sequence[str], scale: Scale) -> list[str]:
    """State which column holds most of the squared length."""
    largest = np.abs(seen).max()
    length = ((seen / largest) ** 2).mean(axis=0) if largest > 0 else np.zeros(seen.shape[1])
    # one column is compared with the constant
    total = float(length[: len(names)].sum() if len(names) > 1 else length.sum())
    d = int(length[: len(names)].argmax())
    if seen.shape[1] < 2 or length[d] <= DOMINANT * total:
        return []
    return [
        f"Column {_quoted(names[d])} has {percent(float(length[d]) / total, 1)} of the squared "
        f"length of the features with scale {scale}: the ridge penalty hides the others. Scale "
        "standard gives all columns equal weight."
    ]


def _merged(raw: FloatArray, seen: FloatArray, scale: Scale) -> list[str]:
    """State how many different rows remain different after scaling."""
    before, after = _distinct(raw), _distinct(seen)
    if after >= (1 - MANY) * before:
        return []
    return [
        f"Scale {scale} makes different rows equal: of {count(before)} different rows "
        f"{count(after)} remain. Scale standard keeps them apart."
    ]


def _zero(seen: FloatArray) -> list[str]:
    """State in how many rows a model without a constant feature can only predict 0."""
    share = float((seen == 0).all(axis=1).mean())
    if share <= MANY:
        return []
    return [
        f"All features are 0 in {percent(share)} of the rows, where a linear model predicts 0 for "
        "every item. The constant feature lets it learn there."
    ]


def _distinct(x: FloatArray) -> int:
    return len(np.unique(np.round(x, 12), axis=0))


def _dependent(raw: FloatArray) -> BoolArray:
    """Return the columns that those before them determine, by elimination in their correlations:
    bool (d,).
    """
    centred = raw - raw.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    unit = centred / np.where(length > 0, length, 1.0)
    left, out = unit.T @ unit, np.zeros(raw.shape[1], np.bool_)
    for d in range(len(out)):
        out[d] = left[d, d] < REST
        if not out[d]:
            left -= np.outer(left[:, d], left[d]) / left[d, d]
    return out


def _named(names: Sequence[str], chosen: BoolArray, one: str, several: str) -> list[str]:
    found = [_quoted(names[int(d)]) for d in np.flatnonzero(chosen)]
    if not found:
        return []
    more = [f"{len(found) - NAMED} more"] if len(found) > NAMED else []
    subject = listed([*found[:NAMED], *more])
    return [f"Columns {subject} {several}." if len(found) > 1 else f"Column {subject} {one}."]


def _quoted(name: str) -> str:
    return f"'{short(name, 40)}'"
