"""Position bias models: estimates of each model, compared with direct fits of its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge as SklearnRidge

from bandits.agents.linear.linucb import LinUCB
from bandits.agents.neural import last_layer
from bandits.base.types import Feedback, FloatArray, IntArray
from bandits.models import position_bias
from bandits.simulators.ranking import Ranking
from tests.contract.worlds import make

SETTINGS = {
    "n_users": 20,
    "n_items": 12,
    "n_candidates": 8,
    "slate": 4,
    "embedding": 3,
    "temperature": 0.01,
}
STEPS = 120
BIAS = np.array([1, 1 / 2, 1 / 3, 1 / 4])


def simulate_agent(
    kind: str, **params: Any
) -> tuple[Any, FloatArray, IntArray, FloatArray, FloatArray]:
    """Run one row; return the agent and its data: features (n, D), items, clicks, examined (n,)."""
    lane = make(kind, Ranking, rows=[0], options=SETTINGS, **params)
    kept: list[tuple[Any, ...]] = []
    agent, learn = lane.agent, lane.agent.learn

    def watch(round: Any, slate: IntArray, feedback: Feedback) -> None:
        kept.append(
            (
                round.features[0, slate[0]],
                round.items[0, slate[0]],
                feedback.rewards[0],
                feedback.examined[0],
            )
        )
        learn(round, slate, feedback)

    agent.learn = watch  # type: ignore[method-assign]
    lane.advance(STEPS)
    return agent, *(np.concatenate(column) for column in zip(*kept, strict=True))  # type: ignore[return-value]


def weights_of(position: str, examined: FloatArray) -> FloatArray:
    """Return the weight of every slot by its definition."""
    if position == "ignored":
        return np.ones(len(examined))
    return examined * (np.tile(BIAS, STEPS) if position == "aware" else 1.0)


each = pytest.mark.parametrize("position", ["examined", "ignored", "aware"])


@each
def test_rates_are_clicks_over_weighted_impressions(position: str) -> None:
    agent, _, items, clicks, examined = simulate_agent("popularity", position=position)
    weight = weights_of(position, examined)
    np.testing.assert_allclose(agent.shown[0], np.bincount(items, weight, 12), rtol=1e-12)
    np.testing.assert_allclose(agent.clicks[0], np.bincount(items, clicks, 12), rtol=1e-12)


@each
@pytest.mark.parametrize("more", [{}, {"gamma": 1.0 - 1e-12}, {"window": 500}])
def test_ridge_equals_scikit_learn_with_sample_weights(position: str, more: dict[str, Any]) -> None:
    agent, x, _, clicks, examined = simulate_agent(
        "linucb", sharing="shared", position=position, **more
    )
    assert isinstance(agent, LinUCB)
    weight = weights_of(position, examined)
    seen = weight > 0
    fit = SklearnRidge(alpha=1.0, fit_intercept=False, solver="cholesky")
    fit.fit(x[seen], clicks[seen] / weight[seen], sample_weight=weight[seen])
    round = make(
        "linucb", Ranking, rows=[0], options=SETTINGS, sharing="shared"
    ).simulator.round_at(STEPS)
    mean, variance = agent.model.predict(round)
    np.testing.assert_allclose(mean[0], round.features[0] @ fit.coef_, atol=1e-8)
    A = np.eye(4) + (x * weight[:, None]).T @ x
    expected = np.einsum("kd,de,ke->k", round.features[0], np.linalg.inv(A), round.features[0])
    np.testing.assert_allclose(variance[0], expected, rtol=1e-6)


@each
@pytest.mark.parametrize("kind", ["logistic_ts", "logistic_ucb"])
def test_a_logistic_refit_is_the_minimum_of_the_weighted_loss(position: str, kind: str) -> None:
    settings = {
        "sharing": "shared",
        "position": position,
        "refit": 1,
        "history": 1000,
        "ridge": 1.0,
    }
    agent, x, _, clicks, examined = simulate_agent(kind, **settings)
    weight = weights_of(position, examined)

    def loss(theta: FloatArray) -> float:
        z = x @ theta
        return float((weight * np.logaddexp(0, z) - clicks * z).sum() + theta @ theta / 2)

    actual = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(agent.model.posterior.theta[0, 0], actual.x, atol=1e-5)
    p = 1 / (1 + np.exp(-x @ actual.x))
    H = np.eye(4) + (x * (weight * p * (1 - p))[:, None]).T @ x
    np.testing.assert_allclose(agent.model.posterior.H[0, 0], H, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shows", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_an_update_with_one_weighted_observation_minimises_the_loss(
    shows: float, reward: float
) -> None:
    from bandits.models.linear.logistic_kernels import shift

    for logit, quadratic in ((-4.0, 0.3), (0.0, 2.0), (3.0, 40.0)):
        s = shift(logit, quadratic, reward, shows)
        assert s == pytest.approx(
            reward - shows / (1 + np.exp(-(logit + s * quadratic))), abs=1e-12
        )


@each
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_a_network_descends_the_weighted_loss(position: str, loss: str) -> None:
    """Compare one gradient step on the first slate with autograd."""
    import torch

    from bandits.models.neural import mlp

    params = {
        "hidden": (5,),
        "training": "newest",
        "optimiser": "sgd",
        "learning_rate": 0.1,
        "loss": loss,
    }
    lane = make("neural_greedy", Ranking, rows=[0], options=SETTINGS, position=position, **params)
    agent: Any = lane.agent
    before = agent.net.flat.clone().double().requires_grad_()
    round = lane.simulator.round_at(0)
    slate = np.array([[3, 0, 5, 1]])
    feedback = Feedback(np.array([[0.0, 0.0, 1.0, 0.0]]), np.array([[True, True, True, False]]))
    agent.learn(round, slate, feedback)
    (w1, b1), (w2, b2) = mlp.BatchedMLP.views(agent.net, before)
    x = torch.tensor(round.features[0, slate[0]])
    out = (torch.relu(x @ w1[0].T + b1[0]) @ w2[0].T + b2[0])[:, 0]
    weight = torch.tensor(
        {"examined": [1.0, 1, 1, 0], "ignored": [1.0] * 4, "aware": [1, 1 / 2, 1 / 3, 0]}[position]
    )
    clicks = torch.tensor(feedback.rewards[0])
    squared = weight * (out - clicks / weight.clamp_min(1e-9)) ** 2
    logs = weight * torch.nn.functional.softplus(out) - clicks * out
    ((squared if loss == "squared" else logs).sum() / weight.sum().clamp_min(1.0)).backward()  # type: ignore[no-untyped-call]
    assert before.grad is not None
    np.testing.assert_allclose(agent.net.flat, (before - 0.1 * before.grad).detach(), atol=1e-6)


@each
def test_covariances_of_networks_weigh_slots_as_exposures(
    position: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of gradients, and of the hidden layer, as it is learned and as it is fitted to the replay
    buffer, in parts.
    """
    monkeypatch.setattr(last_layer, "_MAX_ENCODED", 1)
    network = {"hidden": (5,), "every": 10_000, "position": position}
    ucb: Any = make("neural_ucb", Ranking, rows=[0], options=SETTINGS, ridge=2.0, **network)
    linear: Any = make(
        "neural_linear_ts", Ranking, rows=[0], options=SETTINGS, ridge=2.0, **network
    )
    feedback = Feedback(np.array([[0.0, 1.0, 1.0, 0.0]]), np.array([[True, True, True, False]]))
    weight = {"examined": [1.0, 1, 1, 0], "ignored": [1.0] * 4, "aware": [1, 1 / 2, 1 / 3, 0]}[
        position
    ]
    slate, round = np.array([[3, 0, 5, 1]]), ucb.simulator.round_at(0)
    gradients = ucb.agent.net.factors(ucb.agent.forward_pass(round)).dense()[0].double().numpy()
    shown = gradients[[3, 0, 5, 1]]
    ucb.agent.learn(round, slate, feedback)
    np.testing.assert_allclose(ucb.agent.confidence.diagonal[0], 2 + weight @ shown**2, rtol=1e-5)
    agent = linear.agent
    z = agent.net.forward(agent.tensor(round.features)).inputs[-1][0].double().numpy()[[3, 0, 5, 1]]
    agent.learn(round, slate, feedback)
    w = np.array(weight)
    target = feedback.rewards[0] / np.where(w > 0, w, 1)
    A, b = 2 * np.eye(5) + z.T @ (w[:, None] * z), (w * target) @ z
    for refitted in (False, True):
        squares = agent.rebuild()[0, 0] if refitted else agent.squares[0, 0]
        np.testing.assert_allclose(agent.head.A[0, 0], A, rtol=1e-5)
        np.testing.assert_allclose(agent.head.b[0, 0], b, rtol=1e-5, atol=1e-6)
        assert agent.head.count[0, 0] == (w > 0).sum()
        assert squares == pytest.approx((w * target**2).sum(), rel=1e-5)


