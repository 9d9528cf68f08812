"""Options of the published neural-linear program: initial pulls, falling learning rate, gradient
limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bandits.agents.neural.neural_linear_ts import NeuralLinearTS
from bandits.simulators.petshop import PetShop
from bandits.simulators.wheel import Wheel
from tests.contract.worlds import make

SMALL: dict[str, Any] = {"hidden": (6, 4), "every": 10, "updates": 4, "heads": "per_arm"}


def agent_of(**params: Any) -> NeuralLinearTS:
    agent = make("neural_linear_ts", Wheel, **{**SMALL, **params}).agent
    assert isinstance(agent, NeuralLinearTS)
    return agent


def test_initial_pulls_show_every_arm_so_often_before_anything_else() -> None:
    free = make("neural_linear_ts", Wheel, **SMALL).advance(40).items[..., 0]
    forced = make("neural_linear_ts", Wheel, initial_pulls=3, **SMALL).advance(40).items[..., 0]
    for begin in (0, 5, 10):
        # every arm once, in an order of its own
        np.testing.assert_array_equal(np.sort(forced[begin : begin + 5], axis=0).T, [range(5)] * 3)
    assert (forced[:15] != np.arange(15)[:, None] % 5).any()
    assert (free[:15] != forced[:15]).any()
    assert (forced[15:, 0] != forced[15:, 1]).any()


def test_initial_pulls_are_of_the_arms_not_shown_yet_and_end() -> None:
    lane = make(
        "neural_linear_ts",
        PetShop,
        options={"n_products": 4, "n_users": 20},
        initial_pulls=1,
        **SMALL,
    )
    for step in range(4):
        stated = lane.agent.probabilities(lane.simulator.round_at(step))
        # equal among these: five standard deviations of 1,000 redraws
        assert ((stated > 0).sum(axis=1) == 4 - step).all()
        assert np.abs(stated[stated > 0] - 1 / (4 - step)).max() < 5 * np.sqrt(0.25 / 1000)
        shown = lane.advance(1).items[0, :, 0]
        assert (np.take_along_axis(stated, shown[:, None], axis=1) > 0).all()
    assert (lane.agent.probabilities(lane.simulator.round_at(4)).max(axis=1) < 1).any()


@pytest.mark.parametrize("decay_from", ["training", "start"])
def test_the_learning_rate_falls_with_the_steps(decay_from: str) -> None:
    """lr / (1 + decay s): two trainings of four steps, counted from each training or from the
    start.
    """
    agent = agent_of(
        learning_rate=0.1, learning_rate_decay=0.5, decay_from=decay_from, optimiser="sgd"
    )
    rates = []
    agent.replay.add(
        np.zeros((3, 1, 2)), np.zeros((3, 1), np.int64), np.zeros((3, 1)), np.ones((3, 1, 1))
    )
    for _ in range(2):
        agent.train()
        rates.append(float(agent.optimiser.rate[1, 0]))
    # before the last step of each training
    steps = [3, 3] if decay_from == "training" else [3, 7]
    np.testing.assert_allclose(rates, [0.1 / (1 + 0.5 * s) for s in steps], rtol=1e-6)


def test_gradients_are_shortened_to_the_limit() -> None:
    """One step of SGD at rate 1 moves the weights by the gradient."""
    agent = agent_of(learning_rate=1.0, gradient_limit=2.0, optimiser="sgd")
    gradient = torch.zeros_like(agent.net.flat)
    gradient[0, :2], gradient[1, 0], gradient[2, 1] = torch.tensor([3.0, 4.0]), 0.5, 2.0
    before = agent.net.flat.clone()
    agent.apply_gradient(gradient)
    moved = (before - agent.net.flat)[:, :2].numpy()
    np.testing.assert_allclose(moved, [[1.2, 1.6], [0.5, 0.0], [0.0, 2.0]], atol=1e-6)


def test_initial_weights_are_uniform_within_the_scale_and_biases_zero() -> None:
    agent = agent_of(initial_scale=0.3, hidden=(200,))
    (weight, bias), (last, last_bias) = agent.net.layers
    for values in (weight, last):
        assert 0.29 < float(values.abs().max()) <= 0.3
        assert float(values.std()) == pytest.approx(0.3 / 3**0.5, rel=0.06)
    assert not bias.any()
    assert not last_bias.any()
