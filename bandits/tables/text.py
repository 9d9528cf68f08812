"""Decode the bytes of a text file, or say in one sentence what they are instead."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import BoolArray, FloatArray

_GZIP, _UTF_16 = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")
_BINARY = {
    b"PK": "an Excel or zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    _GZIP: "a gzip file",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file",
    **dict.fromkeys(_UTF_16, "text in UTF-16"),
}


class Limits(NamedTuple):
    """What a reader accepts.

    Attributes
    ----------
    bytes, rows, columns : int
        At most; bytes also after unpacking.
    cell, name : int
        Characters of a cell, and of a column's name.
    lenient : bool
        Whether text in UTF-16 or Windows-1252, gzip and columns without a name are read too.
    """

    bytes: int
    rows: int
    columns: int
    cell: int
    name: int = 100
    lenient: bool = False


def utf8(raw: bytes, limits: Limits, *, whole: bool = True) -> bytes:
    """Return a text in UTF-8 without a byte order mark.

    Parameters
    ----------
    raw : bytes
    limits : Limits
    whole : bool
        Whether ``raw`` is the whole file, not its beginning.

    Raises
    ------
    UserError
        The bytes are too many, or no text in an encoding that is read.
    """
    if limits.lenient and raw.startswith(_GZIP):
        raw = _unpacked(raw, limits, whole)
    if len(raw) > limits.bytes:
        size = f"{len(raw) / 2**20:.1f} MB; at most {limits.bytes // 2**20} MB"
        raise UserError(f"the file has {size} are allowed")
    if limits.lenient and raw.startswith(_UTF_16):
        raw = _decoded(raw, "utf-16", "UTF-16", whole).encode()
    for start, what in _BINARY.items():
        word = start == b"PK" and raw[2:4].isascii() and raw[2:4].isalpha()
        if raw.startswith(start) and not word:
            raise UserError(f"the file is {what}, not a CSV: save it as CSV (UTF-8) first")
    try:
        raw = raw.removeprefix(codecs.BOM_UTF8)
        text = _decoded(raw, "utf-8", "UTF-8", whole)
    except UserError:
        if not limits.lenient:
            raise
        text = _decoded(raw, "cp1252", "UTF-8 or Windows-1252", whole)
        raw = text.encode()
    if (at := text.find("\0")) >= 0:
        line = text.count("\n", 0, at) + 1
        raise UserError(f"line {line} holds a NUL byte: the file is not a CSV in UTF-8")
    if not text or text.isspace():
        raise UserError("the file is empty")
    return raw


def _decoded(raw: bytes, encoding: str, title: str, whole: bool) -> str:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(raw, final=whole)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = f"the file is not text in {title} (line {line})"
        raise UserError(f"{problem}: save it as CSV (UTF-8)") from None


def _unpacked(raw: bytes, limits: Limits, whole: bool) -> bytes:
    """Unpack one byte more than is allowed, at most."""
    try:
        return gzip.GzipFile(fileobj=io.BytesIO(raw)).read(limits.bytes + 1 if whole else len(raw))
    except (OSError, EOFError, zlib.error):
        raise UserError("the file is a gzip file that is damaged") from None


# in lower case
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
_NUMBER = re.compile(
    r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,4})?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE
)


def parsed_number(text: str, comma: bool = False) -> float | None:
    """Parse a number, infinities included; None for any other text.

    Parameters
    ----------
    text : str
    comma : bool
        Whether it may have a decimal comma.
    """
    if comma and "." not in text:
        text = text.replace(",", ".", 1)
    return float(text) if _NUMBER.fullmatch(text) else None


# that separate thousands: where the point is the decimal sign, and where the comma is
_THOUSANDS = {False: ", '\u00a0\u2009\u202f", True: ". '\u00a0\u2009\u202f"}
_GROUPED = r"[+-]?[1-9]\d{0,2}(%s\d{3})+(%s\d*)?"


def number_style(texts: Iterable[str], comma: bool = False) -> tuple[bool, str]:
    """Return how the numbers of a column are written: with decimal commas or not, and what
    separates thousands, from its texts that are no plain numbers.

    A sign separates thousands where it stands before three digits in all of its texts, and at
    least one of them cannot mean anything else: 1.234 with decimal commas is a number below 2,
    1.234.567 and 1.234,5 are not. Commas between other digits are decimal ones, as in 0,5.
    """
    texts = list(texts)
    decimal = "," if comma else r"\."
    for sign in _THOUSANDS[comma]:
        with_sign = [text for text in texts if sign in text]
        grouped = re.compile(_GROUPED % (re.escape(sign), decimal), re.ASCII)
        plain = sign == "." and all(text.count(".") == 1 and "," not in text for text in with_sign)
        if with_sign and not plain and all(map(grouped.fullmatch, with_sign)):
            return comma, sign
    if not comma and any("," in text for text in texts) and not any("." in text for text in texts):
        return True, ""
    return comma, ""


def numbers_of(texts: Sequence[str], comma: bool) -> tuple[FloatArray, BoolArray]:
    """Parse a column of texts, NaN where nothing is; also return which texts are no numbers."""
    stripped = [text.strip() for text in texts]
    missing = np.array([text.lower() in MISSING for text in stripped], bool)
    decimal, thousands = number_style(
        (t for t, empty in zip(stripped, missing, strict=True) if not empty), comma
    )
    values = np.full(len(texts), np.nan)
    wrong = np.zeros(len(texts), bool)
    for i in np.flatnonzero(~missing).tolist():
        number = parsed_number(stripped[i].replace(thousands, ""), decimal)
        wrong[i], values[i] = number is None, np.nan if number is None else number
    return values, wrong


# first characters that a reader or a spreadsheet takes for something else than a name
_SPECIAL = tuple("\"'=+-@[{")


def quoted(text: str) -> str:
    """Return a name as a cell of CSV that is read as the same name: as JSON where white space or
    signs at its ends would be taken for something else.
    """
    plain = text == text.strip() != "" and text.isprintable() and not text.startswith(_SPECIAL)
    return text if plain and "|" not in text else json.dumps(text)


def unquoted(cell: str) -> str:
    """Return the name of a cell that `quoted` may have written."""
    if len(cell) > 1 and cell.startswith('"') and cell.endswith('"'):
        with suppress(ValueError):
            return str(json.loads(cell))
    return cell
