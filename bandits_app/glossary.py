"""The glossary: its view, links to its terms, and docs/glossary.md (`python -m
bandits_app.glossary`).
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from bandits_app.widgets.text import plain_symbol

INTRODUCTION = (
    "What does a term or symbol of the playground mean? Terms are sorted by name; the symbols are "
    "those of the formulas in the Arena."
)


class Term(NamedTuple):
    """An entry of the glossary.

    Attributes
    ----------
    id : str
        Anchor on the page.
    term : str
    symbol : str
        LaTeX; empty where there is none.
    text : str
        Definition in one or two sentences.
    see : tuple of str
        Anchors of related terms.
    """

    id: str
    term: str
    symbol: str
    text: str
    see: tuple[str, ...]


@functools.cache
def terms() -> dict[str, Term]:
    """Return all entries by anchor, sorted by term."""
    entries = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return {entry["id"]: Term(**{**entry, "see": tuple(entry["see"])}) for entry in entries}


def link(anchor: str, text: str = "") -> str:
    """Return a Markdown link to a term of the view Glossary.

    Raises
    ------
    KeyError
        There is no such term.
    """
    return f"[{text or terms()[anchor].term}](learn?view=glossary#{terms()[anchor].id})"


def link_symbol(symbol: str, text: str) -> str:
    """Return a text linked to the term with a Greek symbol (LaTeX).

    Unlinked if the glossary does not have it.
    """
    # a Latin letter has several meanings: a is an arm and a prior's parameter
    greek = symbol.startswith("\\")
    anchor = next(
        (entry.id for entry in terms().values() if greek and entry.symbol == symbol), None
    )
    return text if anchor is None else link(anchor, text)


def found(query: str) -> list[Term]:
    """Return the terms that contain a text, whatever its case: in name, symbol (also alpha or α for
    a Greek one) or definition.
    """
    text = query.strip().casefold()
    return [
        term
        for term in terms().values()
        if text in f"{term.term} {term.symbol} {plain_symbol(term.symbol)} {term.text}".casefold()
    ]


def definition(entry: Term, page: str = "") -> str:
    """Return a definition in Markdown: symbol, text and links to related terms."""
    symbol = f"${entry.symbol}$\u2002" if entry.symbol else ""
    related = ", ".join(f"[{terms()[anchor].term}]({page}#{anchor})" for anchor in entry.see)
    return f"{symbol}{entry.text}" + (f" See {related}." if related else "")


def document() -> str:
    """Return docs/glossary.md."""
    lines = ["# Glossary", "", INTRODUCTION, ""]
    for entry in terms().values():
        lines += [f'<a id="{entry.id}"></a>', "", f"**{entry.term}**  ", definition(entry), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    Path("docs/glossary.md").write_text(document(), encoding="utf-8")


def draw() -> None:
    """Draw the view."""
    st.title("Glossary", anchor=False)
    st.markdown(
        "What does a term or symbol mean? Enter a part of its name, or scroll: the terms are "
        "sorted by name."
    )
    query = st.text_input(
        "Search",
        key="glossary-search",
        icon=":material/search:",
        placeholder="Search terms",
        label_visibility="collapsed",
    )
    matches = found(query)
    if not matches:
        st.markdown("No term contains this text.")
    for term in matches:
        st.subheader(term.term, anchor=term.id)
        st.markdown(definition(term))
