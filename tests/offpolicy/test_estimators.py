"""Estimators equal plain loops, keep their invariants, and are unbiased where theory states it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandits.offpolicy import REGISTRY, Matrix, Rounds, evaluate
from bandits.offpolicy.estimators import (
    clipped_ips,
    dm,
    dr,
    dros,
    ips,
    replay,
    sndr,
    snips,
    switch_dr,
)
from bandits.offpolicy.evaluation import given as given_q
from bandits.offpolicy.weight_histogram import slope, weight_grid
from tests.offpolicy.support import Setting, simulate


def make(seed: int, n: int = 50) -> Rounds:
    g = np.random.default_rng(seed)
    accepted = (g.random(n) < 0.4).astype(float)
    return Rounds(
        g.normal(size=n), g.exponential(size=n), g.normal(size=n), g.normal(size=n), accepted
    )


def plain(kind: str, rounds: Rounds, parameter: float = 0.8) -> float:
    """Compute an estimate by a loop over rounds, in the notation of the formulas."""
    n, top, below, base = len(rounds.rewards), 0.0, 0.0, 0.0
    for r, w, q, v, taken in zip(*map(np.ndarray.tolist, rounds[:5]), strict=True):
        if kind in ("ips", "snips"):
            top, below = top + w * r, below + w
        elif kind == "clipped_ips":
            top += (w if w < parameter else parameter) * r
        elif kind == "dm":
            base += v
        elif kind in ("dr", "sndr"):
            base, top, below = base + v, top + w * (r - q), below + w
        elif kind == "switch_dr":
            base, top = base + v, top + (w * (r - q) if w <= parameter else 0)
        elif kind == "dros":
            base, top = base + v, top + parameter * w / (w**2 + parameter) * (r - q)
        elif taken:
            top, below = top + r, below + 1
    if kind in ("snips", "replay"):
        return top / below
    return base / n + (top / below if kind == "sndr" else top / n)


@pytest.mark.parametrize("kind", REGISTRY)
def test_formulas_equal_a_plain_loop(kind: str) -> None:
    for seed in range(20):
        rounds = make(seed)
        tuned = {REGISTRY[kind].tuned: 0.8} if REGISTRY[kind].tuned else {}
        found = REGISTRY[kind](rounds, **tuned).mean()
        assert found == pytest.approx(plain(kind, rounds), rel=1e-12, abs=1e-12)


def test_limits_of_the_parameters_are_the_other_estimators() -> None:
    rounds = make(1)
    np.testing.assert_allclose(dros(rounds, shrinkage=np.inf), dr(rounds))
    np.testing.assert_allclose(dros(rounds, shrinkage=0), dm(rounds))
    np.testing.assert_allclose(switch_dr(rounds, tau=np.inf), dr(rounds))
    np.testing.assert_allclose(switch_dr(rounds, tau=0), dm(rounds))
    np.testing.assert_allclose(clipped_ips(rounds, clip=np.inf), ips(rounds))
    unit = rounds._replace(weights=np.ones(50))
    np.testing.assert_allclose(snips(unit), rounds.rewards)
    np.testing.assert_allclose(sndr(unit), dr(unit))
    assert np.isnan(snips(rounds._replace(weights=np.zeros(50)))).all()
    assert np.isnan(replay(rounds._replace(accepted=np.zeros(50)))).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(8, 60), K=st.integers(2, 8))
def test_the_order_of_rows_and_the_names_of_actions_do_not_matter(
    seed: int, n: int, K: int
) -> None:
    g = np.random.default_rng(seed)
    setting = simulate(g, n, K)
    q = g.random((n, K))
    kinds = [kind for kind in REGISTRY if kind != "replay"]
    found = evaluate(setting.log, setting.target, q=q, estimators=kinds)
    rows, actions = g.permutation(n), g.permutation(K)
    mixed = replace(
        setting.log,
        actions=np.argsort(actions)[setting.log.actions[rows]],
        rewards=setting.log.rewards[rows],
        features=None,
        feature_names=(),
        propensities=np.asarray(setting.log.propensities)[rows],
        distributions=setting.logging[rows][:, actions],
        names=tuple(setting.log.names[a] for a in actions),
    )
    target = Matrix(setting.target[rows][:, actions])
    other = evaluate(mixed, target, q=q[rows][:, actions], estimators=kinds)
    for kind in kinds:
        np.testing.assert_allclose(
            found.estimates[kind], other.estimates[kind], rtol=1e-9, atol=1e-12
        )
    assert found.support.ess == pytest.approx(other.support.ess)


def estimates(setting: Setting, weights: np.ndarray, q: np.ndarray) -> Rounds:
    logged, target = given_q(setting.log, Matrix(setting.target), q)
    return Rounds(setting.log.rewards, weights, logged, target, weights)


def test_ips_and_dr_are_unbiased_where_theory_states_it() -> None:
    """Over 2,000 logs of 300 decisions: |z| < 4, and above 10 where propensities and q are both
    wrong.
    """
    g, errors = np.random.default_rng(11), []
    for _ in range(2000):
        setting = simulate(g, 300)
        chosen = setting.target[np.arange(300), setting.log.actions]
        right = chosen / np.asarray(setting.log.propensities)
        wrong = chosen / (0.5 * np.asarray(setting.log.propensities) + 0.5 / 5)
        good, bad = setting.rewards, np.full((300, 5), 0.9)
        cases = (
            ips(estimates(setting, right, bad)),
            dr(estimates(setting, right, bad)),
            dr(estimates(setting, wrong, good)),
            dr(estimates(setting, 1.3 * wrong, bad)),
        )
        errors.append([case.mean() - setting.value for case in cases])
    z = np.mean(errors, axis=0) / np.std(errors, axis=0, ddof=1) * np.sqrt(len(errors))
    assert (np.abs(z[:3]) < 4).all(), z
    assert abs(z[3]) > 10, z


def test_the_bias_of_snips_shrinks_as_1_over_n() -> None:
    """With rewards correlated with weights: the bias at n = 20 and 80, over 100,000 logs each."""
    g, bias = np.random.default_rng(5), {}
    for n in (20, 80):
        # of two actions; the target always chooses this one
        chosen = g.random((100_000, n)) < 0.5
        w, r = np.where(chosen, 1.5, 0.5), np.where(chosen, 1.0, 0.0)
        value = 0.75  # E[w r] / E[w]
        found = (w * r).sum(axis=1) / w.sum(axis=1) - value
        bias[n] = (found.mean(), found.std() / np.sqrt(len(found)))
    assert abs(bias[20][0]) > 10 * bias[20][1]
    assert bias[80][0] / bias[20][0] == pytest.approx(1 / 4, rel=0.25)


def test_replay_accepts_about_n_over_k_rows_and_is_right_on_a_uniform_log() -> None:
    """The z value of the replay estimate over 500 uniform logs, and the accepted share."""
    g, z, accepted = np.random.default_rng(2), [], []
    for _ in range(500):
        r = g.random((400, 4))
        actions, choice = g.integers(0, 4, 400), g.integers(0, 4, 400)
        rounds = make(0)._replace(
            rewards=r[np.arange(400), actions], accepted=(actions == choice).astype(float)
        )
        contributions = replay(rounds)
        z.append((contributions.mean() - 0.5) / (contributions.std() / 20))
        accepted.append(rounds.accepted.mean())
    assert np.mean(accepted) == pytest.approx(1 / 4, abs=0.01)
    assert abs(np.mean(z)) * np.sqrt(500) < 4
    assert np.std(z) == pytest.approx(1, abs=0.15)


def test_slope_chooses_as_a_plain_implementation_of_its_rule() -> None:
    from scipy.stats import t

    chosen = set()
    for seed in range(60):
        g = np.random.default_rng(seed)
        samples = [
            g.normal(b, s, 40)
            for b, s in zip(np.linspace(0, 1, 7) ** 2, np.linspace(3, 0.1, 7), strict=True)
        ]
        widths = [t(39).ppf(0.95) * np.sqrt(x.var() / 39) for x in samples]
        order = sorted(range(7), key=lambda i: -widths[i])
        best = order[0]
        for place in range(1, 7):
            i = order[place]
            agree = [
                abs(samples[i].mean() - samples[j].mean()) <= widths[i] + (6**0.5 - 1) * widths[j]
                for j in order[:place]
            ]
            if not all(agree):
                break
            best = i
        value, contributions = slope(lambda x, s=samples: s[int(x)], range(7))
        assert value == best
        np.testing.assert_array_equal(contributions, samples[best])
        chosen.add(best)
    assert len(chosen) > 2


def test_slope_has_less_error_than_dr_where_weights_are_heavy() -> None:
    """Root mean squared errors over 200 logs: the tuned estimators are not above DR with a
    fair q.
    """
    g, errors = np.random.default_rng(4), []
    for _ in range(200):
        n = 200
        w = np.where(g.random(n) < 0.02, 50.0, 0.01)
        r = g.random(n)
        rounds = Rounds(r, w, np.full(n, 0.45), np.full(n, 0.45), w)
        found = [dr(rounds).mean()]
        for estimator, name in ((switch_dr, "tau"), (dros, "shrinkage")):
            grid = weight_grid(w, square=name == "shrinkage")
            found.append(
                slope(lambda x, e=estimator, k=name, data=rounds: e(data, **{k: x}), grid)[1].mean()
            )
        errors.append(np.array(found) - 0.5)
    rmse = np.sqrt(np.mean(np.square(errors), axis=0))
    assert (rmse[1:] < rmse[0]).all(), rmse
