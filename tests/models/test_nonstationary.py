"""Ridge models that forget, against the sums that define them."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import Experiment, UserError, read, run
from bandits.base.types import Contexts, Feedback, Round, WorldSpec
from bandits.experiments.race import make_lane
from bandits.models.linear.nonstationary import DiscountedRidge, SlidingWindowRidge
from tests.support import often

SETTING = WorldSpec(n_items=4, n_candidates=4, n_features=5, n_stored=5)
RIDGE = np.array([1.0, 0.1, 10.0])


def world(step: int, generator: np.random.Generator) -> tuple[Round, np.ndarray, Feedback]:
    """Three rows with random features, a random arm shown, a random reward."""
    R, K = 3, SETTING.n_items
    features = generator.standard_normal((R, K, SETTING.n_features))
    contexts = Contexts(features, np.tile(np.arange(5), (R, K, 1)), 5)
    items = np.tile(np.arange(K), (R, 1))
    none = np.zeros(R, np.int64)
    round = Round(step, none, items, contexts, np.arange(R), np.ones((R, K), np.bool_), none)
    slate = generator.integers(0, K, (R, 1))
    return round, slate, Feedback(generator.standard_normal((R, 1)), np.ones((R, 1), np.bool_))


def remembered(seen: list[tuple], row: int, arm: int | None) -> list[tuple[int, np.ndarray, float]]:
    """(step, x, reward) of what one arm of a row, or all of them, was shown."""
    actual = []
    for round, slate, feedback in seen:
        shown = int(slate[row, 0])
        if arm is None or shown == arm:
            actual.append((round.step, round.features[row, shown], float(feedback.rewards[row, 0])))
    return actual


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_discounting_is_the_weighted_sum_with_the_ridge_kept(sharing: str) -> None:
    gamma, generator = np.array([0.9, 0.99, 1.0]), np.random.default_rng(1)
    model, seen = DiscountedRidge(RIDGE, gamma, SETTING, sharing), []
    for step in range(300):
        seen.append(world(step, generator))
        model.update(*seen[-1])
    round, _, _ = world(300, generator)
    mean, variance = model.predict(round)
    for r in range(3):
        for k in range(4):
            past = remembered(seen, r, None if sharing == "shared" else k)
            V, V2, b = RIDGE[r] * np.eye(5), RIDGE[r] * np.eye(5), np.zeros(5)
            for step, x, reward in past:
                weight = gamma[r] ** (299 - step)  # the newest step weighs one
                V, V2, b = V + weight * np.outer(x, x), V2 + weight**2 * np.outer(x, x), b + weight * reward * x
            x, inverse = round.features[r, k], np.linalg.inv(V)
            assert mean[r, k] == pytest.approx(x @ inverse @ b, rel=1e-9, abs=1e-9)
            assert variance[r, k] == pytest.approx(x @ inverse @ V2 @ inverse @ x, rel=1e-9)


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_a_window_is_the_ridge_of_its_last_steps(sharing: str) -> None:
    generator, window = np.random.default_rng(2), 50
    model, seen = SlidingWindowRidge(RIDGE, SETTING, sharing, window), []
    for step in range(often(4_000, 20_000)):
        seen = [*seen, world(step, generator)][-window:]
        model.update(*seen[-1])
    for r in range(3):
        for m in range(model.count.shape[1]):
            past = remembered(seen, r, None if sharing == "shared" else m)
            A = RIDGE[r] * np.eye(5) + sum((np.outer(x, x) for _, x, _ in past), np.zeros((5, 5)))
            b = sum((reward * x for _, x, reward in past), np.zeros(5))
            np.testing.assert_allclose(model.inverse[r, m], np.linalg.inv(A), rtol=0, atol=1e-8)
            np.testing.assert_allclose(model.theta[r, m], np.linalg.solve(A, b), rtol=0, atol=1e-8)


def test_forgetting_recovers_from_a_shock() -> None:
    """Paired: after the tastes change, both ways of forgetting earn more than remembering everything."""
    agents = [
        {"kind": "linucb", "label": "all", "alpha": 0.5, "sharing": "shared"},
        {"kind": "linucb", "label": "fading", "alpha": 0.5, "sharing": "shared", "gamma": 0.998},
        {"kind": "linucb", "label": "window", "alpha": 0.5, "sharing": "shared", "window": 1000},
    ]
    world = {"kind": "petshop", "features": "interaction", "shock_step": 4000, "n_products": 20}
    result = run(Experiment(simulator=world, agents=agents, steps=8000, replications=8))
    for label in ("fading", "window"):
        assert result.compare(label, "all").difference.low > 0


@pytest.mark.parametrize("change", [{"gamma": 0.99}, {"window": 40}])
def test_a_saved_forgetting_agent_goes_on_to_the_bit(change: dict) -> None:
    agent = {"kind": "linucb", **change}
    experiment = Experiment(simulator={"kind": "petshop", "n_products": 10}, agents=[agent], steps=200, replications=3)
    whole, first, second = (make_lane(experiment, 0) for _ in range(3))
    expected = whole.advance(200)
    first.advance(77)
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(second.advance(123).items, expected.items[77:])
    one = make_lane(experiment, 0, rows=[2]).advance(200)
    np.testing.assert_array_equal(one.items[:, 0], expected.items[:, 2])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gamma": 0.9, "window": 10}, "not both"),
        ({"gamma": 0.9, "sharing": "hybrid"}, "not hybrid"),
        ({"gamma": 0.0}, "above 0"),
        ({"window": 0}, "from 1"),
    ],
)
def test_impossible_ways_to_forget_are_refused(change: dict, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read({"agents": [{"kind": "linucb", **change}]})
