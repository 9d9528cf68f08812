"""Measure the first part of RESULTS.md and rewrite it."""

from __future__ import annotations

import sys

from .measure import RESULTS, machine
from .peers import linear
from .speed import growth, preset, textbook

INTRODUCTION = """# Results

Written by `python -m benchmarks`, which measures both sides of each comparison in turn on the same machine, with one
thread each; other commands write the sections that name them. Times are processor times, which other load on the
machine distorts less. A ratio is the median over the pairs, with the smallest and the largest in brackets."""


OTHERS = (
    "Stress",
    "Vowpal",
    "Viewers",
    "Load",
    "Live",
    "Neural",
    "Sweep",
    "Cores",
    "Preview",
    "Guards",
    "Off-policy",
    "Recording",
)  # written by other commands


def _others() -> list[str]:
    """Return the sections of the present file that other commands write."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    return [f"## {section.rstrip()}" for section in text.split("\n## ")[1:] if section.startswith(OTHERS)]


def main() -> None:
    """Print each section once it is measured; replace the file at the end."""
    parts = [INTRODUCTION, machine() + "."]
    print("\n\n".join(parts), end="\n\n", flush=True)
    for part in (textbook, preset, linear, growth):
        section = part.run()
        parts.append(str(section).rstrip())
        print(section, flush=True)
    RESULTS.write_text("\n\n".join([*parts, *_others()]) + "\n", encoding="utf-8")
    print(f"written to {RESULTS.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
