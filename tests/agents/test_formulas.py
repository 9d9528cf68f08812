"""Scores, probabilities and explanations equal the formulas, computed here from the record of what
was shown.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2

from bandits.base.types import FloatArray
from bandits.experiments.lane import Lane
from tests.contract import worlds

STEPS, ROWS = 300, range(40)
BINARY = {"reward": "bernoulli", "n_arms": 5}


def played(
    kind: str, steps: int = STEPS, **params: float | str
) -> tuple[Lane, FloatArray, FloatArray]:
    """Run an agent; return also how often each arm was shown and clicked, float64 (R, K)."""
    lane = worlds.make(kind, rows=ROWS, options=BINARY, **params)
    trace = lane.advance(steps)
    chosen = trace.items[:, :, 0, None] == np.arange(5)
    return lane, chosen.sum(axis=0).astype(float), (chosen * trace.rewards[:, :, None]).sum(axis=0)


def test_ucb1_adds_alpha_times_the_root_of_two_log_t_over_n() -> None:
    lane, shows, clicks = played("ucb1", alpha=0.7)
    assert (shows > 0).all()
    round = lane.simulator.round_at(STEPS)
    width = np.sqrt(2 * np.log(STEPS) / shows)
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    assert explanation.width is not None
    np.testing.assert_allclose(lane.agent.scores(round), clicks / shows + 0.7 * width, rtol=1e-12)
    np.testing.assert_allclose(explanation.mean, clicks / shows, rtol=1e-12)
    np.testing.assert_allclose(explanation.width, width, rtol=1e-12)
    np.testing.assert_array_equal(np.broadcast_to(explanation.scale, (len(ROWS), 1)), 0.7)


def test_beta_thompson_draws_from_prior_plus_clicks_and_misses() -> None:
    lane, shows, clicks = played("beta_ts", prior_clicks=2.0, prior_misses=3.0)
    round = lane.simulator.round_at(STEPS)
    a, b = 2 + clicks, 3 + shows - clicks
    mean, deviation = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    assert explanation.width is not None
    np.testing.assert_allclose(explanation.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(explanation.width, deviation, rtol=1e-12)
    draws = np.stack([lane.agent.scores(round._replace(step=STEPS + i)) for i in range(400)])
    assert near_standard_normal((draws.mean(axis=0) - mean) / deviation * 20)


@pytest.mark.parametrize("step", [10, 300])
def test_epsilon_declines_as_stated(step: int) -> None:
    lane, _, _ = played("epsilon_greedy", steps=step or 1, epsilon=0.8, decay=0.02)
    round = lane.simulator.round_at(step)
    rate = 0.8 / (1 + 0.02 * step)
    np.testing.assert_allclose(lane.agent.probabilities(round).min(axis=1), rate / 5, rtol=1e-12)


def test_random_choices_become_rarer_as_stated() -> None:
    lane = worlds.make("epsilon_greedy", rows=range(500), options=BINARY, epsilon=0.8, decay=0.02)
    lane.advance(STEPS)
    round = lane.simulator.round_at(STEPS)
    greedy = lane.agent.probabilities(round).argmax(axis=1)
    share = (lane.advance(1).items[0, :, 0] != greedy).mean()
    # one of five random choices is the greedy one
    expected = 0.8 / (1 + 0.02 * STEPS) * 4 / 5
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 500)


def near_standard_normal(z: FloatArray) -> bool:
    """Return whether the sum of squares is within the 1e-6 and 1 - 1e-6 quantiles.

    Other entries are independent.
    """
    low, high = chi2.ppf([1e-6, 1 - 1e-6], z.size)
    return bool(low < np.square(z).sum() < high)


@pytest.mark.parametrize("kind", ["lints", "logistic_ts", "neural_ts", "neural_linear_ts"])
def test_samples_deviate_by_sigma_times_the_posterior_width(kind: str) -> None:
    """sigma2 is a variance: its root multiplies the width.

    One candidate per row and draw: samples are independent.
    """
    sigma2 = 0.09
    lane, _, _ = played(kind, steps=40, sigma2=sigma2)
    round = lane.simulator.round_at(40)
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    assert explanation.width is not None
    np.testing.assert_allclose(np.broadcast_to(explanation.scale, (len(ROWS), 1)), 0.3, rtol=1e-6)
    mean, width = explanation.mean[:, 0], explanation.width[:, 0]
    drawn = islice(lane.agent.redraws(round, np.random.default_rng(1)), 50)
    assert near_standard_normal(
        np.stack([(scores[:, 0] - mean) / (0.3 * width) for scores in drawn])
    )
    acted = np.stack([lane.agent.scores(round._replace(step=40 + i))[:, 0] for i in range(50)])
    assert near_standard_normal((acted - mean) / (0.3 * width))


def test_lints_knows_as_much_as_ridge_regression() -> None:
    lane = worlds.make("lints", rows=ROWS, options=BINARY, sharing="shared", ridge=2.0, sigma2=0.09)
    features, rewards = [], []
    for step in range(40):
        round = lane.simulator.round_at(step)
        trace = lane.advance(1)
        features.append(round.features[np.arange(len(ROWS)), trace.items[0, :, 0]])
        rewards.append(trace.rewards[0])
    x, r = np.stack(features, axis=1), np.stack(rewards, axis=1)
    inverse = np.linalg.inv(2.0 * np.eye(x.shape[2]) + x.transpose(0, 2, 1) @ x)
    round = lane.simulator.round_at(40)
    theta = np.einsum("rij,rtj,rt->ri", inverse, x, r)
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    assert explanation.width is not None
    np.testing.assert_allclose(
        explanation.mean, np.einsum("rkd,rd->rk", round.features, theta), rtol=1e-9, atol=1e-12
    )
    variance = np.einsum("rki,rij,rkj->rk", round.features, inverse, round.features)
    np.testing.assert_allclose(explanation.width, np.sqrt(variance), rtol=1e-9)


@pytest.mark.parametrize("kind", ["logistic_ts", "logistic_ucb"])
def test_logistic_agents_know_as_much_as_the_laplace_approximation(kind: str) -> None:
    """With a refit at every observation, mean and width are those of an exact fit: Newton's method,
    written here.
    """
    lane = worlds.make(kind, rows=range(4), options=BINARY, sharing="shared", ridge=2.0, refit=1)
    features, rewards = [], []
    for step in range(60):
        round = lane.simulator.round_at(step)
        trace = lane.advance(1)
        features.append(round.features[np.arange(4), trace.items[0, :, 0]])
        rewards.append(trace.rewards[0])
    x, r = np.stack(features, axis=1), np.stack(rewards, axis=1)
    round, identity = lane.simulator.round_at(60), 2.0 * np.eye(x.shape[2])
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    assert explanation.width is not None
    for row in range(4):
        theta = np.zeros(x.shape[2])
        for _ in range(50):
            p = expit(x[row] @ theta)
            hessian = identity + (x[row] * (p * (1 - p))[:, None]).T @ x[row]
            theta = theta + np.linalg.solve(hessian, x[row].T @ (r[row] - p) - 2.0 * theta)
        candidates = round.features[row]
        np.testing.assert_allclose(explanation.mean[row], candidates @ theta, atol=1e-6)
        variance = np.einsum("ki,ij,kj->k", candidates, np.linalg.inv(hessian), candidates)
        np.testing.assert_allclose(explanation.width[row], np.sqrt(variance), rtol=1e-5)
