"""Name the rows of a table as the user finds them in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandits.base.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class RowNames:
    """Where rows are, for messages: ``places[i]`` names the row with the index i.

    Attributes
    ----------
    text : str
        With ``{0}`` for the number.
    numbers : sequence of int or int64 (n,), optional
        By default rows count from 1.
    """

    text: str = "row {0}"
    numbers: Sequence[int] | IntArray | None = None

    def __getitem__(self, i: int) -> str:
        return self.text.format(i + 1 if self.numbers is None else self.numbers[i])

    def select(self, index: IntArray | BoolArray, n: int) -> RowNames:
        """Return the places of some of n rows."""
        numbers: Any = np.arange(1, n + 1) if self.numbers is None else np.asarray(self.numbers)
        return RowNames(self.text, numbers[index])


ROWS = RowNames()
# without a header
IN_TABLE = RowNames("row {0} of the table")
# of a file whose cells hold line breaks: a row is not a line
RECORD = "row {0} (the header is row 1)"
# the header is line 1, as a spreadsheet shows it
OF_FILE = "row {0} (line {0} of the file)"
# of a file with one decision a line
LINE = "line {0}"
