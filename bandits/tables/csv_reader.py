"""Read a CSV file; errors name the row and the column.

Rows are counted as a spreadsheet shows them: a cell with line breaks is still one row, and an empty
line is a row too, which is left out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from bandits.base.errors import UserError
from bandits.base.formatting import printable, short
from bandits.base.row_names import OF_FILE, RECORD, RowNames
from bandits.base.types import IntArray

from .problems import RowsError
from .raw_table import RawTable
from .text import Limits, utf8

# bytes of a file that hold its header
HEAD = 2**20
SEPARATORS = ",;\t"
# bytes, more than a row has
BLOCK = 2**22


def read_csv(raw: bytes, limits: Limits) -> RawTable:
    """Read a header and rows of cells, separated by commas, semicolons or tabs.

    Where semicolons separate, numbers may have decimal commas.

    Raises
    ------
    UserError
        One sentence: row, column, what is wrong.
    """
    data = utf8(raw, limits)
    separator = _separator(data)
    first, cells = next(_records(data, separator, limits), (1, []))
    names = _names(first, cells, limits)
    marks = _marks(data)
    found = (
        _quickly(data, separator, names, first, limits)
        if _well_quoted(data, separator, marks)
        else None
    )
    wrong: list[str] = []
    columns, rows = found or _carefully(data, separator, names, limits, wrong)
    if not len(rows) and wrong:
        raise RowsError(np.zeros(0, bool), wrong, len(wrong))
    if not len(rows):
        raise UserError("the table has a header and no rows below it")
    words = OF_FILE if not len(marks) or (found and not _breaks_cells(data, marks)) else RECORD
    table = pa.table(columns, names=names)
    place = RowNames(words, rows)
    return RawTable(table, place, comma=separator == ";", typed=False, wrong=tuple(wrong))


def header(beginning: bytes, limits: Limits) -> list[str]:
    """Return the names of the columns, from the first `HEAD` bytes of a file."""
    data = utf8(beginning, limits, whole=len(beginning) < HEAD)
    return _names(*next(_records(data, _separator(data), limits), (1, [])), limits)


def _reader(data: bytes, separator: str) -> Iterator[list[str]]:
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    return csv.reader(text, delimiter=separator, strict=True)


def _separator(data: bytes) -> str:
    """Return the separator that gives most columns, the same number in each of the first rows."""

    def rank(separator: str) -> tuple[bool, bool, int]:
        widths: list[int] = []
        # what is wrong is reported when the whole file is read
        with suppress(csv.Error):
            widths.extend(len(record) for record in islice(_reader(data, separator), 20) if record)
        first = widths[0] if widths else 0
        return first > 1, len(set(widths)) == 1, first

    return max(SEPARATORS, key=rank)


def _names(row: int, cells: Sequence[str], limits: Limits) -> list[str]:
    if len(cells) > limits.columns:
        raise UserError(
            f"the header has {len(cells):,} columns; at most {limits.columns:,} are allowed"
        )
    if len(cells) < 2:
        raise UserError(
            "the header has one column; commas, semicolons or tabs must separate at least two"
        )
    names = [printable(cell) for cell in cells]
    for i, name in enumerate(names):
        if not name and limits.lenient:
            names[i] = name = f"column {i + 1}"
        if not name:
            raise UserError(
                f"row {row}, column {i + 1}: the header is empty; every column needs a name"
            )
        if len(name) > limits.name:
            length = f"the name has {len(name):,} characters; at most {limits.name} are allowed"
            raise UserError(f"row {row}, column {i + 1}: {length}")
        if (first := names.index(name)) < i:
            raise UserError(
                f"row {row}: columns {first + 1} and {i + 1} are both named '{short(name)}'"
            )
    return names


Columns = tuple[list[pa.Array], IntArray]


def _marks(data: bytes) -> IntArray:
    """Return where quotation marks are."""
    return (
        np.flatnonzero(np.frombuffer(data, np.uint8) == ord('"'))
        if b'"' in data
        else np.empty(0, np.int64)
    )


def _well_quoted(data: bytes, separator: str, marks: IntArray) -> bool:
    """Return whether all quotation marks open or close a cell, or are doubled within one."""
    if not len(marks) or len(marks) % 2:
        return not len(marks)
    around = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    beside = np.concatenate([around[marks[::2]], around[marks[1::2] + 2]])
    return bool(np.isin(beside, list(f'{separator}\r\n"'.encode())).all())


def _breaks_cells(data: bytes, marks: IntArray) -> bool:
    """Return whether a well-quoted cell holds a line break, so that a row is not a line."""
    letters = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero((letters == ord("\n")) | (letters == ord("\r")))
    return bool((np.searchsorted(marks, breaks) % 2).any())


def _quickly(
    data: bytes, separator: str, names: Sequence[str], first: int, limits: Limits
) -> Columns | None:
    """Read well-quoted rows; None where one is not as wide as the header."""
    width = list(map(str, range(len(names))))
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(data),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=width),
            pyarrow.csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, ignore_empty_lines=False
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(width, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    _check_rows(len(table), limits)
    table = table.slice(first).combine_chunks()
    empty = np.ones(len(table), bool)
    for column in table.columns:
        if not empty.any():
            break
        empty &= pc.equal(pc.utf8_trim_whitespace(column), "").to_numpy(zero_copy_only=False)
    rows = np.arange(first + 1, first + 1 + len(table))
    if empty.any():
        table, rows = table.filter(pa.array(~empty)), rows[~empty]
    return table.columns, rows


def _carefully(
    data: bytes, separator: str, names: Sequence[str], limits: Limits, wrong: list[str]
) -> Columns:
    """Read rows one by one; add to ``wrong`` what is wrong with those of another width.

    Empty cells beyond the header, as a separator at the end of a row makes them, are left out.
    """
    width, rows, table = len(names), [], []
    for row, record in islice(_records(data, separator, limits), 1, None):
        if len(record) < width or any(map(str.strip, record[width:])):
            cells = f"{len(record):,} cell{'' if len(record) == 1 else 's'}"
            wrong.append(f"row {row} has {cells}, the header has {width}")
            continue
        rows.append(row)
        table.append(record[:width])
    columns = list(zip(*table, strict=True)) or [()] * width
    return [pa.array(cells, pa.string()) for cells in columns], np.array(rows, np.int64)


def _records(data: bytes, separator: str, limits: Limits) -> Iterator[tuple[int, list[str]]]:
    """Yield the header and all rows that are not empty, with their numbers."""
    reader, row, started = _reader(data, separator), 0, False
    while True:
        row += 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"row {row}{_parse_problem(str(error), limits)}") from None
        _check_rows(row, limits)
        if any(map(str.strip, record)) or (not started and len(record) > 1):
            started = True
            yield row, record


def _check_rows(row: int, limits: Limits) -> None:
    if row > limits.rows + 1:
        raise UserError(
            f"the table has more than {limits.rows:,} rows below its header, the maximum"
        )


def _parse_problem(error: str, limits: Limits) -> str:
    if "end of data" in error:
        return " opens a quotation mark that is never closed"
    if "field larger" in error:
        return (
            f" has a cell of more than {limits.cell:,} characters; perhaps a quotation mark is "
            "never closed"
        )
    return (
        " has text after a closing quotation mark; a quotation mark inside quotes is written twice"
    )
