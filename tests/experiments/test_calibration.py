"""Calibration: an agent's intervals against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bandits.agents import REGISTRY
from bandits.experiments import calibration
from bandits.experiments.snapshots import BINS, LEVELS, BeliefCheck
from bandits.results import metrics
from bandits.simulators.classification import Classification
from bandits.simulators.petshop import PetShop
from tests.contract.worlds import Cascade, Linear, join, make, same
from tests.support import experiment

TINY = {"n_products": 10, "n_users": 40}


def test_shares_are_counted_as_defined() -> None:
    """Per arm, from scratch: ridge regressions on what was shown, at one step."""
    alpha, ridge, steps = 0.7, 2.0, 80
    lane = make("linucb", PetShop, options=TINY, alpha=alpha, ridge=ridge)
    shown = lane.advance(steps)
    X = [lane.simulator.round_at(step).features for step in range(steps)]
    ahead = calibration.CANDIDATES // 10
    expected, means, truths, places = np.zeros((lane.rows, len(LEVELS))), [], [], np.zeros((lane.rows, BINS))
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
    actual, values = calibration.probe(lane)
    assert actual is not None
    assert values is not None
    np.testing.assert_allclose(actual, expected / (10 * ahead), atol=1e-12)
    checkup = BeliefCheck(steps, values)
    np.testing.assert_allclose(checkup.uncertainty, uncertainty, rtol=1e-9)
    np.testing.assert_allclose(checkup.pit_histogram, places / (10 * ahead), atol=1e-12)
    mean, truth = (np.reshape(all_, (lane.rows, -1)) for all_ in (means, truths))
    within = truth.reshape(lane.rows, ahead, 10).var(axis=2).mean()  # of the truths of a round, over all rows
    explained = 1 - ((mean - truth) ** 2).mean(axis=1) / within
    np.testing.assert_allclose(checkup.explained, explained, rtol=1e-9)


def test_a_posterior_that_is_right_holds_the_truth_as_often_as_it_says() -> None:
    """theta ~ N(0, I), noise .5, the agent knows both: by definition of a posterior, whatever was shown."""
    runs, noise = 400, 0.5
    settings = {"reward": "gaussian", "noise": noise, "layout": "per_row", "n_features": 6}
    lane = make("lints", Linear, rows=range(runs), options=settings, sharing="shared", sigma2=noise**2, ridge=noise**2)
    for _ in range(2):
        lane.advance(60)
        actual = calibration.probe(lane).inside
        assert actual is not None
        error = actual.std(axis=0, ddof=1) / runs**0.5
        assert (np.abs(actual.mean(axis=0) - LEVELS) < 4 * error).all()
        values = calibration.probe(lane).values
        assert values is not None
        places = BeliefCheck(0, values).pit_histogram  # and each tenth of its beliefs as often as any other
        assert (np.abs(places.mean(axis=0) - 1 / BINS) < 5 * places.std(axis=0, ddof=1) / runs**0.5).all()


def test_too_sure_and_too_doubtful_are_told_apart() -> None:
    settings = {"reward": "gaussian", "noise": 0.5, "layout": "per_row"}
    rates = {}
    for sigma2 in (0.01, 0.25, 4.0):
        lane = make("lints", Linear, rows=range(50), options=settings, sharing="shared", sigma2=sigma2, ridge=0.25)
        lane.advance(100)
        actual = calibration.probe(lane).inside
        assert actual is not None
        rates[sigma2] = actual.mean(axis=0)
    assert (rates[0.01] < rates[0.25]).all()
    assert (rates[0.25] < rates[4.0]).all()
    assert rates[0.01][-1] < 0.6
    assert rates[4.0][0] > 0.9


@pytest.mark.parametrize("kind", sorted(set(REGISTRY) - {"static_mlp"}))
def test_asking_changes_nothing(kind: str) -> None:
    """And what is said is a share, or nothing."""
    params = REGISTRY[kind].test_params()[0]
    asked, left = (make(kind, Cascade, **params) for _ in range(2))
    traces = []
    for n in (1, 20, 30):
        traces.append(asked.advance(n))
        actual = calibration.probe(asked).inside
        assert actual is None or (actual.shape == (3, len(LEVELS)) and (actual >= 0).all() and (actual <= 1).all())
        assert actual is None or (np.diff(actual, axis=1) >= 0).all()  # a wider interval holds no less
    assert same(join(traces), left.advance(51))


@pytest.mark.parametrize("kind", ["random", "oracle", "popularity", "epsilon_greedy", "neural_greedy"])
def test_who_states_no_doubt_is_left_out(kind: str) -> None:
    lane = make(kind)
    lane.advance(5)
    assert calibration.probe(lane).inside is None


def test_what_was_never_tried_is_anyones_guess() -> None:
    lane = make("ucb1", Linear, options={"n_arms": 5})
    lane.advance(2)  # three arms have not been shown
    actual = calibration.probe(lane).inside
    assert actual is not None
    assert (actual >= 3 / 5).all()


def test_a_row_that_has_stopped_has_no_share() -> None:
    reference, diverged = (make("neural_ucb", PetShop, options=TINY, hidden=(6,)) for _ in range(2))
    for lane in (reference, diverged):
        lane.advance(20)
    diverged.agent.net.flat[1] = float("nan")  # type: ignore[attr-defined]
    for lane in (reference, diverged):
        lane.advance(1)
    assert diverged.alive.tolist() == [True, False, True]
    expected, actual = calibration.probe(reference).inside, calibration.probe(diverged).inside
    assert expected is not None
    assert actual is not None
    assert np.isnan(actual[1]).all()
    assert np.array_equal(actual[[0, 2]], expected[[0, 2]])


def test_the_race_keeps_it_at_every_snapshot() -> None:
    from bandits import run

    result = run(experiment("linucb", "epsilon_greedy", steps=400))
    message, silent = result.histories["LinUCB"], result.histories["ε-greedy"]
    assert [c.step for c in message.calibrations] == [s.step for s in message.spectra]
    assert metrics.calibration(silent) is None
    for level in LEVELS:
        curve = metrics.calibration(message, level)
        assert curve is not None
        column = [c.inside[:, LEVELS.index(level)].mean() for c in message.calibrations]
        np.testing.assert_allclose(curve.mid, column)
    assert list(result.calibration_95) == ["LinUCB"]


def test_certain_answers_have_no_log_odds_to_hold() -> None:
    """On labelled data every truth is 0 or 1: who believes in log-odds is not asked, who believes in means is."""
    for kind, asked in (("logistic_ucb", False), ("sgd_ts", False), ("linucb", True)):
        lane = make(kind, Classification, options={"data": "wine"})
        lane.advance(30)
        assert (calibration.probe(lane).inside is not None) == asked
    lane = make("ucb1", Linear, options={"n_arms": 5}, alpha=0.0)
    lane.advance(2)
    actual = calibration.probe(lane).inside
    assert actual is not None
    assert (actual >= 3 / 5).all()  # no width times an alpha of 0 makes knowledge of what was never tried
