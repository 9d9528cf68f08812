"""Monitors on the log of a running service, and the rollout that their alarms end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.policy import Policy
from bandits.policy.policy import REMEMBERED
from bandits.serving.alarms import BEHIND, InOrder, Seen, Watcher
from bandits.serving.event_log import Event, newest
from bandits.serving.http import exposition
from bandits.serving.registry import Registry
from bandits.serving.rollout import RolloutParams
from bandits.serving.service import Service
from bandits.serving.settings import ServiceParams
from tests.serving.test_service import policy
from tests.serving.test_watch import START, N, written


def all_of(watcher: Watcher) -> list[Seen]:
    """Look until the end of the log: at most 2,000 events a look."""
    return [alarm for _ in range(5) for alarm in watcher.look(None, 0.0)]


def event(kind: str, i: int, time: float, **body: object) -> Event:
    return Event(i, time, kind, str(i), "", body)


def challenging(i: int, reward: float, **about: object) -> list[Event]:
    """A decision of version 2, of half of the users, and its reward."""
    body = {"version": 2, "share": 0.5, "context": None, "arm": "challenger", **about}
    decided = event("decision", i, float(i), **body)
    return [decided, event("reward", i, float(i), reward=reward, learned=True)]


@pytest.fixture
def rolled_out(tmp_path: Path) -> Iterator[Service]:
    """Version 2 challenges, and no monitor looks by itself."""
    registry = Registry(tmp_path / "registry")
    for _ in range(2):
        # the first context states the columns
        registry.register(Policy({"kind": "linucb"}, ["a", "b"]).to_bytes(), {})
    registry.promote(1)
    registry.point("challenger", 2)
    service = Service(tmp_path, ServiceParams(rollout=RolloutParams(steps=(0.5,))))
    service._looked = float("inf")
    yield service
    service.log.close()


def test_rewards_are_fed_in_the_order_of_decisions() -> None:
    # a click is known at once, none at the end of a window of 600 decisions
    clicks = np.random.default_rng(0).random(2_000) < 0.3
    rewards = InOrder(ServiceParams(default_reward=0.0, reward_window=600.0))
    found: list[float] = []
    for i, click in enumerate(clicks):
        events = [event("decision", i, float(i))]
        if click:
            events.append(event("reward", i, float(i), reward=1.0, learned=True))
        if i >= 600 and not clicks[i - 600]:
            events.insert(0, event("settled", i - 600, float(i), reward=0.0))
        for each in events:
            found += [reward for _, reward in rewards.read(each)]
        assert len(found) <= max(0, i - 590)
    assert len(found) > 1_390
    np.testing.assert_array_equal(found, clicks[: len(found)])


def test_a_reward_that_never_comes_holds_nothing_back_for_long() -> None:
    def read(late: bool) -> list[float]:
        """Zeros are known at once, or 600 decisions later; one reward in ten never comes."""
        rewards, due, found = InOrder(ServiceParams()), {}, []
        for i in range(8_000):
            events = [event("decision", i, float(i))]
            if i % 10:
                zero = i % 3 > 0
                due.setdefault(i + 600 * (late and zero), []).append((i, float(not zero)))
            for j, reward in due.pop(i, []):
                events.append(event("reward", j, float(i), reward=reward, learned=True))
            found += [reward for each in events for _, reward in rewards.read(each)]
        return found

    made = [float(i % 3 == 0) for i in range(8_000) if i % 10]
    for late, least in ((False, 7_190), (True, 6_100)):
        found = read(late)
        assert len(found) >= least
        assert found == made[: len(found)]


@pytest.mark.parametrize(("default", "known"), [(None, 0), (0.5, 5)])
def test_decisions_wait_for_as_long_as_a_service_keeps_them_open(
    default: float | None, known: int
) -> None:
    rewards = InOrder(ServiceParams(several="sum", default_reward=default))
    for i in range(2 * REMEMBERED):
        assert not list(rewards.read(event("decision", i, 0.0)))
    # its window was closed beyond the 10,000 that are open
    (found,) = rewards.read(event("settled", 0, 0.0, reward=1.0))
    assert found[1] == 1.0
    # what is never closed takes no more memory
    released = [r for i in range(6) for r in rewards.read(event("decision", -i - 1, 0.0))]
    assert [reward for _, reward in released] == [0.5] * known
    # nor does it hold others back for longer than its window
    late = list(rewards.read(event("versions", 0, 200_000.0)))
    assert len(late) == (0 if default is None else 2 * REMEMBERED)


def test_a_challenger_answers_for_its_own_decisions_only() -> None:
    g = np.random.default_rng(0)
    served = {"arm": "fallback", "served": [0.0, True]}
    paused, rewards = {"arm": "fallback"}, g.random(1_000) < 0.9

    def judged(about: dict[str, object], share: int) -> set[str]:
        watcher = Watcher(Path(), ServiceParams(), 0)
        watcher._rollout = (2, 0.5)
        events = [
            part
            for i, reward in enumerate(rewards)
            # a fallback that earns less and less
            for part in challenging(
                i + 1,
                float(reward and (i % share or i < 500)),
                **({} if i % share or i < 500 else about),
            )
        ]
        return {a.monitor for a in watcher._read(events) if a.version == 2}

    # a pause of the service is not the challenger's, nor is what a fallback earns
    assert judged(paused, 2) == set()
    assert judged(served, 2) == {"fallbacks"}
    # its own rewards are
    assert judged({}, 2) == {"adwin"}


def test_a_challenger_that_has_diverged_fails(
    rolled_out: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverged(*_: object) -> None:
        raise UserError("the policy has diverged")

    monkeypatch.setattr(rolled_out._policies[2], "choose", diverged)
    for i in range(500):
        rolled_out.decide({"x": 0.0}, user=f"user {i}")
    assert "challenger's decisions failed" in rolled_out.judge()


@pytest.mark.parametrize("killed", [False, True])
def test_alarms_survive_a_restart(rolled_out: Service, *, killed: bool) -> None:
    share = rolled_out.rollout.share
    rolled_out._found = [Seen(1.0, "adwin", 2, share, "The mean reward fell.")]
    if killed:
        rolled_out._take_alarms()
        # without a snapshot behind it
        rolled_out.log.close()
    else:
        rolled_out.close()
    again = Service(rolled_out.folder, rolled_out.params)
    try:
        assert [alarm.sentence for alarm in again.alarms] == ["The mean reward fell."]
        assert again.alarmed["adwin"] == 1
        assert again.judge().startswith("roll back: an alarm on the challenger's decisions")
    finally:
        again.close()


def test_monitors_go_on_behind_what_they_cannot_read(rolled_out: Service) -> None:
    rolled_out.log.append("reward", "x", {})
    assert rolled_out.store.flush()
    for _ in range(2):
        rolled_out._looked = 0.0
        rolled_out.tick()
        rolled_out._looking.join()
        assert rolled_out.problem == "a monitor of the log failed: KeyError: 'learned'"
    assert rolled_out.unread == 0


def test_monitors_that_fall_behind_are_stated(rolled_out: Service) -> None:
    assert (rolled_out.unread, rolled_out.noticed()) == (rolled_out._position, [])
    rolled_out._position = BEHIND + 1
    assert rolled_out.noticed() == ["the monitors are 50,001 events behind the log"]
    # a service goes on without them
    assert rolled_out.problems() == []
    assert b"bandits_monitors_unread 50001.0" in exposition(rolled_out)


def test_contexts_are_watched_where_the_first_one_states_the_columns(
    rolled_out: Service,
) -> None:
    watcher, g = rolled_out._watcher, np.random.default_rng(0)
    assert watcher is not None
    for i in range(400):
        rolled_out.decide({"x": g.normal()}, user=f"user {i}")
        watcher.know(rolled_out._policies[1].schema)
        # two or three contexts are no scale
        assert i > 50 or watcher._features({"x": 2.0}) is None
    found = watcher._features({"x": 2.0})
    assert found is not None
    assert 1 < found[0] < 3


@pytest.mark.slow
def test_alarms_on_what_is_new_in_the_log(tmp_path: Path) -> None:
    folder = written(tmp_path, falls=True)
    watcher = Watcher(folder, ServiceParams(), 0)
    assert all(alarm.time < START + 1_100 for alarm in watcher.look(None, 0.0))
    found = all_of(watcher)
    assert {alarm.monitor for alarm in found} == {"adwin", "fallbacks"}
    first = found[0]
    assert START + 2_000 < first.time < START + 2_200
    assert first.text().startswith("2026-01-05T08:")
    assert "Adaptive windowing (ADWIN): The mean reward fell by" in first.text()
    # those of a time before the start are known
    before = len([alarm for alarm in found if alarm.time < START + 2_500])
    position = next(e.position for e in newest(folder / "log", N * 2) if e.time > START + 2_500)
    assert len(all_of(Watcher(folder, ServiceParams(), position))) == len(found) - before
    # another range of rewards is seen as 0 to 1
    params = ServiceParams(rollout=RolloutParams(low=-1.0, high=1.0))
    first = all_of(Watcher(folder, params, 0))[0]
    assert "Rewards count from 0 at -1 to 1 at 1." in first.sentence


@pytest.mark.slow
def test_an_alarm_on_the_challenger_rolls_it_back_with_the_evidence(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry")
    for _ in range(2):
        registry.register(policy(), {})
    registry.promote(1)
    registry.point("challenger", 2)
    # a busy machine is slow, which is no alarm
    rollout = RolloutParams(steps=(0.5,), min_decisions=10**6, max_latency=10.0)
    params = ServiceParams(rollout=rollout)
    service, g = Service(tmp_path, params), np.random.default_rng(1)
    service._looked = float("inf")
    try:
        for i in range(1_600):
            answer = service.decide({"x": 0.0, "y": 1.0}, user=f"user {i}")
            # the rewards of both fall, so that their difference states nothing
            service.reward(answer.event_id, float(g.random() < (0.9 if i < 1_000 else 0.1)))
        assert service.judge().startswith("wait")
        assert service.store.flush()
        # 2,000 events a look, and the last one takes over
        for _ in range(3):
            service._looked = 0.0
            service.tick()
            service._looking.join()
        texts = [alarm.text() for alarm in service.alarms]
        assert any(
            "version 2, Adaptive windowing (ADWIN): The mean reward fell" in t for t in texts
        )
        # of all decisions too, and nothing else
        assert service.alarmed == {"adwin": len(texts), "feature_drift": 0, "fallbacks": 0}
        assert service.judge().startswith("roll back: an alarm on the challenger's decisions: ")
        assert registry.aliases()[:2] == (1, None)
    finally:
        service.close()
    verdict = newest(tmp_path / "log", 5, ["verdict"])[-1].body
    assert verdict["action"] == "roll back"
    assert "The mean reward fell by" in verdict["why"]
    # the log holds them, and a restart raises none anew
    assert len(newest(tmp_path / "log", 9, ["alarm"])) == len(texts)
    again = Service(tmp_path, params)
    assert (again.aliases.challenger, len(again.alarms)) == (None, len(texts))
    again.close()
