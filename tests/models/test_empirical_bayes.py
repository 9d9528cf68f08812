"""Priors estimated from other arms: their formulas, their limits, and what they leave as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from bandits import UserError, read
from bandits.agents.context_free.beta_ts import STRONGEST, beta_prior
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Feedback, FloatArray, Round
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.models.linear.empirical_bayes import PriorRidge, group_prior, noise_variance
from bandits.models.linear.ridge import Ridge
from bandits.simulators.petshop import PetShop

KINDS = ["linucb", "lints", "epsilon_greedy"]


def lane(agent: dict[str, Any], n: int = 25, rows: int = 3, **simulator: Any) -> Lane:
    shop = {"kind": "petshop", "n_products": n, "n_users": 100, **simulator}
    return make_lane(
        read({"simulator": shop, "agents": [agent], "steps": 2000, "replications": rows}), 0
    )


def data(arms: int = 6, D: int = 4, seed: int = 0) -> tuple[list[FloatArray], list[FloatArray]]:
    """Draw the features and rewards of some arms, unequally many."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((3 + 5 * a, D)) for a in range(arms)]
    return X, [x @ rng.standard_normal(D) + rng.standard_normal(len(x)) for x in X]


def test_the_mean_is_generalised_least_squares_over_all_models() -> None:
    X, y = data()
    rng = np.random.default_rng(1)
    root = rng.standard_normal((4, 4))
    S, ridge, noise = root @ root.T + np.eye(4), 0.7, 0.3
    gram = np.stack([x.T @ x for x in X])
    found = group_prior(
        gram,
        np.stack([x.T @ r for x, r in zip(X, y, strict=True)]),
        np.asarray(np.linalg.inv(S), np.float64),
        ridge,
        noise,
    )
    # the weights integrated out: r ~ N(X mu, noise (I + X S X')), and mu ~ N(0, noise / ridge)
    precisions = [np.linalg.inv(np.eye(len(x)) + x @ S @ x.T) for x in X]
    A = ridge * np.eye(4) + sum(x.T @ W @ x for x, W in zip(X, precisions, strict=True))
    mu = np.linalg.solve(A, sum(x.T @ W @ r for x, W, r in zip(X, precisions, y, strict=True)))
    np.testing.assert_allclose(found.mean, mu, rtol=1e-10)
    # expectation maximisation: mean of the posterior second moments around mu
    moments = []
    for x, r in zip(X, y, strict=True):
        covariance = np.linalg.inv(x.T @ x + np.linalg.inv(S))
        away = S @ x.T @ np.linalg.solve(np.eye(len(x)) + x @ S @ x.T, r - x @ mu)
        moments.append(covariance + np.outer(away, away) / noise)
    np.testing.assert_allclose(found.covariance, np.mean(moments, axis=0), rtol=1e-10)


def test_the_noise_variance_counts_effective_parameters() -> None:
    X, y = data()
    gram, b = np.stack([x.T @ x for x in X]), np.stack([x.T @ r for x, r in zip(X, y, strict=True)])
    inverse = np.asarray(np.linalg.inv(gram + 0.5 * np.eye(4)), np.float64)
    theta = (inverse @ b[..., None])[..., 0]
    residuals = sum(((r - x @ t) ** 2).sum() for x, r, t in zip(X, y, theta, strict=True))
    hats = sum(np.trace(x @ i @ x.T) for x, i in zip(X, inverse, strict=True))
    n = sum(map(len, X))
    found = noise_variance(gram, b, theta, inverse, float(sum((r**2).sum() for r in y)), n)
    assert found == pytest.approx(residuals / (n - hats), rel=1e-10)


