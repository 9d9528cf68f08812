"""Discounted and windowed ridge models, compared with the sums that define them."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import Experiment, UserError, read, run
from bandits.base.types import Contexts, Feedback, Round, SimulatorSpec
from bandits.models.linear.nonstationary import DiscountedRidge, SlidingWindowRidge
from tests.support import often

SETTING = SimulatorSpec(n_items=4, n_candidates=4, n_features=5, n_stored=5)
RIDGE = np.array([1.0, 0.1, 10.0])


def observation(step: int, generator: np.random.Generator) -> tuple[Round, np.ndarray, Feedback]:
    """Return an observation of three rows: random features, a random shown arm and a random
    reward.
    """
    R, K = 3, SETTING.n_items
    features = generator.standard_normal((R, K, SETTING.n_features))
    contexts = Contexts(features, np.tile(np.arange(5), (R, K, 1)), 5)
    items = np.tile(np.arange(K), (R, 1))
    zeros = np.zeros(R, np.int64)
    round = Round(step, zeros, items, contexts, np.arange(R), np.ones((R, K), np.bool_), zeros)
    slate = generator.integers(0, K, (R, 1))
    return round, slate, Feedback(generator.standard_normal((R, 1)), np.ones((R, 1), np.bool_))


def observations_of(
    seen: list[tuple], row: int, arm: int | None
) -> list[tuple[int, np.ndarray, float]]:
    """Return (step, x, reward) for one arm of a row, or for all arms."""
    past = []
    for round, slate, feedback in seen:
        shown = int(slate[row, 0])
        if arm is None or shown == arm:
            past.append((round.step, round.features[row, shown], float(feedback.rewards[row, 0])))
    return past


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_discounting_weights_observations_and_keeps_the_ridge(sharing: str) -> None:
    gamma, generator = np.array([0.9, 0.99, 1.0]), np.random.default_rng(1)
    model, seen = DiscountedRidge(RIDGE, gamma, SETTING, sharing), []
    for step in range(300):
        seen.append(observation(step, generator))
        model.update(*seen[-1])
    round, _, _ = observation(300, generator)
    mean, variance = model.predict(round)
    for r in range(3):
        for k in range(4):
            past = observations_of(seen, r, None if sharing == "shared" else k)
            V, V2, b = RIDGE[r] * np.eye(5), RIDGE[r] * np.eye(5), np.zeros(5)
            for step, x, reward in past:
                # the newest step has weight 1
                weight = gamma[r] ** (299 - step)
                V, V2, b = (
                    V + weight * np.outer(x, x),
                    V2 + weight**2 * np.outer(x, x),
                    b + weight * reward * x,
                )
            x, inverse = round.features[r, k], np.linalg.inv(V)
            assert mean[r, k] == pytest.approx(x @ inverse @ b, rel=1e-9, abs=1e-9)
            assert variance[r, k] == pytest.approx(x @ inverse @ V2 @ inverse @ x, rel=1e-9)
            m = 0 if sharing == "shared" else k
            spectrum = model.spectrum([np.eye(5)] * (1 if sharing == "shared" else 4))[r, m]
            np.testing.assert_allclose(spectrum, np.linalg.eigvalsh(V)[::-1], rtol=1e-9)


def test_a_model_that_is_fitted_afresh_goes_on_as_one_that_saw_every_step() -> None:
    gamma, generator = np.array([0.9, 0.99, 1.0]), np.random.default_rng(3)
    first, other = (DiscountedRidge(RIDGE, gamma, SETTING, "shared") for _ in range(2))
    seen = [observation(step, generator) for step in range(40)]
    for each in seen[:30]:
        first.update(*each)
    x = np.array([[r.features[i, s[i, 0]] for r, s, _ in seen[:30]] for i in range(3)])
    rewards = np.array([[f.rewards[i, 0] for _, _, f in seen[:30]] for i in range(3)])
    weight = gamma[:, None] ** np.arange(29, -1, -1)
    gram, gram2 = (np.einsum("rt,rtd,rte->rde", w, x, x)[:, None] for w in (weight, weight**2))
    other.refit(gram, gram2, np.einsum("rt,rt,rtd->rd", weight, rewards, x)[:, None], 29)
    for each in seen[30:]:
        first.update(*each)
        other.update(*each)
    round, _, _ = observation(40, generator)
    for mine, theirs in zip(first.predict(round), other.predict(round), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_a_sliding_window_equals_ridge_on_the_last_steps(sharing: str) -> None:
    generator, window = np.random.default_rng(2), 50
    model, seen = SlidingWindowRidge(RIDGE, SETTING, sharing, window), []
    for step in range(often(4_000, 50_000)):
        seen = [*seen, observation(step, generator)][-window:]
        model.update(*seen[-1])
    for r in range(3):
        for m in range(model.count.shape[1]):
            past = observations_of(seen, r, None if sharing == "shared" else m)
            A = RIDGE[r] * np.eye(5) + sum((np.outer(x, x) for _, x, _ in past), np.zeros((5, 5)))
            b = sum((reward * x for _, x, reward in past), np.zeros(5))
            np.testing.assert_allclose(model.inverse[r, m], np.linalg.inv(A), rtol=0, atol=1e-8)
            np.testing.assert_allclose(model.theta[r, m], np.linalg.solve(A, b), rtol=0, atol=1e-8)


def test_only_what_was_examined_leaves_the_window() -> None:
    generator, window = np.random.default_rng(5), 4
    setting = SimulatorSpec(n_items=4, n_candidates=4, n_features=5, n_stored=5, slate=2)
    model, kept = SlidingWindowRidge(RIDGE, setting, "shared", window), []
    for step in range(40):
        round, _, _ = observation(step, generator)
        slate = np.stack([generator.permutation(4)[:2] for _ in range(3)])
        examined = np.array([[True, True], [True, False], [False, False]])
        feedback = Feedback(generator.standard_normal((3, 2)), examined)
        model.update(round, slate, feedback)
        kept = [*kept, (round, slate, feedback)][-window:]
    for r, slots in enumerate((2, 1, 0)):
        x = np.array(
            [f.features[r, slate[r, s]] for f, slate, _ in kept for s in range(slots)]
        ).reshape(-1, 5)
        y = np.array([feedback.rewards[r, s] for _, _, feedback in kept for s in range(slots)])
        A = RIDGE[r] * np.eye(5) + x.T @ x
        np.testing.assert_allclose(model.A[r, 0], A, atol=1e-9)
        np.testing.assert_allclose(model.theta[r, 0], np.linalg.solve(A, x.T @ y), atol=1e-8)


def test_forgetting_keeps_its_precision_where_the_ridge_is_tiny() -> None:
    """With fewer observations than features in the window, each one that leaves changes A^-1 by 1 /
    ridge.
    """
    generator, ridge = np.random.default_rng(6), np.full(3, 1e-6)
    model, seen = SlidingWindowRidge(ridge, SETTING, "shared", 3), []
    for step in range(300):
        seen = [*seen, observation(step, generator)][-3:]
        model.update(*seen[-1])
    for r in range(3):
        x = np.array([x for _, x, _ in observations_of(seen, r, None)])
        A = 1e-6 * np.eye(5) + x.T @ x
        np.testing.assert_allclose(model.inverse[r, 0], np.linalg.inv(A), rtol=1e-6, atol=1.0)


@pytest.mark.slow
def test_forgetting_agents_recover_from_a_shock() -> None:
    """Paired: after the preferences change, both methods of forgetting earn more than no
    forgetting.
    """
    agents = [
        {"kind": "linucb", "label": "all", "alpha": 0.5, "sharing": "shared"},
        {"kind": "linucb", "label": "fading", "alpha": 0.5, "sharing": "shared", "gamma": 0.998},
        {"kind": "linucb", "label": "window", "alpha": 0.5, "sharing": "shared", "window": 1000},
    ]
    settings = {"kind": "petshop", "features": "interaction", "shock_step": 4000, "n_products": 20}
    result = run(Experiment(simulator=settings, agents=agents, steps=8000, replications=8))
    for label in ("fading", "window"):
        assert result.compare(label, "all").difference.low > 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gamma": 0.9, "window": 10}, "not both"),
        ({"gamma": 0.9, "sharing": "hybrid"}, "not hybrid"),
        ({"gamma": 0.0}, "above 0"),
        ({"window": 0}, "from 1"),
    ],
)
def test_invalid_forgetting_parameters_are_refused(change: dict, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read({"agents": [{"kind": "linucb", **change}]})
