"""A CSV that somebody brings, read into typed columns; whatever cannot be read is refused by row and column.

Rows are counted as a spreadsheet shows them: the header is row 1, and a cell with line breaks is still one row.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import printable, short
from bandits.base.types import FloatArray

MAX_BYTES = 5 * 2**20
MAX_ROWS = 200_000
MAX_COLUMNS = 100
MAX_NAME = 100  # characters of a column's name
MAX_CELL = 1000  # characters of any other cell
MAX_NUMBER = 1e100  # squares of larger ones would not be finite
MAX_CLASSES = 50
MOSTLY = 0.9  # share of numbers from which on the rest are mistakes; share of distinct texts that makes an identifier
MEASURED = 12  # distinct numbers with fractions from which on they are measurements, not classes
MISSING = "?"
_MISSING = {"", MISSING, "na", "n/a", "nan", "null"}  # in small letters
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,4})?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_BINARY = {
    b"PK": "an Excel or zip file", b"\xd0\xcf\x11\xe0": "an old Excel file", b"\x1f\x8b": "a gzip file",
    b"%PDF": "a PDF", b"PAR1": "a Parquet file", b"\xff\xfe": "text in UTF-16", b"\xfe\xff": "text in UTF-16",
}  # fmt: skip


class Column(NamedTuple):
    """One column.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "mixed"}
        Mixed: numbers with mistakes among them; ``trouble`` tells the first.
    values : float64 (n,) or tuple of str
        NaN or "?" where missing.
    example : str
        The first value there is.
    missing, distinct : int
    trouble : str
        Why it cannot be a feature, in one sentence; empty if it can.
    """

    name: str
    kind: Literal["number", "category", "mixed"]
    values: FloatArray | tuple[str, ...]
    example: str
    missing: int
    distinct: int
    trouble: str

    def texts(self) -> tuple[str, ...]:
        """The values as text, numbers in their shortest spelling."""
        return self.values if isinstance(self.values, tuple) else tuple(map(_spelled, self.values.tolist()))

    @property
    def fractions(self) -> bool:
        """Numbers, and not all of them whole."""
        return not isinstance(self.values, tuple) and bool((self.values % 1 > 0).any())

    @property
    def identifies(self) -> bool:
        """It looks as if it named the examples (a text of its own for nearly each, or 1, 2, 3, ...), or is empty."""
        n, given = len(self.values), len(self.values) - self.missing
        if isinstance(self.values, tuple):
            return n >= 10 and self.distinct >= MOSTLY * given
        if given == 0:
            return True
        return n >= 10 and self.distinct == n and not self.fractions and bool(np.ptp(self.values) == n - 1)


class Table(NamedTuple):
    """Columns of equal length, and the row of the file that each example stands in."""

    columns: tuple[Column, ...]
    rows: tuple[int, ...]

    def column(self, name: str) -> Column:
        """The column of this name.

        Raises
        ------
        UserError
        """
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(c.name for c in self.columns)
        raise UserError(f"there is no column '{short(name)}'; there are {names}")

    def unfit(self, target: str) -> str:
        """Why a column cannot be the target, in one sentence; empty if it can."""
        column, n = self.column(target), len(self.rows)
        what = f"column '{target}' cannot be the target: it has"
        if column.missing:
            row = next(row for row, text in zip(self.rows, column.texts(), strict=True) if text == MISSING)
            return f"row {row} has no value in the target column '{target}'; every example needs its right answer"
        if column.distinct < 2:
            return f"{what} only one value; 2 to {MAX_CLASSES} classes are needed"
        if column.fractions and column.distinct > MEASURED:
            return f"{what} {column.distinct:,} different numbers with fractions, which are measurements, not classes"
        if column.distinct > MAX_CLASSES:
            return f"{what} {column.distinct:,} different values; at most {MAX_CLASSES} classes are allowed"
        if 2 * column.distinct > n:
            return f"{what} {column.distinct:,} different values in {n:,} rows; a class needs two rows on average"
        return ""

    def classes(self, target: str) -> dict[str, int]:
        """How many examples each class has, in the order in which they are numbered."""
        counts = Counter(self.column(target).texts())
        return {text: counts[text] for text in in_order(counts)}

    def suggested_target(self) -> str:
        """The last column that can be the target; the last one if none can."""
        fit = [c.name for c in self.columns if not self.unfit(c.name)]
        return (fit or [self.columns[-1].name])[-1]

    def suggested_omissions(self, target: str) -> list[str]:
        """Columns that would tell an agent nothing but which example it sees."""
        return [c.name for c in self.columns if c.identifies and c.name != target]


def inspect(raw: bytes) -> Table:
    """Read a CSV: UTF-8, a header, cells separated by commas, semicolons or tabs.

    Where semicolons separate, numbers may have decimal commas. Empty cells, ?, NA, N/A, NaN and null are missing.

    Raises
    ------
    UserError
        One sentence: row, column, what is wrong.
    """
    text = _decoded(raw)
    delimiter = _delimiter(text)
    records = _records(text, delimiter)
    first, cells = next(records, (1, []))
    names = _names(first, cells)
    table, rows = [], []
    for row, record in records:
        if len(record) != len(names):
            raise UserError(f"row {row} has {_many(len(record), 'cell')}, the header has {len(names)}")
        table.append(record)
        rows.append(row)
    if not rows:
        raise UserError("the table has a header and no rows below it")
    columns = zip(*table, strict=True)
    made = (_column(name, cells, rows, delimiter == ";") for name, cells in zip(names, columns, strict=True))
    return Table(tuple(made), tuple(rows))


def in_order(classes: Iterable[str]) -> tuple[str, ...]:
    """Classes in the order in which they are numbered: by size if all are numbers, else alphabetically."""
    found = sorted(set(classes))
    sizes = {text: size for text in found if (size := _number(text)) is not None}
    return tuple(sorted(found, key=sizes.__getitem__) if len(sizes) == len(found) else found)


def sample() -> bytes:
    """A CSV to try: Fisher's iris, as scikit-learn ships it."""
    from sklearn.datasets import load_iris

    iris = load_iris()
    lines = [[*(name.replace(" (cm)", "") for name in iris.feature_names), "species"]]
    lines += [[*map(str, x), iris.target_names[y]] for x, y in zip(iris.data.tolist(), iris.target, strict=True)]
    return "".join(",".join(line) + "\n" for line in lines).encode()


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise UserError(f"the file has {len(raw) / 2**20:.1f} MB; at most {MAX_BYTES // 2**20} MB are allowed")
    for start, what in _BINARY.items():
        if raw.startswith(start) and not (start == b"PK" and raw[2:4].isascii() and raw[2:4].isalpha()):
            raise UserError(f"the file is {what}, not a CSV: save it as CSV (UTF-8) first")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(f"the file is not text in UTF-8 (line {line}): save it as CSV (UTF-8)") from None
    if (at := text.find("\0")) >= 0:
        raise UserError(f"line {text.count(chr(10), 0, at) + 1} holds a NUL byte: the file is not a CSV in UTF-8")
    if not text.strip():
        raise UserError("the file is empty")
    return text


