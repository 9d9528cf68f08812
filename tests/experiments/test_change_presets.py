"""What the texts of the presets with changes state is true of their runs."""

from __future__ import annotations

import pytest

from bandits import Result, lost, recovery, run
from bandits.experiments.presets import presets
from bandits.results.guard_cost import fallbacks
from bandits.results.items.demand import demand
from bandits.results.items.launches import launches


def result(name: str) -> Result:
    return run(presets()[name].experiment, workers=0)


def recovered(found: Result, label: str) -> int:
    measured = recovery(found, label)
    assert measured is not None
    assert measured.step is not None
    return measured.step


@pytest.mark.stress
def test_forgetting_halves_the_time_of_recovery() -> None:
    found = result("forgetting")
    for label in ("LinUCB gamma 0.9995", "LinUCB window 5000"):
        assert recovered(found, label) < recovered(found, "LinUCB") / 2
        assert found.compare(label, "LinUCB").difference.low > 0


@pytest.mark.stress
def test_the_network_that_was_trained_before_the_run_loses_most_when_puppies_grow_up() -> None:
    found = run(presets()["drift"].experiment, workers=0, unchanged=True)
    for label in found.experiment.labels[1:]:
        assert found.compare("Static MLP", label).difference.high < 0 or label == "Random"
        assert lost(found, "Static MLP").low > lost(found, label).high
    measured = recovery(found, "Static MLP")
    assert measured is not None
    assert measured.step is None


@pytest.mark.stress
def test_a_sliding_window_follows_the_seasons() -> None:
    assert result("season").compare("LinUCB window 2500", "LinUCB").difference.low > 0


@pytest.mark.stress
def test_agents_without_features_do_not_notice_a_broken_pipeline() -> None:
    found = result("pipeline")
    discounted, plain = (recovery(found, label) for label in ("LinUCB gamma 0.9995", "LinUCB"))
    assert discounted is not None
    assert plain is not None
    assert discounted.high is not None
    assert plain.low is not None
    assert discounted.high < plain.low
    assert recovered(found, "Static MLP") == 0


@pytest.mark.stress
def test_popularity_notices_a_launch_that_features_do_not_show() -> None:
    found = result("ranking-launch")
    wanted = demand(found.experiment)
    assert wanted is not None
    share = {
        label: launches(history, wanted)[0].share for label, history in found.histories.items()
    }
    assert all(
        share["Popularity"].low > share[each].high for each in share if each.startswith("LinUCB")
    )
    fair = launches(found.histories["Popularity"], wanted)[0].fair_share
    assert share["LinUCB with a floor"].high < fair / 2


@pytest.mark.stress
def test_a_floor_saves_the_segment_that_was_rare() -> None:
    found = result("floor")
    greedy, floor = found.histories["Greedy"], found.histories["Greedy with a floor"]
    at = int(greedy.grid.searchsorted(10_000))
    after = [(h.sums["value"][-1] - h.sums["value"][at]).mean() for h in (greedy, floor)]
    assert after[1] > 2 * after[0]
    assert found.compare("Greedy with a floor", "Greedy").difference.low > 0
    assert floor.segments is not None
    # most products for every persona
    assert ((floor.segments.now > 0).mean(axis=2) > 0.5).all()


@pytest.mark.stress
def test_the_cost_of_a_fallback_is_that_of_its_policy() -> None:
    found = result("fallback")
    costs = {}
    for label in ("random", "ε-greedy"):
        counted = fallbacks(found.histories[f"LinUCB or {label}"])
        assert counted is not None
        # one decision in eight
        assert 0.11 < counted.share < 0.14
        costs[label] = counted.cost
    assert costs["random"].low > 10 * costs["ε-greedy"].high
