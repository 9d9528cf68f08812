"""Measure the first part of RESULTS.md and rewrite it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .measure import RESULTS, Section, machine, name
from .peers import linear
from .speed import growth, preset, textbook

INTRODUCTION = """# Results

Written by `make bench` and by the commands in [README.md](README.md); they print how each figure was measured, and the
figures behind it. Both sides of a comparison are measured in turn on the same machine, with one thread each. Times are
processor times, which other load on the machine distorts less. A ratio is the median over the pairs, with the smallest
and the largest in brackets."""


def _others(own: Sequence[Section]) -> list[str]:
    """Return the sections of the present file that other commands write."""
    names = {name(section.title) for section in own}
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    return [
        f"## {section.rstrip()}"
        for section in text.split("\n## ")[1:]
        if name(section) not in names
    ]


def main() -> None:
    """Print each section with its details once it is measured.

    Replace the targets in the file at the end.
    """
    head = [INTRODUCTION, machine() + "."]
    print("\n\n".join(head), end="\n\n", flush=True)
    own: list[Section] = []
    for part in (textbook, preset, linear, growth):
        own.append(part.run())
        print(own[-1], flush=True)
    parts = [*head, *(section.brief().rstrip() for section in own), *_others(own)]
    RESULTS.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"written to {RESULTS.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
