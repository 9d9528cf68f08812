"""The lab Production before its start, and its figure."""

from __future__ import annotations

from pathlib import Path

from bandits.serving.dashboard import production
from bandits_app.labs.production import figure
from tests.pages.support import open_page
from tests.serving.test_trainer import shop


def test_nothing_runs_before_it_is_started() -> None:
    at = open_page("labs/production")
    assert not at.exception
    assert at.title[0].value == "Production"
    assert [button.label for button in at.button] == ["Start"]


def test_the_figure_holds_what_log_and_registry_hold(tmp_path: Path) -> None:
    found = production(shop(tmp_path), "http://127.0.0.1:1", trainer=False, rollout=(0.2, 0.5))
    assert not found.answers
    boxes = {box.title: box for group in found.groups.values() for box in group}
    assert boxes["Log"].value == "600 events"
    assert boxes["Bandit service"].value == "version 1"
    assert boxes["Rollout"].note == "steps 20 %, 50 %"
    assert boxes["Choice"].value == "p50 –"
    drawn = figure(found)
    assert drawn.count("<li") == len(boxes)
    assert "600 events" in drawn
