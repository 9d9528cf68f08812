"""Monitors on the log of a running service, and the rollout that their alarms end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bandits.serving.alarms import Seen, Watcher
from bandits.serving.event_log import newest
from bandits.serving.registry import Registry
from bandits.serving.rollout import RolloutParams
from bandits.serving.service import Service
from bandits.serving.settings import ServiceParams
from tests.serving.test_service import policy
from tests.serving.test_watch import START, N, written


def all_of(watcher: Watcher) -> list[Seen]:
    """Look until the end of the log: at most 2,000 events a look."""
    return [alarm for _ in range(5) for alarm in watcher.look(1, None, 0.0)]


@pytest.mark.slow
def test_alarms_on_what_is_new_in_the_log(tmp_path: Path) -> None:
    folder = written(tmp_path, falls=True)
    watcher = Watcher(folder, ServiceParams(), 0)
    assert all(alarm.time < START + 1_100 for alarm in watcher.look(1, None, 0.0))
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
    params = ServiceParams(rollout=RolloutParams(steps=(0.5,), min_decisions=10**6))
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
    # the log holds them, and a restart passes them over
    assert len(newest(tmp_path / "log", 9, ["alarm"])) == len(texts)
    again = Service(tmp_path, params)
    assert (again.aliases.challenger, len(again.alarms)) == (None, 0)
    again.close()
