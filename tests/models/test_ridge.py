"""Ridge models, compared with the closed form and other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mabwiser.mab import MAB, LearningPolicy
from numpy.random import default_rng
from scipy.stats import norm
from sklearn.linear_model import Ridge as SklearnRidge

from bandits.agents.linear.linucb import LinUCB
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, Round, SimulatorSpec
from bandits.models.linear import rank_one
from bandits.models.linear.ridge import Ridge, Sharing
from bandits.simulators import REGISTRY as WORLDS
from tests.contract import worlds
from tests.support import sparse_contexts

SHARINGS: tuple[Sharing, ...] = ("per_arm", "shared", "hybrid")


def dense(features: FloatArray) -> Contexts:
    """Store all entries, zeros included."""
    return Contexts(
        features,
        np.broadcast_to(np.arange(features.shape[2]), features.shape).copy(),
        features.shape[2],
    )


def round_of(contexts: Contexts) -> Round:
    """Return a round with one context per row; candidates are arms 0 to K - 1."""
    R, K = contexts.values.shape[:2]
    zeros = np.zeros(R, np.int64)
    items = np.tile(np.arange(K), (R, 1))
    return Round(0, zeros, items, contexts, np.arange(R), np.ones((R, K), np.bool_), zeros)


def learn(model: Ridge, features: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
    """Update one row: ``features (T, K, D)``, ``arms, rewards (T,)``."""
    for x, arm, reward in zip(features, arms, rewards, strict=True):
        context = Feedback(np.array([[reward]]), np.ones((1, 1), np.bool_))
        model.update(round_of(dense(x[None])), np.array([[arm]]), context)


def categories(arms: IntArray) -> IntArray:
    """Return the category of arms: 1 for even ones, 0 for odd ones."""
    return 1 - arms % 2


class Data:
    """T observations of K arms, D features that differ by arm."""

    def __init__(self, T: int, K: int, D: int, seed: int = 1) -> None:
        rng = default_rng(seed)
        self.X = rng.standard_normal((T, K, D))
        self.arms = rng.integers(0, K, T)
        self.x = self.X[np.arange(T), self.arms]
        self.rewards = self.x @ rng.standard_normal(D) + rng.standard_normal(T)
        self.new = rng.standard_normal((K, D))

    def taught(self, ridge: float, sharing: Sharing, *, joint: bool = False) -> Ridge:
        K = self.X.shape[1]
        groups = categories(np.arange(K))[None] if sharing == "per_category" else None
        model = Ridge(np.array([ridge]), self.x.shape[1], K, sharing, joint=joint, groups=groups)
        learn(model, self.X, self.arms, self.rewards)
        return model


@pytest.fixture(scope="module")
def long() -> Data:
    """Provide 10,000 updates; with two arms each model passes a refresh."""
    return Data(10_000, 2, 6)


def test_closed_form_after_10000_updates(long: Data) -> None:
    for sharing in ("per_arm", "shared"):
        model = long.taught(1.7, sharing)
        mean, variance = model.predict(round_of(dense(long.new[None])))
        for arm in range(2):
            own = long.arms == arm if sharing == "per_arm" else np.ones(10_000, np.bool_)
            m = arm if sharing == "per_arm" else 0
            x, y, new = long.x[own], long.rewards[own], long.new[arm]
            A, b = 1.7 * np.eye(6) + x.T @ x, x.T @ y
            np.testing.assert_allclose(model.A[0, m], A, rtol=0, atol=1e-8)
            np.testing.assert_allclose(model.b[0, m], b, rtol=0, atol=1e-8)
            np.testing.assert_allclose(model.inverse[0, m], np.linalg.inv(A), rtol=0, atol=1e-8)
            np.testing.assert_allclose(model.theta[0, m], np.linalg.solve(A, b), rtol=0, atol=1e-8)
            np.testing.assert_allclose(mean[0, arm], new @ np.linalg.solve(A, b), rtol=0, atol=1e-8)
            np.testing.assert_allclose(
                variance[0, arm], new @ np.linalg.solve(A, new), rtol=0, atol=1e-8
            )
            assert model.count[0, m] == own.sum()


def test_scores_equal_those_of_mabwiser(long: Data) -> None:
    peer = MAB([0, 1], LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
    peer.fit(long.arms, long.rewards, long.x)
    streams = Streams(0, [0])
    agent = LinUCB(
        [LinUCB.Params(alpha=1.0, ridge=1.0)],
        SimulatorSpec(n_items=2, n_candidates=2, n_features=6, n_stored=6),
        streams,
        worlds.Linear(worlds.Linear.Params(), streams).access(),
    )
    learn(agent.model, long.X, long.arms, long.rewards)
    for x in long.new:
        scores = agent.scores(round_of(dense(np.stack([x, x])[None])))[0]
        expected = peer.predict_expectations(x[None])
        np.testing.assert_allclose(scores, [expected[0], expected[1]], rtol=0, atol=1e-8)


def test_weights_equal_those_of_scikit_learn(long: Data) -> None:
    shared, per_arm = long.taught(2.5, "shared"), long.taught(2.5, "per_arm")
    fit = SklearnRidge(alpha=2.5, fit_intercept=False).fit(long.x, long.rewards)
    np.testing.assert_allclose(shared.theta[0, 0], fit.coef_, rtol=0, atol=1e-8)
    for arm in range(2):
        of_arm = long.arms == arm
        fit = SklearnRidge(alpha=2.5, fit_intercept=False).fit(long.x[of_arm], long.rewards[of_arm])
        np.testing.assert_allclose(per_arm.theta[0, arm], fit.coef_, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("ridge", "exact", "quoted"),
    [(1e-6, (19 / 99, 80 / 99), (0.19, 0.81)), (1.0, (39 / 201, 81 / 201), (0.195, 0.402))],
)
def test_worked_example(
    ridge: float, exact: tuple[float, float], quoted: tuple[float, float]
) -> None:
    """X'X = [[100, 1], [1, 1]] and X'y = [20, 1].

    The source quotes (.195, .402), exact is (.1940, .4030).
    """
    x = np.linalg.cholesky([[100.0, 1.0], [1.0, 1.0]]).T
    y = np.linalg.solve(x.T, [20.0, 1.0])
    model = Ridge(np.array([ridge]), 2, 1, "per_arm")
    learn(model, x[:, None], np.zeros(2, np.int64), y)
    np.testing.assert_allclose(model.b[0, 0], [20, 1], atol=1e-12)
    np.testing.assert_allclose(model.theta[0, 0], exact, atol=2 * ridge if ridge < 1 else 1e-12)
    np.testing.assert_allclose(model.theta[0, 0], quoted, atol=0.002)


def test_an_inverse_of_what_is_not_positive_definite_is_nan() -> None:
    """It stops the row, with a sentence, where rounding has taken a window's A its definiteness."""
    A, inverse = np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((2, 2))
    theta = np.zeros(2)
    rank_one.refresh(A, inverse, np.ones(2), theta)
    assert np.isnan(inverse).all()
    assert np.isnan(theta).all()


