"""Calibration: coverage of an agent's intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bandits.agents import REGISTRY
from bandits.experiments import checks
from bandits.experiments.lane import Lane
from bandits.experiments.snapshots import BINS, LEVELS, BeliefCheck
from bandits.results import metrics
from bandits.simulators.classification import Classification
from bandits.simulators.petshop import PetShop
from tests.contract.worlds import Cascade, Linear, home, join, make, same
from tests.support import experiment

TINY = {"n_products": 10, "n_users": 40}


def probe(lane: Lane) -> checks.Probe:
    """Compare the current estimates of an agent with the truth over the next rounds."""
    return checks.compare(checks.probe_rounds(lane))


def test_shares_are_counted_as_defined() -> None:
    """Compare with direct ridge regressions per arm on the shown arms, at one step."""
    alpha, ridge, steps = 0.7, 2.0, 80
    lane = make("linucb", PetShop, options=TINY, alpha=alpha, ridge=ridge)
    shown = lane.advance(steps)
    X = [lane.simulator.round_at(step).features for step in range(steps)]
    ahead = checks.CANDIDATES // 10
    expected, means, truths, places = (
        np.zeros((lane.rows, len(LEVELS))),
        [],
        [],
        np.zeros((lane.rows, BINS)),
    )
    uncertainty = np.zeros(lane.rows)
    for r in range(lane.rows):
        A = np.stack([ridge * np.eye(9)] * 10)
        b = np.zeros((10, 9))
        for step in range(steps):
            arm = shown.items[step, r, 0]
            x = X[step][r, arm]
            A[arm] += np.outer(x, x)
            b[arm] += shown.rewards[step, r] * x
        for step in range(steps, steps + ahead):
            round = lane.simulator.round_at(step)
            truth = lane.simulator.probabilities(round)[r]
            bonus, mean = np.zeros(10), np.zeros(10)
            for arm in range(10):
                x = round.features[r, arm]
                inverse = np.linalg.inv(A[arm])
                sd = alpha * np.sqrt(x @ inverse @ x)
                bonus[arm], mean[arm] = sd, x @ inverse @ b[arm]
                away = (truth[arm] - mean[arm]) / sd
                expected[r] += abs(away) <= stats.norm.ppf(0.5 + np.array(LEVELS) / 2)
                places[r, int(stats.norm.cdf(away) * BINS)] += 1
            uncertainty[r] += bonus[np.argmax(mean + bonus)] / ahead
            means.append(mean)
            truths.append(truth)
    actual, values = probe(lane)
    assert actual is not None
    assert values is not None
    np.testing.assert_allclose(actual, expected / (10 * ahead), atol=1e-12)
    checkup = BeliefCheck(steps, values)
    np.testing.assert_allclose(checkup.uncertainty, uncertainty, rtol=1e-9)
    np.testing.assert_allclose(checkup.pit_histogram, places / (10 * ahead), atol=1e-12)
    mean, truth = (np.reshape(all_, (lane.rows, -1)) for all_ in (means, truths))
    # of the true rewards of a round, over all rows
    within = truth.reshape(lane.rows, ahead, 10).var(axis=2).mean()
    explained = 1 - ((mean - truth) ** 2).mean(axis=1) / within
    np.testing.assert_allclose(checkup.explained, explained, rtol=1e-9)


def test_a_correct_posterior_has_nominal_coverage() -> None:
    """Draw theta ~ N(0, I) with noise .5, both known to the agent: coverage is nominal for any
    choice of arms.
    """
    runs, noise = 400, 0.5
    settings = {"reward": "gaussian", "noise": noise, "layout": "per_row", "n_features": 6}
    lane = make(
        "lints",
        Linear,
        rows=range(runs),
        options=settings,
        sharing="shared",
        sigma2=noise**2,
        ridge=noise**2,
    )
    for _ in range(2):
        lane.advance(60)
        actual = probe(lane).inside
        assert actual is not None
        error = actual.std(axis=0, ddof=1) / runs**0.5
        assert (np.abs(actual.mean(axis=0) - LEVELS) < 4 * error).all()
        values = probe(lane).values
        assert values is not None
        # quantiles of the truth in the posterior are uniform
        places = BeliefCheck(0, values).pit_histogram
        assert (
            np.abs(places.mean(axis=0) - 1 / BINS) < 5 * places.std(axis=0, ddof=1) / runs**0.5
        ).all()


def test_overconfident_and_underconfident_posteriors_are_distinguished() -> None:
    settings = {"reward": "gaussian", "noise": 0.5, "layout": "per_row"}
    rates = {}
    for sigma2 in (0.01, 0.25, 4.0):
        lane = make(
            "lints",
            Linear,
            rows=range(50),
            options=settings,
            sharing="shared",
            sigma2=sigma2,
            ridge=0.25,
        )
        lane.advance(100)
        actual = probe(lane).inside
        assert actual is not None
        rates[sigma2] = actual.mean(axis=0)
    assert (rates[0.01] < rates[0.25]).all()
    assert (rates[0.25] < rates[4.0]).all()
    assert rates[0.01][-1] < 0.6
    assert rates[4.0][0] > 0.9


@pytest.mark.parametrize("kind", sorted(set(REGISTRY) - {"static_mlp"}))
def test_probing_does_not_change_the_run(kind: str) -> None:
    """Coverage is a share or None."""
    params = REGISTRY[kind].Params(**REGISTRY[kind].test_params()[0])
    probed, left = (make(params, home(params, Cascade)) for _ in range(2))
    traces = []
    for n in (1, 20, 30):
        traces.append(probed.advance(n))
        rounds = checks.probe_rounds(probed)
        actual = checks.compare(rounds).inside
        explored = checks.compare_exploration(probed, rounds, 1)[0]
        assert np.isfinite(explored).all()
        assert ((explored[:, 0] >= 0) & (explored[:, 0] <= 1)).all()
        assert actual is None or (
            actual.shape == (3, len(LEVELS)) and (actual >= 0).all() and (actual <= 1).all()
        )
        # wider intervals cover at least as much
        assert actual is None or (np.diff(actual, axis=1) >= 0).all()
    assert same(join(traces), left.advance(51))


@pytest.mark.parametrize(
    "kind", ["random", "oracle", "popularity", "epsilon_greedy", "neural_greedy"]
)
def test_agents_without_uncertainty_are_left_out(kind: str) -> None:
    lane = make(kind)
    lane.advance(5)
    assert probe(lane).inside is None


def test_intervals_of_unobserved_arms_contain_the_truth() -> None:
    lane = make("ucb1", Linear, options={"n_arms": 5})
    # three arms have not been shown
    lane.advance(2)
    actual = probe(lane).inside
    assert actual is not None
    assert (actual >= 3 / 5).all()


def test_a_stopped_row_has_no_share() -> None:
    reference, diverged = (make("neural_ucb", PetShop, options=TINY, hidden=(6,)) for _ in range(2))
    for lane in (reference, diverged):
        lane.advance(20)
    diverged.agent.net.flat[1] = float("nan")  # type: ignore[attr-defined]
    for lane in (reference, diverged):
        lane.advance(1)
    assert diverged.alive.tolist() == [True, False, True]
    expected, actual = probe(reference).inside, probe(diverged).inside
    assert expected is not None
    assert actual is not None
    assert np.isnan(actual[1]).all()
    assert np.array_equal(actual[[0, 2]], expected[[0, 2]])


def test_a_run_records_calibration_at_every_snapshot() -> None:
    from bandits import run

    result = run(experiment("linucb", "epsilon_greedy", steps=400))
    linucb, epsilon_greedy = result.histories["LinUCB"], result.histories["ε-greedy"]
    assert [c.step for c in linucb.calibrations] == [s.step for s in linucb.spectra]
    assert metrics.calibration(epsilon_greedy) is None
    for level in LEVELS:
        curve = metrics.calibration(linucb, level)
        assert curve is not None
        column = [c.inside[:, LEVELS.index(level)].mean() for c in linucb.calibrations]
        np.testing.assert_allclose(curve.mid, column)
    assert list(result.calibration_95) == ["LinUCB"]


def test_calibration_on_labelled_data_requires_means_not_log_odds() -> None:
    """True rewards of labelled data are 0 or 1: agents on the log-odds scale are not probed, agents
    on means are.
    """
    for kind, probed in (("logistic_ucb", False), ("sgd_ts", False), ("linucb", True)):
        lane = make(kind, Classification, options={"data": "wine"})
        lane.advance(30)
        assert (probe(lane).inside is not None) == probed
    lane = make("ucb1", Linear, options={"n_arms": 5}, alpha=0.0)
    lane.advance(2)
    actual = probe(lane).inside
    assert actual is not None
    # with alpha 0, unobserved arms still have infinite intervals
    assert (actual >= 3 / 5).all()
