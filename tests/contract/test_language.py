"""Texts use the field's terms: no word of the left column of the glossary below, wherever a person
reads.

Docstrings, string constants and comments of bandits/, bandits_app/ and pages/, the presets, the
live panel and the documents."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

# pattern: what to write
FORBIDDEN = {
    r"dice|luck\w*": "random draws, random numbers, common random numbers",
    r"coins?|coin flips?": "random draws",
    r"doubts?|doubted|doubtful": "uncertainty, confidence width, posterior standard deviation",
    r"beliefs?|believes?|believed": "prior or posterior (say which)",
    r"told|said|heard|says|tells|foretell\w*|foretold": "reports, states, describes, predicts",
    r"speaks?|spoken|talks?": "describes, covers",
    r"whoever|nobody|somebody|everybody|anybody|everyone|someone": "the user, no agent, all agents",
    r"lived|lives? through|brought to life": "simulated, replayed, instantiated",
    r"worlds?": "simulator or environment",
    r"rac(?:e|es|ed|ing)": "run (what a user starts), comparison (what it is)",
    r"click rates?": "click-through rate (CTR), click probability",
    r"evenly chosen|how evenly": "selection entropy",
    r"where the truth lies": "calibration by quantile (PIT histogram)",
    r"foresight|foresees?|foreseen": "explained variance of the true rewards, prediction",
    r"a line is enough|is a line enough|bends?|bent": "linearity check, nonlinear",
    r"waves?": "random Fourier features",
    r"things that are alike": "identical, equivalent",
    r"put right|mend(?:s|ed|ing)?": "repair",
    r"brought|brings?": "uploaded, provided",
    r"yesterday|tomorrow": "past or future observations",
    r"riddles?|honest\w*|flatters|flattering": "a literal statement",
    r"shel(?:f|ves)|desk|errands?": "list, table, task",
    r"as if nothing had happened|for ever|forever": "a literal statement",
}
PATTERN = re.compile(
    "|".join(rf"(?P<w{i}>\b(?:{p})\b)" for i, p in enumerate(FORBIDDEN)), re.IGNORECASE
)

# tells ten times faster that a text has none of them
ANY = re.compile(rf"\b(?:{'|'.join(FORBIDDEN)})\b")

# Strings that are names, not texts: a random stream, a preset, keys of widgets and of the session.
NAMES = re.compile(r"world|race|[a-z]+(?:-[a-z]*)+")
# Passages that may contain such a word: code, dotted paths, terms of the field, a title.
TERMS = re.compile(
    r"`[^`]*`|\b\w+(?:\.\w+)+\b|race conditions?|real[- ]world|long-lived|belief checks?|A racing algorithm for",  # noqa: E501
    re.IGNORECASE,
)
DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "tests/README.md",
    *(f"bandits/lessons/{p.name}" for p in (ROOT / "bandits" / "lessons").glob("*.md")),
    "CHANGELOG.md",
    *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")),
    *(f"benchmarks/{p.name}" for p in (ROOT / "benchmarks").glob("*.md")),
)


class Finding(NamedTuple):
    """A word that is not to be used, where it stands, and what to write."""

    file: str
    line: int
    word: str
    instead: str
    text: str


def words(text: str) -> Iterator[tuple[str, str, int]]:
    """Find the forbidden words of a text: word, replacement, offset."""
    if not ANY.search(text.lower()):
        return
    for found in PATTERN.finditer(TERMS.sub(lambda m: " " * len(m[0]), text)):
        place = int(str(found.lastgroup)[1:])
        yield found[0], list(FORBIDDEN.values())[place], found.start()


def check_text(file: str, text: str, line: int = 1) -> Iterator[Finding]:
    """Check one text that begins at a line of a file."""
    for word, instead, offset in words(text):
        above = text[:offset].count("\n")
        yield Finding(file, line + above, word, instead, text.split("\n")[above].strip()[:90])


def check_code(file: str, source: str) -> Iterator[Finding]:
    """Check the docstrings, the other string constants and the comments of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and not NAMES.fullmatch(node.value)
        ):
            yield from check_text(file, node.value, node.lineno)
    # splitting into tokens takes as long as all the rest, and most files hold no such word
    if not ANY.search(source.lower()):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from check_text(file, token.string, token.start[0])


