"""The programs of docs/policy.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "policy.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def test_the_first_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks()[0], {})
    assert (tmp_path / "shop.policy").exists()


def test_the_loop_on_digits_learns_in_twenty_lines() -> None:
    loop, names = blocks()[1], dict[str, Any]()
    assert len(loop.splitlines()) <= 20
    exec(loop, names)
    # 600 images: random labels are right in 10 %, 14.9 % with 4 standard errors
    assert names["right"] / 600 > 0.5


@pytest.mark.slow
def test_a_dqn_of_another_library_runs_on_visits() -> None:
    program, names = blocks()[2], dict[str, Any]()
    exec(program, names)
    visits = np.array(names["clicks"])
    # a uniform choice earns 2.2957 clicks per visit, the optimum 7.2452
    low, high = (visits.mean() + sign * 4 * visits.std() / 10 for sign in (-1, 1))
    assert low < 7.2452
    assert high > 2.2957
