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

from .text import MISSING, parsed_number

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
    """

    data: pa.Table
    rows: RowNames
    comma: bool = False
    typed: bool = True

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
        return texts

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers, float64 (n,); NaN where nothing is.

        Raises
        ------
        UserError
            A cell is no number.
        """
        column = self._column(name)
        if _is_number(column.type):
            return _floats(column)
        values, wrong = _parsed(column, self.comma) if _is_text(column.type) else (None, 0)
        if values is None:
            got = short(str(column[wrong].as_py()))
            raise UserError(f"{self.rows[wrong]}, {name}: must be a number; got '{got}'")
        return values

    def numbers_of(self, names: Iterable[str]) -> dict[str, FloatArray]:
        """Return the columns that are numbers: by the file or, where it states no types, by all
        their cells.
        """
        found = {}
        for name in names:
            with suppress(UserError):
                if not self.typed or _is_number(self._column(name).type):
                    found[name] = self.numbers(name)
        return found

    def _column(self, name: str) -> pa.Array:
        column = self.data.column(name).combine_chunks()
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _parsed(column: pa.Array, comma: bool) -> tuple[FloatArray | None, int]:
    """Parse a column of texts.

    Return its numbers and -1, or None and the index of the first that is none.
    """
    # a column of other texts is known by its first ones, and takes long otherwise
    if len(column) > SOME and (found := _parsed(column[:SOME], comma))[0] is None:
        return found
    with suppress(pa.ArrowInvalid):
        return _floats(column), -1
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    texts = pc.if_else(pc.is_in(pc.utf8_lower(texts), pa.array(MISSING)), None, texts)
    with suppress(pa.ArrowInvalid):
        decimal = pc.replace_substring(texts, ",", ".", max_replacements=1) if comma else texts
        return _floats(pc.if_else(pc.match_substring(texts, "."), texts, decimal)), -1
    with suppress(pa.ArrowInvalid):
        return _floats(pc.cast(texts, pa.bool_())), -1
    values = np.full(len(texts), math.nan)
    for i, text in enumerate(texts.to_pylist()):
        if text is None:
            continue
        number = parsed_number(text, comma)
        if number is None:
            return None, i
        values[i] = number
    return values, -1


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
