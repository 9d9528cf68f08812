"""``export`` writes an agent of a stored run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bandits import Policy
from bandits.cli import main as cli
from tests.support import experiment


def test_an_agent_of_a_stored_run_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    file, e = tmp_path / "experiment.json", experiment({"kind": "linucb"}, {"kind": "oracle"})
    file.write_text(e.model_dump_json())
    assert cli.main(["run", str(file), "--keep"]) == 0
    out, policy = tmp_path / "policy.py", tmp_path / "shop.policy"
    files = ["--numpy", str(out), "--policy", str(policy)]
    assert cli.main(["export", e.hash[:8], "--agent", "LinUCB", *files]) == 0
    assert out.exists()
    assert out.with_suffix(".npz").exists()
    assert Policy.load(policy).decisions == e.steps
    capsys.readouterr()
    for arguments, reason in [
        (["export", e.hash[:8], "--agent", "Oracle", *files], "cannot be a policy of its own"),
        (["export", e.hash[:8], "--agent", "None", *files], "has no agent 'None'"),
        (["export", e.hash[:8], "--agent", "LinUCB"], "needs --numpy FILE.py or --policy FILE"),
        (["export", "ffffff", "--agent", "LinUCB", *files], "no stored run begins with"),
    ]:
        assert cli.main(arguments) == 2
        assert reason in capsys.readouterr().err
