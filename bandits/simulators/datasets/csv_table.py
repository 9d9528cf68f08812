"""Read a CSV file into typed columns; errors name the row and the column.

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
MAX_NUMBER = 1e100  # squares of larger numbers would not be finite
MAX_CLASSES = 50
MOSTLY = 0.9  # share of numbers that makes a column numeric; share of distinct texts that makes it an identifier
MAX_FRACTIONS = 12  # distinct numbers with fractions up to which they can be classes rather than measurements
MISSING = "?"
_MISSING = {"", MISSING, "na", "n/a", "nan", "null"}  # lower case
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
        mixed: numbers with invalid values among them; ``problem`` describes the first.
    values : float64 (n,) or tuple of str
        NaN or "?" where missing.
    example : str
        The first value that is not missing.
    missing, distinct : int
    problem : str
        Why it cannot be a feature, in one sentence; empty if it can.
    """

    name: str
    kind: Literal["number", "category", "mixed"]
    values: FloatArray | tuple[str, ...]
    example: str
    missing: int
    distinct: int
    problem: str

    def texts(self) -> tuple[str, ...]:
        """Return the values as text, numbers in their shortest form."""
        return self.values if isinstance(self.values, tuple) else tuple(map(_shortest, self.values.tolist()))

    @property
    def fractions(self) -> bool:
        """Whether the values are numbers that are not all whole."""
        return not isinstance(self.values, tuple) and bool((self.values % 1 > 0).any())

    @property
    def identifies(self) -> bool:
        """Whether the column seems to identify the rows (nearly all texts differ, or 1, 2, 3, ...), or is empty."""
        n, given = len(self.values), len(self.values) - self.missing
        if isinstance(self.values, tuple):
            return n >= 10 and self.distinct >= MOSTLY * given
        if given == 0:
            return True
        return n >= 10 and self.distinct == n and not self.fractions and bool(np.ptp(self.values) == n - 1)


class Table(NamedTuple):
    """Columns of equal length, and the row number of each example in the file."""

    columns: tuple[Column, ...]
    rows: tuple[int, ...]

    def column(self, name: str) -> Column:
        """Return the column of this name.

        Raises
        ------
        UserError
        """
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(c.name for c in self.columns)
        raise UserError(f"there is no column '{short(name)}'; there are {names}")

    def target_problem(self, target: str) -> str:
        """Explain why a column cannot be the target, in one sentence; empty if it can."""
        column, n = self.column(target), len(self.rows)
        start = f"column '{target}' cannot be the target: it has"
        if column.missing:
            row = next(row for row, text in zip(self.rows, column.texts(), strict=True) if text == MISSING)
            return f"row {row} has no value in the target column '{target}'; every example needs its class"
        if column.distinct < 2:
            return f"{start} only one value; 2 to {MAX_CLASSES} classes are needed"
        if column.fractions and column.distinct > MAX_FRACTIONS:
            return f"{start} {column.distinct:,} different numbers with fractions, which are measurements, not classes"
        if column.distinct > MAX_CLASSES:
            return f"{start} {column.distinct:,} different values; at most {MAX_CLASSES} classes are allowed"
        if 2 * column.distinct > n:
            return f"{start} {column.distinct:,} different values in {n:,} rows; a class needs two rows on average"
        return ""

    def classes(self, target: str) -> dict[str, int]:
        """Count the examples of each class, in the order of their numbers."""
        counts = Counter(self.column(target).texts())
        return {text: counts[text] for text in in_order(counts)}

    def suggested_target(self) -> str:
        """Return the last column that can be the target; the last column if none can."""
        suitable = [c.name for c in self.columns if not self.target_problem(c.name)]
        return (suitable or [self.columns[-1].name])[-1]

    def suggested_omissions(self, target: str) -> list[str]:
        """Return the columns that identify rows: agents cannot learn from them."""
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
    """Return the classes in the order of their numbers: by value if all are numbers, else alphabetically."""
    names = sorted(set(classes))
    values = {name: value for name in names if (value := _number(name)) is not None}
    return tuple(sorted(names, key=values.__getitem__) if len(values) == len(names) else names)


