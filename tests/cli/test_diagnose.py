"""``python -m bandits diagnose``: the conclusions of the view Diagnostics on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bandits import run
from bandits.cli.main import main
from bandits.experiments.experiment import read
from bandits.storage.run_store import Store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    agents = [
        {"kind": "linucb", "label": "good", "alpha": 0.35},
        {"kind": "linucb", "label": "wide", "alpha": 10.0},
    ]
    data: dict[str, Any] = {"simulator": {"kind": "petshop", "n_products": 10}, "agents": agents}
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps({**data, "steps": 1500, "replications": 4}))
    return path


def test_conclusions_come_by_severity_with_what_is_not_healthy(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    agents = [line for line in lines if not line.startswith(" ")]
    assert agents[0].startswith("✕ wide – too much exploration. It loses ")
    assert (
        "Less exploration earns more: good, with exploration bonus 0.35 instead of 10, explores "
        "in " in agents[0]
    )
    assert agents[1].startswith("✓ good. It loses ")
    assert lines[1].startswith("    ✕ Exploration: too much. ")
    assert all(
        line.lstrip()[0] in "✕!" or ": no alarm, because" in line
        for line in lines
        if line.startswith(" ")
    )
    assert main(["diagnose", str(file), "--all"]) == 0
    everything = capsys.readouterr().out.splitlines()
    reasons = [line for line in everything if "because the agent" in line]
    assert 1 <= len(reasons) <= 2
    assert len(everything) - len(reasons) == 2 + 2 * 13
    assert any(line.startswith("    ✓ Exploration: about right. ") for line in everything)


def test_a_stored_run_is_diagnosed_by_its_id(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    e = read(file.read_text())
    Store().put(e, run(e).histories, 1.0)
    assert main(["diagnose", e.hash[:12], "--json"]) == 0
    stored = json.loads(capsys.readouterr().out)
    assert list(stored) == ["wide", "good"]
    assert (stored["wide"]["verdict"], stored["wide"]["exploration"]) == ("alarm", "too much")
    assert stored["wide"]["findings"]["exploration"]["direction"] == "too much"
    assert main(["diagnose", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == stored
    assert main(["diagnose", "0123456789ab"]) == 2
    assert capsys.readouterr().err.startswith("error: no stored run begins with '0123456789ab'")
