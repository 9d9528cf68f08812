"""Read descriptions and references from docstrings in numpydoc style."""

from __future__ import annotations

import inspect
import re


def description(cls: type) -> str:
    """Return the first paragraph of a class's docstring as one line, without markup."""
    return plain(((cls.__doc__ and inspect.getdoc(cls)) or "").split("\n\n")[0])


def references(cls: type) -> list[str]:
    """Return the entries of a class's section "References", one line each, without markup.

    An entry begins with its number, ``.. [1]``, or is a paragraph or an unindented line where there are no numbers.
    """
    section = re.search(r"^References\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", inspect.getdoc(cls) or "", re.M | re.S)
    if section is None:
        return []
    entries = re.split(r"^\.\. \[\d+\]\s*|\n(?=\S)", section[1], flags=re.M)
    return [text for entry in entries if (text := plain(entry))]


def plain(text: str) -> str:
    """Return a text in reStructuredText as one line without its markup: citations, roles, backticks."""
    text = re.sub(r"\s*\[\d+\]_(,\s*\[\d+\]_)*", "", text)
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text)
    return " ".join(re.sub(r"`{1,2}([^`]*)`{1,2}_?", r"\1", text).split())
