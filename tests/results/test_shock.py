"""What a market shock changed: rates on either side of it, and who leads after it."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import run
from bandits.results import paired_tests, text
from bandits.results.shock import around_shock, rates_around
from tests.support import experiment

SHOCKED = {"kind": "petshop", "n_products": 10, "shock_step": 600}


def test_the_rates_are_the_clicks_on_either_side_of_the_shock() -> None:
    result = run(experiment("linucb", "random", simulator=SHOCKED, steps=1000, replications=4))
    history = result.histories["LinUCB"]
    assert 600 in history.grid
    at = int(np.flatnonzero(history.grid == 600)[0])
    clicks = history.sums["clicks"]
    before, after = rates_around(history, 600)
    assert before.mean == pytest.approx(clicks[at].mean() / 600)
    assert after.mean == pytest.approx((clicks[-1] - clicks[at]).mean() / 400)
    assert before.low < before.mean < before.high


def test_a_shock_between_stored_steps_leaves_its_interval_out() -> None:
    history = run(experiment("random", steps=40_000, replications=2)).histories["Random"]
    spacing = int(history.grid[1])
    assert spacing > 2
    step = 3 * spacing + 1
    before, after = rates_around(history, step)
    clicks = history.sums["clicks"]
    assert before.mean == pytest.approx(clicks[3].mean() / (3 * spacing))
    assert after.mean == pytest.approx((clicks[-1] - clicks[4]).mean() / (40_000 - 4 * spacing))


def test_the_leader_after_the_shock_is_compared_over_the_steps_after_it() -> None:
    e = experiment(
        {"kind": "linucb", "gamma": 0.99}, "linucb", "oracle", "random", simulator=SHOCKED, steps=3000, replications=8
    )
    result = run(e)
    found = around_shock(result)
    assert found is not None
    assert "Oracle" not in (found.best, found.leader, found.runner_up)
    assert found.comparison is not None
    a, b = result.histories[found.leader], result.histories[found.runner_up]
    assert found.comparison == paired_tests.compare(a, b, since=600)
    at = int(np.searchsorted(a.grid, 600))
    gap = [h.sums["clicks"][-1] - h.sums["clicks"][at] for h in (a, b)]
    assert found.comparison.difference.mean == pytest.approx((gap[0] - gap[1]).mean())
    (sentence,) = text.shock_summary(result)
    assert sentence.startswith("Market shock at step 600: the click-through rate of LinUCB")
    assert f"after it, {found.leader} leads" in sentence


def test_no_shock_and_a_shock_that_is_not_reached_say_nothing() -> None:
    assert text.shock_summary(run(experiment("linucb", "random"))) == []
    late = {**SHOCKED, "shock_step": 5000}
    assert text.shock_summary(run(experiment("linucb", "random", simulator=late))) == []
    assert around_shock(run(experiment("oracle", "random", simulator=SHOCKED, steps=900))) is not None
