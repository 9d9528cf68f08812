"""Hash or coarsen columns of an upload before it is stored, so that their clear values are in no
file.

A hash is an HMAC-SHA256 [1]_ with a key of this installation, bound to all values of its column:
another upload gives other hashes, so no list of likely values can be tried out, neither without the
key nor by uploading it. Equal values stay equal within a data set, so how often each occurs stays
visible: a column with few values can be guessed from that.

References
----------
.. [1] Krawczyk, Bellare, Canetti (1997), RFC 2104: HMAC, keyed-hashing for message authentication.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import home
from bandits.base.types import FloatArray, IntArray

from .csv_table import Column, Table
from .scaling import MISSING

KEY_BYTES, HASH_DIGITS = 32, 16
# into which numbers are put, at most
GROUPS = 8
# rows of a group of numbers, at least; texts that are in fewer rows are put together
RARE = 5
OTHER = "other"


def protect(
    table: Table, *, target: str, hashed: Collection[str] = (), coarsened: Collection[str] = ()
) -> Table:
    """Return a table in which some columns are hashed and some coarsened.

    Parameters
    ----------
    table : Table
    target : str
        The column with the classes; it can be hashed, not coarsened.
    hashed, coarsened : collection of str
        Names of columns.

    Raises
    ------
    UserError
        A column is in both lists or does not exist, the target is to be coarsened, or numbers are
        too few for a group.
    """
    for name in (*hashed, *coarsened):
        table.column(name)
    if both := sorted(set(hashed) & set(coarsened)):
        raise UserError(f"column '{both[0]}' is both hashed and coarsened; choose one")
    if target in coarsened:
        raise UserError(f"the target column '{target}' cannot be coarsened; it can be hashed")
    if not hashed and not coarsened:
        return table
    key = installation_key() if hashed else b""
    columns = (
        _hashed(c, key) if c.name in hashed else _coarsened(c) if c.name in coarsened else c
        for c in table.columns
    )
    return table._replace(columns=tuple(columns))


def installation_key() -> bytes:
    """Return the key of this installation.

    It is made at the first use, readable for the owner alone.

    Raises
    ------
    UserError
        It cannot be written.
    """
    path = home() / "hash_key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _make_key(path)
        key = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"the key for hashes could not be kept: {error.strerror or error}"
        ) from None
    if len(key) != KEY_BYTES:
        raise UserError(
            f"the key for hashes is damaged: it has {len(key)} bytes, not {KEY_BYTES}; delete the "
            "file hash_key in the data folder, and a new key is made"
        )
    return key


def _make_key(path: Path) -> None:
    """Write a whole key, unless another process does so first."""
    # readable for its owner alone
    descriptor, temporary = tempfile.mkstemp(prefix=".hash_key-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def _hashed(column: Column, key: bytes) -> Column:
    """Replace every value by its hash, bound to the column's values and name.

    What is missing stays missing.
    """
    known: dict[str, str] = {MISSING: MISSING}
    texts = column.texts()
    bound = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    for text in set(texts) - {MISSING}:
        message = f"{bound}\0{column.name}\0{text}".encode()
        known[text] = hmac.new(key, message, hashlib.sha256).hexdigest()[:HASH_DIGITS]
    return _texts(column, tuple(known[text] for text in texts))


def _coarsened(column: Column) -> Column:
    """Put numbers into up to `GROUPS` groups of at least `RARE` rows, and texts of fewer than
    `RARE` rows together.
    """
    if isinstance(column.values, tuple):
        times = Counter(column.values)
        return _texts(
            column, tuple(t if t == MISSING or times[t] >= RARE else OTHER for t in column.values)
        )
    values = np.array(column.values)
    known = np.isfinite(values)
    if (n := int(known.sum())) < RARE:
        raise UserError(
            f"column '{column.name}' has {n} known values; it must have at least {RARE} to be "
            "coarsened"
        )
    each, place, rows = np.unique(values[known], return_inverse=True, return_counts=True)
    group = _groups(rows.astype(np.int64))[place]
    sizes = np.bincount(group)
    means = np.array([float(f"{mean:.3g}") for mean in np.bincount(group, each[place]) / sizes])
    values[known] = means[group]
    return _numbers(column, values)


def _groups(times: IntArray) -> IntArray:
    """Number the groups of values in order, int64 (V,).

    ``times (V,)`` are the rows of each value.
    """
    wanted, groups = max(RARE, times.sum() / GROUPS), np.zeros(len(times), np.int64)
    group, size = 0, 0
    for i, rows in enumerate(times.tolist()):
        groups[i] = group
        size += rows
        if size >= wanted:
            group, size = group + 1, 0
    if 0 < size < RARE:  # a short rest
        groups[groups == group] = group - 1
    return groups


def _texts(column: Column, values: tuple[str, ...]) -> Column:
    given = [text for text in values if text != MISSING]
    return column._replace(
        kind="category", values=values, example=next(iter(given), ""), distinct=len(set(given))
    )


def _numbers(column: Column, values: FloatArray) -> Column:
    given = values[np.isfinite(values)]
    example = f"{given[0]:g}" if len(given) else ""
    return column._replace(values=values, example=example, distinct=len(np.unique(given)))
