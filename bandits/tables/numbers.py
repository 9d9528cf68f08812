"""Numbers in texts, and texts that stand for none."""

from __future__ import annotations

import re

# in lower case
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,4})?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)


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
