"""What docs/OFFPOLICY.md states: coverage, many looks, choices, and propensities from redraws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.offpolicy import REGISTRY, evaluate, record
from benchmarks.reproduction.offpolicy import LINTS, choices, coverage, looks
from tests.support import experiment, often

SMALL_SHOP = {"kind": "petshop", "n_products": 5}


@pytest.mark.slow
def test_intervals_hold_the_value_in_95_percent_of_logs() -> None:
    """Effective sample sizes above 500; 400 logs, and 2,000 under ``make stress``.

    Shares within 3 standard errors of 95 %, and of 97.5 % with bias: one side's misses. Intervals
    of which 90 % hold the value would be seen with probability .88.
    """
    found, ess = coverage(often(400, 2000))
    assert ess > 500
    for name, each in found.items():
        error = 3 * (0.95 * 0.05 / each.n) ** 0.5
        most = 0.975 + 3 * (0.975 * 0.025 / each.n) ** 0.5
        assert 0.95 - error < each.value
        assert each.value < (most if REGISTRY[name].reference else 0.95 + error), name
    # hardly correlated with DR
    assert found["dm"].value < 0.95 + error


@pytest.mark.slow
def test_anytime_intervals_hold_the_value_at_the_worst_of_100_looks_and_normal_ones_do_not() -> (
    None
):
    """The share of 150 logs: at least 95 % at all looks together, so also at the worst of them."""
    found = looks(often(150, 500))
    worst, together = found["anytime"]
    assert worst.value >= together.value >= 0.95
    assert found["normal"][1].value < 0.8


@pytest.mark.stress
def test_the_lower_end_chooses_no_worse_than_the_estimate_where_support_is_little() -> None:
    """Paired 95 % intervals of the difference in regret over 200 logs: below 0 for SNIPS, not above
    0 for IPS.
    """
    found = choices(similar=True)
    assert all(each.ess < 100 for each in found.values())
    assert found["snips"].high < 0
    assert found["ips"].low <= 0
    assert found["ips"].high < 0.01


@pytest.mark.slow
def test_redrawn_propensities_recover_a_known_value() -> None:
    """IPS of uniform choice on logs of shared LinTS with 1,000 redraws, each replication a log; |z|
    < 4.

    Four standard errors are less than 20 % of the value, so that weights wrong by that much would
    show."""
    R = often(80, 200)
    log = record(experiment(LINTS, simulator=SMALL_SHOP, steps=25, replications=R, seed=5))
    assert set(np.asarray(log.kinds)) == {"monte_carlo"}
    distances, scale = [], []
    for r in range(R):
        found = evaluate(log.select(np.asarray(log.rows) == r), "random", estimators=["ips"])
        assert found.truth is not None
        distances.append(found.estimates["ips"].value - found.truth.value)
        scale.append(found.truth.value)
    error = np.std(distances, ddof=1) / R**0.5
    assert abs(np.mean(distances)) < 4 * error
    assert 4 * error < 0.2 * np.mean(scale)


@pytest.mark.parametrize(
    "guards", [[], [{"kind": "floor", "epsilon": 0.2}], [{"kind": "fallback", "to": "popularity"}]]
)
def test_redrawn_propensities_are_logged_as_they_are_stated(guards: list[dict[str, Any]]) -> None:
    """The draw of the decision is one of the redraws, so that no propensity is 0."""
    agent = {"kind": "lints", "sharing": "shared", "sigma2": 0.05, "guards": guards}
    e = experiment(agent, simulator=SMALL_SHOP, steps=12)
    log, lane = record(e), make_lane(e, 0)
    lane.use_compiled = False
    distributions, rows = np.asarray(log.distributions), np.arange(len(log))
    np.testing.assert_array_equal(distributions, np.concatenate([_stated(lane) for _ in range(12)]))
    np.testing.assert_array_equal(distributions[rows, log.actions], log.propensities)
    assert np.asarray(log.propensities).min() >= (1 if not guards else 0.8) / 1001


def _stated(lane: Lane) -> np.ndarray:
    """Return the probabilities of the next decisions, float64 (R, K), and take the step."""
    p = lane.agent.probabilities(lane.simulator.round_at(lane.step))
    lane.advance(1)
    return np.asarray(p)
