"""The article recommendation of chapter 16 (listing 16.3): one model on user and article features,
not scaled.
"""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray
from bandits.experiments.lane import Lane
from bandits.simulators.articles import VISITOR, VISITORS, Articles, concatenated
from bandits.simulators.datasets.scaling import scaled
from tests.contract.worlds import make

ALPHA, HOUR, AGE = 1.5, 3, 7


class PlainSharedLinUCB:
    """One ridge regression for all articles, with an inverse at every step."""

    def __init__(self) -> None:
        self.A, self.b = np.eye(9), np.zeros(9)

    def parts(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and bonus of each article."""
        inverse = np.linalg.inv(self.A)
        return X @ inverse @ self.b, ALPHA * np.sqrt(np.einsum("kd,de,ke->k", X, inverse, X))

    def learn(self, x: FloatArray, reward: float) -> None:
        self.A += np.outer(x, x)
        self.b += reward * x


def lane_of_listing() -> Lane:
    return make("linucb", Articles, rows=(0,), alpha=ALPHA, ridge=1.0, sharing="shared")


def test_the_bonuses_of_the_listing_are_lengths_of_unscaled_features() -> None:
    lane = lane_of_listing()
    found = lane.agent.explain(lane.simulator.round_at(0))
    assert found.width is not None
    mean, bonus = PlainSharedLinUCB().parts(concatenated(VISITOR[None])[0])
    assert not mean.any()
    assert [round(b, 2) for b in bonus] == [21.50, 21.16, 41.77]
    np.testing.assert_allclose(found.width[0] * ALPHA, bonus, rtol=1e-12)
    np.testing.assert_allclose(found.score[0], bonus, rtol=1e-12)
    np.testing.assert_allclose(
        bonus, ALPHA * np.linalg.norm(concatenated(VISITOR[None])[0], axis=1)
    )
    x = concatenated(VISITOR[None])[0, 2]
    assert (x[HOUR] ** 2 + x[AGE] ** 2) / (x**2).sum() > 0.99
    every = np.array([PlainSharedLinUCB().parts(X)[1].argmax() for X in concatenated(VISITORS)])
    # article 3 for all users
    assert (every == 2).all()


def test_the_agent_equals_the_listing_while_it_learns() -> None:
    lane, plain, shown = lane_of_listing(), PlainSharedLinUCB(), []
    for step in range(150):
        round = lane.simulator.round_at(step)
        X = round.features[0]
        mean, bonus = plain.parts(X)
        found = lane.agent.explain(round)
        assert found.mean is not None
        np.testing.assert_allclose(found.mean[0], mean, atol=1e-9)
        np.testing.assert_allclose(found.score[0], mean + bonus, rtol=1e-7)
        trace = lane.advance(1)
        shown.append(int(trace.items[0, 0, 0]))
        assert shown[-1] == (mean + bonus).argmax()
        plain.learn(X[shown[-1]], float(trace.rewards[0, 0]))
    assert shown[0] == 2
    assert set(shown) == {0, 1, 2}


def test_minmax_brings_the_bonuses_together_and_leaves_the_mean_additive() -> None:
    """Concatenated features rank the predicted rewards of all users alike, whatever the scale:
    products do not.
    """
    table = scaled(concatenated(VISITORS).reshape(-1, 9), "minmax").reshape(-1, 3, 9)
    first = int(np.flatnonzero((VISITORS == VISITOR).all(axis=1))[0])
    bonus = PlainSharedLinUCB().parts(table[first])[1]
    assert [round(b, 2) for b in bonus] == [2.79, 2.60, 3.36]
    generator, plain = np.random.default_rng(0), PlainSharedLinUCB()
    for i in generator.integers(0, len(VISITORS), size=300):
        x = table[i, generator.integers(3)]
        # desktop users click on tech, others on nothing
        plain.learn(x, float(generator.random() < x[0] * x[5]))
    means = np.array([plain.parts(X)[0] for X in table])
    differences = means - means[:, :1]
    np.testing.assert_allclose(
        differences, np.broadcast_to(differences[:1], differences.shape), atol=1e-12
    )
    assert np.ptp(differences[0]) > 0.05
