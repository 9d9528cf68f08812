"""Worked examples on networks: counts of the source, closed forms, torch's derivatives and the
agent's own bonuses.
"""

from __future__ import annotations

import numpy as np
import pytest

from bandits.agents.neural.neural_ucb import NeuralUCB
from bandits.lessons.worked.gradient_bonus import (
    GradientBonus,
    Weights,
    by_weights,
    gradients,
    printed_error,
    vectorised_gradients,
)
from bandits.lessons.worked.network_size import NetworkSize
from bandits.lessons.worked.same_score import SameScore
from bandits.lessons.worked.stale_head import StaleHead
from tests.contract import worlds


def test_the_network_of_the_source_has_the_quoted_sizes() -> None:
    found = NetworkSize.values(NetworkSize.Params())
    layers = [found[f"weights_{name}"] for name in ("first", "second", "last")]
    assert layers == [1280, 8256, 65]
    assert found["weights"] == sum(layers) == 9601
    assert int(found["matrix_megabytes"]) == 368
    # the source cuts: 8.8
    assert f"{found['inverse_operations']:.1e}" == "8.9e+11"
    assert found["many_gigabytes"] == 400


@pytest.mark.parametrize(("observations", "ridge"), [(0, 1.0), (7, 0.1), (60, 3.0)])
def test_both_exact_computations_agree_and_the_diagonal_is_that_of_the_matrix(
    observations: int, ridge: float
) -> None:
    params = GradientBonus.Params(observations=observations, ridge=ridge)
    found, (candidates, shown) = GradientBonus.bonuses(params), GradientBonus.data(params)
    np.testing.assert_allclose(found["dual"], found["exact"], rtol=1e-12)
    J, G = (gradients(GradientBonus.network(), x) for x in (candidates, shown))
    A = ridge * np.eye(J.shape[1]) + sum(
        (np.outer(g, g) for g in G), np.zeros((J.shape[1], J.shape[1]))
    )
    expected = [np.sqrt(g @ np.linalg.inv(A) @ g) for g in J]
    np.testing.assert_allclose(found["exact"], expected, rtol=1e-10)
    np.testing.assert_allclose(
        found["diagonal"], np.sqrt((J**2 / np.diag(A)).sum(axis=1)), rtol=1e-12
    )


@pytest.mark.slow
def test_the_printed_listing_stops_and_the_corrected_one_has_the_gradients() -> None:
    network, (x, _) = GradientBonus.network(), GradientBonus.data(GradientBonus.Params())
    assert "does not require grad" in printed_error(network, x)
    np.testing.assert_allclose(vectorised_gradients(network, x), gradients(network, x), atol=1e-12)


def test_bonuses_of_the_corrected_listing_are_those_of_the_agent() -> None:
    """The agent's network has one hidden layer.

    Its matrix has the gradients as they were when an item was shown.
    """
    options = {
        "covariance": "exact",
        "hidden": (6,),
        "training": "newest",
        "alpha": 1.0,
        "ridge": 0.7,
    }
    lane = worlds.make("neural_ucb", worlds.Linear, rows=(0,), **options)
    agent, D = lane.agent, lane.simulator.spec.n_features
    assert isinstance(agent, NeuralUCB)
    shown: list[np.ndarray] = []
    for step in range(25):
        round = lane.simulator.round_at(step)
        flat = agent.net.flat[0].double().numpy()
        first, bias, last = np.split(flat[:-1], np.cumsum([6 * D, 6]))
        J = vectorised_gradients(
            Weights(first.reshape(6, D), bias, last, flat[-1:].reshape(())), round.features[0]
        )
        width = agent.explain(round).width
        assert width is not None
        bonus = by_weights(J, np.array(shown).reshape(-1, J.shape[1]), 0.7)
        np.testing.assert_allclose(width[0], bonus, rtol=1e-5)
        item = lane.advance(1).items[0, 0, 0]
        shown.append(J[int(np.flatnonzero(round.items[0] == item)[0])])


def test_a_score_without_the_item_is_the_same_for_all_items() -> None:
    for draw in range(1, 21):
        printed, corrected = SameScore.scores(SameScore.Params(draw=draw))
        assert np.ptp(printed) == 0
        assert np.ptp(corrected) > 0


@pytest.mark.parametrize("after", [0, 100, 1000])
def test_a_stale_head_is_the_ridge_regression_of_old_and_new_features(after: int) -> None:
    z = np.concatenate([np.ones(250), np.full(after, 2.0)])
    expected = 2 * (z @ np.full(len(z), 0.5)) / (1 + z @ z)
    assert StaleHead.values(StaleHead.Params(after=after))["stale"] == pytest.approx(
        expected, abs=1e-12
    )
