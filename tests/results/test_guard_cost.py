"""What a guard costs: the pairs that are compared, signs, and intervals that agree with the test."""

from __future__ import annotations

import pytest

from bandits import run
from bandits.experiments.guarding import with_and_without
from bandits.results import guard_cost, paired_tests
from tests.support import experiment

FLOOR = {"kind": "floor", "epsilon": 0.2}


def test_agents_are_compared_with_themselves_without_the_outermost_guard() -> None:
    plain = experiment({"kind": "linucb", "alpha": 0.4}, "lints", "random")
    once = with_and_without(plain, FLOOR, plain.labels[:2])
    assert guard_cost.guarded_pairs(once) == {
        "LinUCB exploration floor": "LinUCB", "LinTS exploration floor": "LinTS",
    }  # fmt: skip
    twice = with_and_without(once, {"kind": "delay", "steps": 5}, ["LinUCB exploration floor"])
    assert list(guard_cost.guarded_pairs(twice).values()) == ["LinUCB exploration floor"]
    assert guard_cost.guarded_pairs(plain) == {}


@pytest.mark.parametrize("replications", [1, 8])
def test_the_cost_is_the_paired_difference(replications: int) -> None:
    plain = experiment({"kind": "linucb", "alpha": 0.4}, "random", steps=2000, replications=replications)
    result = run(with_and_without(plain, FLOOR, plain.labels), workers=0)
    histories = result.histories
    first, second = guard_cost.sentences(result)
    cost = paired_tests.compare(histories["LinUCB"], histories["LinUCB exploration floor"]).difference
    assert cost.mean > 0
    earned = histories["LinUCB"].sums["clicks"][-1].mean()
    share = f"{100 * cost.mean / earned:.1f} %"
    assert first.startswith(
        f"Exploration floor (epsilon 0.2): LinUCB earns {cost.mean:.0f} fewer clicks, {share}, than without it ("
    )
    assert ("paired replications" in first) == (replications > 1)
    assert "not significant" in second  # a floor under random choice changes nothing in the mean
    assert guard_cost.sentences(run(plain, workers=0)) == []
