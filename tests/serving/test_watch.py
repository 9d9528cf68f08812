"""Monitors read the log of a service."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.cli.main import main
from bandits.serving.event_log import EventLog
from bandits.serving.registry import Registry
from bandits.serving.watch import watch
from tests.serving.test_service import policy

N, START = 4_000, 1_767_600_000.0


def written(folder: Path, *, falls: bool) -> Path:
    """Write a log in which half of the decisions are clicked; then, where it falls, a tenth."""
    registry = Registry(folder / "registry")
    registry.register(policy(), {})
    registry.promote(1)
    g, log = np.random.default_rng(4), EventLog(folder / "log")
    for i in range(N):
        body = {
            **{"item": "abc"[int(g.integers(3))], "propensity": 1 / 3, "candidates": None},
            **{"context": {"x": g.normal(), "y": g.normal()}, "version": 1},
            "share": 0.0,
            "arm": "fallback" if falls and i >= 3_000 else "champion",
        }
        log.append("decision", str(i), body, time=START + i)
        click = g.random() < (0.1 if falls and i >= 2_000 else 0.5)
        # one in ten has no reward
        if i % 10:
            log.append("reward", str(i), {"reward": float(click), "learned": True}, time=START + i)
    log.close()
    return folder


def test_monitors_report_what_falls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path, falls=True)
    found = watch(folder)
    assert found.decisions == N * 9 // 10
    assert {"page_hinkley", "adwin", "feature_drift", "fallbacks"} <= set(found.monitors)
    assert not {"calibration", "importance_weight"} & set(found.monitors)
    at = {alarm.monitor: alarm.step for _, alarm in reversed(found.alarms)}
    assert 1_800 < at["page_hinkley"] < 2_100
    assert at["fallbacks"] > 2_700
    assert "feature_drift" not in at
    assert main(["events", str(folder), "alarms", "--monitor", "page_hinkley"]) == 0
    first, line = capsys.readouterr().out.splitlines()[:2]
    assert first == "3,600 decisions with a reward, read by page_hinkley"
    assert line.startswith("2026-01-05T08:")
    assert "The mean reward fell" in line
    with pytest.raises(UserError, match="monitor calibration cannot read a log: it needs means"):
        watch(folder, monitors=["calibration"])


def test_monitors_are_silent_where_nothing_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, falls=False)
    kinds = ["page_hinkley", "feature_drift", "fallbacks"]
    assert watch(folder, monitors=kinds).alarms == []
    asked = [word for kind in kinds for word in ("--monitor", kind)]
    assert main(["events", str(folder), "alarms", *asked]) == 0
    assert "no alarm" in capsys.readouterr().out
