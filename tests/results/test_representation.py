"""Embeddings of items on principal axes."""

from __future__ import annotations

import numpy as np

from bandits.agents.neural.base import NeuralAgent
from bandits.experiments.lockstep import make_lane
from bandits.results.decision import why
from bandits.results.representation import ROUNDS, figure, note, principal_axes, representation
from bandits.simulators.petshop_rates import CATEGORIES
from tests.support import experiment

SHOP = {"kind": "petshop", "n_products": 12, "n_users": 40}
SMALL = {"hidden": (6, 4), "every": 20, "updates": 5}


def test_axes_hold_the_variance_of_points_in_a_plane() -> None:
    generator = np.random.default_rng(5)
    plane = generator.standard_normal((2, 7))
    at = generator.standard_normal((30, 2)) * (3.0, 1.0)
    points, explained = principal_axes(at @ plane + 4.0)
    np.testing.assert_allclose(explained.sum(), 1)
    assert explained[0] >= explained[1]
    # distances stay
    far = at @ plane
    np.testing.assert_allclose(
        np.linalg.norm(points[:, None] - points, axis=2),
        np.linalg.norm(far[:, None] - far, axis=2),
    )
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-12)


def test_equal_and_single_vectors_have_no_axes() -> None:
    for z in (np.full((5, 3), 0.7), np.ones((1, 3))):
        points, explained = principal_axes(z)
        assert not explained.any()
        assert not points.any()


def test_items_are_where_the_last_hidden_layer_has_them() -> None:
    e = experiment({"kind": "neural_greedy", **SMALL}, simulator=SHOP, steps=80)
    lane = make_lane(e, 0)
    lane.advance(60)
    agent = lane.agent
    assert isinstance(agent, NeuralAgent)
    found = representation(lane, 1)
    assert found is not None
    rounds = [lane.simulator.round_at(60 + i) for i in range(ROUNDS)]
    mean = np.mean([agent.embedding(round)[1] for round in rounds], axis=0)
    # the output is linear in it
    weights, bias = (part[1].double().numpy() for part in agent.net.views(agent.net.flat)[-1])
    means = np.mean([agent.mean(round)[1] for round in rounds], axis=0)
    np.testing.assert_allclose((mean @ weights.T + bias)[:, 0], means, atol=1e-5)
    np.testing.assert_allclose(found.points, principal_axes(mean)[0], atol=1e-6)
    np.testing.assert_array_equal(found.categories, lane.simulator.categories()[1])
    assert [t["name"] for t in figure(found, "NeuralGreedy")["data"]] == list(CATEGORIES)
    assert "4 units" in note(found)


def test_a_decision_of_a_network_comes_with_its_representation() -> None:
    """Which changes neither the decision nor the reward; other agents have none."""
    e = experiment({"kind": "neural_linear_ts", **SMALL}, "linucb", simulator=SHOP, steps=60)
    trace = make_lane(e, 0).advance(60)
    network, linear = (why(e, i, 60, 1) for i in range(2))
    assert network.learned is not None
    assert linear.learned is None
    assert network.candidates[0].item == trace.items[59, 1, 0]
    assert network.reward == trace.rewards[59, 1]
