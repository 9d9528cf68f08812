"""Tables of documents carry the hash of the code that generated them, and the texts of that code."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks import measure
from benchmarks.measure import ROOT, Section, code_hash, stamp

SECTIONS = (
    "docs/REPRODUCED.md",
    "docs/RANKING.md",
    "docs/decisions/defaults.md",
    "benchmarks/RESULTS.md",
    "docs/OFFPOLICY.md",
)
# one function writes the whole document
WHOLE = (
    "docs/SHOWDOWN.md", "docs/EXPLORATION.md", "docs/CHANGE.md", "docs/MONITORS.md", "docs/NEW.md", "docs/GUARDS.md",
    "docs/ARTWORK.md",
)  # fmt: skip
# in such a document, sections of another command
OWN = {
    "docs/NEW.md": (
        "Clicks against privacy", "How many products until sharing wins", "A persona of 2 %",
        "Ten flops: clicks lost per flop",
    ),
}  # fmt: skip
BY_HAND = ("Stress",)
STAMP = re.compile(r"<!-- code: ([\w.]+):(\w+) ([0-9a-f]{8}) -->")


def parts(document: str) -> Iterator[tuple[str, str]]:
    """Yield title and text of every generated part of a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    if document in WHOLE:
        head, *own = text.split("\n## ")
        apart = [part for part in own if part.split("\n")[0] in OWN.get(document, ())]
        yield document, "\n## ".join([head, *(part for part in own if part not in apart)])
        yield from ((part.split("\n")[0], part) for part in apart)
        return
    for part in text.split("\n## ")[1:]:
        title = part.split("\n")[0]
        if re.search(r"^\| ?---", part, re.MULTILINE) and title not in BY_HAND:
            yield title, part


PARTS = [(document, title, part) for document in (*SECTIONS, *WHOLE) for title, part in parts(document)]


def normal(text: str) -> str:
    return " ".join(text.split())


def sentences(function: Callable[..., Any]) -> list[str]:
    """Return the constant texts that a function writes, in pieces of at least 25 characters."""
    (definition,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(definition, ast.FunctionDef)
    described = ast.get_docstring(definition, clean=False)
    helps = [word.value for word in ast.walk(definition) if isinstance(word, ast.keyword) and word.arg == "help"]
    ignored = {id(node) for each in helps for node in ast.walk(each)}
    texts = [
        node.value
        for node in ast.walk(definition)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored
    ]
    lines = [normal(line) for text in texts if text != described for line in text.split("\n")]
    return [line for line in lines if len(line) >= 25]


def test_all_generated_parts_are_found() -> None:
    assert len(PARTS) > 25


@pytest.mark.parametrize(("document", "title", "part"), PARTS, ids=[f"{d}: {t}" for d, t, _ in PARTS])
def test_a_part_is_what_its_code_writes(document: str, title: str, part: str) -> None:
    """Where this fails, run the command that the part names; if no text or number can change, write the new hash."""
    found = STAMP.findall(part)
    assert len(found) == 1, f"{document}, {title}: a generated table needs one line <!-- code: module:function hash -->"
    module, name, written = found[0]
    function = getattr(import_module(module), name)
    assert written == code_hash(function), f"{document}, {title}: {module}:{name} has changed since; {stamp(function)}"
    missing = [sentence for sentence in sentences(function) if sentence not in normal(part)]
    assert not missing, f"{document}, {title} lacks what {module}:{name} writes: {missing}"


def test_the_hash_follows_what_a_function_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant that it uses changes the hash; white space and other functions do not."""
    monkeypatch.syspath_prepend(tmp_path)
    hashes = []
    for i, (size, other) in enumerate([("3", "1"), ("4", "1"), (" 3", "2")]):
        code = f"SIZE = {size}\n\ndef make():\n    return helper(SIZE)\n\ndef helper(n):\n    return n\n\n"
        (tmp_path / f"generator_{i}.py").write_text(code + f"def other():\n    return {other}\n", encoding="utf-8")
        hashes.append(code_hash(import_module(f"generator_{i}").make))
    assert hashes[0] != hashes[1]
    assert hashes[0] == hashes[2]


def test_a_section_ends_with_its_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RESULTS", tmp_path / "RESULTS.md")
    measure.RESULTS.write_text("# Results\n\n## Title\n\nold\n", encoding="utf-8")
    measure.keep(Section("Title", "Notes.", ("a",), [("1",)], code="<!-- code: m:f 12345678 -->"))
    assert measure.RESULTS.read_text(encoding="utf-8").endswith("| 1 |\n\n<!-- code: m:f 12345678 -->\n")
