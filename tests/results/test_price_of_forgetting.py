"""What forgetting costs and earns: paired differences, and a verdict that keeps its error rate."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import UserError, run
from bandits.results import metrics
from bandits.results.change import price_of_forgetting as price
from bandits.results.change.lost_clicks import without_changes
from tests.support import experiment, often

SHOCK = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "shock", "at": 300}]}


def test_values_are_those_of_one_agent_the_first_without_forgetting() -> None:
    e = experiment(
        "random", {"kind": "linucb", "alpha": 0.4, "window": 50}, simulator=SHOCK, steps=600
    )
    by_gamma = price.variants(e, "LinUCB", "gamma")
    assert [agent.gamma for agent in by_gamma.agents] == list(price.GAMMAS)
    assert {(agent.alpha, agent.window) for agent in by_gamma.agents} == {(0.4, None)}
    by_window = price.variants(e, "LinUCB", "window")
    assert [agent.window for agent in by_window.agents] == list(price.WINDOWS)
    assert by_window.labels[0] == "all steps"
    with pytest.raises(UserError, match="Random has no parameter gamma"):
        price.variants(e, "Random", "gamma")


def test_price_and_gain_are_paired_differences_to_the_first_agent() -> None:
    e = price.variants(
        experiment("linucb", simulator=SHOCK, steps=600, replications=4), "LinUCB", "gamma"
    )
    changed, unchanged = run(e, workers=0), run(without_changes(e), workers=0)
    found = price.compare(changed, unchanged)
    assert [f.name for f in found] == list(e.labels[1:])
    for f in found:
        now, still = (
            {k: h.sums["value"][-1] for k, h in r.histories.items()} for r in (changed, unchanged)
        )
        assert f.gain.mean == pytest.approx((now[f.name] - now["all steps"]).mean())
        assert f.price.mean == pytest.approx((still["all steps"] - still[f.name]).mean())
        assert f.gain.low < f.gain.mean < f.gain.high
    figure = price.figure(found, changed)
    assert figure["data"][1]["hovertext"] == [f.name for f in found]
    # 0 and all bars lie within the axes
    for axis, name in (("xaxis", "price"), ("yaxis", "gain")):
        low, high = figure["layout"][axis]["range"]
        ends = [0.0, *(end for f in found for end in getattr(f, name))]
        assert low < min(ends)
        assert max(ends) < high
        bars = figure["data"][1][f"error_{axis[0]}"]
        for f, above, below in zip(found, bars["array"], bars["arrayminus"], strict=True):
            mean, *interval = getattr(f, name)
            np.testing.assert_allclose([mean - below, mean + above], interval)


def test_a_value_is_named_best_without_cause_in_at_most_one_of_twenty_runs() -> None:
    n, g = often(2000, 20_000), np.random.default_rng(7)
    claimed = 0
    for _ in range(n):
        gained = list(g.standard_normal((6, 8)))
        claimed += price.conclusion(price.estimated("abcdef", gained, gained)).startswith("Best")
    assert claimed / n < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)


def test_the_interval_of_the_best_value_covers_although_the_data_chose_it() -> None:
    """By its own interval alone, the winner of six equal values would be overstated in far more
    runs.
    """
    n, g = often(2000, 20_000), np.random.default_rng(9)
    missed = np.zeros(2)
    for _ in range(n):
        gained = g.standard_normal((6, 16))
        found = max(price.estimated("abcdef", gained, gained), key=lambda f: f.gain.mean)
        alone = metrics.estimate(max(gained, key=np.mean))
        missed += [not found.gain.low <= 0 <= found.gain.high, not alone.low <= 0 <= alone.high]
    share = missed / n
    assert share[0] < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
    assert share[1] > 0.1


def test_the_verdict_states_price_and_gain() -> None:
    g = np.random.default_rng(8)
    lost, gained = (list(g.normal(means, 5, (16, 2)).T) for means in ([40, 200], [90, 150]))
    text = price.conclusion(price.estimated(["gamma 0.999", "gamma 0.99"], lost, gained))
    # less, but for a much smaller price
    assert text.startswith("Best over both runs: gamma 0.999 earns ")
    assert "in the run with changes and costs 4" in text or "and costs 3" in text
    free = price.conclusion(price.estimated(["gamma 0.999"], [-lost[0]], [gained[0]]))
    assert "more in the run without too" in free
