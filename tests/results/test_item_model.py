"""The model of one item, visit by visit: sums over the visits of a plain replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import UserError
from bandits.experiments.lockstep import make_lane
from bandits.results.figures.style import styles
from bandits.results.item_model import figures, item_model, obstacle, sentence
from tests.support import experiment

SHOP = {"kind": "petshop", "n_products": 5, "n_users": 40}


@pytest.mark.parametrize(
    "agent",
    [
        {"kind": "linucb"},
        {"kind": "lints", "sharing": "shared"},
        {"kind": "linucb", "sharing": "per_category"},
        {"kind": "linucb", "window": 15},
    ],
)
def test_it_is_the_sum_over_the_visits_so_far(agent: dict[str, Any]) -> None:
    e = experiment(agent, simulator=SHOP, steps=60)
    lane = make_lane(e, 0, rows=[1])
    rounds, items, rewards = [], [], []
    for _ in range(60):
        rounds.append(lane.simulator.round_at(lane.step))
        trace = lane.advance(1)
        items.append(int(trace.items[0, 0, 0]))
        rewards.append(float(trace.rewards[0, 0]))
    item = max(set(items), key=items.count)
    visits = [step for step, shown in enumerate(items) if shown == item]
    found = item_model(e, 0, item, 3, replication=1)
    step = visits[2]
    assert (found.step, found.reward) == (step + 1, rewards[step])
    np.testing.assert_array_equal(found.x, rounds[step].features[0, item])
    kind = np.arange(5)
    if agent.get("sharing") == "shared":
        kind = np.zeros(5, np.int64)
    if agent.get("sharing") == "per_category":
        kind = lane.simulator.categories()[0]
    first = max(0, step + 1 - agent.get("window", 60))
    used = [t for t in range(first, step + 1) if kind[items[t]] == kind[item]]
    x = np.array([rounds[t].features[0, items[t]] for t in used])
    A = np.eye(x.shape[1]) * e.agents[0].ridge + x.T @ x
    np.testing.assert_allclose(found.A, A, atol=1e-9)
    np.testing.assert_allclose(found.b, x.T @ np.array(rewards)[used], atol=1e-9)
    np.testing.assert_allclose(found.A @ found.theta, found.b, atol=1e-9)
    if "window" not in agent:
        np.testing.assert_allclose(found.b - found.b_before, found.reward * found.x, atol=1e-9)
    assert found.plain == ("window" not in agent)
    assert "3rd time" in sentence(found)
    (style,) = styles(e).values()
    drawn = [spec["layout"]["title"]["text"] for spec in figures(found, style)]
    assert drawn == ["x", "A", "b", "θ"]


@pytest.mark.parametrize(
    ("agent", "item", "visit", "message"),
    [
        ({"kind": "linucb"}, 9, 1, "item is 9; it must be a whole number from 0 to 4"),
        ({"kind": "linucb"}, 0, 61, "visit is 61; it must be a whole number from 1 to"),
        ({"kind": "random"}, 0, 1, "Random has no linear model"),
        ({"kind": "linucb", "sharing": "hybrid"}, 0, 1, "no single matrix A"),
        ({"kind": "bag"}, 0, 1, "no single matrix A"),
    ],
)
def test_what_does_not_exist_is_refused(
    agent: dict[str, Any], item: int, visit: int, message: str
) -> None:
    e = experiment(agent, simulator=SHOP, steps=60)
    with pytest.raises(UserError, match=message):
        item_model(e, 0, item, visit)


def test_a_matrix_that_is_too_large_to_look_at_is_refused() -> None:
    e = experiment({"kind": "linucb", "fourier": 300}, simulator=SHOP, steps=60)
    assert obstacle(e, 0) == "A has 300 rows and columns; at most 200 are shown"
