"""Scores follow from mean, width and draws as each agent's formula states.

All are computed here by other means.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from bandits.agents.neural import training
from bandits.base.types import FloatArray, Round
from bandits.models.neural.offline_training import click_logits
from bandits.simulators.petshop import PetShop
from tests.agents.test_formulas import BINARY, ROWS, STEPS, near_standard_normal, played
from tests.contract import worlds

NETWORK = {"hidden": (6, 4)}


def reference_layers(agent: Any) -> list[tuple[FloatArray, FloatArray]]:
    return [(weight.double().numpy(), bias.double().numpy()) for weight, bias in agent.net.layers]


def hidden_units(agent: Any, x: FloatArray, masks: list[FloatArray] | None = None) -> FloatArray:
    """Evaluate the hidden layers in plain NumPy, (R, K, last hidden width)."""
    for i, (weight, bias) in enumerate(reference_layers(agent)[:-1]):
        x = np.maximum(x @ weight.transpose(0, 2, 1) + bias[:, None], 0) * (
            1.0 if masks is None else masks[i]
        )
    return x


def outputs(agent: Any, x: FloatArray, masks: list[FloatArray] | None = None) -> FloatArray:
    weight, bias = reference_layers(agent)[-1]
    return np.asarray((hidden_units(agent, x, masks) @ weight.transpose(0, 2, 1))[..., 0] + bias)


def test_popularity_is_the_rate_with_one_click_in_two_added() -> None:
    lane, shows, clicks = played("popularity")
    np.testing.assert_allclose(
        lane.agent.scores(lane.simulator.round_at(STEPS)), (clicks + 1) / (shows + 2), rtol=1e-12
    )


def test_random_choice_is_uniform_over_what_is_available_and_drawn_anew() -> None:
    lane, shows, _ = played("random")
    assert near_standard_normal((shows.sum(axis=0) - 40 * 60) / np.sqrt(40 * 60))
    round = lane.simulator.round_at(STEPS)
    available = round.available.copy()
    available[:, 1] = False
    stated = lane.agent.probabilities(round._replace(available=available))
    np.testing.assert_allclose(stated, np.where(available, 0.25, 0.0))
    assert (lane.agent.scores(round) != lane.agent.scores(round._replace(step=0))).all()


def test_the_oracle_scores_by_the_true_probabilities() -> None:
    lane, _, _ = played("oracle", steps=20)
    round = lane.simulator.round_at(20)
    # the first of equal candidates is ahead by less than any difference
    np.testing.assert_allclose(
        lane.agent.scores(round), lane.simulator.access().probabilities(round), rtol=1e-9
    )
    trace = lane.advance(5)
    np.testing.assert_allclose(trace.value, trace.best_value)


BONUS: list[tuple[str, str, dict[str, Any]]] = [
    ("ucb1", "alpha", {}),
    *(
        ("linucb", "alpha", more)
        for more in ({}, {"sharing": "shared"}, {"gamma": 0.9}, {"window": 20})
    ),
    ("logistic_ucb", "alpha", {}),
    ("neural_ucb", "alpha", NETWORK),
    *(("neural_linucb", "alpha", {**NETWORK, "heads": heads}) for heads in ("shared", "per_arm")),
    ("ensemble", "beta", {**NETWORK, "strategy": "bonus"}),
    ("mc_dropout", "alpha", {**NETWORK, "strategy": "bonus"}),
]


@pytest.mark.parametrize(("kind", "factor", "params"), BONUS, ids=str)
def test_a_bonus_is_the_factor_times_the_width(
    kind: str, factor: str, params: dict[str, Any]
) -> None:
    lane, _, _ = played(kind, steps=40, **params, **{factor: 0.7})
    round = lane.simulator.round_at(40)
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    assert explanation.width is not None
    assert (explanation.width > 0).any()
    np.testing.assert_array_equal(np.broadcast_to(explanation.scale, (len(ROWS), 1)), 0.7)
    np.testing.assert_allclose(
        lane.agent.scores(round), explanation.mean + 0.7 * explanation.width, rtol=1e-6
    )


def shown_features(lane: Any, steps: int) -> tuple[FloatArray, FloatArray, Round]:
    """Advance; return the features shown (R, T, D), the rewards (R, T) and the next round."""
    features, rewards = [], []
    for step in range(steps):
        round = lane.simulator.round_at(step)
        trace = lane.advance(1)
        features.append(round.features[np.arange(trace.items.shape[1]), trace.items[0, :, 0]])
        rewards.append(trace.rewards[0])
    return np.stack(features, axis=1), np.stack(rewards, axis=1), lane.simulator.round_at(steps)


def check_ridge(
    agent: Any, round: Round, x: FloatArray, r: FloatArray, candidates: FloatArray, ridge: float
) -> None:
    """Compare the explanation with ridge regression on ``x (R, T, D)``."""
    inverse = np.linalg.inv(ridge * np.eye(x.shape[2]) + x.transpose(0, 2, 1) @ x)
    explanation = agent.explain(round)
    theta = np.einsum("rij,rtj,rt->ri", inverse, x, r)
    np.testing.assert_allclose(
        explanation.mean, np.einsum("rkd,rd->rk", candidates, theta), rtol=1e-4, atol=1e-6
    )
    variance = np.einsum("rki,rij,rkj->rk", candidates, inverse, candidates)
    np.testing.assert_allclose(explanation.width, np.sqrt(variance), rtol=1e-4)


@pytest.mark.parametrize(("params", "n"), [({}, 40), ({"window": 15}, 15)], ids=str)
def test_linucb_is_ridge_regression_on_the_steps_it_remembers(
    params: dict[str, Any], n: int
) -> None:
    lane = worlds.make(
        "linucb", rows=range(4), options=BINARY, sharing="shared", ridge=2.0, **params
    )
    x, r, round = shown_features(lane, 40)
    check_ridge(lane.agent, round, x[:, -n:], r[:, -n:], round.features, 2.0)


def test_discounted_linucb_multiplies_weights_by_gamma_at_every_step() -> None:
    lane = worlds.make(
        "linucb", rows=range(4), options=BINARY, sharing="shared", ridge=2.0, gamma=0.9
    )
    x, r, round = shown_features(lane, 40)
    root = np.sqrt(0.9 ** np.arange(39, -1, -1))
    V, b = (
        (x * root[:, None] ** 2).transpose(0, 2, 1) @ x + 2 * np.eye(4),
        np.einsum("rtd,rt,t->rd", x, r, root**2),
    )
    expected = np.einsum("rkd,rd->rk", round.features, np.linalg.solve(V, b[..., None])[..., 0])
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    np.testing.assert_allclose(explanation.mean, expected, rtol=1e-9)


def test_neural_linucb_is_ridge_regression_on_the_hidden_layer() -> None:
    """Before its first training the network is the initial one throughout."""
    lane = worlds.make(
        "neural_linucb", rows=range(4), options=BINARY, ridge=2.0, every=1000, **NETWORK
    )
    x, r, round = shown_features(lane, 40)
    z = hidden_units(lane.agent, x)
    check_ridge(lane.agent, round, z, r, hidden_units(lane.agent, round.features), 2.0)


def test_every_arm_has_the_head_of_its_own_observations() -> None:
    lane, shows, _ = played(
        "neural_linucb", steps=30, ridge=2.0, every=1000, heads="per_arm", **NETWORK
    )  # type: ignore[arg-type]
    agent: Any = lane.agent
    round = lane.simulator.round_at(30)
    z = hidden_units(agent, round.features)
    theta = agent.head.theta[np.arange(len(ROWS))[:, None], round.items]
    np.testing.assert_allclose(
        agent.explain(round).mean, (z * theta).sum(axis=2), rtol=1e-4, atol=1e-6
    )
    inverse = agent.head.inverse[np.arange(len(ROWS))[:, None], round.items]
    variance = np.einsum("rki,rkij,rkj->rk", z, inverse, z)
    np.testing.assert_allclose(agent.explain(round).width, np.sqrt(variance), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(agent.head.count, shows)


@pytest.mark.parametrize("kind", ["neural_greedy", "neural_ucb", "ensemble"])
def test_outputs_beyond_a_million_of_either_sign_are_nan(kind: str) -> None:
    members = {"members": 2} if kind == "ensemble" else {}
    lane = worlds.make(kind, rows=range(3), options=BINARY, **NETWORK, **members)  # type: ignore[arg-type]
    agent: Any = lane.agent
    agent.net.flat[:, -1] = torch.tensor([2e6, -2e6, 1.0]).repeat_interleave(agent.copies)
    round = lane.simulator.round_at(0)
    assert np.isnan(agent.scores(round)).all(axis=1).tolist() == [True, True, False]
    assert np.isfinite(agent.scores(round)[2]).all()


def test_full_batches_are_the_sum_of_their_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {**NETWORK, "training": "everything", "every": 50, "updates": 3, "optimiser": "sgd"}
    weights = []
    for chunk in (1024, 16):
        monkeypatch.setattr(training, "FULL_BATCH_CHUNK", chunk)
        lane = worlds.make("neural_greedy", rows=range(3), options=BINARY, **params)
        lane.advance(50)
        weights.append(lane.agent.net.flat.numpy())  # type: ignore[attr-defined]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["neural_ucb", "neural_ts"])
def test_the_first_width_is_the_length_of_the_gradient(kind: str) -> None:
    lane = worlds.make(kind, rows=range(3), options=BINARY, ridge=4.0, **NETWORK)
    agent: Any = lane.agent
    round = lane.simulator.round_at(0)
    explanation = agent.explain(round)
    np.testing.assert_allclose(
        explanation.mean, outputs(agent, round.features), rtol=1e-4, atol=1e-6
    )
    for row in range(3):
        for k in range(5):
            weights = agent.net.flat.clone().requires_grad_()
            h = torch.tensor(round.features[row, k], dtype=torch.float32)
            for i, (weight, bias) in enumerate(agent.net.views(weights)):
                h = weight[row] @ h + bias[row]
                h = h.relu() if i < 2 else h
            h[0].backward()
            expected = weights.grad.norm() / 2
            assert explanation.width[row, k] == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("kind", ["neural_greedy", "ensemble"])
def test_predictions_equal_plain_networks(kind: str) -> None:
    lane = worlds.make(kind, rows=range(3), options=BINARY, **NETWORK, every=20)
    lane.advance(50)
    agent: Any = lane.agent
    round = lane.simulator.round_at(50)
    copies = agent.copies
    expected = outputs(agent, np.repeat(round.features, copies, axis=0)).reshape(3, copies, 5)
    actual = agent.member_predictions(round) if kind == "ensemble" else agent.scores(round)[:, None]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        agent.explain(round).mean, expected.mean(axis=1), rtol=1e-4, atol=1e-6
    )


def test_an_ensemble_follows_the_member_that_the_last_uniform_draws() -> None:
    lane, _, _ = played("ensemble", steps=20, members=3, **NETWORK)  # type: ignore[arg-type]
    agent: Any = lane.agent
    drawn = set()
    for step in range(20, 30):
        round = lane.simulator.round_at(step)
        member = (agent.uniforms.at(step)[:, -1] * 3).astype(int)
        drawn |= set(member.tolist())
        expected = agent.member_predictions(round)[np.arange(len(ROWS)), member]
        np.testing.assert_allclose(agent.scores(round), expected, rtol=1e-5, atol=1e-7)
        stated = agent.probabilities(round)
        values = agent.member_predictions(round)
        best = values == values.max(axis=2, keepdims=True)
        expected = (best / best.sum(axis=2, keepdims=True)).mean(axis=1)
        np.testing.assert_allclose(stated, expected)
        agent.clear_cache()
    assert drawn == {0, 1, 2}
    explanation = agent.explain(lane.simulator.round_at(30))
    np.testing.assert_allclose(
        explanation.width, agent.member_predictions(lane.simulator.round_at(30)).std(axis=1)
    )


@pytest.mark.parametrize("strategy", ["thompson", "bonus"])
def test_dropout_keeps_units_with_its_probability_for_all_candidates_alike(strategy: str) -> None:
    lane, _, _ = played(
        "mc_dropout", steps=20, strategy=strategy, dropout=0.4, passes=5, alpha=0.7, **NETWORK
    )  # type: ignore[arg-type]
    agent: Any = lane.agent
    round = lane.simulator.round_at(20)
    uniforms = agent.uniforms.at(20)
    values = []
    for t in range(uniforms.shape[1]):
        kept = (uniforms[:, None, t] < 0.6) / 0.6
        values.append(outputs(agent, round.features, [kept[..., :6], kept[..., 6:]]))
    found = np.stack(values)
    expected = found[0] if strategy == "thompson" else found.mean(axis=0) + 0.7 * found.std(axis=0)
    np.testing.assert_allclose(agent.scores(round), expected, rtol=1e-4, atol=1e-5)


def test_sgd_ts_deviates_by_sigma_over_the_root_of_the_batches() -> None:
    lane, _, _ = played(
        "sgd_ts", steps=47, sigma2=0.09, batch=10, sharing="shared", learning_rate=0.5
    )
    agent: Any = lane.agent
    round = lane.simulator.round_at(47)
    explanation = agent.explain(round)
    x = round.features
    np.testing.assert_allclose(
        explanation.width, np.linalg.norm(x, axis=2) / 2, rtol=1e-12
    )  # four batches
    np.testing.assert_allclose(
        explanation.mean, np.einsum("rkd,rd->rk", x, agent.mean[:, 0]), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(np.broadcast_to(explanation.scale, (len(ROWS), 1)), 0.3)
    mean, deviation = explanation.mean[:, 0], 0.3 * explanation.width[:, 0]
    drawn = islice(agent.redraws(round, np.random.default_rng(1)), 50)
    assert near_standard_normal(np.stack([(scores[:, 0] - mean) / deviation for scores in drawn]))
    assert near_standard_normal((agent.scores(round)[:, 0] - mean) / deviation)
    noise = (agent.scores(round) - explanation.mean) / 0.15
    expected = np.einsum("rkd,rd->rk", x, agent.normals.at(47))
    np.testing.assert_allclose(noise, expected, rtol=1e-6, atol=1e-9)


def test_static_networks_read_the_user_before_the_item() -> None:
    small = {"interactions": 1000, "epochs": 1, "embedding": 3, "hidden": (4,)}
    lane = worlds.make(
        "static_mlp", PetShop, options={"n_products": 6, "layout": "per_row"}, **small
    )
    lane.agent.prepare()
    agent: Any = lane.agent
    round = lane.simulator.round_at(0)
    actual = agent.scores(round)
    for row, layout in enumerate(agent.access.layouts):
        weights = agent._networks[int(layout)]
        pairs = np.stack(
            [np.concatenate([weights["user"][round.users[row]], item]) for item in weights["item"]]
        )
        np.testing.assert_allclose(actual[row], click_logits(weights, pairs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["beta_ts", "neural_linear_ts", "lints"])
def test_redraws_have_mean_and_width_of_the_explanation(kind: str) -> None:
    """Also of models per arm; every row is independent of the others."""
    per_arm = (
        {"heads": "per_arm", **NETWORK, "every": 1000, "sigma2": 0.09}
        if kind == "neural_linear_ts"
        else {}
    )
    lane, _, _ = played(kind, steps=41, **per_arm)
    round = lane.simulator.round_at(41)
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    assert explanation.width is not None
    # not where all hidden units are 0
    varies = explanation.width[:, 1] > 0
    assert varies.mean() > 0.7
    mean, scale = (
        explanation.mean[varies, 1],
        np.broadcast_to(explanation.scale, explanation.mean.shape)[varies, 1],
    )
    width = scale * explanation.width[varies, 1]
    drawn = np.stack(
        [
            scores[varies, 1]
            for scores in islice(lane.agent.redraws(round, np.random.default_rng(2)), 400)
        ]
    )
    assert near_standard_normal((drawn.mean(axis=0) - mean) / width * 20)
    acted = np.stack(
        [lane.agent.scores(round._replace(step=41 + i))[varies, 1] for i in range(400)]
    )
    assert near_standard_normal((acted.mean(axis=0) - mean) / width * 20)
    np.testing.assert_allclose(acted.std(axis=0), width, rtol=0.25)
    np.testing.assert_allclose(drawn.std(axis=0), width, rtol=0.25)


def test_epsilon_greedy_shares_epsilon_over_what_is_available() -> None:
    lane = worlds.make("epsilon_greedy", rows=range(3), options=BINARY, epsilon=0.2)
    round = lane.simulator.round_at(0)
    available = np.array(
        [[False, True, True, True, True], [True] * 5, [False, False, True, False, True]]
    )
    # no data: all are tied
    actual = lane.agent.probabilities(round._replace(available=available))
    np.testing.assert_allclose(actual, available / available.sum(axis=1, keepdims=True))
    estimates = np.array([[9.0, 2.0, 3.0, 3.0, 0.0], [5, 4, 3, 2, 1], [9, 9, 1, 9, 1]])
    lane.agent.mean = lambda _: estimates  # type: ignore[attr-defined]
    actual = lane.agent.probabilities(round._replace(available=available))
    expected = [[0, 0.05, 0.45, 0.45, 0.05], [0.84, 0.04, 0.04, 0.04, 0.04], [0, 0, 0.5, 0, 0.5]]
    np.testing.assert_allclose(actual, expected)


def test_epsilon_greedy_states_which_rows_explored() -> None:
    lane, _, _ = played("epsilon_greedy", steps=30, epsilon=0.5)
    round = lane.simulator.round_at(30)
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    explored = (explanation.score != explanation.mean).any(axis=1)
    np.testing.assert_array_equal(explanation.randomised, explored)
    assert 0 < explored.sum() < len(ROWS)


def test_the_noise_of_a_head_counts_squared_rewards() -> None:
    lane = worlds.make("neural_linear_ts", rows=range(3), heads="per_arm", every=1000, **NETWORK)
    # rewards that are not clicks
    trace = lane.advance(40)
    expected = [
        np.bincount(trace.items[:, r, 0], trace.rewards[:, r] ** 2, lane.agent.spec.n_items)
        for r in range(3)
    ]
    np.testing.assert_allclose(lane.agent.squares, expected, rtol=1e-9)  # type: ignore[attr-defined]