def check_script(file: str, source: str) -> Iterator[Finding]:
    """Check a script or style sheet: its strings and comments, without identifiers."""
    for found in re.finditer(
        r"//[^\n]*|/\*.*?\*/|\"[^\"\n]* [^\"\n]*\"|`[^`\n]* [^`\n]*`", source, re.DOTALL
    ):
        yield from check_text(
            file, found[0].replace("`", "'"), 1 + source[: found.start()].count("\n")
        )


def check_json(file: str, source: str) -> Iterator[Finding]:
    """Check the values of a JSON file."""

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str) and not NAMES.fullmatch(value):
            yield value
        for part in (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        ):
            yield from texts(part)

    for text in texts(json.loads(source)):
        yield from check_text(file, text)


def check_document(file: str, source: str) -> Iterator[Finding]:
    """Check a Markdown file without its code blocks and link targets."""
    blank = lambda m: re.sub(r"[^\n]", " ", m[0])  # noqa: E731
    yield from check_text(file, re.sub(r"```.*?```|\]\([^)\s]*\)", blank, source, flags=re.DOTALL))


def files() -> Iterator[Path]:
    """All files whose texts are checked."""
    for folder in ("bandits", "bandits_app", "pages"):
        for ending in ("py", "js", "css", "json"):
            yield from sorted((ROOT / folder).rglob(f"*.{ending}"))
    yield ROOT / "app.py"
    for name in DOCUMENTS:
        yield from sorted(ROOT.glob(name))


def check(path: Path) -> list[Finding]:
    """Check one file."""
    name, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    kinds = {".py": check_code, ".json": check_json, ".md": check_document}
    return list(kinds.get(path.suffix, check_script)(name, source))


def test_texts_use_the_terms_of_the_field() -> None:
    findings = [finding for path in files() for finding in check(path)]
    assert not findings, "\n".join(
        f"{f.file}:{f.line}: '{f.word}' ({f.instead}): {f.text}" for f in findings
    )


@pytest.mark.parametrize(
    "word",
    [
        "dice",
        "luck",
        "doubt",
        "doubts",
        "told",
        "said",
        "foretold",
        "foretells",
        "whoever",
        "nobody",
        "somebody",
        "everybody",
        "lived",
        "race",
        "racing",
        "world",
        "click rate",
        "waves",
        "brought",
        "mend",
        "foresight",
        "A line is enough",
        "bent",
        "belief",
    ],
)
def test_a_planted_word_is_found_in_every_kind_of_file(word: str) -> None:
    planted = f"Text with {word} in it."
    code = (
        f'"""{planted}"""\n',
        f'def f():\n    """Summary.\n\n    {planted}\n    """\n',
        f'LABEL = "{planted}"\n',
        f'def f(x):\n    return f"{{x}} {planted}"\n',
        f"x = 1  # {planted}\n",
        f'x = st.button("{word}")\n'
        if word != "race" and word != "world"
        else f'x = st.button("{word.title()}")\n',
    )
    for source in code:
        assert [f.word.lower() for f in check_code("a.py", source)] == [word.lower()], source
    assert [f.line for f in check_code("a.py", code[1])] == [4]
    assert [f.line for f in check_document("a.md", f"# Title\n\n{planted}\n")] == [3]
    assert list(check_json("a.json", json.dumps({"about": planted})))
    assert list(check_script("a.js", f'// {planted}\nlet a = "{planted}";'))


def test_names_and_terms_of_the_field_are_no_findings() -> None:
    source = 'stream = seeds["world"]\nkey = "shelf-said"\nx = f(race=1)\n'
    assert not list(check_code("a.py", source))
    assert not list(
        check_document(
            "a.md", "```\nrace\n```\nThe stream `world` has a [race condition](world.md).\n"
        )
    )
    assert not list(
        check_text(
            "a.md", "A long-lived object; trace, embrace, unfolded, dicey-free words; a wave2 id."
        )
    )
