"""Turn the Markdown of lessons into HTML: paragraphs, lists, tables, emphasis and formulas."""

from __future__ import annotations

import html
import re

_SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "theta": "θ",
    "lambda": "λ", "mu": "μ", "sigma": "σ", "phi": "φ", "omega": "ω", "top": "⊤", "le": "≤", "sim": "∼", "sum": "∑",
    "max": "max", "ln": "ln", "quad": "  ", "Big": "", "big": "", "pm": "±", "nabla": "∇", "sqrt": "√",
}  # fmt: skip
_ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304"}


def to_html(markdown: str) -> str:
    """Convert a text; only what lessons use is known."""
    blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", markdown) if block.strip()]
    return "\n".join(_block(block) for block in blocks)


def inline(text: str) -> str:
    """Convert emphasis, code and formulas within a paragraph; everything else is text."""
    parts = re.split(r"(\$[^$]+\$|`[^`]+`)", text)
    return "".join(_part(part) for part in parts)


def _part(part: str) -> str:
    if len(part) > 2 and part[0] == part[-1] == "$":
        return f'<span class="formula">{formula(part[1:-1])}</span>'
    if len(part) > 2 and part[0] == part[-1] == "`":
        return f"<code>{html.escape(part[1:-1])}</code>"
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(part), flags=re.DOTALL)
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", escaped, flags=re.DOTALL)


def _block(block: str) -> str:
    lines = block.split("\n")
    if lines[0].startswith("- "):
        items = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
        return f"<ul>{''.join(f'<li>{inline(item.strip())}</li>' for item in items)}</ul>"
    if lines[0].startswith("|"):
        return table([[cell.strip() for cell in line.strip("| ").split("|")] for line in _cells(lines)])
    return f"<p>{inline(' '.join(lines))}</p>"


def _cells(lines: list[str]) -> list[str]:
    """Return the rows of a table, without the line below its head; an empty first cell stays."""
    rows = [line.replace("| |", "|\u00a0|", 1) for line in lines]
    return [row for row in rows if not re.fullmatch(r"[|\-: ]+", row)]


def table(rows: list[list[str]]) -> str:
    """Write a table whose first row is its head."""
    head, *body = ["".join(f"<{tag}>{inline(cell)}</{tag}>" for cell in row) for row, tag in _tagged(rows)]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>"


def _tagged(rows: list[list[str]]) -> list[tuple[list[str], str]]:
    return [(row, "td" if i else "th") for i, row in enumerate(rows)]


def formula(latex: str) -> str:
    """Write a formula of the registry in HTML, without a typesetter: Greek letters, roots, indices and powers."""
    text = re.sub(r"\\text\{([^}]*)\}|\\mathrm\{([^}]*)\}", lambda m: m[1] or m[2], latex)
    text = re.sub(r"\\math\w+ ?(\w)", r"\1", text)
    text = re.sub(r"\\[ ,;!]", " ", text)
    text = re.sub(r"\\(hat|tilde|bar)\s*(\\[A-Za-z]+|\w)", lambda m: f"{m[2]}{{{{{m[1]}}}}}", text)
    text = re.sub(r"\\([A-Za-z]+)\s?", lambda m: _SYMBOLS.get(m[1], m[1]), text)
    text = re.sub(r"\{\{(hat|tilde|bar)\}\}", lambda m: _ACCENTS[m[1]], text)
    text = html.escape(text)
    text = re.sub(r"√\{((?:[^{}]|\{[^{}]*\})*)\}", r'√<span class="root">\1</span>', text)
    text = re.sub(r"√(\w)", r'√<span class="root">\1</span>', text)
    for sign, tag in (("_", "sub"), (r"\^", "sup")):
        text = re.sub(rf"{sign}\{{([^{{}}]*)\}}", rf"<{tag}>\1</{tag}>", text)
        text = re.sub(rf"{sign}(\w|⊤)", rf"<{tag}>\1</{tag}>", text)
    return text.replace("{", "").replace("}", "")
