"""Estimates equal those of obp 0.5.7 and vw-estimators 0.2.2."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from bandits.offpolicy import DecisionLog, Matrix, evaluate, read_log
from bandits.offpolicy.anytime import confidence_sequence
from bandits.offpolicy.estimators import Rounds, clipped_ips, dros, replay, switch_dr
from bandits.offpolicy.evaluation import given
from tests.offpolicy.support import Setting, simulate


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_estimates_equal_those_of_obp(seed: int) -> None:
    """On 50 random logs, K 2 to 50, S 1 to 3, to 1e-10."""
    ope = importlib.import_module("obp.ope.estimators")
    g = np.random.default_rng(seed)
    K, S, n = int(g.integers(2, 51)), seed % 3 + 1, 200
    setting = simulate(g, n, K, positions=S)
    log, q = setting.log, g.random((n, K))
    position = np.asarray(log.positions) - 1
    common = {
        "reward": log.rewards,
        "action": log.actions,
        "position": position,
        "pscore": log.propensities,
    }
    common["action_dist"] = np.repeat(setting.target[:, :, None], S, axis=2)
    model = {**common, "estimated_rewards_by_reg_model": np.repeat(q[:, :, None], S, axis=2)}
    found = evaluate(
        log, Matrix(setting.target), q=q, estimators=["ips", "snips", "dm", "dr", "sndr"]
    )
    classes = {
        "ips": ope.InverseProbabilityWeighting,
        "snips": ope.SelfNormalizedInverseProbabilityWeighting,
        "dm": ope.DirectMethod,
        "dr": ope.DoublyRobust,
        "sndr": ope.SelfNormalizedDoublyRobust,
    }
    for name, one in classes.items():
        assert found.estimates[name].value == pytest.approx(
            one().estimate_policy_value(**model), rel=1e-10, abs=1e-10
        )
    weights = setting.target[np.arange(n), log.actions] / np.asarray(log.propensities)
    rounds = Rounds(log.rewards, weights, *given(log, Matrix(setting.target), q), weights)
    tuned = (
        (clipped_ips(rounds, clip=1.5), ope.InverseProbabilityWeighting(lambda_=1.5)),
        (switch_dr(rounds, tau=1.5), ope.SwitchDoublyRobust(lambda_=1.5)),
        (dros(rounds, shrinkage=1.5), ope.DoublyRobustWithShrinkage(lambda_=1.5)),
    )
    for contributions, one in tuned:
        assert contributions.mean() == pytest.approx(
            one.estimate_policy_value(**model), rel=1e-10, abs=1e-10
        )
    chosen = setting.target.argmax(axis=1)
    common["action_dist"] = np.repeat(np.eye(K)[chosen][:, :, None], S, axis=2)
    common.pop("pscore")
    if (chosen == log.actions).any():
        expected = ope.ReplayMethod().estimate_policy_value(**common)
        accepted = rounds._replace(accepted=(chosen == log.actions).astype(float))
        assert replay(accepted).mean() == pytest.approx(expected, rel=1e-10)


def centres(setting: Setting) -> np.ndarray:
    """Return the predictable centres of both bounds, before they are bounded by 1."""
    log = setting.log
    weights = setting.target[np.arange(len(log)), log.actions] / np.asarray(log.propensities)
    x = np.stack([weights * log.rewards, weights * (1 - log.rewards)])
    return (np.cumsum(x, axis=1) + 0.5) / np.arange(2, len(log) + 2)


@pytest.mark.parametrize("seed", range(5))
def test_estimates_equal_those_of_vw_estimators(seed: int) -> None:
    """IPS, SNIPS and the confidence sequence to 1e-8, on logs where no centre exceeds 1.

    Elsewhere vw-estimators leaves the centre above 1, for which the inequality behind the sequence
    is not proven."""
    importlib.import_module("estimators.bandits")
    ips, snips, cs = (
        importlib.import_module(f"estimators.bandits.{name}") for name in ("ips", "snips", "cs")
    )
    g = np.random.default_rng(seed)
    setting = next(
        setting
        for setting in iter(lambda: simulate(g, 500, 3), None)
        if centres(setting).max() <= 1
    )
    log = setting.log
    chosen = setting.target[np.arange(500), log.actions]
    weights = chosen / np.asarray(log.propensities)
    totals, sequence = (ips.Estimator(), snips.Estimator()), cs.Interval(empirical_r_bounds=False)
    bounds: list[Any] = []
    for p_log, r, p in zip(
        np.asarray(log.propensities).tolist(), log.rewards.tolist(), chosen.tolist(), strict=True
    ):
        for one in totals:
            one.add_example(p_log, r, p)
        sequence.add_example(p_log, r, p)
        bounds.append(sequence.get(0.05))
    found = evaluate(log, setting.target, estimators=["ips", "snips"])
    assert [e.value for e in found.estimates.values()] == pytest.approx(
        [one.get() for one in totals], rel=1e-8
    )
    looks = [20, 100, 500]
    np.testing.assert_allclose(
        confidence_sequence(weights, log.rewards, looks=looks),
        [bounds[t - 1] for t in looks],
        atol=1e-8,
    )


@pytest.mark.slow
def test_the_published_value_of_bts_on_the_random_log_is_reproduced() -> None:
    """BernoulliTS with obp's production prior earns 1.198126 times the random policy (IPS, campaign
    all).
    """
    policies = importlib.import_module("obp.policy.contextfree")
    prior = {"is_zozotown_prior": True, "campaign": "all", "random_state": 12345}
    policy = policies.BernoulliTS(n_actions=80, len_list=3, **prior)
    log = read_log("open_bandit/random/all")
    target = Matrix(policy.compute_batch_action_dist(n_rounds=1, n_sim=100_000)[0], "bts")
    found = evaluate(log, target, estimators=["ips"]).estimates["ips"]
    assert found.value / log.rewards.mean() == pytest.approx(1.198126, abs=5e-7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_published_example_on_digits_is_reproduced() -> None:
    """A random forest on digits: truth and relative error of IPS as printed by obp's example."""
    multiclass = importlib.import_module("obp.dataset.multiclass")
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    X, y = load_digits(return_X_y=True)
    logging = LogisticRegression(random_state=12345)
    data = multiclass.MultiClassToBanditReduction(X=X, y=y, base_classifier_b=logging, alpha_b=0.8)
    data.split_train_eval(eval_size=0.7, random_state=12345)
    feedback = data.obtain_batch_bandit_feedback(random_state=12345)
    forest = RandomForestClassifier(random_state=12345)
    target = data.obtain_action_dist_by_eval_policy(base_classifier_e=forest, alpha_e=1.0)
    truth = data.calc_ground_truth_policy_value(action_dist=target)
    log = DecisionLog(
        actions=feedback["action"],
        rewards=feedback["reward"].astype(float),
        names=tuple(map(str, range(10))),
        propensities=feedback["pscore"],
    )
    value = evaluate(log, target[:, :, 0], estimators=["ips"]).estimates["ips"].value
    assert truth == pytest.approx(0.9634340222575517, abs=1e-12)
    assert abs(value - truth) / truth == pytest.approx(0.01827255896321327, abs=1e-10)
