"""Agents that other libraries have: equal to plain implementations, with exact propensities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, poisson
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from bandits import UserError, read
from bandits.agents import REGISTRY
from bandits.agents.trees.tree_ts import TreeTS
from bandits.base.selection import inverse_gaps
from bandits.base.types import FloatArray
from bandits.experiments.lane import Lane
from bandits.models import estimators
from bandits.models.estimators import check_estimator, fitted, predicted
from tests.contract import worlds

STUMP = {"estimator": "DecisionTreeRegressor", "options": "max_depth=1"}
BINARY = {"reward": "bernoulli", "n_arms": 5}


def make(kind: str, rows: int, **params: Any) -> Lane:
    """Create a lane in the linear simulator."""
    own = REGISTRY[kind].Params(kind=kind, **params)
    return worlds.make([own] * rows, rows=range(rows), options=BINARY)


def shown_features(lane: Lane, steps: int) -> tuple[FloatArray, FloatArray]:
    """Advance; return the features and rewards of what was shown, (R, T, D) and (R, T)."""
    features, rewards = [], []
    for _ in range(steps):
        round = lane.simulator.round_at(lane.step)
        trace = lane.advance(1)
        features.append(round.features[np.arange(lane.rows), trace.items[0, :, 0]])
        rewards.append(trace.rewards[0])
    return np.stack(features, axis=1), np.stack(rewards, axis=1)


def ridge_fit(x: FloatArray, r: FloatArray, w: FloatArray, ridge: float) -> FloatArray:
    """Fit a weighted ridge regression, float64 (D,)."""
    A = ridge * np.eye(x.shape[1]) + (x * w[:, None]).T @ x
    return np.asarray(np.linalg.solve(A, (x * w[:, None]).T @ r))


@pytest.mark.parametrize("growth", [0.5, 0.0])
def test_squarecb_weights_inverse_gaps_of_ridge_estimates(growth: float) -> None:
    lane = make("squarecb", 3, sharing="shared", ridge=2.0, gap_weight=30.0, growth=growth)
    x, r = shown_features(lane, 40)
    round = lane.simulator.round_at(40)
    stated = lane.agent.probabilities(round)
    for row in range(3):
        y = round.features[row] @ ridge_fit(x[row], r[row], np.ones(40), 2.0)
        p, best = np.zeros(5), int(y.argmax())
        for k in range(5):
            if k != best:
                p[k] = 1 / (5 + 30 * 41**growth * (y[best] - y[k]))
        p[best] = 1 - p.sum()
        np.testing.assert_allclose(stated[row], p, rtol=1e-10)


def test_candidates_that_are_tied_for_the_best_share_its_part() -> None:
    estimates = np.array([[0.5, 0.5, 0.25, 0.9]])
    available = np.array([[True, True, True, False]])
    (p,) = inverse_gaps(estimates, np.array([8.0]), available)
    np.testing.assert_allclose(p, [0.4, 0.4, 0.2, 0.0], rtol=1e-12)
    estimates[0, 2] = np.nan
    assert np.isnan(inverse_gaps(estimates, np.array([8.0]), available)).any()


@pytest.mark.parametrize("weights", ["poisson", "double_or_nothing"])
def test_a_bag_is_one_weighted_ridge_regression_per_member(weights: str) -> None:
    lane = make("bag", 2, sharing="shared", ridge=2.0, members=4, weights=weights, epsilon=0.0)
    agent: Any = lane.agent
    x, r = shown_features(lane, 40)
    round = lane.simulator.round_at(40)
    w = np.stack([agent.weights(t)[:, :, 0] for t in range(40)], axis=2)
    means, best = agent.member_means(round), np.zeros((2, 5))
    for row, member in np.ndindex(2, 4):
        theta = ridge_fit(x[row], r[row], w[row, member], 2.0)
        y = round.features[row] @ theta
        np.testing.assert_allclose(means[row, member], y, rtol=1e-10, atol=1e-12)
        best[row, y.argmax()] += 1 / 4
    np.testing.assert_allclose(agent.probabilities(round), best, rtol=1e-12)


def test_bootstrap_weights_are_poisson_or_double_or_nothing() -> None:
    drawn: Any = make("bag", 50, members=20).agent
    w = np.stack([drawn.weights(t) for t in range(20)]).ravel()
    counts = np.bincount(np.minimum(w.astype(int), 5), minlength=6)
    expected = np.append(poisson.pmf(range(5), 1), poisson.sf(4, 1))
    assert chisquare(counts, w.size * expected).pvalue > 1e-3
    other: Any = make("bag", 50, members=20, weights="double_or_nothing").agent
    w = np.stack([other.weights(t) for t in range(20)]).ravel()
    assert set(w) == {0.0, 2.0}
    assert abs(w.mean() - 1) < 4 / np.sqrt(w.size)


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_the_leaves_of_a_tree_count_what_scikit_learn_puts_there(sharing: str) -> None:
    lane = make("tree_ts", 2, sharing=sharing, every=20, fit_growth=0.0, leaf=3)
    x, r, item = [], [], []
    for _ in range(130):
        round, trace = lane.simulator.round_at(lane.step), lane.advance(1)
        item.append(trace.items[0, :, 0])
        x.append(round.features[np.arange(2), item[-1]])
        r.append(trace.rewards[0])
    features, rewards, items = np.stack(x, 1), np.stack(r, 1), np.stack(item, 1)
    round, agent = lane.simulator.round_at(130), lane.agent
    assert isinstance(agent, TreeTS)
    a, b = agent.posterior(round)
    for row, k in np.ndindex(2, 5):
        own = np.full(130, sharing == "shared") | (items[row] == k)
        fitted = own & (np.arange(130) < 120)
        tree = DecisionTreeRegressor(max_depth=4, min_samples_leaf=3, random_state=0)
        tree.fit(features[row, fitted], rewards[row, fitted])
        same = tree.apply(features[row, own]) == tree.apply(round.features[row, k : k + 1])
        clicks = rewards[row, own][same].sum()
        assert (a[row, k], b[row, k]) == (1 + clicks, 1 + same.sum() - clicks)


def test_a_tree_can_be_read() -> None:
    lane = make("tree_ts", 1, sharing="shared", every=50, depth=1, leaf=10)
    lane.advance(50)
    agent = lane.agent
    assert isinstance(agent, TreeTS)
    first, second = agent.tree_text().splitlines()
    shows, clicks = agent.shows[0, 0], agent.clicks[0, 0]
    assert shows[1] + shows[2] == 50
    assert f"<= {agent.threshold[0, 0, 0]:.4g}: {clicks[1]:g} clicks of {shows[1]:g}" in first
    assert f"> {agent.threshold[0, 0, 0]:.4g}: {clicks[2]:g} clicks of {shows[2]:g}" in second


@pytest.mark.slow
@pytest.mark.parametrize("exploration", ["epsilon", "softmax", "squarecb"])
def test_an_oracle_explores_around_what_scikit_learn_predicts(exploration: str) -> None:
    lane = make(
        "oracle_based",
        2,
        sharing="shared",
        exploration=exploration,
        every=20,
        fit_growth=0.0,
        estimator="LinearRegression",
        options="",
        epsilon=0.2,
        temperature=0.1,
    )
    x, r = shown_features(lane, 50)
    round = lane.simulator.round_at(50)
    stated = lane.agent.probabilities(round)
    for row in range(2):
        y = LinearRegression().fit(x[row, :40], r[row, :40]).predict(round.features[row])
        gaps = y.max() - y
        p = {
            "epsilon": 0.2 / 5 + 0.8 * (gaps == 0),
            "softmax": np.exp(-gaps / 0.1) / np.exp(-gaps / 0.1).sum(),
            "squarecb": 1 / (5 + 100 * np.sqrt(51) * gaps),
        }[exploration]
        p[y.argmax()] += 1 - p.sum()
        np.testing.assert_allclose(stated[row], p, rtol=1e-9)


def test_a_classifier_predicts_the_probability_of_a_click() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    clicks = (x[:, 0] > 0).astype(float)
    made = fitted("LogisticRegression", "", 0, x, clicks)
    expected = LogisticRegression(random_state=0).fit(x, clicks).predict_proba(x)[:, 1]
    np.testing.assert_allclose(predicted(made, x), expected, rtol=1e-12)


@pytest.mark.slow
def test_gradient_boosted_trees_can_be_fitted_again_to_the_bit() -> None:
    check_estimator("GradientBoostingRegressor", "n_estimators=30, max_depth=3")
    assert REGISTRY["oracle_based"].Params().estimator == "GradientBoostingRegressor"  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"estimator": "NoSuchThing"}, "estimator: scikit-learn has no regressor or classifier"),
        ({"estimator": "LinearSVC", "options": ""}, "estimator: LinearSVC lacks predict_proba"),
        ({"estimator": "StackingRegressor", "options": ""}, "options: StackingRegressor"),
        ({"options": "n_estimators=10000"}, "options: n_estimators is 10000; allowed are up to"),
        ({"options": "n_trees=3"}, "options: GradientBoostingRegressor"),
        ({"options": "max_depth"}, "options: must be like"),
        ({"options": "max_depth=-2"}, "estimator: GradientBoostingRegressor cannot be fitted"),
        ({"temperature": 0.0}, "temperature"),
    ],
)
def test_an_oracle_that_cannot_work_is_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read({"agents": [{"kind": "oracle_based", **params}]})


def test_an_estimator_that_differs_at_a_second_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Unstable(LinearRegression):  # type: ignore[misc]
        fits = 0

        def predict(self, x: FloatArray) -> FloatArray:
            Unstable.fits += 1
            return np.asarray(super().predict(x) + Unstable.fits)

    monkeypatch.setattr(estimators, "estimator_class", lambda _: Unstable)
    with pytest.raises(ValueError, match="could not be resumed to the bit"):
        check_estimator.__wrapped__("Unstable", "")


def test_a_tree_of_depth_0_is_refused() -> None:
    with pytest.raises(UserError, match="depth"):
        read({"agents": [{"kind": "tree_ts", "depth": 0}]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("squarecb", {"sharing": "shared"}),
        ("logistic_squarecb", {"sharing": "shared"}),
        ("bag", {"sharing": "shared", "members": 3}),
        ("tree_ts", {"sharing": "shared", "every": 5, "leaf": 2}),
        ("oracle_based", {"sharing": "shared", "every": 6, **STUMP}),
        ("oracle_based", {"sharing": "shared", "every": 6, "exploration": "bootstrap", **STUMP}),
    ],
)
def test_propensities_recover_the_value_of_a_known_policy(
    kind: str, params: dict[str, Any]
) -> None:
    """The policy always shows the candidate that the agent shows most often."""
    lane, surplus = make(kind, 100, **params), []
    rows = np.arange(100)
    for step in range(8):
        round = lane.simulator.round_at(step)
        p = lane.agent.probabilities(round)
        target = p.argmax(axis=1)
        truth = lane.simulator.probabilities(round)[rows, target]
        trace = lane.advance(1)
        hit = trace.items[0, :, 0] == target
        surplus.append(hit * trace.rewards[0] / p[rows, target] - truth)
    # a mean of each row: its steps are not independent
    each = np.mean(surplus, axis=0)
    assert abs(each.mean()) < 4 * each.std() / np.sqrt(100)
