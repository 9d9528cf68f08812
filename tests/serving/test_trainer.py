"""A version is rebuilt from the log, validated on what it has not seen, and registered."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.cli.main import main
from bandits.policy import Policy
from bandits.serving.decisions import join
from bandits.serving.event_log import EventLog, read_events
from bandits.serving.registry import Registry
from bandits.serving.settings import ServiceParams
from bandits.serving.trainer import challenge, follow, rewarded, train

AGENT = {"kind": "epsilon_greedy", "epsilon": 0.4}


def stale() -> Policy:
    """Return a policy that learned a shop in which *a* is right where x is positive."""
    policy = Policy(AGENT, ["a", "b"], {"x": "number"})
    for x in np.random.default_rng(1).normal(size=60):
        for item in ("a", "b"):
            policy.learn({"x": x}, item, float((item == "a") == (x > 0)))
    return policy


def shop(folder: Path, *, n: int = 300, until: int = 300, **more: Any) -> Path:
    """Write the log of a shop in which *b* is right where x is positive, and *a* is again behind
    some decisions.
    """
    policy = stale()
    registry = Registry(folder / "registry")
    registry.promote(registry.register(policy.to_bytes(), {}))
    log, generator = EventLog(folder / "log"), np.random.default_rng(2)
    for i in range(n):
        context = {"x": float(generator.normal())}
        choice = policy.choose(context)
        body = {
            "item": choice.item,
            "propensity": choice.propensity,
            "context": context,
            "candidates": None,
            "version": 1,
            "arm": "champion",
        }
        log.append("decision", str(i), body | more, time=float(i))
        right = (choice.item == ("b" if i < until else "a")) == (context["x"] > 0)
        log.append("reward", str(i), {"reward": float(right)}, time=i + 0.5)
    log.close()
    return folder


def test_after_a_change_a_new_version_is_better_than_the_stale_one(tmp_path: Path) -> None:
    found = train(shop(tmp_path))
    assert (found.number, found.champion, found.decisions) == (2, 1, 300)
    new, former, difference = found.validation
    assert new.n == 60
    assert new.estimates["snips"].value > 0.7 > 0.3 > former.estimates["snips"].value
    assert all(interval.low > 0 for interval in difference.values())
    for name, interval in difference.items():
        of_both = new.estimates[name].value - former.estimates[name].value
        assert interval.value == pytest.approx(of_both)
    assert not found.validation.is_worse
    registry = Registry(tmp_path / "registry")
    card = registry.version(2).card
    assert card["trained_from"] == 1
    assert card["data"]["decisions"] == 300
    assert card["data"]["first"] == "1970-01-01T00:00:00+00:00"
    assert card["data"]["last"] == "1970-01-01T00:04:59+00:00"
    assert card["validation"]["new"]["ess"] == new.support.ess
    assert card["agent"]["kind"] == "epsilon_greedy"
    # all decisions are learned, those that validated it too
    policy = Policy.from_bytes(registry.version(2).policy)
    assert policy.learned == 300
    assert policy.choose({"x": 2.0}, scores=True).scores is not None
    shares = policy.probabilities({"x": 2.0})
    assert shares == pytest.approx({"a": 0.2, "b": 0.8})


def test_the_same_log_gives_the_same_version(tmp_path: Path) -> None:
    first, second = train(shop(tmp_path, n=150)), train(tmp_path)
    registry = Registry(tmp_path / "registry")
    one, other = registry.version(first.number), registry.version(second.number)
    assert one.policy == other.policy
    assert one.card == other.card
    third = train(tmp_path, decisions=120)
    assert third.decisions == 120
    assert registry.version(third.number).card["data"]["sha256"] != one.card["data"]["sha256"]


def test_what_the_policy_cannot_learn_is_left_out(tmp_path: Path) -> None:
    folder = shop(tmp_path, n=150)
    log = EventLog(folder / "log")
    own = {"propensity": 0.5, "context": {"x": 1.0}, "candidates": None, "arm": "champion"}
    for name, body in {
        "item": {"item": "c"},
        "columns": {"item": "a", "context": {"y": 1.0}},
        "candidate": {"item": "a", "candidates": ["a", "c"]},
        "withdrawn": {"item": "a", "candidates": ["a", "b"]},
    }.items():
        log.append("decision", name, own | body, time=1000.0)
        log.append("reward", name, {"reward": 1.0}, time=1001.0)
    log.close()
    registry = Registry(folder / "registry")
    policy = Policy.from_bytes(registry.version(1).policy)
    policy.withdraw("a")
    registry.promote(registry.register(policy.to_bytes(), {}))
    found = train(folder)
    assert registry.version(found.number).card["data"]["left_out"] == 3
    # what a withdrawn item earned is learned, and validates nothing
    assert found.decisions == 151
    assert found.validation.new.n < 30
    assert Policy.from_bytes(registry.version(found.number).policy).items.withdrawn == {"a"}


def test_decisions_of_the_fallback_do_not_validate(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only 0 of the latest 20 decisions can validate"):
        train(shop(tmp_path, n=100, arm="fallback"))
    assert Registry(tmp_path / "registry").numbers() == [1]


def test_rewards_count_as_the_service_counts_them(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log")
    for i, time in enumerate((0.0, 10.0, 95.0)):
        log.append("decision", str(i), {"item": "a"}, time=time)
    log.append("reward", "1", {"reward": 2.0}, time=96.0)
    log.append("reward", "1", {"reward": 3.0}, time=99.0)
    log.close()
    params = ServiceParams(reward_window=90.0, several="sum", default_reward=0.5)
    # the window of the last is open
    assert [(d.event_id, d.reward) for d in rewarded(tmp_path, params, 10)] == [
        ("0", 0.5),
        ("1", 5.0),
    ]
    assert [d.event_id for d in rewarded(tmp_path, params, 1)] == ["1"]
    assert [d.reward for d in rewarded(tmp_path, ServiceParams(), 10)] == [2.0]


def test_a_log_is_read_while_it_is_written(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    for i in range(5):
        log.append("decision", str(i), {"i": i}, time=i * 86_400.0)
    log.flush()
    reading = read_events(tmp_path)
    first = next(reading)
    # what moves to the files of days is read once
    log.rotate(date(1970, 1, 4))
    assert [first, *reading] == list(log.events()) == list(read_events(tmp_path))
    assert [event.position for event in read_events(tmp_path, after=3)] == [4, 5]
    log.append("decision", "5", {}, time=5 * 86_400.0)
    log.close()
    assert len(join(read_events(tmp_path))) == 6
    with pytest.raises(UserError, match="there is no event log"):
        next(read_events(tmp_path / "other"))


def test_too_little_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(tmp_path)]) == 2
    assert "there is no event log" in capsys.readouterr().err
    folder = str(shop(tmp_path, n=99))
    assert main(["train", folder]) == 2
    assert "the log has 99 decisions with a reward" in capsys.readouterr().err
    assert main(["train", folder, "--events", "5"]) == 2
    assert "events: must be at least 100" in capsys.readouterr().err
    (tmp_path / "registry" / "aliases.json").unlink()
    assert main(["train", folder]) == 2
    assert "the registry has no champion" in capsys.readouterr().err


def test_the_command_rolls_a_version_out_unless_it_is_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shop(tmp_path)
    registry = Registry(folder / "registry")
    assert main(["train", str(folder), "--challenge"]) == 0
    out = capsys.readouterr().out
    assert "version 2 is the challenger" in out
    assert "Validated on the latest 60" in out
    assert registry.aliases().challenger == 2


def test_a_version_that_is_worse_for_sure_is_not_rolled_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # a change that has ended
    folder = shop(tmp_path, until=240)
    assert main(["train", str(folder), "--challenge"]) == 0
    assert "not rolled out: it is worse than the champion for sure" in capsys.readouterr().out
    assert Registry(folder / "registry").aliases().challenger is None


def test_a_trainer_that_goes_on_waits_for_rewards_or_time(tmp_path: Path) -> None:
    folder, found = shop(tmp_path), []
    looks = iter(range(3))
    follow(folder, every=300, report=found.append, go_on=lambda: next(looks, None) is not None)
    assert [version.number for version in found] == [2]
    assert challenge(folder, found[0]) == "version 2 is the challenger"
    assert challenge(folder, found[0]) == "not rolled out: version 2 is rolled out now"
    looks = iter(range(3))
    follow(
        folder,
        every=301,
        seconds=0.1,
        decisions=200,
        report=found.append,
        go_on=lambda: next(looks, None) is not None,
    )
    assert [version.number for version in found] == [2, 3]
    with pytest.raises(UserError, match="seconds: must be above 0; got 0"):
        follow(folder, seconds=0, report=found.append)
    with pytest.raises(UserError, match="the trainer needs a number of rewards"):
        follow(folder, report=found.append)
