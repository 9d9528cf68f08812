"""A simulator drives a real service: decisions and rewards arrive, also late or twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from bandits.base.errors import UserError
from bandits.cli.main import main
from bandits.policy import Policy
from bandits.serving.decisions import join
from bandits.serving.event_log import read_events
from bandits.serving.registry import Registry
from bandits.serving.service import Service
from bandits.serving.traffic import Visitors, drive
from tests.serving.test_http import running

SHOP = {"kind": "synthetic", "n_arms": 4, "n_features": 3, "reward": "bernoulli"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a service for the visitors of `SHOP`."""
    visitors = Visitors(SHOP, 1, 0)
    width = len(visitors.visit(0, "", 0).round.features[0, 0])
    policy = Policy({"kind": "epsilon_greedy"}, visitors.names, width, scale=False, constant=False)
    registry = Registry(tmp_path / "registry")
    registry.promote(registry.register(policy.to_bytes(), {}))
    return tmp_path


def test_every_decision_and_reward_arrives(folder: Path) -> None:
    service = Service(folder)
    with running(service, "secret") as port:
        found = drive(
            SHOP,
            f"http://127.0.0.1:{port}",
            rate=400,
            seconds=0.25,
            delay=0.05,
            missing=0.2,
            repeated=0.3,
            token="secret",
        )
    assert (found.decisions, found.failed, found.different, found.problem) == (100, 0, 0, "")
    assert found.missing + found.rewards == 100
    assert 5 < found.missing < 40
    assert 30 < found.repeated < 90
    assert 0 < found.p50 <= found.p99
    joined = join(read_events(folder / "log"))
    rewards = [decision.reward for decision in joined]
    assert len(joined) == 100
    assert sum(reward == reward for reward in rewards) == found.rewards == service.counts["learned"]
    assert service.counts["late"] + service.counts["duplicates"] == found.repeated
    assert 0 <= found.mean <= 1


def test_visitors_are_those_of_the_simulator() -> None:
    visitors, again = Visitors(SHOP, 10, 3), Visitors(SHOP, 10, 3)
    for step in (4, 2, 4):
        one, other = visitors.visit(step, "e", 1), again.visit(step, "e", 1)
        assert one.body == other.body
        item = visitors.names[1]
        assert visitors.reward(one, item) == again.reward(other, item)


@pytest.mark.parametrize(
    ("simulator", "options", "reason"),
    [
        ("synthetic", {"url": "http://192.0.2.1:80"}, "url: must be an address of this machine"),
        ("synthetic", {"url": "https://127.0.0.1"}, "url: must be an address of this machine"),
        ("synthetic", {"url": "http://127.0.0.1:x"}, "url: "),
        ("synthetic", {"rate": 1001.0}, "rate: must be between 0.1 and 1000; got 1001"),
        ("synthetic", {"seconds": 1e9}, "for: must be between"),
        ("synthetic", {"missing": float("nan")}, "missing: must be between 0 and 1; got nan"),
        ("nothing", {}, "nothing"),
        ("sessions", {}, "makes no traffic"),
        ("synthetic", {"url": "http://127.0.0.1:1"}, "no answer"),
    ],
)
def test_what_cannot_be_driven_is_refused(simulator: str, options: dict, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        drive(simulator, **({"url": "http://127.0.0.1:8765"} | options))


def test_the_command_states_what_the_service_refuses(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(Service(folder)) as port:
        url = f"http://127.0.0.1:{port}"
        one = '{"kind": "synthetic", "n_arms": 4, "n_features": 3, "reward": "bernoulli"}'
        assert main(["traffic", one, "--url", url, "--rate", "100", "--for", "0.1"]) == 0
        assert "10 decisions" in capsys.readouterr().out
        other = '{"kind": "synthetic", "n_arms": 4, "n_features": 5, "reward": "bernoulli"}'
        assert main(["traffic", other, "--url", url]) == 2
        assert "/decide: the context has" in capsys.readouterr().err
    assert main(["traffic", "{", "--url", url]) == 2
    assert "the simulator is not JSON" in capsys.readouterr().err
