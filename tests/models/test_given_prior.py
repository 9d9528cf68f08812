"""Clicks and misses that are given to models per arm: equal to having observed them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from bandits import read
from bandits.base.errors import UserError
from bandits.base.types import Contexts, Feedback, FloatArray, Round
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.models.linear.given_prior import VISITS, give_logistic, given_sums
from bandits.models.linear.logistic import Logistic
from bandits.models.linear.ridge import Ridge

GIVEN = {"prior": "given", "prior_clicks": 2.0 * VISITS, "prior_misses": 1.0 * VISITS}
TITLES = {"kind": "artwork", "n_titles": 200, "n_pictures": [2, 3], "n_users": 40}


def lane(agent: dict[str, Any], **simulator: Any) -> Lane:
    shop = simulator or {"kind": "petshop", "n_products": 6}
    return make_lane(
        read({"simulator": shop, "agents": [agent], "steps": 500, "replications": 2}), 0
    )


def seen(world: Lane, arm: int, row: int = 1) -> FloatArray:
    """Return the features of an arm in the visits in which it is a candidate, (n, D)."""
    rounds = [world.simulator.round_at(step) for step in range(VISITS)]
    return np.array(
        [r.features[row, list(r.items[row]).index(arm)] for r in rounds if arm in r.items[row]]
    )


@pytest.mark.parametrize("kind", ["linucb", "lints", "epsilon_greedy"])
def test_linear_models_are_those_that_observed_the_clicks_and_misses(kind: str) -> None:
    """Two clicks and one miss of each of the visits."""
    world = lane({"kind": kind, "ridge": 0.6, **GIVEN})
    learned = Ridge(np.full(2, 0.6), world.simulator.spec.n_features, 6, "per_arm")
    slate = np.tile(np.arange(6), (2, 1))
    for step in range(VISITS):
        for reward in (1.0, 1.0, 0.0):
            examined = Feedback(np.full((2, 6), reward), np.ones((2, 6), np.bool_))
            learned.update(world.simulator.round_at(step), slate, examined)
    for name in ("A", "b", "inverse", "theta"):
        np.testing.assert_allclose(
            getattr(world.agent.model, name), getattr(learned, name), rtol=1e-10, atol=1e-12
        )  # type: ignore[attr-defined]
    # of what it saw itself
    assert not world.agent.model.count.any()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("simulator", "arm"), [({}, 3), (TITLES, None)])
def test_logistic_models_are_fits_to_the_clicks_and_misses(
    simulator: dict[str, Any], arm: int | None
) -> None:
    ridge = 0.4
    world = lane({"kind": "logistic_ts", "ridge": ridge, **GIVEN}, **simulator)
    arm = int(world.simulator.round_at(7).items[1, 0]) if arm is None else arm
    x, p = seen(world, arm), world.agent.model.posterior  # type: ignore[attr-defined]
    weight = VISITS / len(x)
    data, clicked = np.concatenate([x, x]), np.repeat([1, 0], len(x))
    fit = LogisticRegression(C=1 / ridge, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    fit.fit(data, clicked, sample_weight=weight * np.where(clicked, 2.0, 1.0))
    np.testing.assert_allclose(p.theta[1, arm], fit.coef_[0], atol=1e-8)
    mu = expit(x @ fit.coef_[0])
    H = ridge * np.eye(x.shape[1]) + 3 * weight * (x * (mu * (1 - mu))[:, None]).T @ x
    np.testing.assert_allclose(p.H[1, arm], H, atol=1e-6)
    np.testing.assert_allclose(p.inverse[1, arm], np.linalg.inv(H), atol=1e-8)
    assert np.array_equal(p.center, p.theta)
    assert np.array_equal(p.anchor, p.H)


@pytest.mark.parametrize("kind", ["linucb", "logistic_ucb"])
def test_with_a_small_ridge_every_visitor_clicks_at_the_given_rate(kind: str) -> None:
    """As with a Beta prior of the same clicks and misses."""
    world = lane(
        {"kind": kind, "ridge": 1e-6, "prior": "given", "prior_clicks": 3.0, "prior_misses": 7.0}
    )
    round = world.simulator.round_at(0)
    mean, variance = world.agent.model.predict(round)  # type: ignore[attr-defined]
    np.testing.assert_allclose(mean if kind == "linucb" else expit(mean), 0.3, rtol=1e-4)
    assert (variance < 10).all()


def test_an_arm_without_visits_starts_like_the_first_candidates() -> None:
    world = lane({"kind": "linucb", **GIVEN}, **TITLES)
    rounds = [world.simulator.round_at(step) for step in range(VISITS)]
    shown = {int(item) for round in rounds for item in round.items[1]}
    new = next(arm for arm in range(world.simulator.spec.n_items) if arm not in shown)
    x = np.array([round.features[1, 0] for round in rounds])
    model = world.agent.model  # type: ignore[attr-defined]
    np.testing.assert_allclose(model.A[1, new], np.eye(x.shape[1]) + 3 * x.T @ x, rtol=1e-10)
    np.testing.assert_allclose(model.b[1, new], 2 * x.sum(axis=0), rtol=1e-10)


def test_the_design_of_glm_ucb_counts_them() -> None:
    world = lane({"kind": "logistic_ucb", "width": "design", "ridge": 0.6, **GIVEN})
    linear = lane({"kind": "linucb", "ridge": 0.6, **GIVEN})
    np.testing.assert_allclose(world.agent.design.A, linear.agent.model.A, rtol=1e-12)  # type: ignore[attr-defined]


def plain(world: Lane, row: int, arm: int) -> FloatArray:
    """Return the features of an arm in its visits, or those of the first candidates if it
    has none.
    """
    x = seen(world, arm, row)
    if len(x):
        return x
    return np.array([world.simulator.round_at(step).features[row, 0] for step in range(VISITS)])


def fit(x: FloatArray, ridge: float, clicks: float, misses: float) -> tuple[FloatArray, FloatArray]:
    """Maximise the posterior by plain Newton steps: theta and H."""
    n, D = clicks + misses, x.shape[1]
    theta, H = np.zeros(D), np.eye(D)
    for _ in range(40):
        mu = expit(x @ theta)
        gradient = x.T @ (clicks - n * mu) / len(x) - ridge * theta
        H = ridge * np.eye(D) + n * (x.T * (mu * (1 - mu))) @ x / len(x)
        theta = theta + np.linalg.solve(H, gradient)
    return theta, H


@pytest.mark.parametrize(
    "simulator",
    [
        {"kind": "petshop", "n_products": 7},
        {"kind": "ranking", "n_items": 60, "n_users": 30, "n_candidates": 12, "embedding": 3},
        TITLES,
    ],
)
def test_batches_of_arms_equal_one_arm_after_another(simulator: dict[str, Any]) -> None:
    world = lane({"kind": "linucb"}, **simulator)
    spec, rounds = world.simulator.spec, world.simulator.round_at
    ridge, clicks, misses = np.array([0.7, 1.5]), np.array([2.0, 1.0]), np.array([5.0, 30.0])
    gram, b = given_sums(rounds, spec, clicks, misses)
    model = Logistic(ridge, spec, "per_arm", refit=10, history=20)
    give_logistic(model, rounds, spec, ridge, clicks, misses)
    for row in range(2):
        for arm in range(spec.n_items - 1, -1, -1 - spec.n_items // 60):
            x = plain(world, row, arm)
            expected = (clicks[row] + misses[row]) * x.T @ x / len(x)
            np.testing.assert_allclose(gram[row, arm], expected, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(
                b[row, arm], clicks[row] * x.mean(axis=0), rtol=1e-10, atol=1e-12
            )
            theta, H = fit(x, ridge[row], clicks[row], misses[row])
            p = model.posterior
            np.testing.assert_allclose(p.theta[row, arm], theta, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(p.H[row, arm], H, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(
                p.inverse[row, arm], np.linalg.inv(H), rtol=1e-10, atol=1e-10
            )


def test_a_fit_that_does_not_converge_is_refused() -> None:
    """Features so large that their squares leave the finite range."""
    world = lane({"kind": "linucb"}, **TITLES)
    spec = world.simulator.spec

    def rounds(step: int) -> Round:
        round = world.simulator.round_at(step)
        values, columns, width = round.contexts
        return round._replace(contexts=Contexts(1e160 * values, columns, width))

    model, ones = Logistic(np.ones(2), spec, "per_arm", refit=10, history=20), np.ones(2)
    with pytest.raises(
        UserError,
        match="prior_clicks 1 and prior_misses 1 does not converge; use a larger ridge than 1",
    ):
        give_logistic(model, rounds, spec, ones, ones, ones)


def test_a_fit_that_was_cut_off_states_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two Newton steps, the gradient is that of the weights then."""
    from bandits.models.linear import logistic_fit, logistic_kernels

    generator = np.random.default_rng(0)
    x, clicked = generator.normal(size=(1, 8, 3)), generator.uniform(0, 5, (1, 8))
    columns = np.tile(np.arange(3), (1, 8, 1))
    history = logistic_fit.History(
        x,
        columns,
        np.zeros((1, 8), np.int64),
        np.full((1, 8), 5.0),
        clicked,
        np.array([8]),
        np.zeros((1, 0), np.int64),
    )
    monkeypatch.setattr(logistic_fit, "NEWTON_STEPS", 2)
    monkeypatch.setattr(logistic_kernels, "newton", logistic_fit.newton.py_func)
    theta, H, inverse, gradient = (
        np.empty((1, 3)),
        np.empty((1, 3, 3)),
        np.empty((1, 3, 3)),
        np.empty(1),
    )
    logistic_kernels.fit_each.py_func(history, 0.5, theta, H, inverse, gradient)
    slope = 0.5 * theta[0] + x[0].T @ (5.0 * expit(x[0] @ theta[0]) - clicked[0])
    terms = 0.5 * np.abs(theta[0]) + 5.0 * np.abs(x[0]).sum(axis=0)
    assert gradient[0] > 1e-8
    np.testing.assert_allclose(gradient[0], np.abs(slope).max() / terms.max(), rtol=1e-10)
    np.testing.assert_allclose(inverse[0] @ H[0], np.eye(3), atol=1e-12)


def test_visits_without_features_leave_the_prior() -> None:
    from bandits.models.linear import logistic_fit, logistic_kernels

    history = logistic_fit.History(
        np.zeros((1, 4, 2)),
        np.tile(np.arange(2), (1, 4, 1)),
        np.zeros((1, 4), np.int64),
        np.ones((1, 4)),
        np.ones((1, 4)),
        np.array([4]),
        np.zeros((1, 0), np.int64),
    )
    theta, H, inverse, gradient = (
        np.empty((1, 2)),
        np.empty((1, 2, 2)),
        np.empty((1, 2, 2)),
        np.empty(1),
    )
    logistic_kernels.fit_each(history, 0.5, theta, H, inverse, gradient)
    np.testing.assert_array_equal([theta[0], gradient.repeat(2)], np.zeros((2, 2)))
    np.testing.assert_allclose([H[0], inverse[0]], [0.5 * np.eye(2), 2 * np.eye(2)])
