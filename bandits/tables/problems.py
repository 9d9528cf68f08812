"""Rows of a table that hold what is not allowed: all of them at once, named by row and column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import count, count_of
from bandits.base.row_names import RowNames
from bandits.base.types import BoolArray

# rows that are described
DESCRIBED = 100


class Wrong(NamedTuple):
    """Rows with one kind of fault.

    Attributes
    ----------
    rows : bool (n,)
    describe : callable
        From the index of a row to column and fault, ``reward: must be a number; got 'x'``.
    """

    rows: BoolArray
    describe: Callable[[int], str]


class RowsError(UserError):
    """Some rows of a table hold what is not allowed.

    Parameters
    ----------
    rows : bool (n,)
        Which rows.
    sentences : list of str
        What is wrong, row by row: the first `DESCRIBED`.
    more : int
        Wrong rows that are not among the n.

    Attributes
    ----------
    count : int
        All wrong rows.
    """

    def __init__(self, rows: BoolArray, sentences: list[str], more: int = 0) -> None:
        self.rows, self.sentences = rows, sentences
        self.count = wrong = int(rows.sum()) + more
        others = f" (and {count_of(wrong - 1, 'further rows')})" if wrong > 1 else ""
        super().__init__(sentences[0] + others)


def left_out(wrong: int, n: int, first: str) -> str:
    """State that wrong rows among n were left out; ``first`` is the sentence of the first one."""
    return (
        f"{count_of(wrong, 'rows')} of {count(n)} left out, because they hold what is not allowed "
        f"(first: {first})."
    )


def check(found: Iterable[Wrong], at: RowNames, more: Sequence[str] = ()) -> None:
    """Refuse a table with wrong rows; a row is described by its first fault.

    ``more`` describes wrong rows that are not among those of ``found``.

    Raises
    ------
    RowsError
        A row is wrong.
    """
    faults = list(found)
    if not more and not any(fault.rows.any() for fault in faults):
        return
    rows = np.logical_or.reduce([fault.rows for fault in faults])
    sentences = list(more)
    for i in np.flatnonzero(rows)[:DESCRIBED].tolist():
        fault = next(fault for fault in faults if fault.rows[i])
        sentences.append(f"{at[i]}, {fault.describe(i)}")
    raise RowsError(rows, sentences[:DESCRIBED], len(more))
