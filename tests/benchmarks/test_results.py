"""RESULTS.md keeps the targets of a benchmark, not its details."""

from __future__ import annotations

import re

from benchmarks.measure import RESULTS, Section


def test_the_short_form_has_the_targets_and_who_made_them() -> None:
    section = Section(
        "Speed", "How it was measured.", ("side", "ms"), [("ours", "2")], code="A command."
    )
    section.targets.append(("at most 3 ms", "2", True))
    assert section.brief() == (
        "## Speed\n\n| target | measured | met |\n| --- | --- | --- |\n| at most 3 ms | 2 | yes "
        "|\n\nA command.\n"
    )
    assert all(
        part in str(section)
        for part in ("How it was measured.", "| ours | 2 |", "| at most 3 ms | 2 |")
    )


def test_a_benchmark_without_targets_keeps_its_results() -> None:
    section = Section("Load", "How it was measured.", ("what", "seconds"), [("answer", "0.1")])
    assert section.brief() == "## Load\n\n| what | seconds |\n| --- | --- |\n| answer | 0.1 |\n"


def test_every_section_is_one_table_with_its_command_and_date() -> None:
    _, *sections = RESULTS.read_text(encoding="utf-8").split("\n## ")
    for section in sections:
        heading, table, made, *_ = section.strip().split("\n\n")
        assert all(line.startswith("|") for line in table.splitlines()), heading
        assert "`" in made, heading
        assert re.search(r"\d{4}-\d\d-\d\d", made), heading
