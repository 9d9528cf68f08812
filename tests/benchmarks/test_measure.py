"""Tables state when they were made, and are named when their code has changed since."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.measure import outdated, ratio, stamp


def test_a_table_is_named_when_its_code_has_changed(tmp_path: Path) -> None:
    line = stamp(ratio)
    assert re.match(
        r"Made on \d{4}-\d\d-\d\d from commit .+ by `python -m .+`\.\n\n<!-- code: benchmarks\.",
        line,
    )
    file = tmp_path / "X.md"
    file.write_text(f"# Tables\n\n## Same\n\n{line}\n")
    assert list(outdated([file])) == []
    made = "Made on 2026-11-25 from commit 0a1b2c3 by `python -m x`."
    code = "<!-- code: benchmarks.measure:{} 00000000 -->"
    file.write_text(
        f"## Y\n\n{made}\n\n{code.format('ratio')}\n\n## Z\n\n{made}\n\n{code.format('gone')}\n"
    )
    assert list(outdated([file])) == [
        "X.md, section Y: the code (benchmarks.measure.ratio) has changed since 2026-11-25 "
        "(0a1b2c3)",
        "X.md, section Z: the code (benchmarks.measure.gone) has changed since 2026-11-25 "
        "(0a1b2c3)",
    ]


def test_every_table_states_date_commit_and_command() -> None:
    root = Path(__file__).parents[2]
    texts = [file.read_text(encoding="utf-8") for file in (root / "docs").rglob("*.md")]
    code = sum(text.count("\n<!-- code: ") for text in texts)
    made = sum(
        len(re.findall(r"\nMade on \S+ from commit .+ by `python -m .+`\.\n\n<!-- code: ", text))
        for text in texts
    )
    assert made == code > 30
