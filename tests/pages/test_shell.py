"""What surrounds every page: the panel Help, the tour and the link to the main button."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from bandits.runtime.pool import Pool
from bandits_app.shell.shell import BUTTONS, SHORTCUTS, STEPS
from tests.pages.support import open_page

ROOT = Path(__file__).parents[2]


def shell(page: str, **state: object) -> dict[str, Any]:
    """The data that a page sends to its shell."""
    at = open_page(page, **state)
    assert not at.exception
    protos = [
        getattr(found.proto, "bidi_component", found.proto) for found in at.get("bidi_component")
    ]
    (proto,) = [proto for proto in protos if proto.component_name.endswith("bandit_shell")]
    data: dict[str, Any] = json.loads(proto.json)
    return data


def test_help_lists_every_shortcut_of_the_pages() -> None:
    used = set()
    for file in [*(ROOT / "pages").rglob("*.py"), *(ROOT / "bandits_app").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "shortcut":
                assert isinstance(node.value, ast.Constant), file
                used.add(node.value.value)
    assert used == {shortcut.keys for shortcut in BUTTONS}


def test_the_tour_is_offered_on_home_alone(pool: Pool) -> None:
    home = shell("home")
    assert home["home"]
    assert not home["presenting"]
    assert len(home["steps"]) == len(STEPS) == 5
    assert [shortcut["keys"] for shortcut in home["shortcuts"]] == [
        shortcut.keys for shortcut in SHORTCUTS
    ]
    assert not shell("learn/glossary")["home"]


def test_presentation_mode_has_neither_tour_nor_help(pool: Pool) -> None:
    assert shell("arena", presenting=True)["presenting"]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.title)
def test_a_step_of_the_tour_is_short(step: Any) -> None:
    assert len(step.text) < 240
    assert step.target
