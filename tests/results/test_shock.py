"""What a market shock changed: rates on either side of it, and who leads after it."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import run
from bandits.results.change.before_after import around_shock, rates_around
from bandits.results.comparison import paired_tests
from bandits.results.comparison.conclusion import shock_summary
from bandits.results.result import Result
from tests.support import experiment, history

SHOCKED = {"kind": "petshop", "n_products": 10, "shock_step": 600}


def test_the_rates_are_the_clicks_on_either_side_of_the_shock() -> None:
    result = run(experiment("linucb", "random", simulator=SHOCKED, steps=1000, replications=4))
    history = result.histories["LinUCB"]
    assert 600 in history.grid
    half, at = (int(np.flatnonzero(history.grid == step)[0]) for step in (300, 600))
    clicks = history.sums["clicks"]
    rates = rates_around(history, 600)
    assert rates is not None
    before, after = rates
    # when it has learned
    assert before.mean == pytest.approx((clicks[at] - clicks[half]).mean() / 300)
    assert after.mean == pytest.approx((clicks[-1] - clicks[at]).mean() / 400)
    assert before.low < before.mean < before.high


def test_a_shock_between_stored_steps_leaves_its_interval_out() -> None:
    history = run(experiment("random", steps=40_000, replications=2)).histories["Random"]
    spacing = int(history.grid[1])
    assert spacing > 2
    step = 3 * spacing + 1
    rates = rates_around(history, step)
    assert rates is not None
    before, after = rates
    clicks = history.sums["clicks"]
    assert before.mean == pytest.approx((clicks[3] - clicks[2]).mean() / spacing)
    assert after.mean == pytest.approx((clicks[-1] - clicks[4]).mean() / (40_000 - 4 * spacing))


def test_the_leader_after_the_shock_is_compared_over_the_steps_after_it() -> None:
    e = experiment(
        {"kind": "linucb", "gamma": 0.99},
        "linucb",
        "oracle",
        "random",
        simulator=SHOCKED,
        steps=3000,
        replications=8,
    )
    result = run(e)
    found = around_shock(result)
    assert found is not None
    assert "Oracle" not in (found.best, found.leader, found.runner_up)
    assert found.comparison is not None
    a, b = result.histories[found.leader], result.histories[found.runner_up]
    assert found.comparison == paired_tests.compare(a, b, since=600, family=6)
    at = int(np.searchsorted(a.grid, 600))
    gap = [h.sums["clicks"][-1] - h.sums["clicks"][at] for h in (a, b)]
    assert found.comparison.difference.mean == pytest.approx((gap[0] - gap[1]).mean())
    (sentence,) = shock_summary(result)
    assert sentence.startswith("Market shock at step 600: the click-through rate of LinUCB")
    assert f"after it, {found.leader} leads" in sentence


def test_the_leader_after_the_shock_need_not_be_the_best_agent() -> None:
    e = experiment("linucb", "random", simulator=SHOCKED, steps=1000, replications=3)
    before = (np.arange(1000) < 600).astype(float)[:, None] * np.ones(3)
    found = around_shock(
        Result(
            e, {"LinUCB": history(before, n_items=10), "Random": history(1 - before, n_items=10)}
        )
    )
    assert found is not None
    assert (found.best, found.leader, found.runner_up) == ("LinUCB", "Random", "LinUCB")
    assert (found.before.mean, found.after.mean, found.leader_after.mean) == (1, 0, 1)


def test_no_shock_and_a_shock_that_is_not_reached_say_nothing() -> None:
    assert shock_summary(run(experiment("linucb", "random"))) == []
    late = {**SHOCKED, "shock_step": 5000}
    assert shock_summary(run(experiment("linucb", "random", simulator=late))) == []
    found = around_shock(run(experiment("oracle", "random", simulator=SHOCKED, steps=900)))
    assert found is not None
    assert (found.step, found.best, found.leader, found.runner_up) == (600, "Random", "Random", "")
    assert found.comparison is None
    assert found.leader_after == found.after
    assert 0 < found.before.low < found.before.mean < found.before.high < 1
    assert 0 < found.after.low < found.after.mean < found.after.high < 1


def test_a_shock_without_stored_steps_on_both_sides_has_no_rates() -> None:
    history = run(experiment("random", steps=40_000, replications=2)).histories["Random"]
    spacing = int(history.grid[1])
    last, before_last = (int(history.grid[-n]) for n in (1, 2))
    for step in (0, 1, spacing - 1, spacing, before_last + 1, last - 1, last, last + 1):
        assert rates_around(history, step) is None, step
    # one interval on one of the sides
    for step in (2 * spacing, before_last):
        rates = rates_around(history, step)
        assert rates is not None
        assert all(rate.mean > 0 for rate in rates)


@pytest.mark.parametrize("shock", [1, 39_999])
def test_nothing_is_stated_about_a_shock_in_the_first_or_last_interval(shock: int) -> None:
    simulator = {**SHOCKED, "shock_step": shock}
    result = run(experiment("random", simulator=simulator, steps=40_000, replications=2))
    assert shock not in result.histories["Random"].grid
    assert around_shock(result) is None
    assert shock_summary(result) == []


def test_a_run_stopped_before_the_next_stored_step_states_nothing_about_the_shock() -> None:
    simulator = {**SHOCKED, "shock_step": 20_001}
    result = run(experiment("random", simulator=simulator, steps=40_000, replications=2))
    history = result.histories["Random"]
    after = int(np.searchsorted(history.grid, 20_001))
    assert around_shock(result) is not None
    history.step = int(history.grid[after]) + 1
    assert around_shock(result) is None
