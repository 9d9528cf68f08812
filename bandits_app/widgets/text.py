"""Show texts that a user may have typed: as text, never as markup, a link or a spreadsheet
formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.base.formatting import GLUE


def refuse(error: UserError | str) -> None:
    """Show why a request cannot be carried out."""
    st.error(escape_markdown(sentence(str(error))), icon=":material/block:")


def sentence(text: str) -> str:
    """Return a message as a sentence: a capital letter, unless it begins with the path of a field,
    and a full stop.
    """
    if re.match(r"[a-z]+[ :]", text):
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def bullets(sentences: Iterable[str]) -> None:
    """Write one sentence a bullet; nothing without any."""
    text = "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
    if text:
        st.markdown(glued(text))


def glued(text: str) -> str:
    """Keep numbers and percent signs on one line, so that no line begins with a percent sign."""
    return text.replace(" %", f"{GLUE}%")


def escape_markdown(text: str) -> str:
    """Escape a text for `st.markdown`: no markup, no picture, and no address that becomes a
    link.
    """
    escaped = re.sub(r"([\\`*_\[\]<>$:!~])", r"\\\1", text)
    # a zero-width space ends an address
    return re.sub(r"(?i)(www)(?=\.)|(//)|(@)", "\\g<0>\u200b", escaped)


def safe_cell(text: str) -> str:
    """Return a text that a spreadsheet, to which a table may be downloaded, does not take for a
    formula.
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def safe_agents(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose column of agents no spreadsheet takes for formulas."""
    return table.assign(Agent=[safe_cell(label) for label in table["Agent"]])


_SYMBOLS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "Delta": "Δ",
    "epsilon": "ε",
    "varepsilon": "ε",
    "eta": "η",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "xi": "ξ",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "omega": "ω",
    "ell": "ℓ",
}
_SCRIPTS = {"^2": "²", **{f"_{n}": chr(0x2080 + n) for n in range(10)}}


def plain_symbol(latex: str) -> str:
    """Return a LaTeX symbol in Unicode, for labels: a screen reader would read LaTeX letter by
    letter.
    """
    letters = re.sub(r"\\([A-Za-z]+)", lambda found: _SYMBOLS.get(found[1], found[0]), latex)
    return re.sub(r"[\^_]\d", lambda found: _SCRIPTS.get(found[0], found[0]), letters)