def _reader(text: str, delimiter: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _delimiter(text: str) -> str:
    """The separator that makes several columns, the same number in each of the first rows, and most of them."""

    def rank(delimiter: str) -> tuple[bool, bool, int]:
        widths: list[int] = []
        with suppress(csv.Error):  # said when all is read
            widths.extend(len(record) for record in islice(_reader(text, delimiter), 20) if record)
        first = widths[0] if widths else 0
        return first > 1, len(set(widths)) == 1, first

    return max(",;\t", key=rank)


def _records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The header and all rows that hold anything, with their numbers."""
    reader, row, begun = _reader(text, delimiter), 0, False
    while True:
        row += 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"row {row}{_complaint(str(error))}") from None
        if row > MAX_ROWS + 1:
            raise UserError(f"the table has more than {MAX_ROWS:,} rows below its header, which is the most allowed")
        if any(map(str.strip, record)) or (not begun and len(record) > 1):
            begun = True
            yield row, record


def _complaint(error: str) -> str:
    if "end of data" in error:
        return " opens a quotation mark that is never closed"
    if "field larger" in error:
        return f" has a cell of more than {MAX_CELL:,} characters; perhaps a quotation mark is never closed"
    return " has more text behind a closing quotation mark; a quotation mark inside quotes is written twice"


def _names(row: int, cells: Sequence[str]) -> list[str]:
    if len(cells) > MAX_COLUMNS:
        raise UserError(f"the header has {len(cells):,} columns; at most {MAX_COLUMNS} are allowed")
    if len(cells) < 2:
        raise UserError("the header has one column; commas, semicolons or tabs must separate at least two")
    names = [printable(cell) for cell in cells]
    for i, name in enumerate(names):
        if not name:
            raise UserError(f"row {row}, column {i + 1}: the header is empty; every column needs a name")
        if len(name) > MAX_NAME:
            raise UserError(f"row {row}, column {i + 1}: the name has {len(name):,} characters; {MAX_NAME} are allowed")
        if (before := names.index(name)) < i:
            raise UserError(f"row {row}: columns {before + 1} and {i + 1} are both called '{short(name)}'")
    return names


def _column(name: str, cells: Sequence[str], rows: Sequence[int], comma: bool) -> Column:
    counts = Counter(cells)
    if max(map(len, counts)) > MAX_CELL:
        row, cell = next(pair for pair in zip(rows, cells, strict=True) if len(pair[1]) > MAX_CELL)
        raise UserError(
            f"row {row}, column '{short(name)}': the cell has {len(cell):,} characters; {MAX_CELL:,} are allowed"
        )
    text = {cell: printable(cell) for cell in counts}
    text = {cell: MISSING if shown.lower() in _MISSING else shown for cell, shown in text.items()}
    number = {cell: math.nan if shown == MISSING else _number(shown, comma) for cell, shown in text.items()}
    missing = sum(n for cell, n in counts.items() if text[cell] == MISSING)
    strays = sum(n for cell, n in counts.items() if number[cell] is None)
    given = len(cells) - missing

    trouble, mostly = "", given - strays >= MOSTLY * given
    if mostly:  # a number but for mistakes
        wrong = {cell for cell, size in number.items() if size is None or abs(size) > MAX_NUMBER}
        if wrong:
            row, cell = next(pair for pair in zip(rows, cells, strict=True) if pair[1] in wrong)
            why = (
                "is not a number, as the rest of the column is" if number[cell] is None
                else f"is out of range; numbers must lie between -{MAX_NUMBER:g} and {MAX_NUMBER:g}"
            )  # fmt: skip
            trouble = f"row {row}, column '{short(name)}': '{short(text[cell])}' {why}"
    sizes = set(number.values()) if mostly and not trouble else set(text.values())
    distinct = len({size for size in sizes if size == size and size != MISSING})
    example = short(next((text[cell] for cell in cells if text[cell] != MISSING), ""))
    kind: Literal["number", "category", "mixed"] = "mixed" if trouble else "number" if mostly else "category"
    values: FloatArray | tuple[str, ...] = tuple(text[cell] for cell in cells)
    if kind == "number":
        values = np.array([number[cell] for cell in cells], np.float64) + 0.0  # no minus zero
    return Column(name, kind, values, example, missing, distinct, trouble)


def _number(text: str, comma: bool = False) -> float | None:
    """The number that a text spells, infinities included, or None."""
    if comma and "." not in text:
        text = text.replace(",", ".", 1)
    return float(text) if _NUMBER.fullmatch(text) else None


def _spelled(number: float) -> str:
    if math.isnan(number):
        return MISSING
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
