"""Several processes decide with what one learns: order, one answer, recovery, kills, erasure."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.cli.main import main
from bandits.policy import Policy
from bandits.serving.alarms import Seen
from bandits.serving.distributed import Decider, Learner, learn
from bandits.serving.event_log import AlreadyDecidedError, LogAwayError, read_events
from bandits.serving.http import pseudonym
from bandits.serving.redis_log import RedisLog
from bandits.serving.registry import Registry
from bandits.serving.service import UnknownDecisionError
from bandits.serving.settings import ServiceParams
from tests.serving.redis_server import RedisServer
from tests.serving.test_http import ask, running
from tests.serving.test_service import policy
from tests.support import wait_for

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    # quick; the kills have one that is on the disk before it acknowledges
    server = RedisServer(tmp_path_factory.mktemp("redis"), "--appendfsync", "everysec")
    yield server
    server.stop()


@pytest.fixture
def server(one_server: RedisServer) -> RedisServer:
    one_server.client.flushall()
    return one_server


@pytest.fixture
def log(server: RedisServer) -> Iterator[RedisLog]:
    opened = RedisLog(server.url, keep=100.0)
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    registry = Registry(tmp_path / "registry")
    registry.register(policy(), {})
    registry.promote(1)
    return tmp_path


@pytest.fixture
def opened(
    server: RedisServer, folder: Path
) -> Iterator[Callable[[], tuple[Learner, Decider, Decider]]]:
    """Return a function that starts a learner and two that decide."""
    with ExitStack() as stack:

        def start(**params: Any) -> tuple[Learner, Decider, Decider]:
            learner = Learner(folder, server.url, ServiceParams(**params))
            stack.callback(learner.store.close)
            deciders = [Decider(folder, server.url) for _ in range(2)]
            for decider in deciders:
                stack.callback(decider.close)
            return learner, *deciders

        yield start


def drive(deciders: list[Decider], n: int, name: str = "") -> None:
    """Let several decide in turn; the rewards depend on item and context."""
    rng = np.random.default_rng(0)
    for i in range(n):
        x, y = map(float, rng.normal(size=2))
        decider = deciders[i % len(deciders)]
        answer = decider.decide({"x": x, "y": y}, event_id=f"{name}{i}", user=f"user-{i % 5}")
        good = answer.item == ("a" if x > 0 else "b")
        # another one than that which decided
        deciders[(i + 1) % len(deciders)].reward(f"{name}{i}", float(good))


def catch_up(learner: Learner) -> None:
    """Learn all that waits, and publish it."""
    while learner.work():
        pass
    learner._publish()


def test_a_stream_is_read_in_order_and_decisions_are_found(
    log: RedisLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bandits.serving.redis_log._BATCH", 30)
    positions = [
        log.append("decision", f"e{i}", {"i": i}, user="u", time=i + 0.5) for i in range(110)
    ]
    assert positions == list(range(1, 111))
    log.append("reward", "e7", {"reward": 1.0})
    assert [event.body.get("i") for event in log.events(after=108)] == [108, 109, None]
    assert [event.position for event in log.events()] == list(range(1, 112))
    log.remove(100, "another start")
    log.remove(100, log.started()[0])
    assert log.health() == (1.0, 11, 0, "")
    first, second = log.find("e7")
    assert (first.position, first.time, first.kind, first.user) == (8, 7.5, "decision", "u")
    assert (second.position, second.body) == (111, {"reward": 1.0})
    with pytest.raises(AlreadyDecidedError):
        log.append("decision", "e7", {"i": -1})
    assert log.find("never") == []


def test_an_append_that_is_sent_again_is_there_once(
    log: RedisLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = log._asked
    # the answer to the first is lost
    monkeypatch.setattr(log, "_asked", lambda ask: (asked(ask), asked(ask))[1])
    assert log.append("decision", "e", {"item": "a"}) == 1
    assert [log.append("reward", "e", {"reward": 1.0}) for _ in range(2)] == [2, 3]
    assert [event.position for event in log.find("e")] == [1, 2, 3]
    assert log.health().waiting == 3


def test_a_reward_that_is_sent_again_counts_once_in_a_sum(opened: Any, server: RedisServer) -> None:
    learner, one, two = opened(several="sum", reward_window=100.0)
    one.decide({"x": 1.0, "y": 0.0}, event_id="e")
    for decider, reward_id in ((one, "r"), (two, "r"), (two, "s"), (one, None)):
        assert decider.reward("e", 0.25, reward_id=reward_id)
    # the second one was found; also where two processes do not find it, the server has it once
    body = {"reward": 0.25, "reward_id": "r"}
    positions = {decider.log.append("reward", "e", body) for decider in (one, two)}
    assert len(positions) == 1
    assert server.client.xlen("bandits:events") == 4
    catch_up(learner)
    assert learner._sums == {"e": 0.75}


def test_those_that_decide_state_the_alarms_of_the_learner(opened: Any) -> None:
    learner, one, _ = opened()
    learner._found = [Seen(0.0, "fallbacks", None, 0.0, "A fallback decides.")]
    catch_up(learner)
    learner._shown = 0.0
    learner.work()
    assert one.refresh()
    assert [alarm.sentence for alarm in one.alarms] == ["A fallback decides."]
    assert one.alarmed["fallbacks"] == 1
    one.tick()
    assert not one._looking.is_alive()


def test_those_that_decide_state_how_far_the_monitors_of_the_learner_are_behind(
    opened: Any,
) -> None:
    learner, one, _ = opened()
    learner._watcher._at = learner._position - 50_001
    learner._publish()
    with running(one) as port:
        wait_for(lambda: one.unread == 50_001, "the head")
        health = ask(port, "/health")[1]
        assert health["alarms"] == ["the monitors are 50,001 events behind the log"]
        assert "bandits_monitors_unread 50001.0" in ask(port, "/metrics")[1]
    # also where nothing is decided meanwhile
    learner._watcher._at, learner._shown = learner._position, 0.0
    learner.work()
    assert one.refresh()
    assert (one.unread, one.noticed()) == (0, [])


@pytest.mark.parametrize("part", ["totals", "published"])
def test_a_head_that_is_understood_in_part_changes_nothing(
    opened: Any, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    learner, one, _ = opened()
    packed = learner._packed
    if part == "totals":
        # without the number of rewards
        monkeypatch.setattr(learner, "_totals", {"a": (1.0,)})
    monkeypatch.setattr(
        learner, "_packed", lambda about: packed({k: v for k, v in about.items() if k != part})
    )
    learner._publish()
    before = one.aliases, one._policies, one._totals
    assert not one.refresh()
    assert (one.aliases, one._policies, one._totals) == before
    assert any("must be updated" in problem for problem in one.problems())


def test_a_head_with_what_an_older_process_does_not_know_leaves_the_last_one(
    opened: Any, server: RedisServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, one, _ = opened()
    packed, more = learner._packed, {"max_waits": 3}
    monkeypatch.setattr(
        learner, "_packed", lambda about: packed(about | {"params": about["params"] | more})
    )
    learner._publish()
    before = one.aliases, one._policies
    with running(one) as port:
        wait_for(lambda: ask(port, "/health")[0] == 503, "the new head")
        (problem,) = ask(port, "/health")[1]["problems"]
        assert "does not understand the newest head of the learner and must be updated" in problem
        assert "max_waits" in problem
        assert ask(port, "/decide", {"context": {"x": 1.0, "y": 0.0}})[0] == 200
        assert (one.aliases, one._policies) == before
        with pytest.raises(UserError, match=r"must be updated: .*max_waits"):
            Decider(folder, server.url)
        # one that it knows follows
        more.clear()
        learner._publish()
        wait_for(lambda: ask(port, "/health")[0] == 200, "the head that is understood")


def test_a_learner_that_publishes_no_alarms_yet_is_followed(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, one, _ = opened()
    packed = learner._packed
    new = {"alarms", "alarmed", "unread"}
    monkeypatch.setattr(
        learner, "_packed", lambda about: packed({k: about[k] for k in about.keys() - new})
    )
    learner._publish()
    assert one.refresh()
    assert (list(one.alarms), sum(one.alarmed.values())) == ([], 0)


def test_several_decide_with_what_one_learns(opened: Any, server: RedisServer) -> None:
    learner, one, two = opened()
    drive([one, two], 100)
    assert not one.refresh()
    catch_up(learner)
    assert learner.counts["learned"] == 100
    assert one.refresh()
    # what is due is a look at the head
    two.tick()
    assert not two._moving.is_alive()
    assert not two.refresh()
    assert [d.decide({"x": x, "y": 0.0}).item for d in (one, two) for x in (2.0, -2.0)] == [
        *("a", "b"),
        *("a", "b"),
    ]
    # an answer is that of the first, and a reward counts once
    assert two.decide({"x": -9.0, "y": 0.0}, event_id="0") == one.decide(None, event_id="0")
    assert not two.reward("0", 1.0)
    with pytest.raises(UnknownDecisionError, match="no decision 'never'"):
        one.reward("never", 1.0)
    with pytest.raises(UserError, match="finite number"):
        one.reward("1", float("nan"))
    assert server.client.xlen("bandits:events") == 5
    assert one.problems() == []
    one._published -= 100
    (problem,) = one.problems()
    assert re.match(r"5 events wait for 1\d\d s: the learner may be dead", problem)


def test_of_two_at_the_same_time_one_decides(opened: Any) -> None:
    _, one, two = opened()
    context = {"x": 1.0, "y": 0.0}
    first = one.decide(context, event_id="e")
    # as if it had looked before the other had written
    looks = iter([lambda _: None, two._known])
    two._known = lambda event_id: next(looks)(event_id)
    assert two.decide({"x": -1.0, "y": 3.0}, event_id="e") == first
    assert two.counts["duplicates"] == 1


def test_a_reward_of_a_version_that_has_left_is_logged(opened: Any) -> None:
    learner, one, _ = opened()
    for number in (2, 3):
        learner.registry.register(policy(), {})
        learner.registry.promote(number)
        catch_up(learner)
    # this one has not yet seen the head
    one.decide({"x": 1.0, "y": 0.0}, event_id="old")
    one.reward("old", 1.0)
    catch_up(learner)
    assert [event.kind for event in learner.log.find("old")] == ["decision", "reward"]
    assert learner._policies.keys() == {2, 3}


def test_an_event_that_fails_is_read_again(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, one, _ = opened()
    drive([one], 1)
    with monkeypatch.context() as broken:
        broken.setattr(learner, "_take_reward", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.work()
    learner.close()
    again = Learner(learner.folder, one._url)
    catch_up(again)
    assert again.counts["learned"] == 1
    again.store.close()


def test_a_disk_that_refuses_leaves_the_events_with_the_server(
    opened: Any, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, one, two = opened()
    drive([one, two], 10)
    with monkeypatch.context() as full:
        full.setattr(learner.store, "flush", lambda: False)
        learner._shown = 0.0
        for _ in range(3):
            with pytest.raises(LogAwayError, match="the learner cannot store its events"):
                learner.work()
    assert learner.store.health().waiting == 0
    assert server.client.xlen("bandits:events") == 20
    assert one.refresh()
    assert one.problems() == ["the learner cannot store its events: "]
    assert learner._changed
    catch_up(learner)
    assert one.refresh()
    assert one.problems() == []
    assert learner.counts["learned"] == 10


@pytest.mark.parametrize("restarted", [False, True])
def test_a_server_that_lost_its_latest_events_is_read_from_the_beginning(
    opened: Any, server: RedisServer, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    learner, one, two = opened()
    # the server loses that the first were removed, too
    monkeypatch.setattr(learner._stream, "remove", lambda *_: None)
    drive([one, two], 10)
    catch_up(learner)
    for position in range(11, 21):
        server.client.xdel("bandits:events", f"0-{position}")
    rows = server.client.xrange("bandits:events")
    server.client.delete("bandits:events")
    for name, fields in rows:
        server.client.xadd("bandits:events", fields, name)
    drive([one, two], 3, "new-")
    monkeypatch.undo()
    if restarted:
        learner.close()
        learner = Learner(learner.folder, one._url)
    else:
        learner._start = "an earlier one"
    catch_up(learner)
    learner.store.flush()
    rewards = [event.event_id for event in learner.log.events() if event.kind == "reward"]
    assert rewards == [*map(str, range(10)), "new-0", "new-1", "new-2"]
    assert learner._policies[1].learned == 13
    learner.store.close()


def test_windows_that_end_before_a_reward_do_not_skip_it(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, one, _ = opened(reward_window=100.0)
    now = time.time()
    monkeypatch.setattr(one, "_now", lambda: now)
    one.decide({"x": 1.0, "y": 0.0}, event_id="old")
    now += 60
    one.decide({"x": 1.0, "y": 0.0}, event_id="new")
    now += 60
    one.reward("new", 1.0)
    log = learner._log

    def die(kind: str, *rest: Any, **about: Any) -> None:
        if kind == "reward":
            raise KeyboardInterrupt
        log(kind, *rest, **about)

    monkeypatch.setattr(learner, "_log", die)
    with pytest.raises(KeyboardInterrupt):
        learner.work()
    # what was settled is on the disk, and no snapshot
    learner.store.close()
    again = Learner(learner.folder, one._url, ServiceParams(reward_window=100.0))
    catch_up(again)
    assert [event.kind for event in again.log.find("old")] == ["decision", "settled"]
    assert again.counts["learned"] == 1
    again.store.close()


@pytest.mark.parametrize("snapshot", [True, False])
def test_a_learner_continues_with_the_same_bits(opened: Any, snapshot: bool) -> None:
    learner, one, two = opened()
    drive([one, two], 60)
    catch_up(learner)
    if snapshot:
        learner.snapshot()
    learner.registry.register(policy(alpha=2.0), {})
    learner.registry.promote(2)
    catch_up(learner)
    one.refresh()
    two.refresh()
    drive([one, two], 40, "again-")
    catch_up(learner)
    expected = {number: each.to_bytes() for number, each in learner._policies.items()}
    learner.store.close()
    # these wait meanwhile
    drive([one, two], 20, "later-")
    again = Learner(learner.folder, one._url)
    assert {number: each.to_bytes() for number, each in again._policies.items()} == expected
    catch_up(again)
    assert again._policies[2].learned == 60
    again.store.close()


def test_each_process_draws_numbers_of_its_own(server: RedisServer, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry")
    registry.register(Policy("random", [f"item {i}" for i in range(50)], {}).to_bytes(), {})
    registry.promote(1)
    learner = Learner(tmp_path, server.url)
    deciders = [Decider(tmp_path, server.url) for _ in range(2)]
    shown = []
    for _ in range(2):
        shown += [[decider.decide().item for _ in range(10)] for decider in deciders]
        learner._publish()
        for decider in deciders:
            assert decider.refresh()
    assert len({tuple(items) for items in shown}) == 4
    for decider in deciders:
        decider.close()
    learner.close()


def test_the_rollout_is_that_of_the_learner(opened: Any) -> None:
    rollout = {"steps": [0.2, 0.5], "min_decisions": 40, "delta": 1.0}
    learner, one, two = opened(rollout=rollout)
    learner.registry.register(policy(), {})
    learner.registry.point("challenger", 2)
    catch_up(learner)
    for decider in (one, two):
        assert decider.refresh()
        assert decider.rollout.share == 0.2
    for i in range(60):
        name = f"user {i}"
        answers = [d.decide({"x": 1.0, "y": 0.0}, user=name) for d in (one, two)]
        assert answers[0].arm == answers[1].arm
        one.reward(answers[0].event_id, 1.0)
    catch_up(learner)
    assert learner.rollout._served > 10
    if learner.rollout.step == 0:
        assert learner.judge().startswith("advance")
    learner._publish()
    assert one.refresh()
    assert one.rollout.share == 0.5
    # a longer window keeps decisions longer
    learner.params = ServiceParams(reward_window=1e6)
    learner._publish()
    assert one.refresh()
    assert one.log.keep > 1e6


def test_a_damaged_registry_does_not_stop_the_learner(opened: Any) -> None:
    learner, one, two = opened()
    (learner.folder / "registry" / "aliases.json").write_bytes(b"damaged")
    drive([one, two], 4)
    catch_up(learner)
    assert learner.counts["learned"] == 4
    assert learner.problem.startswith("the aliases of the registry are damaged")
    sentences: list[str] = []

    def take(sentence: str) -> None:
        sentences.append(sentence)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(learner, take)
    assert sentences == [learner.problem]


def test_forgotten_users_leave_no_byte(
    opened: Any, server: RedisServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner, one, _ = opened()
    name = pseudonym(folder, "ann")
    for i in range(20):
        one.decide({"x": 1.0, "y": 0.0}, event_id=f"secret-{i}", user=name)
        one.reward(f"secret-{i}", 1.0)
        if i == 10:
            catch_up(learner)
    learner.close()
    assert main(["events", str(folder), "forget", "--user", "ann", "--log", server.url]) == 0
    # what waited is not moved any more
    assert "erased 22 events" in capsys.readouterr().out
    wait_for(lambda: not server.client.info("persistence")["aof_rewrite_in_progress"], "the file")
    for path in (*folder.rglob("*"), *server.folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            assert name.encode() not in data, path
            assert b"secret-" not in data, path
    assert one.log.find("secret-1") == []
    assert main(["events", str(folder), "retention", "--days", "90"]) == 0
    again = Learner(folder, server.url)
    assert again.counts["learned"] == 0
    assert again._policies[1].learned == 11
    again.close()
    assert main(["serve", str(folder)]) == 2
    assert "is the folder of a learner: give --log to serve" in capsys.readouterr().err


def test_a_server_that_hangs_is_not_waited_for_again(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as quick:
        quick.setattr("bandits.serving.redis_log._TIMEOUT", 0.1)
        log = RedisLog(server.url, keep=1.0)
    server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(LogAwayError, match="does not answer"):
            log.append("decision", "e", {})
        asked: list[int] = []
        with pytest.raises(LogAwayError, match="does not answer: it hangs"):
            log._asked(lambda: asked.append(1))
        assert "it hangs" in log.health().problem
        assert asked == []
    finally:
        server.process.send_signal(signal.SIGCONT)
    log._silent_until = 0.0
    assert log.health().problem == ""
    log.close()


def test_what_does_not_belong_together_is_refused(
    opened: Any, server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(UserError, match="has no head yet: start python -m bandits learn first"):
        Decider(tmp_path_factory.mktemp("early"), server.url)
    learner, one, two = opened()
    with pytest.raises(UserError, match=r"user.key is not the key of the other processes"):
        Decider(tmp_path_factory.mktemp("other"), server.url)
    other = tmp_path_factory.mktemp("learner")
    registry = Registry(other / "registry")
    registry.register(policy(), {})
    registry.promote(1)
    with pytest.raises(UserError, match="are learned in another folder"):
        Learner(other, server.url)
    drive([one, two], 5)
    catch_up(learner)
    learner.close()
    server.client.flushall()
    with pytest.raises(UserError, match="the server has lost its data; learn in a new folder"):
        Learner(learner.folder, server.url)


def test_a_server_that_is_away_or_loses_events_is_stated(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = RedisServer(tmp_path / "redis", "--appendonly", "no")
    try:
        with pytest.raises(UserError, match="would lose events: start it with appendonly yes"):
            RedisLog(server.url, keep=1.0)
        server.client.config_set("appendonly", "yes")
        server.client.config_set("appendfsync", "everysec")
        log = RedisLog(server.url, keep=1.0)
        assert log.health().window == 1.0
        server.kill()
        with pytest.raises(
            LogAwayError, match=rf"^redis at 127.0.0.1:{server.port} does not answer"
        ):
            log.append("decision", "e", {})
        assert "does not answer" in log.health().problem
        for command in ("serve", "learn"):
            assert main([command, str(folder), "--log", server.url]) == 2
            error = capsys.readouterr().err
            assert "does not answer" in error
            assert error.count("\n") == 1
    finally:
        server.stop()
    assert main(["serve", str(folder), "--log", "http://x"]) == 2
    assert main(["serve", str(folder), "--log", server.url, "--policy", "p"]) == 2
    assert "give --policy and --settings to learn" in capsys.readouterr().err


class Process:
    """A command of the service."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bandits", *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> None:
        """Wait until it works, and take its address."""
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        self.address = found.group() if found else ""

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        return ask(int(self.address.rpartition(":")[2]), path, body)