def sample() -> bytes:
    """Return a sample CSV: Fisher's iris data, from scikit-learn."""
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
    """Return the separator that gives most columns, the same number in each of the first rows."""

    def rank(delimiter: str) -> tuple[bool, bool, int]:
        widths: list[int] = []
        with suppress(csv.Error):  # reported when the whole file is read
            widths.extend(len(record) for record in islice(_reader(text, delimiter), 20) if record)
        first = widths[0] if widths else 0
        return first > 1, len(set(widths)) == 1, first

    return max(",;\t", key=rank)


def _records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the header and all rows that are not empty, with their numbers."""
    reader, row, started = _reader(text, delimiter), 0, False
    while True:
        row += 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"row {row}{_parse_problem(str(error))}") from None
        if row > MAX_ROWS + 1:
            raise UserError(f"the table has more than {MAX_ROWS:,} rows below its header, the maximum")
        if any(map(str.strip, record)) or (not started and len(record) > 1):
            started = True
            yield row, record


def _parse_problem(error: str) -> str:
    if "end of data" in error:
        return " opens a quotation mark that is never closed"
    if "field larger" in error:
        return f" has a cell of more than {MAX_CELL:,} characters; perhaps a quotation mark is never closed"
    return " has text after a closing quotation mark; a quotation mark inside quotes is written twice"


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
            length = f"the name has {len(name):,} characters; at most {MAX_NAME} are allowed"
            raise UserError(f"row {row}, column {i + 1}: {length}")
        if (first := names.index(name)) < i:
            raise UserError(f"row {row}: columns {first + 1} and {i + 1} are both named '{short(name)}'")
    return names


def _column(name: str, cells: Sequence[str], rows: Sequence[int], comma: bool) -> Column:
    counts = Counter(cells)
    if max(map(len, counts)) > MAX_CELL:
        row, cell = next(pair for pair in zip(rows, cells, strict=True) if len(pair[1]) > MAX_CELL)
        raise UserError(
            f"row {row}, column '{short(name)}': the cell has {len(cell):,} characters; "
            f"at most {MAX_CELL:,} are allowed"
        )
    text = {cell: printable(cell) for cell in counts}
    text = {cell: MISSING if shown.lower() in _MISSING else shown for cell, shown in text.items()}
    number = {cell: math.nan if shown == MISSING else _number(shown, comma) for cell, shown in text.items()}
    missing = sum(n for cell, n in counts.items() if text[cell] == MISSING)
    strays = sum(n for cell, n in counts.items() if number[cell] is None)
    given = len(cells) - missing

    problem, numeric = "", given - strays >= MOSTLY * given
    if numeric:
        invalid = {cell for cell, size in number.items() if size is None or abs(size) > MAX_NUMBER}
        if invalid:
            row, cell = next(pair for pair in zip(rows, cells, strict=True) if pair[1] in invalid)
            reason = (
                "is not a number, unlike the rest of the column" if number[cell] is None
                else f"is out of range; numbers must lie between -{MAX_NUMBER:g} and {MAX_NUMBER:g}"
            )  # fmt: skip
            problem = f"row {row}, column '{short(name)}': '{short(text[cell])}' {reason}"
    sizes = set(number.values()) if numeric and not problem else set(text.values())
    distinct = len({size for size in sizes if size == size and size != MISSING})
    example = short(next((text[cell] for cell in cells if text[cell] != MISSING), ""))
    kind: Literal["number", "category", "mixed"] = "mixed" if problem else "number" if numeric else "category"
    values: FloatArray | tuple[str, ...] = tuple(text[cell] for cell in cells)
    if kind == "number":
        values = np.array([number[cell] for cell in cells], np.float64) + 0.0  # no minus zero
    return Column(name, kind, values, example, missing, distinct, problem)


def _number(text: str, comma: bool = False) -> float | None:
    """Parse a number, infinities included; None for any other text."""
    if comma and "." not in text:
        text = text.replace(",", ".", 1)
    return float(text) if _NUMBER.fullmatch(text) else None


def _shortest(number: float) -> str:
    if math.isnan(number):
        return MISSING
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
