"""The wheel bandit equals that of the paper and the authors' code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from bandits import run
from bandits.base.randomness import Streams
from bandits.experiments.experiment import UserError, read
from bandits.experiments.presets import presets
from bandits.simulators.wheel import Wheel
from tests.contract.worlds import make, same, take

ROWS = tuple(range(8))


def wheel(rows: tuple[int, ...] = (0, 1, 2), **options: Any) -> Wheel:
    return Wheel(Wheel.Params(**options), Streams(5, rows))


def test_expected_rewards_by_region() -> None:
    """Values from Riquelme's ``sample_wheel_bandit_data``: the rim includes delta, and zero counts
    as negative.
    """
    low, built = [1.0, 1.0, 1.0, 1.0, 1.2], wheel(delta=0.5)
    points = np.array(
        [
            [0.1, 0.1],
            [0.4, 0.4],
            [0.4, -0.4],
            [-0.4, 0.4],
            [-0.4, -0.4],
            [0.5, 0],
            [0, 0.5],
            [0.49, 0],
        ]
    )
    high = [None, 0, 1, 2, 3, 1, 2, None]
    for means, arm in zip(built.means(points), high, strict=True):
        assert means.tolist() == [50.0 if a == arm else m for a, m in enumerate(low)]


def test_points_are_uniform_in_the_disc() -> None:
    built = wheel(ROWS)
    points = np.concatenate([built.round_at(step).features[:, 0] for step in range(2000)])
    limit = 2.226 / np.sqrt(len(points))
    assert kstest(np.square(points).sum(axis=1), "uniform").statistic < limit
    angle = np.arctan2(points[:, 1], points[:, 0])
    assert kstest((angle + np.pi) / (2 * np.pi), "uniform").statistic < limit


@pytest.mark.parametrize("delta", [0.0, 0.5, 0.9, 0.99])
def test_the_regret_of_random_choice_follows_the_formula(delta: float) -> None:
    """At the rim 50 - (50 + 3 + 1.2) / 5 = 39.16, elsewhere 1.2 - 5.2 / 5 = .16.

    The rim has area 1 - delta^2.
    """
    trace = make("random", Wheel, rows=ROWS, options={"delta": delta}).advance(2000)
    lost = trace.best_value - trace.random_value
    rim = trace.best_value == 50
    np.testing.assert_allclose(lost, np.where(rim, 39.16, 0.16), rtol=1e-12)
    n, share = rim.size, 1 - delta**2
    assert abs(rim.mean() - share) <= 4.5 * np.sqrt(share * (1 - share) / n)
    formula = share * 39.16 + delta**2 * 0.16
    assert abs(lost.mean() - formula) <= 4.5 * 39 * np.sqrt(share * (1 - share) / n) + 1e-9
    # equal to the random agent
    shown = trace.best_value - trace.value
    assert abs(shown.mean() - formula) < 4.5 * shown.std() / np.sqrt(n)


def test_noise_equals_that_of_the_authors_code() -> None:
    trace = make("random", Wheel, rows=ROWS).advance(2000)
    draws, high = trace.rewards - trace.value, trace.value == 50
    for spread, some in ((0.01, draws[high]), (0.05, draws[~high])):
        assert len(some) > 1000
        assert kstest(some / spread, "norm").statistic < 2.226 / np.sqrt(len(some))
    best = (trace.best_rewards - trace.best_value) / np.where(trace.best_value == 50, 0.01, 0.05)
    # the same noise for the best arm
    np.testing.assert_allclose(draws / np.where(high, 0.01, 0.05), best, atol=1e-9)


@pytest.mark.parametrize(("features", "N"), [("plain", 2), ("constant", 3)])
def test_encodings(features: Any, N: int) -> None:
    context, block = wheel(features=features), wheel(features=features, encoding="block")
    assert (context.spec.n_features, block.spec.n_features) == (N, 5 * N)
    for step in (0, 1, 3000):
        x, wide = context.round_at(step).features, block.round_at(step).features
        assert (x == x[:, :1]).all()
        assert (x[:, 0, 2:] == 1).all()
        for arm in range(5):
            assert np.array_equal(wide[:, arm, N * arm : N * (arm + 1)], x[:, arm])
        assert ((wide != 0).sum(axis=2) <= N).all()
        assert np.array_equal(
            context.probabilities(context.round_at(step)), block.probabilities(block.round_at(step))
        )


def test_a_row_does_not_depend_on_other_rows() -> None:
    whole = make("lints", Wheel, rows=range(5), options={"features": "constant"}).advance(60)
    for rows in ((0,), (1, 3), (4, 2, 0)):
        assert same(
            make("lints", Wheel, rows=rows, options={"features": "constant"}).advance(60),
            take(whole, rows),
        )


def test_the_log_is_random_choice_in_this_simulator() -> None:
    built = wheel(delta=0.7, encoding="block", features="constant")
    log = built.log(0, 5000)
    arms = log.columns[:, 0] // 3
    assert np.array_equal(arms, log.items)
    means = built.means(log.values[:, :2])[np.arange(5000), log.items]
    assert np.abs(log.rewards - means).max() < 0.05 * 6


def test_agents_that_require_clicks_are_refused() -> None:
    with pytest.raises(
        UserError,
        match=r"^agents.0 \(Beta Thompson\) requires rewards of 0 or 1, which Wheel does not",
    ):
        read({"simulator": {"kind": "wheel"}, "agents": [{"kind": "beta_ts"}], "steps": 10})


@pytest.mark.slow
def test_the_preset_shows_what_its_text_states() -> None:
    e = presets()["wheel"].experiment
    result = run(e.model_copy(update={"replications": 4, "steps": 3000}))
    lost = {label: a["pseudo_regret"]["mean"] for label, a in result.summary()["agents"].items()}
    assert max(lost["LinUCB"], lost["LinTS"]) < lost["ε-greedy"] < lost["Random"]
    assert lost["LinUCB"] < 0.2 * lost["Random"]
