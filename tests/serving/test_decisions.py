"""Decisions and rewards, joined by their event."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.offpolicy.parquet import from_table, to_parquet
from bandits.serving.decisions import decision_log, join
from bandits.serving.event_log import Event


def decision(position: int, name: str, item: str = "a", time: float = 0.0, **body: Any) -> Event:
    own = {"item": item, "propensity": 0.5, "context": [1.0, 2.0], "version": 3} | body
    return Event(position, time, "decision", name, "", own)


def reward(position: int, name: str, value: float, time: float = 1.0) -> Event:
    return Event(position, time, "reward", name, "", {"reward": value})


EVENTS = [
    reward(1, "x", 9.0),
    decision(2, "x"),
    decision(3, "y", "b", candidates=["b", "c"]),
    decision(4, "x", "c"),
    reward(5, "x", 1.0),
    reward(6, "x", 2.0, time=50.0),
    reward(7, "unknown", 1.0),
    decision(8, "z", "c", time=5.0),
    reward(9, "z", 3.0, time=100.0),
]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1.0, math.nan, 3.0]),
        ({"several": "sum"}, [3.0, math.nan, 3.0]),
        ({"several": "sum", "window": 10.0}, [1.0, math.nan, math.nan]),
        ({"window": 95.0, "default_reward": 0.0}, [1.0, 0.0, 3.0]),
    ],
)
def test_rewards_are_joined(options: dict[str, Any], expected: list[float]) -> None:
    joined = join(EVENTS, **options)
    assert [d.event_id for d in joined] == ["x", "y", "z"]
    assert [d.body["item"] for d in joined] == ["a", "b", "c"]
    np.testing.assert_equal([d.reward for d in joined], expected)


def test_a_log_is_what_was_decided() -> None:
    joined = join(EVENTS, default_reward=0.0)
    log = decision_log(joined, ["a", "b", "c"], np.array, ["age", "visits"])
    assert log.actions.tolist() == [0, 1, 2]
    assert log.rewards.tolist() == [1.0, 0.0, 3.0]
    assert log.available is not None
    assert log.available.tolist() == [[True] * 3, [False, True, True], [True] * 3]
    assert log.versions is not None
    assert log.versions.tolist() == ["3"] * 3
    import io

    import pyarrow.parquet as pq

    assert from_table(pq.read_table(io.BytesIO(to_parquet(log)))) == log
    assert len(decision_log(join(EVENTS), ["a", "b", "c"], np.array)) == 2


def test_logs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="no decision of the log has a reward yet"):
        decision_log(join([decision(1, "x")]), ["a"], np.array)
    with pytest.raises(UserError, match="the log shows the item 'c', which the policy has not"):
        decision_log(join(EVENTS), ["a", "b"], np.array)
