"""Agents without context equal plain implementations of their papers, decision by decision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from bandits import UserError, read
from bandits.agents.context_free.kl_ucb import upper_bounds
from bandits.base.types import FloatArray
from bandits.simulators.levers import Levers
from tests.contract.worlds import make

K, STEPS = 4, 120
Past = list[tuple[int, float]]
"""Arms shown and their rewards, of one row."""


def averages(past: Past) -> tuple[FloatArray, FloatArray]:
    n, total = np.zeros(K), np.zeros(K)
    for arm, reward in past:
        n[arm] += 1
        total[arm] += reward
    return n, total


def softmax(past: Past) -> FloatArray:
    n, total = averages(past)
    weights = [math.exp(total[a] / max(n[a], 1) * (1 + 0.01 * len(past)) / 0.2) for a in range(K)]
    return np.array(weights) / sum(weights)


def gradient(past: Past) -> FloatArray:
    # the first baseline is the first reward
    h, average = np.zeros(K), past[0][1] if past else 0.0
    for i, (arm, reward) in enumerate(past):
        p = np.exp(h) / np.exp(h).sum()
        for b in range(K):
            h[b] += 0.3 * (reward - average) * ((b == arm) - p[b])
        average += (reward - average) / (i + 1)
    return np.asarray(np.exp(h) / np.exp(h).sum())


def exp3(past: Past, gamma: float = 0.1) -> FloatArray:
    w = np.ones(K)
    for arm, reward in past:
        p = (1 - gamma) * w / w.sum() + gamma / K
        w[arm] *= math.exp(gamma * reward / p[arm] / K)
    return np.asarray((1 - gamma) * w / w.sum() + gamma / K)


def exp3_p(past: Past, gamma: float = 0.1, alpha: float = 2.0, horizon: int = 10_000) -> FloatArray:
    w = np.full(K, math.exp(alpha * gamma / 3 * math.sqrt(horizon / K)))
    for arm, reward in past:
        p = (1 - gamma) * w / w.sum() + gamma / K
        for b in range(K):
            estimate = reward / p[b] if b == arm else 0.0
            width = alpha / (p[b] * math.sqrt(K * horizon))
            w[b] *= math.exp(gamma / (3 * K) * (estimate + width))
    return np.asarray((1 - gamma) * w / w.sum() + gamma / K)


@pytest.mark.parametrize(
    ("kind", "params", "plain"),
    [
        ("softmax", {"temperature": 0.2, "decay": 0.01}, softmax),
        ("gradient_bandit", {"step_size": 0.3}, gradient),
        ("exp3", {}, exp3),
        ("exp3", {"variant": "exp3_p"}, exp3_p),
    ],
)
def test_probabilities_equal_those_of_the_paper(
    kind: str, params: dict[str, Any], plain: Callable[[Past], FloatArray]
) -> None:
    lane = make(kind, Levers, options={"n_arms": K}, **params)
    pasts: list[Past] = [[] for _ in range(lane.rows)]
    for step in range(STEPS):
        stated = lane.agent.probabilities(lane.simulator.round_at(step))
        expected = np.array([plain(past) for past in pasts])
        np.testing.assert_allclose(stated, expected, rtol=1e-10)
        trace = lane.advance(1)
        for r, past in enumerate(pasts):
            past.append((int(trace.items[0, r, 0]), float(trace.rewards[0, r])))


def test_a_constant_in_all_rewards_changes_no_choice_of_a_gradient_bandit_with_its_baseline() -> (
    None
):
    lanes = [
        make(
            "gradient_bandit",
            Levers,
            options={"n_arms": K, "means": "normal", "reward": "gaussian", "offset": offset},
        )
        for offset in (0.0, 4.0)
    ]
    near, far = (lane.advance(STEPS).items for lane in lanes)
    np.testing.assert_array_equal(near, far)


def divergence(p: float, q: float) -> float:
    """KL of Bernoulli distributions."""
    terms = [(p, q), (1 - p, 1 - q)]
    return sum(a * math.log(a / b) for a, b in terms if a > 0)


def test_kl_ucb_is_the_bound_of_its_definition() -> None:
    lane = make("kl_ucb", Levers, options={"n_arms": K})
    lane.advance(STEPS)
    scores = lane.agent.scores(lane.simulator.round_at(STEPS))
    shown, clicks = lane.agent.shown, lane.agent.clicks  # type: ignore[attr-defined]
    assert (shown > 0).all()
    for q, n, total in zip(scores.ravel(), shown.ravel(), clicks.ravel(), strict=True):
        mean = total / n
        assert mean <= q <= 1
        if q < 1:
            assert n * divergence(mean, q - 1e-10) <= math.log(STEPS)
            assert n * divergence(mean, min(q + 1e-10, 1 - 1e-16)) >= math.log(STEPS) - 1e-12


def test_kl_bounds_equal_those_of_bisection() -> None:
    generator = np.random.default_rng(8)
    shape = 40, 10
    shows = np.exp(generator.uniform(0, np.log(1e6), shape))
    clicks = shows * generator.random(shape) ** generator.integers(1, 9, shape)
    clicks[0], clicks[1], shows[2, 0] = 0.0, shows[1], 0.0
    limit = np.ascontiguousarray(np.broadcast_to(generator.uniform(0, 14, (40, 1)), shape))
    limit[3] = 0.0
    found = upper_bounds(shows, clicks, limit)
    assert np.isinf(found[2, 0])
    np.testing.assert_allclose(found[3], clicks[3] / shows[3], rtol=1e-15)
    for q, n, total, most in np.nditer([found, shows, clicks, limit]):
        # halvings cannot tell divergences of 0 from those that rounding makes 0
        if not n or not most:
            continue
        mean = float(total / n)
        low, high = mean, 1.0
        while low < (middle := (low + high) / 2) < high:
            inside = n * divergence(mean, middle) <= most
            low, high = (middle, high) if inside else (low, middle)
        assert q == pytest.approx(low, abs=1e-10)


def test_gaussian_thompson_draws_from_the_posterior_of_the_textbook() -> None:
    options = {"n_arms": K, "reward": "gaussian", "means": "normal"}
    lane = make("gaussian_ts", Levers, options=options, prior_mean=0.5, strength=2.0)
    rewards: list[list[list[float]]] = [[[] for _ in range(K)] for _ in range(lane.rows)]
    trace = lane.advance(STEPS)
    for r in range(lane.rows):
        for arm, reward in zip(trace.items[:, r, 0], trace.rewards[:, r], strict=True):
            rewards[r][arm].append(float(reward))
    scores = lane.agent.scores(lane.simulator.round_at(STEPS))
    uniforms = lane.agent.uniforms.at(STEPS)  # type: ignore[attr-defined]
    for r in range(lane.rows):
        for k, own in enumerate(rewards[r]):
            n, x = len(own), np.array(own)
            mean = x.mean() if n else 0.0
            strength = 2.0 + n
            centre = (2.0 * 0.5 + n * mean) / strength
            # Murphy (2007), equation 88
            b = 6.0 + ((x - mean) ** 2).sum() / 2 + 2.0 * n * (mean - 0.5) ** 2 / (2 * strength)
            a = 6.0 + n / 2
            law = student(2 * a, loc=centre, scale=math.sqrt(b / (a * strength)))
            assert scores[r, k] == pytest.approx(law.ppf(uniforms[r, k]), rel=1e-10)


@pytest.mark.parametrize("step_size", [None, 0.1])
def test_estimates_of_epsilon_greedy_begin_at_the_start_value(step_size: float | None) -> None:
    options = {"n_arms": K, "reward": "gaussian", "means": "normal"}
    lane = make("epsilon_greedy_averages", Levers, options=options, start=5.0, step_size=step_size)
    trace = lane.advance(STEPS)
    q, n = np.full((lane.rows, K), 5.0), np.zeros((lane.rows, K))
    for t in range(STEPS):
        for r in range(lane.rows):
            arm = trace.items[t, r, 0]
            n[r, arm] += 1
            step = step_size or 1 / n[r, arm]
            q[r, arm] += step * (trace.rewards[t, r] - q[r, arm])
    estimates = lane.agent.mean(lane.simulator.round_at(STEPS))  # type: ignore[attr-defined]
    np.testing.assert_allclose(estimates, q, rtol=1e-10)


@pytest.mark.parametrize(
    ("agent", "simulator", "sentence"),
    [
        ({"kind": "softmax", "temperature": 0.0}, {}, "agents.0.temperature (Softmax) is 0"),
        ({"kind": "exp3"}, {"reward": "gaussian"}, "EXP3"),
        (
            {"kind": "gradient_bandit", "step_size": 0.0},
            {},
            "agents.0.step_size (Gradient bandit) is 0",
        ),
    ],
)
def test_impossible_agents_are_refused_by_their_field(
    agent: dict[str, Any], simulator: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError) as refusal:
        read({"simulator": {"kind": "levers", **simulator}, "agents": [agent]})
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)
