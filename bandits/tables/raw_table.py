"""A table as a file has it: texts, and numbers where its reader asks for them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.row_names import RowNames
from bandits.base.types import FloatArray

from .problems import Wrong, check
from .text import MISSING, numbers_of, unquoted

SOME = 100


class RawTable(NamedTuple):
    """Columns of equal length, and the names of their rows in the file.

    Attributes
    ----------
    data : pyarrow.Table
        n rows.
    rows : RowNames
    comma : bool
        Whether numbers may have decimal commas.
    typed : bool
        Whether the file states which columns are numbers; otherwise all are texts.
    wrong : tuple of str
        What is wrong with rows of the file that are none of the n, because they have more or fewer
        cells than the header.
    """

    data: pa.Table
    rows: RowNames
    comma: bool = False
    typed: bool = True
    wrong: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        names: list[str] = self.data.column_names
        return names

    def cells(self, name: str) -> list[Any]:
        """Return the cells of a column as Python objects."""
        cells: list[Any] = self._column(name).to_pylist()
        return cells

    def texts(self, name: str) -> NDArray[np.object_]:
        """Return a column as texts without white space around them, object (n,).

        "" where nothing is.

        Whole numbers have no fraction. NA and the like are texts.
        """
        column = self._column(name)
        if not _is_text(column.type) and not pa.types.is_integer(column.type):
            values = column.to_pandas().astype(object)
            column = pa.array(values.map(_shown, na_action="ignore"), from_pandas=True)
        trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()).fill_null(""))
        texts: NDArray[np.object_] = trimmed.to_numpy(zero_copy_only=False)
        if not self.typed:
            for i in np.flatnonzero(pc.starts_with(trimmed, '"').to_numpy(zero_copy_only=False)):
                texts[i] = unquoted(texts[i])
        return texts

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers, float64 (n,); NaN where nothing is.

        Raises
        ------
        UserError
            A cell is no number.
        """
        values, wrong = self.parsed(name, name)
        check([wrong], self.rows)
        return values

    def parsed(self, name: str, title: str) -> tuple[FloatArray, Wrong]:
        """Return a column as numbers, float64 (n,), NaN where nothing is, and the rows that hold
        something else; ``title`` is the name of the column in messages.
        """
        column = self._column(name)
        wrong = np.zeros(len(column), bool)

        def describe(i: int) -> str:
            return f"{title}: must be a number; got '{short(str(column[i].as_py()))}'"

        if _is_number(column.type):
            return _floats(column), Wrong(wrong, describe)
        if not _is_text(column.type):
            return np.full(len(column), math.nan), Wrong(~wrong, describe)
        values = _parsed(column, self.comma)
        if values is None:
            texts = [text or "" for text in column.to_pylist()]
            values, wrong = numbers_of(texts, self.comma)
        return values, Wrong(wrong, describe)

    def numbers_of(self, names: Iterable[str]) -> dict[str, FloatArray]:
        """Return the columns that are numbers: by the file or, where it states no types, by all
        their cells.
        """
        found = {}
        for name in names:
            with suppress(UserError):
                # a column of other texts is known by its first cells, and takes long otherwise
                if not self.typed and len(self.data) > SOME:
                    RawTable(self.data.slice(0, SOME), self.rows, self.comma).numbers(name)
                if not self.typed or _is_number(self._column(name).type):
                    found[name] = self.numbers(name)
        return found

    def _column(self, name: str) -> pa.Array:
        column = self.data.column(name).combine_chunks()
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _parsed(column: pa.Array, comma: bool) -> FloatArray | None:
    """Parse a column of plain numbers at once; None where it holds anything else."""
    with suppress(pa.ArrowInvalid):
        return _floats(column)
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    texts = pc.if_else(pc.is_in(pc.utf8_lower(texts), pa.array(MISSING)), None, texts)
    with suppress(pa.ArrowInvalid):
        decimal = pc.replace_substring(texts, ",", ".", max_replacements=1) if comma else texts
        return _floats(pc.if_else(pc.match_substring(texts, "."), texts, decimal))
    with suppress(pa.ArrowInvalid):
        return _floats(pc.cast(texts, pa.bool_()))
    return None


def _floats(column: pa.Array) -> FloatArray:
    values: FloatArray = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
    )


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _shown(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
