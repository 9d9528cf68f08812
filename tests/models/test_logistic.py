"""Bayesian logistic models, compared with other libraries, brute force and their specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.optimize import brentq, root
from scipy.special import expit
from scipy.stats import chi2, kstest, norm
from sklearn.linear_model import LogisticRegression

from bandits.agents.logistic.base import LogisticAgent
from bandits.agents.logistic.sgd_ts import SGDTS
from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, Round, SimulatorSpec
from bandits.models.linear import rank_one
from bandits.models.linear.logistic import Covariance, Logistic, Sharing
from bandits.models.linear.logistic_fit import softplus
from bandits.models.linear.logistic_kernels import shift
from bandits.models.linear.ridge import Ridge
from bandits.simulators.petshop import PetShop
from tests.contract import worlds
from tests.support import sparse_contexts

# a history of unlimited size
UNLIMITED = 1_000_000


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


def learn(model: Logistic, contexts: list[Contexts], arms: IntArray, rewards: FloatArray) -> None:
    """Update one row."""
    for context, arm, reward in zip(contexts, arms, rewards, strict=True):
        model.update(
            round_of(context),
            np.array([[arm]]),
            Feedback(np.array([[reward]]), np.ones((1, 1), np.bool_)),
        )


class Data:
    """T binary rewards on K arms with D features that differ by arm.

    ``distinct`` is the number of feature tables.
    """

    def __init__(
        self, T: int, K: int, D: int, *, seed: int = 1, distinct: int = 0, zeros: float = 0.0
    ) -> None:
        rng = default_rng(seed)
        X = rng.standard_normal((distinct or T, K, D))
        X[rng.random(X.shape) < zeros] = 0.0
        self.X = X[rng.integers(0, distinct, T)] if distinct else X
        self.arms = rng.integers(0, K, T)
        self.x = self.X[np.arange(T), self.arms]
        self.rewards = (rng.random(T) < expit(self.x @ rng.standard_normal(D))).astype(np.float64)

    def taught(
        self,
        ridge: float,
        sharing: Sharing,
        *,
        refit: int = 100,
        history: int = 2000,
        covariance: Covariance = "full",
        joint: bool = False,
        sparse: bool = False,
    ) -> Logistic:
        make = sparse_contexts if sparse else dense
        contexts = [make(x[None]) for x in self.X]
        K, D = self.X.shape[1:]
        spec = SimulatorSpec(
            n_items=K,
            n_candidates=K,
            n_features=D,
            n_stored=max(c.values.shape[2] for c in contexts),
        )
        model = Logistic(
            np.array([ridge]),
            spec,
            sharing,
            refit=refit,
            history=history,
            covariance=covariance,
            joint=joint,
        )
        learn(model, contexts, self.arms, self.rewards)
        return model


def reference(x: FloatArray, y: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """Return the weights of scikit-learn and H at them."""
    fit = LogisticRegression(
        C=1 / ridge, fit_intercept=False, solver="newton-cholesky", tol=1e-14, max_iter=1000
    )
    theta = fit.fit(x, y).coef_[0]
    p = expit(x @ theta)
    return theta, ridge * np.eye(x.shape[1]) + (x * (p * (1 - p))[:, None]).T @ x


# the exact fit


@pytest.mark.parametrize("ridge", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("zeros", [0.0, 0.7])
@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_weights_equal_those_of_scikit_learn(sharing: Sharing, zeros: float, ridge: float) -> None:
    data = Data(600, 2, 5, zeros=zeros)
    model = data.taught(ridge, sharing, refit=1, joint=True)
    for m in range(model.posterior.theta.shape[1]):
        own = data.arms == m if sharing == "per_arm" else np.ones(600, np.bool_)
        theta, H = reference(data.x[own], data.rewards[own], ridge)
        np.testing.assert_allclose(model.posterior.theta[0, m], theta, rtol=0, atol=1e-10)
        np.testing.assert_allclose(model.posterior.H[0, m], H, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.posterior.inverse[0, m] @ H, np.eye(5), atol=1e-9)
        assert model.posterior.seen[0, m] == own.sum()
    if sharing == "shared":
        np.testing.assert_allclose(
            model.posterior.factor[0, 0], np.linalg.cholesky(H), rtol=0, atol=1e-9
        )


def test_few_distinct_vectors_are_counted() -> None:
    data = Data(3000, 2, 4, distinct=3)
    model = data.taught(0.5, "shared", history=6)
    # three feature vectors for each of two arms
    assert model.history.used[0] == 6
    assert model.history.shows.sum() == 3000
    assert model.history.clicks.sum() == data.rewards.sum()
    np.testing.assert_allclose(
        model.posterior.theta[0, 0], reference(data.x, data.rewards, 0.5)[0], rtol=0, atol=1e-10
    )


def test_the_diagonal_fit_has_the_same_weights_and_the_diagonal_of_h() -> None:
    data = Data(500, 2, 4)
    model = data.taught(2.0, "shared", covariance="diagonal")
    theta, H = reference(data.x, data.rewards, 2.0)
    np.testing.assert_allclose(model.posterior.theta[0, 0], theta, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.posterior.H[0, 0, 0], np.diag(H), rtol=1e-10)
    np.testing.assert_allclose(model.posterior.inverse[0, 0, 0], 1 / np.diag(H), rtol=1e-10)


def test_separable_data_and_huge_features_have_a_fit() -> None:
    """Fit perfectly separable data and logits at which exp overflows."""
    data = Data(200, 1, 3)
    for scale in (1.0, 1e4):
        data.X, data.rewards = data.X * scale, (data.x[:, 0] > 0).astype(np.float64)
        model = data.taught(1e-6 if scale == 1 else 1.0, "shared", refit=1)
        assert np.isfinite(model.posterior.theta).all()
        assert np.isfinite(model.posterior.H).all()
        assert ((data.x[100:] @ model.posterior.theta[0, 0] > 0) == data.rewards[100:]).mean() > 0.9
    assert softplus(1e308) == 1e308
    assert softplus(-1e308) == 0


class ReferenceLogistic:
    """The algorithm with a solver of scipy: one model, one row, no rank-one updates."""

    def __init__(self, ridge: float, D: int, refit: int, history: int) -> None:
        self.theta, self.H = np.zeros(D), ridge * np.eye(D)
        self.center, self.anchor = self.theta, self.H
        self.refit, self.history, self.n = refit, history, 0
        self.seen: list[tuple[FloatArray, float]] = []

    def fit(self, center: FloatArray, anchor: FloatArray, x: FloatArray, y: FloatArray) -> None:
        def gradient(theta: FloatArray) -> FloatArray:
            return np.asarray(anchor @ (theta - center) + x.T @ (expit(x @ theta) - y))

        def hessian(theta: FloatArray) -> FloatArray:
            p = expit(x @ theta)
            return np.asarray(anchor + (x * (p * (1 - p))[:, None]).T @ x)

        self.theta = root(gradient, self.theta, jac=hessian, tol=1e-14).x
        self.H = hessian(self.theta)

    def learn(self, x: FloatArray, y: float) -> None:
        self.fit(self.theta, self.H, x[None], np.array([y]))
        self.n += 1
        if not self.refit:
            return
        self.seen.append((x, y))
        full = len(self.seen) > self.history
        if full or self.n % self.refit == 0:
            xs, ys = zip(*self.seen, strict=True)
            self.fit(self.center, self.anchor, np.array(xs), np.array(ys))
        if full:
            self.center, self.anchor, self.seen = self.theta, self.H, []


@pytest.mark.parametrize(
    ("refit", "history"), [(0, 1), (1_000, 1_000), (20, 1_000), (20, 50), (7, 5)]
)
def test_the_posterior_equals_a_reference_implementation(refit: int, history: int) -> None:
    """Compare online updates, refits, and histories folded into the prior."""
    data, expected = Data(160, 1, 4), ReferenceLogistic(0.7, 4, refit, history)
    for x, y in zip(data.x, data.rewards, strict=True):
        expected.learn(x, float(y))
    model = data.taught(0.7, "shared", refit=refit, history=history, joint=True).posterior
    np.testing.assert_allclose(model.theta[0, 0], expected.theta, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.H[0, 0], expected.H, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.inverse[0, 0], np.linalg.inv(expected.H), rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        model.factor[0, 0], np.linalg.cholesky(expected.H), rtol=0, atol=1e-8
    )


def test_folding_the_history_into_the_prior_loses_little() -> None:
    data = Data(2000, 1, 4)
    exact, folded = (data.taught(1.0, "shared", history=n).posterior for n in (2000, 100))
    away = folded.theta[0, 0] - exact.theta[0, 0]
    # squared, in units of the posterior covariance: about 4 by chance
    assert away @ exact.H[0, 0] @ away < 0.1


# the update after one observation


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_the_step_of_an_update_solves_its_equation(reward: float) -> None:
    for logit in (-800.0, -30.0, -2.0, 0.0, 0.3, 7.0, 800.0):
        for quadratic in (0.0, 1e-9, 0.1, 1.0, 40.0, 1e5):

            def surplus(s: float, logit: float = logit, quadratic: float = quadratic) -> float:
                return float(s - reward + expit(logit + s * quadratic))

            exact = brentq(surplus, reward - 1, reward, xtol=1e-15, rtol=1e-14)
            assert shift(logit, quadratic, reward) == pytest.approx(exact, abs=1e-12)


def test_many_updates_accumulate_no_rounding_error() -> None:
    rng, D = default_rng(3), 50
    spec = SimulatorSpec(n_items=1, n_candidates=100, n_features=D, n_stored=D, slate=100)
    model = Logistic(np.array([1.0]), spec, "shared", refit=0, history=1, joint=True)
    # a slate of 100 is 100 updates in one call
    for start in range(0, 10_000, 100):
        contexts, rewards = (
            dense(rng.standard_normal((1, 100, D))),
            rng.integers(0, 2, (1, 100)).astype(np.float64),
        )
        model.update(
            round_of(contexts), np.arange(100)[None], Feedback(rewards, np.ones((1, 100), np.bool_))
        )
        # before the first refresh of the inverse, and after the second
        if start + 100 in (4_000, 10_000):
            H = model.posterior.H[0, 0]
            np.testing.assert_allclose(
                model.posterior.inverse[0, 0], np.linalg.inv(H), rtol=0, atol=1e-10
            )
            np.testing.assert_allclose(
                model.posterior.factor[0, 0], np.linalg.cholesky(H), rtol=1e-9, atol=1e-9
            )
    assert model.posterior.seen[0, 0] == 10_000 > 2 * rank_one.REFRESH


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_sparse_and_dense_features_give_equal_models(
    sharing: Sharing, covariance: Covariance
) -> None:
    data = Data(230, 3, 6)
    data.X[:, 0, 3:] = data.X[:, 1, :3] = data.X[:, 2, ::2] = 0.0
    data.x = data.X[np.arange(230), data.arms]
    few, all_ = (
        data.taught(0.8, sharing, covariance=covariance, joint=True, sparse=s)
        for s in (True, False)
    )
    assert few.history.values.shape[2] == 3
    for name, a, b in zip(few.posterior._fields, few.posterior, all_.posterior, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12, err_msg=name)
    sparse, whole = round_of(sparse_contexts(data.X[:1])), round_of(dense(data.X[:1]))
    for a, b in zip(few.predict(sparse), all_.predict(whole), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_unexamined_slots_do_not_change_the_posterior() -> None:
    slate, rewards = np.array([[2, 0, 1]]), np.array([[0.0, 1.0, 0.0]])
    spec = SimulatorSpec(n_items=4, n_candidates=4, n_features=3, n_stored=3, slate=3)
    round = round_of(dense(default_rng(4).standard_normal((1, 4, 3))))
    cut, short = (Logistic(np.ones(1), spec, "shared", refit=2, history=9) for _ in range(2))
    cut.update(round, slate, Feedback(rewards, np.array([[True, True, False]])))
    short.update(round, slate[:, :2], Feedback(rewards[:, :2], np.ones((1, 2), np.bool_)))
    for a, b in zip(
        (*cut.posterior, *cut.history), (*short.posterior, *short.history), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert cut.posterior.seen.sum() == 2


# draws and their covariance


def largest_z(draws: FloatArray, mean: FloatArray, covariance: FloatArray) -> float:
    """Largest z-score of mean and covariance of ``draws (n, d)``, whitened by the expected ones."""
    n, d = draws.shape
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean).T)
    # Wishart: variance 2/n and 1/n
    error = (white @ white.T / n - np.eye(d)) / np.sqrt((1 + np.eye(d)) / n)
    return float(max(np.abs(white.mean(axis=1)).max() * np.sqrt(n), np.abs(error).max()))


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_scores_have_the_posterior_covariance(sharing: Sharing, covariance: Covariance) -> None:
    """Test scores jointly: candidates that share a model share a draw."""
    data, n, sigma = Data(150, 3, 4), 20_000, 0.7
    model = data.taught(0.5, sharing, covariance=covariance, joint=True)
    contexts = dense(data.X[:1])
    spec = SimulatorSpec(n_items=3, n_candidates=3, n_features=4, n_stored=4)
    normals = default_rng(11).standard_normal((n, 1, Ridge.noise_width(spec, sharing)))
    draws = np.concatenate(
        [model.sample(round_of(contexts), np.array([sigma]), z) for z in normals]
    )
    p, x = model.posterior, data.X[0]
    inverse = [np.diag(h[0]) if covariance == "diagonal" else h for h in p.inverse[0]]
    if sharing == "shared":
        mean, spread = x @ p.theta[0, 0], x @ inverse[0] @ x.T
    else:
        mean = np.einsum("kd,kd->k", x, p.theta[0])
        spread = np.diag([v @ h @ v for v, h in zip(x, inverse, strict=True)])
    # Bonferroni over nine numbers
    assert largest_z(draws, mean, sigma**2 * spread) < -norm.ppf(1e-6 / 2 / 9)


class Clicks(worlds.Linear):
    """Simulator in which the logistic model is true: sigmoid(theta . x), theta ~ N(0,
    scale^2 I).
    """

    title = "Clicks"

    def expected_rewards(self, features: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(expit(super().expected_rewards(features, weights)))

    def draw_weights(self, generator: np.random.Generator) -> FloatArray:
        return self.params.scale * generator.standard_normal(self.params.n_features)

    def draw_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        return generator.standard_normal((n, self.params.n_arms, self.params.n_features))


RUNS, D = 2000, 4


def calibration(ridge: float = 1.0, **params: Any) -> tuple[float, float]:
    """Measure the calibration of the posterior over runs whose theta is drawn from the prior.

    Returns the Kolmogorov-Smirnov distance of (theta - mean)' H (theta - mean) from chi-square, and
    the share of true values in the 90 % region."""
    parts: list[FloatArray] = []
    for start in range(0, RUNS, 500):
        options = {"layout": "per_row", "n_arms": 3, "n_features": D, "scale": ridge**-0.5}
        rows = range(start, start + 500)
        lane = worlds.make(
            "logistic_ts",
            Clicks,
            rows=rows,
            options=options,
            sharing="shared",
            ridge=ridge,
            **params,
        )
        lane.advance(230)
        assert isinstance(lane.simulator, Clicks)
        assert isinstance(lane.agent, LogisticAgent)
        p = lane.agent.model.posterior
        error = lane.simulator.theta - p.theta[:, 0]
        parts.append(chi2.cdf(np.einsum("ri,rij,rj->r", error, p.H[:, 0], error), D))
    quantiles = np.concatenate(parts)
    return float(kstest(quantiles, "uniform").statistic), float((quantiles < 0.9).mean())


@pytest.mark.slow
def test_the_laplace_posterior_is_calibrated() -> None:
    """After 230 observations the Laplace approximation is close enough for the limit of the exact
    test.
    """
    distance, covered = calibration()
    assert distance < 2.226 / RUNS**0.5
    assert abs(covered - 0.9) < 4 * (0.09 / RUNS) ** 0.5


@pytest.mark.slow
def test_without_refits_the_posterior_is_overconfident() -> None:
    """The curvature is that at earlier MAP estimates.

    Shows that the test above detects overconfidence.
    """
    distance, covered = calibration(refit=0)
    assert distance > 0.1
    assert covered < 0.85


# the agents

CASES: list[Any] = [
    ("logistic_ucb", {"sharing": "shared", "refit": 30, "history": 20}),
    ("logistic_ucb", {"sharing": "per_arm", "refit": 1, "history": 7}),
    ("logistic_ts", {"sharing": "shared", "refit": 0}),
    ("logistic_ts", {"sharing": "per_arm", "covariance": "diagonal", "refit": 10, "history": 15}),
    ("logistic_ts", {"sharing": "shared", "covariance": "diagonal", "refit": 10, "history": 15}),
    ("sgd_ts", {"sharing": "shared", "batch": 7}),
    ("sgd_ts", {"sharing": "per_arm", "batch": 7}),
]
cases = pytest.mark.parametrize(("kind", "params"), CASES)


@cases
@pytest.mark.parametrize("environment", [PetShop, worlds.Cascade])
def test_results_do_not_depend_on_chunks_rows_or_interruptions(
    environment: Any, kind: str, params: dict[str, Any]
) -> None:
    options = {"n_products": 6, "n_users": 30, "features": "both"} if environment is PetShop else {}

    def lane(rows: range) -> Any:
        return worlds.make(kind, environment, rows=rows, options=options, **params)

    whole, alone = lane(range(4)).advance(150), lane(range(1, 3))
    parts = [alone.advance(n) for n in (1, 60)]
    resumed = lane(range(1, 3))
    resumed.load_state_dict(alone.state_dict())
    parts.append(resumed.advance(89))
    assert worlds.same(worlds.join(parts), worlds.take(whole, [1, 2]))


@cases
def test_memory_is_estimated_before_allocation(kind: str, params: dict[str, Any]) -> None:
    lane = worlds.make(kind, PetShop, rows=range(2), options={"features": "both"}, **params)
    held = sum(a.nbytes for a in lane.agent.state_dict().values())
    needed = type(lane.agent).memory(lane.agent.params[0], lane.simulator.spec)
    assert held <= 2 * needed


@pytest.mark.parametrize("kind", ["logistic_ucb", "logistic_ts", "sgd_ts"])
def test_a_row_that_becomes_nan_stops_only_itself(kind: str) -> None:
    intact, diverged = (
        worlds.make(kind, PetShop, options={"n_products": 8}, sharing="shared") for _ in range(2)
    )
    for lane in (intact, diverged):
        lane.advance(130)
    model = diverged.agent if isinstance(diverged.agent, SGDTS) else diverged.agent.model.posterior  # type: ignore[attr-defined]
    (model.mean if isinstance(model, SGDTS) else model.theta)[1] = np.nan
    expected, trace = intact.advance(300), diverged.advance(300)
    assert trace.alive.tolist() == [True, False, True]
    assert worlds.same(worlds.take(trace, [0, 2]), worlds.take(expected, [0, 2]))
    assert (
        kind == "sgd_ts"
        or np.isfinite(diverged.agent.spectrum(diverged.simulator.bases(False))).all()
    )


def test_overflow_in_an_update_stops_only_its_row() -> None:
    spec = SimulatorSpec(n_items=1, n_candidates=1, n_features=2, n_stored=2)
    model = Logistic(np.ones(2), spec, "shared", refit=2, history=10, joint=True)
    x = np.ones((2, 1, 2))
    # its square is beyond the largest number
    x[1] = 1e200
    for _ in range(3):
        model.update(
            round_of(dense(x)),
            np.zeros((2, 1), np.int64),
            Feedback(np.ones((2, 1)), np.ones((2, 1), bool)),
        )
    assert np.isfinite(model.posterior.theta[0]).all()
    assert np.isnan(model.predict(round_of(dense(x)))[0][1]).all()


def test_the_spectrum_is_that_of_h() -> None:
    for covariance in ("full", "diagonal"):
        lane = worlds.make(
            "logistic_ts",
            PetShop,
            options={"features": "interaction"},
            sharing="shared",
            covariance=covariance,
        )
        lane.advance(400)
        H = lane.agent.model.posterior.H[:, 0]  # type: ignore[attr-defined]
        actual = lane.agent.spectrum(lane.simulator.bases(False))
        diagonal = H[:, 0] if covariance == "diagonal" else np.einsum("rii->ri", H)
        np.testing.assert_allclose(actual[:, 0], np.sort(diagonal, axis=1)[:, ::-1], rtol=1e-12)


def test_on_one_hot_features_the_diagonal_approximation_is_exact() -> None:
    shop = {"features": "interaction", "n_products": 20}
    full, diagonal = (
        worlds.make("logistic_ts", PetShop, options=shop, sharing="shared", covariance=c).advance(
            500
        )
        for c in ("full", "diagonal")
    )
    assert np.array_equal(full.items, diagonal.items)


def reference_sgd_ts(lane: Any, n: int) -> IntArray:
    """Run Algorithm 1 as in its authors' code, with a draw for each choice, for row 0; returns
    items (n,).
    """
    agent, simulator, p = lane.agent, lane.simulator, lane.agent.params[0]
    X: list[FloatArray] = []
    y: list[float] = []
    items = []
    hat = theta = mean = np.zeros(0)
    deviation = 0.0
    iterates: list[FloatArray] = []
    for t in range(n):
        round = simulator.round_at(t)
        if t and t % p.batch == 0:
            j = t // p.batch
            # what each batch counts, the latest last
            age = p.gamma ** (p.batch * np.arange(j)[::-1])
            xs, ys = np.array(X[-p.batch :]), np.array(y[-p.batch :])
            if j == 1:
                hat = theta = reference(xs, ys, p.ridge)[0]
            else:
                theta = theta - p.learning_rate / age.sum() * (expit(xs @ theta) - ys) @ xs
                distance = np.linalg.norm(theta - hat)
                theta = theta if distance <= p.radius else hat + p.radius * (theta - hat) / distance
            iterates.append(theta)
            mean = age @ np.array(iterates) / age.sum()
            deviation = np.sqrt(p.sigma2 / age.sum())
        # in that code one draw serves a batch
        drawn = mean + deviation * agent.normals.at(t)[0] if t >= p.batch else mean
        scores = agent.uniforms.at(t)[0] if t < p.batch else round.features[0] @ drawn
        items.append(int(scores.argmax()))
        feedback, _ = simulator.respond(round, np.array([[items[-1]]]), simulator.uniforms.at(t))
        X.append(round.features[0, items[-1]])
        y.append(feedback.rewards[0, 0])
    return np.array(items)


@pytest.mark.parametrize(
    ("batch", "learning_rate", "radius", "gamma"),
    [(20, 0.5, 2.0, 1.0), (35, 5.0, 0.5, 1.0), (20, 0.5, 2.0, 0.99)],
)
def test_sgd_ts_equals_the_published_algorithm_with_a_draw_for_each_choice(
    batch: int, learning_rate: float, radius: float, gamma: float
) -> None:
    def lane() -> Any:
        settings = {
            "batch": batch,
            "learning_rate": learning_rate,
            "radius": radius,
            "gamma": gamma,
            "sharing": "shared",
            "ridge": 1.0,
        }
        return worlds.make("sgd_ts", Clicks, rows=[3], **settings)

    assert np.array_equal(lane().advance(400).items[:, 0, 0], reference_sgd_ts(lane(), 400))


def regret(kind: str, steps: int = 4000, **params: Any) -> float:
    trace = worlds.make(
        kind, PetShop, rows=range(8), options={"features": "interaction"}, **params
    ).advance(steps)
    return float((trace.best_value - trace.value).sum(axis=0).mean())


def test_logistic_agents_learn_on_the_pet_shop() -> None:
    """Regret is less than a fifth of that of random choice.

    Estimating 20 click probabilities from 15 random impressions each costs 20 x 15 x .3 = 90
    clicks; five times that is a fifth of the regret of random choice."""
    chance = regret("random")
    assert chance > 1000
    for kind in ("logistic_ucb", "logistic_ts"):
        assert regret(kind, sharing="shared") < 0.2 * chance
    assert regret("sgd_ts") < 0.2 * chance


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_an_update_with_a_weighted_observation_moves_along_the_prior_covariance(
    covariance: Covariance,
) -> None:
    """s = reward - shows sigmoid(logit + s x' H^-1 x), theta += s H^-1 x, H += shows p (1 - p) x x'
    or its diagonal.
    """
    spec = SimulatorSpec(n_items=1, n_candidates=1, n_features=3, n_stored=3)
    model = Logistic(
        np.array([0.6]), spec, "shared", refit=0, history=1, covariance=covariance, joint=True
    )
    theta, H = np.zeros(3), 0.6 * np.eye(3)
    for x, shows, reward in (
        ([0.7, -1.3, 0.4], 0.4, 1.0),
        ([-0.2, 2.0, 0.9], 1.0, 0.0),
        ([1.1, 0.3, -0.8], 0.25, 0.0),
    ):
        feature, inverse = np.array(x), np.linalg.inv(H)
        quadratic, logit = feature @ inverse @ feature, feature @ theta
        s = brentq(lambda s: reward - shows * expit(logit + s * quadratic) - s, -2, 2, xtol=1e-14)  # noqa: B023
        theta, p = theta + s * inverse @ feature, expit(logit + s * quadratic)
        grown = np.outer(feature, feature) if covariance == "full" else np.diag(feature**2)
        H = H + shows * p * (1 - p) * grown
        feedback = Feedback(np.array([[reward]]), np.ones((1, 1), np.bool_))
        model.update(
            round_of(dense(feature[None, None])),
            np.zeros((1, 1), np.int64),
            feedback,
            np.array([[shows]]),
        )
    np.testing.assert_allclose(model.posterior.theta[0, 0], theta, atol=1e-9)
    kept = H if covariance == "full" else np.diag(H)[None]
    np.testing.assert_allclose(model.posterior.H[0, 0], kept, rtol=1e-9)
    inverse = np.linalg.inv(H) if covariance == "full" else 1 / kept
    np.testing.assert_allclose(model.posterior.inverse[0, 0], inverse, rtol=1e-8, atol=1e-12)


def test_arms_with_equal_features_keep_their_own_history() -> None:
    """With 300 arms in a hash table of 2,048 places, some begin at the same place."""
    K, x = 300, np.array([0.5, -1.5])
    spec = SimulatorSpec(n_items=K, n_candidates=K, n_features=2, n_stored=2)
    model = Logistic(np.ones(1), spec, "per_arm", refit=1, history=500)
    contexts = dense(np.tile(x, (1, K, 1)))
    learn(model, [contexts] * K, np.arange(K), np.ones(K))
    assert model.history.used[0] == K
    assert np.unique(model.history.model[0, :K]).size == K
    np.testing.assert_array_equal(
        model.posterior.theta[0], np.tile(model.posterior.theta[0, :1], (K, 1))
    )
