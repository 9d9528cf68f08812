"""The commands of a service: start, versions, erasure, export, and a kill under traffic."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from bandits.cli.main import main
from bandits.offpolicy.reading import read_log
from bandits.policy import Policy
from bandits.serving.event_log import EventLog
from bandits.serving.http import pseudonym
from bandits.serving.registry import Aliases, Registry
from bandits.serving.service import Service
from bandits.serving.settings import ServiceParams, store, stored


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.bandits"
    Policy({"kind": "linucb"}, ["a", "b"], {"x": "number"}).save(path)
    return path


def test_versions_are_registered_promoted_and_rolled_back(
    tmp_path: Path, policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "service")
    for arguments in (["register", str(policy)], ["register", str(policy)], ["promote", "1"]):
        assert main(["registry", folder, *arguments]) == 0
    assert main(["registry", folder, "promote", "2"]) == 0
    assert main(["registry", folder, "rollback"]) == 0
    assert main(["registry", folder, "challenge", "2"]) == 0
    capsys.readouterr()
    assert main(["registry", folder, "list"]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == [
        "   1  champion",
        "   2  challenger, previous",
    ]
    assert main(["registry", folder, "show", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["agent"]["kind"] == "linucb"
    assert Registry(Path(folder) / "registry").aliases() == Aliases(1, 2, None, 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["registry", "{}", "promote", "7"], "version 7 is not in the registry; there are none"),
        (["registry", "{}", "register", "{}/nothing"], "No such file"),
        (["serve", "{}"], "the registry has no champion"),
        (["serve", "{}", "--host", "0.0.0.0"], "set BANDITS_SERVE_TOKEN first"),
        (["serve", "{}", "--settings", "{}/given.json"], "pause is -1"),
        (["events", "{}", "forget", "--user", "x"], "there is no event log"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    (tmp_path / "given.json").write_text('{"pause": -1}')
    assert main([argument.format(tmp_path) for argument in arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_folder_is_served_with_the_settings_that_it_keeps(
    tmp_path: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, started = ServiceParams(several="sum", pause=3.0), []
    store(tmp_path, kept)
    monkeypatch.setattr("bandits.serving.http.serve", lambda s, *_, **__: started.append(s))
    assert main(["serve", str(tmp_path), "--policy", str(policy)]) == 0
    assert started[0].params == kept == stored(tmp_path)
    started[0].close()


def test_users_are_forgotten_and_decisions_exported(
    tmp_path: Path, policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "service"
    main(["registry", str(folder), "register", str(policy)])
    main(["registry", str(folder), "promote", "1"])
    service = Service(folder)
    names = [pseudonym(folder, f"user {i}") for i in range(3)]
    for i in range(30):
        answer = service.decide({"x": float(i)}, user=names[i % 3])
        if i % 2:
            service.reward(answer.event_id, float(i % 4 == 1))
    service.close()
    (folder / "settings.json").write_text("{")
    assert main(["events", str(folder), "forget", "--user", "user 1"]) == 0
    out, problem = capsys.readouterr()
    assert "erased 15 events" in out
    assert "settings.json is not valid JSON" in problem
    (folder / "settings.json").unlink()
    for path in folder.rglob("*"):
        assert path.is_dir() or names[1].encode() not in path.read_bytes(), path
    # the state survives, and so does a start without the snapshot
    (folder / "snapshot").unlink()
    again = Service(folder)
    assert again._policies[1].learned == 10
    again.close()
    out = tmp_path / "log.parquet"
    assert main(["events", str(folder), "export", str(out)]) == 0
    log = read_log(out)
    assert (len(log), log.names) == (10, ("a", "b"))
    assert main(["events", str(folder), "retention", "--days", "1"]) == 0


@pytest.mark.slow
def test_a_killed_service_lost_no_reward_that_it_had_long_acknowledged(
    tmp_path: Path, policy: Path
) -> None:
    folder = tmp_path / "service"
    acknowledged: list[str] = []
    for round_number in range(2):
        more = ["--policy", str(policy)] if round_number == 0 else []
        process = subprocess.Popen(
            [sys.executable, "-m", "bandits", "serve", str(folder), "--port", "0", *more],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        address = found.group()

        def post(path: str, body: object, address: str = address) -> dict[str, object]:
            request = urllib.request.Request(
                address + path, json.dumps(body).encode(), {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                answer: dict[str, object] = json.load(response)
                return answer

        for i in range(50):
            event_id = f"{round_number}-{i}"
            post("/decide", {"event_id": event_id, "context": {"x": i}})
            assert post("/reward", {"event_id": event_id, "reward": 1})["learned"]
            acknowledged.append(event_id)
        health = json.load(urllib.request.urlopen(f"{address}/health", timeout=60))
        while health["waiting_events"]:
            health = json.load(urllib.request.urlopen(f"{address}/health", timeout=60))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        log = EventLog(folder / "log")
        rewards = [event.event_id for event in log.events() if event.kind == "reward"]
        log.close()
        assert rewards == acknowledged
    service = Service(folder)
    assert service._policies[1].learned == len(acknowledged)
    service.close()