def test_repeated_estimates_recover_mean_and_covariance() -> None:
    rng = np.random.default_rng(2)
    mu, root = np.array([1.0, -2.0]), np.array([[0.5, 0.0], [0.3, 0.4]])
    X = [rng.standard_normal((40, 2)) for _ in range(3000)]
    y = [x @ (mu + root @ rng.standard_normal(2)) + 0.5 * rng.standard_normal(40) for x in X]
    gram, b = np.stack([x.T @ x for x in X]), np.stack([x.T @ r for x, r in zip(X, y, strict=True)])
    prior: FloatArray = np.eye(2)
    for _ in range(40):
        found = group_prior(gram, b, prior, 1e-6, 0.25)
        prior = np.asarray(np.linalg.inv(found.covariance), np.float64)
    covariance = root @ root.T
    assert (
        np.abs(found.mean - mu) < 5.4 * np.sqrt(np.diag(covariance) + 0.25 / 40) / np.sqrt(3000)
    ).all()
    np.testing.assert_allclose(
        found.covariance * 0.25, covariance, atol=5.4 * 0.3 * np.sqrt(2 / 3000)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_one_arm_per_category_equals_no_prior_to_the_bit(kind: str) -> None:
    plain, learned = (
        lane({"kind": kind}, n=5),
        lane({"kind": kind, "prior": "category", "prior_every": 10}, n=5),
    )
    a, b = plain.advance(300), learned.advance(300)
    assert np.array_equal(a.items, b.items)
    assert np.array_equal(a.rewards, b.rewards)
    for name in ("A", "b", "theta", "inverse"):
        assert np.array_equal(getattr(plain.agent.model, name), getattr(learned.agent.model, name))  # type: ignore[attr-defined]


@pytest.mark.parametrize("prior", ["category", "pooled"])
def test_models_are_those_of_the_prior_and_their_own_data(prior: str) -> None:
    played = lane({"kind": "linucb", "prior": prior, "prior_every": 50, "alpha": 1.0}, variety=0.3)
    trace = played.advance(250)
    model = played.agent.model  # type: ignore[attr-defined]
    groups = model.prior.groups
    for r in range(3):
        gram, b = np.zeros((25, 9, 9)), np.zeros((25, 9))
        for t in range(250):
            item = trace.items[t, r, 0]
            x = played.simulator.round_at(t).features[r, item]
            gram[item] += np.outer(x, x)
            b[item] += trace.rewards[t, r] * x
        P, target = model.prior.precision[r, groups[r]], model.prior.target[r, groups[r]]
        np.testing.assert_allclose(model.A[r], P + gram, atol=1e-9)
        np.testing.assert_allclose(
            model.theta[r], np.linalg.solve(P + gram, (target + b)[..., None])[..., 0], atol=1e-9
        )
        np.testing.assert_allclose(model.inverse[r], np.linalg.inv(P + gram), atol=1e-9)
        if prior == "pooled":
            shared = np.linalg.solve(np.eye(9) + gram.sum(axis=0), b.sum(axis=0))
            np.testing.assert_allclose(target[0], shared, atol=1e-10)
    assert not np.array_equal(model.prior.target[0], model.prior.target[1])


def test_an_arm_without_data_has_the_mean_of_its_category() -> None:
    launch = {"kind": "launch", "at": 1500, "items": 2, "category": "Fish"}
    played = lane(
        {"kind": "linucb", "prior": "category", "prior_every": 50}, variety=0.2, changes=[launch]
    )
    played.advance(1000)
    model = played.agent.model  # type: ignore[attr-defined]
    new = np.flatnonzero(~played.simulator.round_at(0).available[0])
    mean = np.linalg.solve(model.prior.precision[0, 4], model.prior.target[0, 4])
    np.testing.assert_allclose(model.theta[0, new], [mean, mean], atol=1e-9)
    fish = played.simulator.round_at(0).features[0, new[0]].copy()
    # a fish hobbyist
    fish[:4] = [0, 0, 0, 1]
    assert mean @ fish > 0.35  # of 0.6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prior", ["category", "pooled"])
def test_compiled_steps_equal_single_steps(kind: str, prior: str) -> None:
    agent = {"kind": kind, "prior": prior, "prior_every": 70}
    fast, slow, cut = (lane(agent, variety=0.3) for _ in range(3))
    slow.use_compiled = False
    a, b = fast.advance(300), slow.advance(300)
    assert np.array_equal(a.items, b.items)
    assert np.array_equal(a.rewards, b.rewards)
    cut.advance(111)
    again = lane(agent, variety=0.3)
    again.load_state_dict(cut.state_dict())
    assert np.array_equal(again.advance(189).items, a.items[111:])


def hybrid_and_pooled(ridge: float, n: int, scale: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Fit both to the same data; return the means of every arm at some vectors."""
    rng = np.random.default_rng(3)
    K, D = 4, 3
    penalty, groups = np.array([ridge]), np.zeros((1, K), np.int64)
    hybrid, pooled = Ridge(penalty, D, K, "hybrid"), PriorRidge(penalty, D, K, "pooled", 1, groups)
    columns = np.ascontiguousarray(np.broadcast_to(np.arange(D), (1, K, D)))

    def round_of(x: FloatArray, step: int) -> Round:
        contexts = Contexts(np.ascontiguousarray(np.broadcast_to(x, (1, K, D))), columns, D)
        nothing = np.zeros(1, np.int64)
        return Round(
            step, nothing, np.arange(K)[None], contexts, nothing, np.ones((1, K), np.bool_), nothing
        )

    weights = rng.standard_normal((K, D))
    for step in range(n):
        x, arm = scale * rng.standard_normal(D), step % K
        feedback = Feedback(
            np.array([[weights[arm] @ x + 0.1 * rng.standard_normal()]]), np.ones((1, 1), np.bool_)
        )
        for model in (hybrid, pooled):
            model.update(round_of(x, step), np.array([[arm]]), feedback)
    probes = [round_of(rng.standard_normal(D), n) for _ in range(5)]
    return np.vstack([hybrid.mean(p) for p in probes]), np.vstack([pooled.mean(p) for p in probes])


def test_pooled_equals_the_hybrid_where_the_ridge_is_large_against_the_data() -> None:
    # both are (sum of all + own) / ridge, up to its square
    hybrid, pooled = hybrid_and_pooled(ridge=1e10, n=40)
    np.testing.assert_allclose(1e10 * pooled, 1e10 * hybrid, rtol=1e-8, atol=1e-8)
    apart = [
        np.abs(np.subtract(*hybrid_and_pooled(ridge, 40))).max() * ridge
        for ridge in (1e3, 1e5, 1e7)
    ]
    # the difference is of the next order
    assert apart[0] > 50 * apart[1] > 2500 * apart[2]


@pytest.mark.slow
def test_pooled_equals_the_hybrid_where_the_data_are_large_against_the_ridge() -> None:
    # both are least squares per arm
    hybrid, pooled = hybrid_and_pooled(ridge=0.1, n=400, scale=1000.0)
    np.testing.assert_allclose(pooled, hybrid, rtol=1e-8, atol=1e-8)
    hybrid, pooled = hybrid_and_pooled(ridge=1.0, n=40)
    assert np.abs(pooled - hybrid).max() > 1e-3


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (
            {"kind": "linucb", "prior": "category", "sharing": "shared"},
            ("prior category needs sharing per_arm",),
        ),
        (
            {"kind": "lints", "prior": "pooled", "gamma": 0.9},
            ("agents.0", "prior pooled needs gamma 1 and no window"),
        ),
        (
            {"kind": "lints", "prior": "pooled", "noise": "inverse_gamma"},
            ("prior pooled needs noise fixed",),
        ),
        (
            {"kind": "linucb", "prior": "flat"},
            ("agents.0.prior (LinUCB) is flat", "zero, category, pooled"),
        ),
        (
            {"kind": "logistic_ts", "prior": "pooled", "covariance": "diagonal"},
            ("agents.0", "prior pooled needs covariance full, not diagonal"),
        ),
        (
            {"kind": "beta_ts", "prior": "category", "window": 9},
            ("prior category needs gamma 1 and no window",),
        ),
        (
            {"kind": "beta_ts", "prior": "zero"},
            ("agents.0.prior (Beta Thompson) is zero", "given, category, pooled"),
        ),
        (
            {"kind": "linucb", "prior_every": 0},
            ("agents.0.prior_every (LinUCB) is 0", "from 1 to 1,000,000"),
        ),
    ],
)
def test_a_prior_that_cannot_be_is_refused_in_one_sentence(
    agent: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(UserError) as error:
        read({"agents": [agent]})
    assert all(word in str(error.value) for word in words), error.value


def test_a_category_prior_needs_categories() -> None:
    agents = [{"kind": "linucb", "prior": "category"}]
    with pytest.raises(
        UserError, match=r"agents\.0 \(LinUCB\) requires categories of items, which Wheel does not"
    ):
        read({"simulator": {"kind": "wheel"}, "agents": agents})
    shop = PetShop(PetShop.Params(n_products=10, layout="per_row"), Streams(1, range(3)))
    assert [shop.name(i, 2) for i in range(10)] == [
        ("Dog Food", "Dog Toy", "Cat Food", "Cat Toy", "Fish")[c] for c in shop.categories()[2]
    ]


def test_the_prior_of_rates_recovers_a_beta_distribution() -> None:
    rng = np.random.default_rng(4)
    a, b = 3.0, 12.0
    found = []
    for _ in range(60):
        shows = rng.integers(1, 400, 300).astype(float)
        prior = beta_prior(
            shows, rng.binomial(shows.astype(int), rng.beta(a, b, 300)).astype(float)
        )
        assert prior is not None
        found.append((prior.clicks / sum(prior), 1 / (1 + sum(prior))))
    rate, spread = np.mean(found, axis=0)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(60)
    assert abs(rate - 0.2) < 5.4 * error[0]
    # the correlation of two clicks of one item
    assert abs(spread - 1 / 16) < 5.4 * error[1]


def test_the_prior_of_rates_equals_a_plain_analysis_of_variance() -> None:
    shows, clicks = [10, 4, 0, 25, 1], [6, 0, 0, 10, 1]
    pairs = [(n, c) for n, c in zip(shows, clicks, strict=True) if n]
    total, rate = sum(n for n, _ in pairs), sum(c for _, c in pairs) / sum(n for n, _ in pairs)
    within = sum(c * (1 - c / n) for n, c in pairs) / (total - 4)
    between = sum(n * (c / n - rate) ** 2 for n, c in pairs) / 3
    strength = within / ((between - within) / ((total - sum(n * n for n, _ in pairs) / total) / 3))
    found = beta_prior(np.array(shows, float), np.array(clicks, float))
    assert found is not None
    assert tuple(found) == pytest.approx((rate * strength, (1 - rate) * strength), rel=1e-10)
    alike = beta_prior(np.array([50.0, 50.0]), np.array([10.0, 10.0]))
    assert alike == pytest.approx((0.2 * STRONGEST, 0.8 * STRONGEST))
    assert beta_prior(np.array([5.0, 0.0]), np.array([1.0, 0.0])) is None


def test_beta_thompson_starts_new_items_at_their_category() -> None:
    launch = {"kind": "launch", "at": 1500, "items": 2, "category": "Cat Food"}
    for prior in ("category", "pooled"):
        played = lane({"kind": "beta_ts", "prior": prior, "prior_every": 100}, changes=[launch])
        played.advance(1000)
        agent, round = played.agent, played.simulator.round_at(1000)
        a, b = agent.posterior(round)  # type: ignore[attr-defined]
        new = np.flatnonzero(~round.available[0])
        group = (
            played.simulator.categories()[0] == 2 if prior == "category" else np.ones(25, np.bool_)
        )
        expected = beta_prior(agent.shown[0, group], agent.clicks[0, group])  # type: ignore[attr-defined]
        assert expected is not None
        np.testing.assert_allclose(
            np.stack([a[0, new], b[0, new]], axis=1), [expected, expected], rtol=1e-12
        )


@pytest.mark.parametrize("kind", ["logistic_ucb", "logistic_ts"])
def test_one_arm_per_category_leaves_logistic_models_to_the_bit(kind: str) -> None:
    plain, learned = (
        lane({"kind": kind}, n=5),
        lane({"kind": kind, "prior": "category", "prior_every": 50}, n=5),
    )
    a, b = plain.advance(300), learned.advance(300)
    assert np.array_equal(a.items, b.items)
    for name in ("theta", "H", "inverse", "anchor", "center"):
        one, other = (getattr(each.agent.model.posterior, name) for each in (plain, learned))  # type: ignore[attr-defined]
        assert np.array_equal(one, other)


@pytest.mark.parametrize("refit", [0, 20])
@pytest.mark.parametrize("prior", ["category", "pooled"])
def test_logistic_models_are_those_of_the_prior_and_their_own_data(prior: str, refit: int) -> None:
    agent = {
        "kind": "logistic_ucb",
        "prior": prior,
        "prior_every": 100,
        "alpha": 1.0,
        "refit": refit,
    }
    played = lane(agent, n=10, variety=0.3, features="interaction")
    # the last step estimates the prior
    trace = played.advance(400)
    model = played.agent.model  # type: ignore[attr-defined]
    p, groups = model.posterior, model.prior.groups[0]
    P, target = model.prior.precision[0, groups], model.prior.target[0, groups]
    mean = np.linalg.solve(P, target[..., None])[..., 0]
    assert np.abs(mean).max() > 0.1
    np.testing.assert_allclose(
        p.inverse[0] @ p.H[0], np.broadcast_to(np.eye(20), (10, 20, 20)), atol=1e-8
    )
    if prior == "pooled":
        np.testing.assert_allclose(mean[0], model.pool.posterior.theta[0, 0], atol=1e-10)
    # the gradient of the log posterior is 0, and H is its curvature
    if refit:
        features = np.stack(
            [played.simulator.round_at(t).features[0, trace.items[t, 0, 0]] for t in range(400)]
        )
        for arm in range(10):
            own = trace.items[:, 0, 0] == arm
            x, clicks = features[own], trace.rewards[own, 0]
            rate = expit(x @ p.theta[0, arm])
            gradient = x.T @ (clicks - rate) - P[arm] @ (p.theta[0, arm] - mean[arm])
            np.testing.assert_allclose(gradient, 0, atol=1e-7)
            np.testing.assert_allclose(
                p.H[0, arm], P[arm] + (x.T * (rate * (1 - rate))) @ x, atol=1e-7
            )
    again = lane(agent, n=10, variety=0.3, features="interaction")
    cut = lane(agent, n=10, variety=0.3, features="interaction")
    cut.advance(150)
    again.load_state_dict(cut.state_dict())
    assert np.array_equal(again.advance(250).items, trace.items[150:])


def test_one_item_per_category_leaves_the_prior_that_is_given() -> None:
    plain, learned = (
        lane({"kind": "beta_ts"}, n=5),
        lane({"kind": "beta_ts", "prior": "category"}, n=5),
    )
    a, b = plain.advance(1200), learned.advance(1200)
    assert np.array_equal(a.items, b.items)
