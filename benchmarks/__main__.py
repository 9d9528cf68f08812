"""Measure everything and rewrite RESULTS.md."""

from __future__ import annotations

import sys

from .measure import RESULTS, machine
from .peers import linear
from .speed import growth, preset, textbook

INTRODUCTION = """# Results

Written by `python -m benchmarks`; every number was measured by that one command, both sides of a comparison in turn on
the same machine, one thread each. Times are processor time, so that what else the machine does distorts them
less; a ratio is the median of the pairs, with the smallest and the largest in brackets."""


KEPT = ("Stress", "Viewers", "Load", "Live", "Neural", "Sweep")  # sections that other commands write


def _others() -> list[str]:
    """The sections of the present file that are not measured here."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    return [f"## {section.rstrip()}" for section in text.split("\n## ")[1:] if section.startswith(KEPT)]


def main() -> None:
    """Print the sections as they are measured; the file is replaced once all are there."""
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
