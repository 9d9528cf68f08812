"""What a guard costs: the pairs that are compared, signs, and intervals that agree with the
test.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest

from bandits import Result, run
from bandits.experiments.guarding import with_and_without
from bandits.results import guard_cost, metrics, words
from bandits.results.comparison import paired_tests
from bandits.results.metrics import total
from tests.support import experiment

FLOOR = {"kind": "floor", "epsilon": 0.2}


def test_agents_are_compared_with_themselves_without_the_outermost_guard() -> None:
    plain = experiment({"kind": "linucb", "alpha": 0.4}, "lints", "random")
    once = with_and_without(plain, FLOOR, plain.labels[:2])
    assert guard_cost.guarded_pairs(once) == {
        "LinUCB exploration floor": "LinUCB",
        "LinTS exploration floor": "LinTS",
    }
    twice = with_and_without(once, {"kind": "delay", "steps": 5}, ["LinUCB exploration floor"])
    assert list(guard_cost.guarded_pairs(twice).values()) == ["LinUCB exploration floor"]
    assert guard_cost.guarded_pairs(plain) == {}


@pytest.mark.parametrize("replications", [1, 8])
def test_the_cost_is_the_paired_difference(replications: int) -> None:
    plain = experiment(
        {"kind": "linucb", "alpha": 0.4}, "random", steps=2000, replications=replications
    )
    result = run(with_and_without(plain, FLOOR, plain.labels), workers=0)
    histories = result.histories
    first, second = guard_cost.sentences(result)
    cost = paired_tests.compare(
        histories["LinUCB"], histories["LinUCB exploration floor"]
    ).difference
    assert cost.mean > 0
    earned = histories["LinUCB"].sums["clicks"][-1].mean()
    share = f"{100 * cost.mean / earned:.1f} %"
    assert first.startswith(
        f"Exploration floor (epsilon 0.2): LinUCB earns {cost.mean:.0f} fewer clicks, {share}, "
        "than without it ("
    )
    assert ("paired replications" in first) == (replications > 1)
    # it changes nothing in the mean
    assert ("not significant" in second) == (replications > 1)
    unguarded = run(plain, workers=0)
    assert guard_cost.sentences(unguarded) == []
    assert guard_cost.conclusion(unguarded) == ""
    half = r", and for [a-z ]+, the smallest segment, the less shown half of the products gets [\d.]+ % of the shows"  # noqa: E501
    assert re.search(half, first)
    ends = re.search(
        rf"{half} instead of [\d.]+ % \(95 % CI of the difference \+[\d.]+ to \+[\d.]+ percentage points\)\.$",  # noqa: E501
        first,
    )
    assert (ends is not None) == (replications > 1)
    costs = (
        "The exploration floor (epsilon 0.2) costs clicks with LinUCB and is not shown to change "
        "the clicks of Random; for "
        if replications > 1
        else (
            "One replication cannot tell what the exploration floor (epsilon 0.2) costs LinUCB "
            "and Random; for "
        )
    )
    assert guard_cost.conclusion(result).startswith(costs)


def test_what_a_floor_and_a_cap_bring_is_stated() -> None:
    plain = experiment({"kind": "linucb", "alpha": 0.1}, steps=2000, replications=8)
    floored = run(with_and_without(plain, FLOOR, plain.labels), workers=0)
    (stated,) = guard_cost.sentences(floored)
    assert guard_cost.conclusion(floored) == stated
    bare, guarded = floored.histories["LinUCB"], floored.histories["LinUCB exploration floor"]
    visits = guarded.segments.counts[-1].sum(axis=(0, 2))  # type: ignore[union-attr]
    g = int(visits.argmin())
    assert (
        f"for {floored.experiment.simulator_class().segment_names()[g]}, the smallest segment"
        in stated
    )
    shares = []
    for history in (guarded, bare):
        counts = np.sort(history.segments.counts[-1][:, g], axis=1)  # type: ignore[union-attr]
        shares.append(counts[:, :5].sum(axis=1) / counts.sum(axis=1))
    # ten products: the floor alone gives half of 20 %
    assert shares[0].mean() > 0.08
    assert (
        f"gets {100 * shares[0].mean():.1f} % of the shows instead of {100 * shares[1].mean():.1f} "
        "%" in stated
    )
    gap = metrics.estimate(shares[0] - shares[1])
    assert (
        f"(95 % CI of the difference {100 * gap.low:+.1f} to {100 * gap.high:+.1f} percentage "
        "points)" in stated
    )
    capped = run(
        with_and_without(plain, {"kind": "cap", "share": 0.2, "window": 100}, plain.labels),
        workers=0,
    )
    (stated,) = guard_cost.sentences(capped)
    most = [h.counts[-1].max(axis=1) / h.counts[-1].sum(axis=1) for h in capped.histories.values()]
    assert most[1].mean() < 0.25
    shares = [100 * share.mean() for share in most]
    assert (
        f"the most shown product gets {shares[1]:.1f} % of the shows instead of {shares[0]:.1f} %"
        in stated
    )
    late = run(with_and_without(plain, {"kind": "delay", "steps": 50}, plain.labels), workers=0)
    assert "of the shows" not in guard_cost.sentences(late)[0]


@pytest.fixture(scope="module")
def several() -> Result:
    """Three agents with and without a floor."""
    plain = experiment(
        {"kind": "linucb", "alpha": 0.4}, "lints", "random", steps=2000, replications=8
    )
    return run(with_and_without(plain, {"kind": "floor", "epsilon": 0.5}, plain.labels), workers=0)


def test_several_agents_are_summarised_by_what_is_significant(several: Result) -> None:
    result = several
    each = [
        re.findall(r"gets ([\d.]+) % of the shows instead of ([\d.]+) %", s)[0]
        for s in guard_cost.sentences(result)
    ]
    assert len(each) == 3
    after, before = ([float(share) for share in shares] for shares in zip(*each, strict=True))
    stated = guard_cost.conclusion(result)
    assert stated.startswith(
        "The exploration floor (epsilon 0.5) costs clicks with LinUCB and LinTS and is not shown "
        "to change the clicks of Random; for "
    )
    shares = (
        f"{min(after)} to {max(after)} % of the shows instead of {min(before)} to {max(before)} %"
    )
    shares += ", depending on the agent"
    assert stated.endswith(f"half of the products gets {shares}.")


def test_the_interval_of_a_cost_is_corrected_for_all_guarded_agents(several: Result) -> None:
    """Its ends are positive whether the guard costs clicks or earns some."""
    exchanged = copy.deepcopy(several)
    pairs = guard_cost.guarded_pairs(several.experiment)
    for guarded, plain in pairs.items():
        histories = exchanged.histories
        histories[guarded], histories[plain] = histories[plain], histories[guarded]
    stated = zip(guard_cost.sentences(several), guard_cost.sentences(exchanged), strict=True)
    for (guarded, plain), (costs, earns) in zip(pairs.items(), stated, strict=True):
        gap = total(several.histories[plain], "clicks") - total(
            several.histories[guarded], "clicks"
        )
        interval = words.interval(abs(metrics.estimate(gap, family=3)), "count")
        assert f"than without it ({interval}; 8 paired" in costs
        assert f"than without it ({interval}; 8 paired" in earns


def test_each_guard_of_an_agent_has_its_own_clause() -> None:
    def guarded(label: str, guard: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "linucb", "alpha": 0.4, "label": label, "guards": [guard]}

    plain, faint = (
        {"kind": "linucb", "alpha": 0.4},
        guarded("faint", {"kind": "floor", "epsilon": 0.0001}),
    )
    late, strong = guarded("late", {"kind": "delay", "steps": 1000}), guarded("strong", FLOOR)
    result = run(experiment(plain, late, faint, steps=2000, replications=8), workers=0)
    assert guard_cost.conclusion(result) == (
        "The delayed rewards (steps 1000) cost clicks with LinUCB; "
        "the exploration floor (epsilon 0.0001) is not shown to change the clicks of LinUCB."
    )
    assert " than without them (95 % CI" in guard_cost.sentences(result)[0]
    assert guard_cost.conclusion(
        run(experiment(plain, strong, faint, steps=2000, replications=8), workers=0)
    ) == (
        "The exploration floor (epsilon 0.2) costs clicks with LinUCB; "
        "the exploration floor (epsilon 0.0001) is not shown to change the clicks of LinUCB."
    )


def test_pairs_with_one_common_replication_or_none_state_no_effect(several: Result) -> None:
    result = copy.deepcopy(several)
    result.histories["LinTS"].alive[1:] = False
    assert guard_cost.conclusion(result).startswith(
        "The exploration floor (epsilon 0.5) costs clicks with LinUCB and is not shown to change "
        "the clicks of Random; one replication cannot tell what the exploration floor (epsilon "
        "0.5) costs LinTS; for "
    )
    result.histories["LinTS"].alive[:] = False
    assert "LinTS" not in guard_cost.conclusion(result)
    assert len(guard_cost.sentences(result)) == 2
