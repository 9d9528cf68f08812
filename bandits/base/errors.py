"""What cannot be done is said in one sentence."""

from __future__ import annotations

import json
from typing import Any


class UserError(ValueError):
    """Something that cannot be done, said in one printable line of at most 400 characters."""

    def __init__(self, sentence: str) -> None:
        super().__init__(short(sentence, 400))


def short(value: Any, length: int = 60) -> str:
    """A value as a sentence can hold it: one printable line."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    text = printable(text[: 10 * length])
    return text if len(text) <= length else text[: length - 3] + "..."


def printable(text: str) -> str:
    """Text as one line without control characters: spaces for white space, escapes for what cannot be shown."""
    text = " ".join(text.split())
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
