"""Hash or coarsen columns of an upload before it is stored, so that their clear values are in no file.

A hash is an HMAC-SHA256 [1]_ with a key of this installation: equal values stay equal within a column, and without the
key no list of likely values can be tried out.

References
----------
.. [1] Krawczyk, Bellare, Canetti (1997), RFC 2104: HMAC, keyed-hashing for message authentication.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections import Counter
from collections.abc import Collection
from contextlib import suppress

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import home
from bandits.base.types import FloatArray

from .csv_table import MISSING, Column, Table

KEY_BYTES, HASH_DIGITS = 32, 16
GROUPS = 8  # of equal size, into which numbers are put
RARE = 5  # texts that are in fewer rows are put together
OTHER = "other"


def protect(table: Table, *, target: str, hashed: Collection[str] = (), coarsened: Collection[str] = ()) -> Table:
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
        A column is in both lists or does not exist, or the target is to be coarsened.
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
        _hashed(c, key) if c.name in hashed else _coarsened(c) if c.name in coarsened else c for c in table.columns
    )
    return table._replace(columns=tuple(columns))


def installation_key() -> bytes:
    """Return the key of this installation; it is made at the first use, readable for the owner alone.

    Raises
    ------
    UserError
        It cannot be written.
    """
    path = home() / "hash_key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
        key = path.read_bytes()
    except OSError as error:
        raise UserError(f"the key for hashes could not be kept: {error.strerror or error}") from None
    if len(key) != KEY_BYTES:
        raise UserError(f"the key for hashes is damaged: it has {len(key)} bytes, not {KEY_BYTES}")
    return key


def _hashed(column: Column, key: bytes) -> Column:
    """Replace every value by its hash under the column's name; what is missing stays missing."""
    known: dict[str, str] = {MISSING: MISSING}
    for text in set(column.texts()) - {MISSING}:
        message = f"{column.name}\0{text}".encode()
        known[text] = hmac.new(key, message, hashlib.sha256).hexdigest()[:HASH_DIGITS]
    return _texts(column, tuple(known[text] for text in column.texts()))


def _coarsened(column: Column) -> Column:
    """Put numbers into `GROUPS` groups of equal size, and texts of fewer than `RARE` rows together."""
    if isinstance(column.values, tuple):
        times = Counter(column.values)
        return _texts(column, tuple(t if t == MISSING or times[t] >= RARE else OTHER for t in column.values))
    values = np.array(column.values)
    known = np.isfinite(values)
    edges = np.unique(np.quantile(values[known], np.arange(1, GROUPS) / GROUPS)) if known.any() else np.empty(0)
    group = np.searchsorted(edges, values, side="right")
    for g in np.unique(group[known]):
        own = known & (group == g)
        values[own] = float(f"{values[own].mean():.3g}")
    return _numbers(column, values)


def _texts(column: Column, values: tuple[str, ...]) -> Column:
    given = [text for text in values if text != MISSING]
    return column._replace(kind="category", values=values, example=next(iter(given), ""), distinct=len(set(given)))


def _numbers(column: Column, values: FloatArray) -> Column:
    given = values[np.isfinite(values)]
    example = f"{given[0]:g}" if len(given) else ""
    return column._replace(values=values, example=example, distinct=len(np.unique(given)))