@pytest.mark.slow
def test_killed_processes_lose_nothing_that_was_acknowledged(tmp_path: Path, folder: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    started: list[Process] = []
    stack = ExitStack()

    def start(*arguments: object) -> Process:
        started.append(Process(*arguments, "--log", server.url))
        return started[-1]

    answers: dict[str, Any] = {}

    def drive_over(post: Callable[[str, Any], tuple[int, Any]], name: str, n: int) -> None:
        for i in range(n):
            event_id = f"{name}-{i}"
            body = {"event_id": event_id, "context": {"x": i, "y": 1}}
            status, answer = post("/decide", body)
            assert status == 200
            assert post("/reward", {"event_id": event_id, "reward": 1}) == (
                200,
                {"learned": True},
            )
            answers[event_id] = answer

    try:
        learner = start("learn", folder)
        learner.wait()
        one = start("serve", folder, "--port", 0)
        # this process is another that decides
        port = stack.enter_context(running(Decider(folder, server.url)))
        two = partial(ask, port)
        one.wait()
        drive_over(one.post, "one", 10)
        drive_over(two, "two", 10)
        learner.kill()
        drive_over(one.post, "without-learner", 10)
        one.kill()
        server.kill()
        status, refused = two("/decide", {"event_id": "away", "context": {"x": 1, "y": 1}})
        assert status == 503
        assert "does not answer" in refused["error"]
        server.start()
        learner = start("learn", folder)
        drive_over(two, "back", 10)
        # the other process answers alike
        for event_id in ("one-3", "without-learner-7"):
            body = {"event_id": event_id, "context": {"x": 5, "y": 5}}
            assert two("/decide", body) == (200, answers[event_id])
        wait_for(lambda: not server.client.xlen("bandits:events"), "the learner")
        learner.kill()
    finally:
        stack.close()
        for process in started:
            if process.process.poll() is None:
                process.kill()
        server.stop()
    events = list(read_events(folder / "log"))
    rewards = [event.event_id for event in events if event.kind == "reward"]
    decided = {event.event_id: event.body for event in events if event.kind == "decision"}
    assert rewards == list(answers)
    assert {name: body["item"] for name, body in decided.items()} == {
        name: answer["item"] for name, answer in answers.items()
    }
    assert len([event for event in events if event.kind == "decision"]) == len(decided)
