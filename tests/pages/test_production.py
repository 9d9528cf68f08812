"""The lab Production before its start, and its figure."""

from __future__ import annotations

from pathlib import Path

from bandits.serving.dashboard import Box, Production, production
from bandits.serving.event_log import EventLog
from bandits_app.labs.production import figure
from tests.pages.support import open_page
from tests.serving.test_trainer import shop


def test_nothing_runs_before_it_is_started() -> None:
    at = open_page("labs/production")
    assert not at.exception
    assert at.title[0].value == "Production"
    assert [button.label for button in at.button] == ["Start"]


def test_the_figure_holds_what_log_and_registry_hold(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    log = EventLog(folder / "log")
    alarm = {"monitor": "adwin", "version": 2, "share": 0.2, "sentence": "The mean reward fell."}
    log.append("alarm", "", alarm, time=0.0)
    log.close()
    address, rollout = "http://127.0.0.1:1", (0.2, 0.5)
    found = production(folder, address, active=True, trainer=False, rollout=rollout)
    assert not found.answers
    boxes = named(found)
    assert boxes["Log"].value == "601 events"
    assert boxes["Bandit service"].value == "version 1"
    assert boxes["Rollout"].note == "steps 20 %, 50 %"
    assert boxes["Choice"].value == "p50 –"
    assert boxes["Visitors"].value == "0 requests/s"
    assert boxes["Monitoring"][1:3] == ("1 alarm", "no answer")
    (stated,) = found.alarms
    sentence = "Adaptive windowing (ADWIN), version 2: The mean reward fell."
    assert stated == ("00:00:00", sentence)
    drawn = figure(found)
    assert drawn.count("<li") == len(boxes)
    assert "601 events" in drawn
    # a rate of what has stopped would be that of another time
    boxes = named(production(folder, address, active=False, trainer=False, rollout=rollout))
    for title in ("Visitors", "Choice", "Reward", "Update", "Trainer", "Fallback"):
        assert boxes[title][1:3] == ("stopped", "")
    assert boxes["Monitoring"][1:3] == ("1 alarm", "stopped")


def test_many_alarms_leave_the_changes_in_sight(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log")
    log.append("versions", "", {"aliases": [1, None, None, None]}, time=0.0)
    alarm = {"monitor": "adwin", "version": None, "share": 0.0, "sentence": "It fell."}
    for _ in range(201):
        log.append("alarm", "", alarm, time=1.0)
    log.close()
    nowhere = "http://127.0.0.1:1"
    found = production(tmp_path, nowhere, active=False, trainer=False, rollout=(0.2,))
    assert [each.sentence for each in found.happened] == ["Champion: version 1, before: none."]
    assert len(found.alarms) == 5
    assert named(found)["Monitoring"].value == "201 alarms"


def named(found: Production) -> dict[str, Box]:
    """Return the boxes by title."""
    return {box.title: box for group in found.groups.values() for box in group}
