"""The Thompson sampling of the Open Bandit shop as a target: probabilities of positions,
refusals.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.models.largest import beta_largest
from bandits.offpolicy import evaluate, read_log
from bandits.offpolicy.open_bandit import Production, slot_probabilities
from tests.offpolicy.support import simulate


def parameters(seed: int, K: int = 6) -> tuple[np.ndarray, np.ndarray]:
    g = np.random.default_rng(seed)
    return g.uniform(0.7, 5, K), g.uniform(0.7, 900, K)


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_of_positions_are_shares_of_draws(seed: int) -> None:
    a, b = parameters(seed)
    n = 200_000
    order = np.argsort(-np.random.default_rng(seed).beta(a, b, (n, 6)), axis=1)
    shares = np.stack([(order[:, s, None] == np.arange(6)).mean(axis=0) for s in range(3)], axis=1)
    p = slot_probabilities(a, b, 3)
    z = np.abs(shares - p) / np.sqrt(np.maximum(p * (1 - p), 1e-6) / n)
    # 18 shares in each of 3 seeds
    assert z.max() < 4.5


def test_the_first_position_is_the_largest_variable() -> None:
    a, b = parameters(4, 20)
    expected = beta_largest(a[None], b[None], np.ones((1, 20), bool))[0]
    np.testing.assert_allclose(slot_probabilities(a, b, 1)[:, 0], expected, atol=1e-8)


def test_over_all_positions_each_item_is_shown_once() -> None:
    p = slot_probabilities(*parameters(5, 4), 4)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-7)
    np.testing.assert_allclose(p.sum(axis=0), 1, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("campaign", ["all", "men", "women"])
def test_probabilities_are_those_that_obp_draws(campaign: str) -> None:
    policies, n = importlib.import_module("obp.policy.contextfree"), 20_000
    production = Production(campaign)
    K = len(production.matrix)
    policy = policies.BernoulliTS(
        n_actions=K, len_list=3, is_zozotown_prior=True, campaign=campaign, random_state=1
    )
    drawn = policy.compute_batch_action_dist(n_rounds=1, n_sim=n)[0]
    p = production.matrix
    expected = n * p
    seen = expected > 5
    z = (drawn[seen] * n - expected[seen]) / np.sqrt(expected[seen] * (1 - p[seen]))
    assert np.abs(z).max() < 5
    assert abs(drawn[~seen].sum() - p[~seen].sum()) < 0.01


def test_the_value_of_the_shop_on_the_random_log_is_near_the_published_one() -> None:
    """obp prints 1.198126 times Random from 100,000 draws; the integral has no error of drawing."""
    log = read_log("open_bandit/random/all")
    found = evaluate(log, "bts:all", estimators=["ips"]).estimates["ips"]
    assert found.value / log.rewards.mean() == pytest.approx(1.198126, rel=0.01)


def test_other_logs_and_campaigns_are_refused() -> None:
    with pytest.raises(UserError, match="must be one of all, men, women"):
        Production("kids")
    with pytest.raises(UserError, match="34 items in three positions"):
        evaluate("open_bandit/random/all", "bts:men")
    with pytest.raises(UserError, match="three positions"):
        evaluate(simulate(np.random.default_rng(6), 50, 34).log, "bts:men")
