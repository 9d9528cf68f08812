"""Format numbers and short texts for messages, tables and the terminal."""

from __future__ import annotations

import inspect
import json
import math
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

# a number and its unit stay on one line
GLUE = "\u00a0"
_TIMES = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


def number(value: float) -> str:
    """Format a number with three significant digits: 0.413, 1,234, −2."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value + 0.0:.3g}"
    return text.replace("-", "−")


def count(value: float) -> str:
    """Format a whole number with thousands separators: 1,234."""
    return "–" if not math.isfinite(value) else f"{round(value) + 0:,}".replace("-", "−")


def listed(names: Iterable[str], word: str = "and") -> str:
    """Join names: a, b and c."""
    *others, last = [*names] or [""]
    return f"{', '.join(others)} {word} {last}" if others else last


def count_of(value: float, noun: str) -> str:
    """Format a number of things, with the noun in the singular or plural: 1 click, 2 clicks."""
    return f"{count(value)} {noun.removesuffix('s') if count(value) == '1' else noun}"


def percent(value: float, digits: int = 0) -> str:
    """Format a share as a percentage: 87 %, −3 %."""
    if not math.isfinite(value):
        return "–"
    # Adding 0 makes −0 a 0
    return f"{round(100 * value, digits) + 0.0:.{digits}f} %".replace("-", "−")


def duration(seconds: float) -> str:
    """Format seconds with two significant digits: 2.4 ms, 11 s, 3.1 hours."""
    if seconds >= 3.6e3:
        days = seconds / 86400
        return (
            f"{_significant(seconds / 3600)}{GLUE}hours" if days < 2 else f"{count(days)}{GLUE}days"
        )
    return _with_unit(seconds, _TIMES)


def time_left(seconds: float) -> str:
    """Format an expected time in words, as coarsely as it is known: about 40 s left, about 2 min
    left.
    """
    if seconds < 10:
        return "a few seconds left"
    if seconds < 55:
        return f"about {round(seconds, -1):.0f}{GLUE}s left"
    if seconds < 3570:
        return f"about {max(1, round(seconds / 60))}{GLUE}min left"
    return f"about {duration(max(seconds, 3600))} left".replace(
        f"about 1{GLUE}hours", f"about 1{GLUE}hour"
    )


def size(bytes: float) -> str:
    """Format a number of bytes with three significant digits: 368 MB."""
    return _with_unit(bytes, _BYTES, 3)


def rounded(value: float) -> str:
    """Format a number with two significant digits: 13,000; from 10^9 on as a power of ten."""
    if value >= 1e9:
        return f"10^{math.log10(value):.0f}"
    digits = max(math.floor(math.log10(max(value, 1))) - 1, 0)
    return count(round(value, -digits))


def short(value: Any, length: int = 60) -> str:
    """Return a value as one printable line of at most ``length`` characters."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    text = printable(text[: 10 * length])
    return text if len(text) <= length else text[: length - 3] + "..."


def printable(text: str) -> str:
    """Return a text as one line: white space as single spaces, control characters escaped."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """Return a text with line breaks and control characters escaped: what a terminal must not
    interpret.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def spelled(text: str) -> str:
    """Fold case, and spell Greek letters: α 0.5 becomes alpha 0.5."""
    return re.sub(
        "[α-ω]", lambda letter: unicodedata.name(letter[0]).split()[-1].lower(), text.casefold()
    )


def _significant(value: float, digits: int = 2) -> str:
    places = max(digits - 1 - math.floor(math.log10(value)), 0) if value > 0 else 0
    return f"{value:,.{places}f}".rstrip("0").rstrip(".") if places else count(value)


def _with_unit(value: float, units: tuple[tuple[float, str], ...], digits: int = 2) -> str:
    factor, unit = next(((f, u) for f, u in units if value >= 0.9995 * f), units[-1])
    return f"{_significant(value / factor, digits)}{GLUE}{unit}"


def description(cls: type) -> str:
    """Return the first paragraph of a class's docstring as one line, without markup."""
    return plain(((cls.__doc__ and inspect.getdoc(cls)) or "").split("\n\n")[0])


def references(cls: type) -> list[str]:
    """Return the entries of a class's section "References", one line each, without markup.

    An entry begins with its number, ``.. [1]``, or is a paragraph or an unindented line where there
    are no numbers."""
    section = re.search(
        r"^References\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", inspect.getdoc(cls) or "", re.M | re.S
    )
    if section is None:
        return []
    entries = re.split(r"^\.\. \[\d+\]\s*|\n(?=\S)", section[1], flags=re.M)
    return [text for entry in entries if (text := plain(entry))]


def plain(text: str) -> str:
    """Return a text in reStructuredText as one line without its markup: citations, roles,
    backticks.
    """
    text = re.sub(r"\s*\[\d+\]_(,\s*\[\d+\]_)*", "", text)
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text)
    return " ".join(re.sub(r"`{1,2}([^`]*)`{1,2}_?", r"\1", text).split())