def test_100000_rank_one_updates_accumulate_no_rounding_error() -> None:
    rng, T, D = default_rng(3), 100_000, 50
    model = Ridge(np.array([1.0]), D, 1, "shared", joint=True)
    # a slate of 100 is 100 updates in one call
    for start in range(0, T, 100):
        contexts = dense(rng.standard_normal((1, 100, D)))
        rewards = rng.standard_normal((1, 100))
        seen = Feedback(rewards, np.ones((1, 100), np.bool_))
        model.update(round_of(contexts), np.arange(100)[None], seen)
        if start + 100 == 4_000:  # no refresh yet
            np.testing.assert_allclose(
                model.inverse[0, 0], np.linalg.inv(model.A[0, 0]), rtol=0, atol=1e-10
            )
    assert model.count[0, 0] == T
    A, b = model.A[0, 0], model.b[0, 0]
    np.testing.assert_allclose(model.inverse[0, 0], np.linalg.inv(A), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.theta[0, 0], np.linalg.solve(A, b), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.factor[0, 0], np.linalg.cholesky(A), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_refresh_removes_accumulated_error(sharing: Sharing) -> None:
    data = Data(rank_one.REFRESH, 1, 3)
    model = Ridge(np.array([1.0]), 3, 1, sharing)
    learn(model, data.X[:-1], data.arms[:-1], data.rewards[:-1])
    model.inverse *= 1.001
    model.theta += 0.001
    assert np.abs(model.inverse[0, 0] @ model.A[0, 0] - np.eye(3)).max() > 1e-4
    learn(model, data.X[-1:], data.arms[-1:], data.rewards[-1:])
    np.testing.assert_allclose(model.inverse[0, 0] @ model.A[0, 0], np.eye(3), atol=1e-12)
    np.testing.assert_allclose(
        model.theta[0, 0], np.linalg.solve(model.A[0, 0], model.b[0, 0]), atol=1e-12
    )


def by_arm(x: FloatArray, arms: IntArray, K: int) -> FloatArray:
    """one-hot(arm) (x) x, shape (n, K D)."""
    return (np.eye(K)[arms][:, :, None] * x[:, None]).reshape(len(x), K * x.shape[1])


def one_ridge(
    data: Data, ridge: float, sharing: Sharing = "hybrid"
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return theta and A of the ridge equivalent to ``sharing``, and the candidates ``data.new`` in
    its features.
    """

    def expand(x: FloatArray, arms: IntArray) -> FloatArray:
        parts = {"shared": [x], "per_arm": [by_arm(x, arms, K)], "hybrid": [x, by_arm(x, arms, K)]}
        parts["per_category"] = [by_arm(x, categories(arms), 2)]
        return np.concatenate(parts[sharing], axis=1)

    K = len(data.new)
    Z = expand(data.x, data.arms)
    A = ridge * np.eye(Z.shape[1]) + Z.T @ Z
    return np.linalg.solve(A, Z.T @ data.rewards), A, expand(data.new, np.arange(K))


@pytest.mark.parametrize("ridge", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("T", [0, 5, 400])
def test_hybrid_equals_one_ridge_on_shared_and_arm_features(ridge: float, T: int) -> None:
    data = Data(T, 3, 4)
    mean, variance = data.taught(ridge, "hybrid").predict(round_of(dense(data.new[None])))
    theta, A, Z = one_ridge(data, ridge)
    np.testing.assert_allclose(mean[0], Z @ theta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        variance[0], np.einsum("kd,dk->k", Z, np.linalg.solve(A, Z.T)), rtol=1e-12
    )


def test_models_per_category_equal_one_ridge_on_category_features() -> None:
    data = Data(9_000, 3, 4)
    model = data.taught(0.7, "per_category", joint=True)
    mean, variance = model.predict(round_of(dense(data.new[None])))
    theta, A, Z = one_ridge(data, 0.7, "per_category")
    np.testing.assert_allclose(mean[0], Z @ theta, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        variance[0], np.einsum("kd,dk->k", Z, np.linalg.solve(A, Z.T)), rtol=1e-9
    )
    np.testing.assert_allclose(model.factor[0, 1], np.linalg.cholesky(A[4:, 4:]), rtol=0, atol=1e-9)
    # arms 0 and 2 are of one category
    bases = [np.eye(4)[:, :1], np.eye(4)[:, 2:3], np.eye(4)[:, 1:2]]
    spectrum = model.spectrum(bases)
    np.testing.assert_allclose(spectrum[0, 1], np.linalg.eigvalsh(A[4:6, 4:6])[::-1], rtol=1e-9)
    np.testing.assert_allclose(spectrum[0, 0], [A[2, 2], np.nan], rtol=1e-9)


def test_hybrid_stays_one_ridge_after_refreshes() -> None:
    data = Data(12_000, 2, 4)
    model = data.taught(0.5, "hybrid", joint=True)
    mean, variance = model.predict(round_of(dense(data.new[None])))
    theta, A, Z = one_ridge(data, 0.5)
    np.testing.assert_allclose(mean[0], Z @ theta, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        variance[0], np.einsum("kd,dk->k", Z, np.linalg.solve(A, Z.T)), rtol=1e-8
    )
    np.testing.assert_allclose(model.factor[0], np.linalg.cholesky(model.A0[0]), rtol=0, atol=1e-9)


def largest_z(draws: FloatArray, mean: FloatArray, covariance: FloatArray) -> tuple[float, float]:
    """Largest z-score of the mean and of the covariance of ``draws (n, d)``, whitened by the
    expected ones.
    """
    n, d = draws.shape
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean).T)
    error = white @ white.T / n - np.eye(d)
    # of a Wishart matrix: variance 2/n on the diagonal, 1/n beside it
    spread = np.sqrt((1 + np.eye(d)) / n)
    return float(np.abs(white.mean(axis=1)).max() * np.sqrt(n)), float(np.abs(error / spread).max())


def draws_of(model: Ridge, contexts: Contexts, n: int, sigma: float) -> FloatArray:
    D, K = contexts.n_features, contexts.values.shape[1]
    spec = SimulatorSpec(n_items=K, n_candidates=K, n_features=D, n_stored=D)
    normals = default_rng(11).standard_normal((n, 1, Ridge.noise_width(spec, model.sharing)))
    round, scale = round_of(contexts), np.array([sigma])
    return np.concatenate([model.sample(round, scale, z) for z in normals])


@pytest.mark.parametrize("sharing", [*SHARINGS, "per_category"])
@pytest.mark.parametrize("ridge", [0.3, 2.0])
def test_thompson_scores_have_the_posterior_covariance(sharing: Sharing, ridge: float) -> None:
    """Test scores jointly: one draw is shared by all candidates, so that scores have the posterior
    covariance.
    """
    data, n, sigma = Data(30, 3, 4), 20_000, 0.7
    draws = draws_of(data.taught(ridge, sharing, joint=True), dense(data.new[None]), n, sigma)
    theta, A, Z = one_ridge(data, ridge, sharing)
    covariance = sigma**2 * Z @ np.linalg.solve(A, Z.T)
    # Bonferroni over at most nine numbers
    limit = -norm.ppf(1e-6 / 2 / 9)
    assert max(largest_z(draws, Z @ theta, covariance)) < limit


def test_draws_of_theta_have_covariance_sigma2_inverse() -> None:
    data, n, sigma = Data(40, 3, 8), 20_000, 0.5
    model = data.taught(1.0, "shared", joint=True)
    normals = default_rng(5).standard_normal((n, 1, 8))
    draws = np.concatenate([model.draw(np.array([sigma]), z) for z in normals])
    covariance = sigma**2 * np.linalg.inv(np.eye(8) + data.x.T @ data.x)
    assert max(largest_z(draws, model.theta[0, 0], covariance)) < 5.4


@pytest.mark.parametrize("sharing", SHARINGS)
def test_sparse_and_dense_features_give_equal_models(sharing: Sharing) -> None:
    """Block features, half of them zero."""
    rng = default_rng(2)
    few, all_ = (Ridge(np.array([0.8]), 6, 2, sharing, joint=True) for _ in range(2))
    for _ in range(300):
        x = np.zeros((1, 2, 6))
        x[0, 0, :3] = x[0, 1, 3:] = rng.standard_normal(3)
        sparse = sparse_contexts(x)
        assert sparse.values.shape[2] == 3
        assert np.array_equal(sparse.dense(), x)
        arm, seen = (
            rng.integers(0, 2, (1, 1)),
            Feedback(rng.standard_normal((1, 1)), np.ones((1, 1), np.bool_)),
        )
        few.update(round_of(sparse), arm, seen)
        all_.update(round_of(dense(x)), arm, seen)
    for name in few.state:
        np.testing.assert_allclose(getattr(few, name), getattr(all_, name), rtol=1e-10, atol=1e-12)
    for a, b in zip(few.predict(round_of(sparse)), all_.predict(round_of(dense(x))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        few.mean(round_of(sparse)), few.predict(round_of(sparse))[0], rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("sharing", SHARINGS)
def test_unexamined_slots_do_not_change_the_model(sharing: Sharing) -> None:
    slate, rewards = np.array([[2, 0, 1]]), np.array([[0.0, 1.0, 0.0]])
    round = round_of(dense(default_rng(4).standard_normal((1, 4, 3))))
    cut, short = (Ridge(np.array([1.0]), 3, 4, sharing) for _ in range(2))
    cut.update(round, slate, Feedback(rewards, np.array([[True, True, False]])))
    short.update(round, slate[:, :2], Feedback(rewards[:, :2], np.ones((1, 2), np.bool_)))
    assert all(np.array_equal(getattr(cut, name), getattr(short, name)) for name in cut.state)
    assert cut.count.sum() == 2


@pytest.mark.parametrize("features", ["additive", "interaction", "both"])
@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_the_spectrum_excludes_directions_outside_the_features(sharing: Any, features: Any) -> None:
    """One-hot features are collinear: A keeps only the ridge there, and the spectrum
    excludes it.
    """
    shop = WORLDS["petshop"]
    lane = worlds.make(
        "linucb",
        shop,
        rows=[0, 1],
        options={"n_products": 6, "features": features},
        sharing=sharing,
        ridge=0.25,
    )
    lane.advance(400)
    A = lane.agent.model.A
    bases = lane.simulator.bases(sharing == "per_arm")
    spectrum = lane.agent.spectrum(bases)
    assert spectrum is not None
    for r in range(2):
        for m in range(A.shape[1]):
            values = spectrum[r, m][~np.isnan(spectrum[r, m])]
            offered = lane.simulator.features(m if sharing == "per_arm" else None)
            assert len(values) == np.linalg.matrix_rank(offered)
            # outside the span A is the ridge, its smallest eigenvalue
            full = np.linalg.eigvalsh(A[r, m])[::-1]
            np.testing.assert_allclose(values, full[: len(values)], rtol=1e-10)
            np.testing.assert_allclose(full[len(values) :], 0.25, rtol=1e-10)