@each
def test_a_stochastic_gradient_weighs_slots_as_exposures(position: str) -> None:
    lane = make(
        "sgd_ts", Ranking, rows=[0], options=SETTINGS, sharing="shared", batch=2, position=position
    )
    # the random start
    lane.advance(2)
    agent: Any = lane.agent
    round, slate = lane.simulator.round_at(2), np.array([[3, 0, 5, 1]])
    agent.learn(
        round,
        slate,
        Feedback(np.array([[0.0, 1.0, 1.0, 0.0]]), np.array([[True, True, True, False]])),
    )
    weight = {"examined": [1.0, 1, 1, 0], "ignored": [1.0] * 4, "aware": [1, 1 / 2, 1 / 3, 0]}[
        position
    ]
    x = round.features[0, slate[0]]
    error = np.array(weight) / (1 + np.exp(-x @ agent.iterate[0, 0])) - np.array(
        [0.0, 1.0, 1.0, 0.0]
    )
    np.testing.assert_allclose(agent.gradient[0, 0], error @ x, rtol=1e-9, atol=1e-12)


def test_a_stopped_row_has_no_impressions_for_any_position_model() -> None:
    feedback = Feedback(np.zeros((2, 3)), np.array([[True, True, False], [False, False, False]]))
    assert position_bias.exposure(feedback, "ignored", (1.0, 0.5, 0.3)).tolist() == [
        [1, 1, 1],
        [0, 0, 0],
    ]
    assert position_bias.exposure(feedback, "aware", (1.0, 0.5, 0.3)).tolist() == [
        [1, 0.5, 0],
        [0, 0, 0],
    ]
    assert position_bias.exposure(feedback, "aware", ()).tolist() == [[1, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize("kind", ["beta_ts", "ucb1", "popularity"])
def test_rates_are_finite_with_many_clicks_in_low_slots(kind: str) -> None:
    """A click in the last slot counts more than its weighted impression."""
    settings = {**SETTINGS, "choice": "sigmoid", "intercept": -2.0}
    lane = make(kind, Ranking, options=settings, position="aware")
    for _ in range(20):
        explanation = lane.agent.explain(lane.simulator.round_at(lane.step))
        assert explanation.width is None or not np.isnan(explanation.width).any()
        assert np.isfinite(lane.advance(10).rewards).all()


def test_only_position_aware_rates_are_unbiased() -> None:
    """Of two equally attractive items, one is always first and one last: other models estimate
    different rates.
    """
    rng, p, n = np.random.default_rng(3), 0.4, 4000
    rates = {}
    for position in ("examined", "ignored", "aware"):
        clicks, shown = np.zeros(4), np.zeros(4)
        for uniforms in rng.random((n, 1, 4)):
            attracted = uniforms < p * BIAS
            examined = np.cumsum(attracted, axis=1) - attracted == 0
            feedback = Feedback((attracted & examined).astype(float), examined)
            shown += position_bias.exposure(feedback, position, tuple(BIAS))[0]  # type: ignore[arg-type]
            clicks += feedback.rewards[0]
        rates[position] = clicks / shown
    # the last slot: three standard errors of about .03
    assert np.abs(rates["aware"] - p).max() < 0.1
    for biased in ("examined", "ignored"):
        assert rates[biased][-1] < p / 3
