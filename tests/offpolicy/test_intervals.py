"""Intervals hold the truth as often as they state."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.offpolicy.anytime import _running, anytime, confidence_sequence, log_wealth
from bandits.offpolicy.estimators import Rounds, snips
from bandits.offpolicy.intervals import (
    bootstrap,
    empirical_bernstein,
    normal,
    standard_error,
    truncated_bernstein,
)


def draw(g: np.random.Generator, n: int, *, large: float = 5.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw weights with mean 1 and clicks; E[w r] = 0.14 for large = 5."""
    rare = g.random(n) < 0.1
    w = np.where(rare, large, (1 - 0.1 * large) / 0.9)
    return w, (g.random(n) < np.where(rare, 0.2, 0.08)).astype(float)


VALUE = 0.1 * 5 * 0.2 + 0.5 * 0.08


def test_formulas_equal_plain_ones() -> None:
    x = np.random.default_rng(0).random(30)
    error = np.std(x, ddof=1) / 30**0.5
    found = normal(x)
    assert found == pytest.approx(
        (
            x.mean(),
            x.mean() - 1.959963984540054 * error,
            x.mean() + 1.959963984540054 * error,
            error,
        )
    )
    found = empirical_bernstein(x, 0, 1)
    log_term = np.log(4 / 0.05)
    half = np.sqrt(2 * np.var(x, ddof=1) * log_term / 30) + 7 * log_term / (3 * 29)
    assert found[1:3] == pytest.approx((max(x.mean() - half, 0), min(x.mean() + half, 1)))


def test_errors_of_groups_are_cluster_robust() -> None:
    """Three equal rows of each event are as much as one; single rows as no groups."""
    x = np.random.default_rng(1).random(40)
    assert standard_error(np.repeat(x, 3), np.repeat(np.arange(40), 3)) == pytest.approx(
        standard_error(x)
    )
    assert standard_error(x, np.arange(40)) == pytest.approx(standard_error(x))
    g = np.random.default_rng(0)
    found = bootstrap(np.repeat(x, 3), g, groups=np.repeat(np.arange(40), 3))
    assert (found.high - found.low) / (normal(x).high - normal(x).low) == pytest.approx(1, abs=0.1)


@pytest.mark.slow
def test_intervals_of_95_percent_hold_the_truth_in_93_to_97_percent_of_2000_logs() -> None:
    """IPS and SNIPS with n = 2,000 and an effective sample size of about 700.

    Bernstein in at least 95 %.
    """
    g, hits = np.random.default_rng(7), []
    for i in range(2000):
        w, r = draw(g, 2000)
        rounds = Rounds(r, w, r, r, w)
        found = [normal(w * r), normal(snips(rounds)), empirical_bernstein(w * r, 0, 5)]
        if i < 1000:
            found.append(bootstrap(w * r, g, repetitions=200))
        hits.append([e.low <= VALUE <= e.high for e in found] + [False] * (4 - len(found)))
    rates = np.array(hits, float)
    assert 0.93 < rates[:, 0].mean() < 0.97
    assert 0.93 < rates[:, 1].mean() < 0.97
    assert rates[:, 2].mean() >= 0.95
    assert 0.925 < rates[:1000, 3].mean() < 0.975


def test_the_confidence_sequence_holds_the_truth_at_all_steps_at_once() -> None:
    """In at least 95 % of 500 logs the wealth against the true value stays below its bound at all
    1,000 steps.
    """
    g, kept, n = np.random.default_rng(3), 0, 1000
    steps = np.arange(1, n + 1)
    for _ in range(500):
        w, r = draw(g, n, large=9.0)
        value, inside = 0.1 * 9 * 0.2 + 0.1 * 0.08, True
        for x, mean in ((w * r, value), (w * (1 - r), 1 - value)):
            sums, variance = _running(x)
            deviation = sums - steps * mean
            # a lower bound is violated only there
            positive = deviation > 0
            inside &= bool(
                (log_wealth(deviation[positive], variance[positive]) <= np.log(2 / 0.05)).all()
            )
        kept += inside
    assert kept >= 0.95 * 500


def test_the_bounds_of_the_sequence_are_where_the_wealth_reaches_its_bound() -> None:
    g = np.random.default_rng(4)
    w, r = draw(g, 400)
    looks = [1, 10, 100, 400]
    bounds = confidence_sequence(w, r, looks=looks)
    assert (bounds[:, 0] >= 0).all()
    assert (bounds[:, 1] <= 1).all()
    assert bounds[-1, 0] < VALUE < bounds[-1, 1]
    assert anytime(w, r)[1:3] == pytest.approx(tuple(bounds[-1]))
    sums, variance = _running(w * r)
    at = log_wealth(sums[399] - 400 * bounds[-1, 0], variance[399])
    assert at == pytest.approx(np.log(2 / 0.05), abs=1e-6)
    shifted = confidence_sequence(w, 10 * r - 5, looks=looks, low=-5, high=5)
    np.testing.assert_allclose(shifted, 10 * bounds - 5)


def test_the_wealth_is_the_mixture_over_bets() -> None:
    """The integral over bets in (0, 1) with the truncated gamma prior, by quadrature."""
    from scipy.integrate import quad

    def mixed(bet: float, deviation: float, variance: float) -> float:
        density = np.exp(bet - 1) / (1 - np.exp(-1))  # rho = 1
        return float(density * np.exp(bet * deviation + (np.log1p(-bet) + bet) * variance))

    for deviation, variance in ((0.5, 1.0), (3.0, 4.0), (10.0, 6.0)):
        integral = quad(mixed, 0, 1, args=(deviation, variance))[0]
        assert log_wealth(np.float64(deviation), np.float64(variance)) == pytest.approx(
            np.log(integral), rel=1e-8
        )


@pytest.mark.parametrize("level", [0, 1, -1, 1.5, float("nan")])
def test_a_level_outside_0_to_1_is_refused(level: float) -> None:
    with pytest.raises(UserError, match="level must be between 0 and 1"):
        normal(np.ones(3), level=level)


def test_values_outside_the_bounds_are_refused() -> None:
    with pytest.raises(UserError, match="rewards must be between"):
        anytime(np.ones(3), np.array([0.0, 2.0, 1.0]))
    with pytest.raises(UserError, match="contributions must be between"):
        empirical_bernstein(np.array([0.0, 2.0]), 0, 1)
    with pytest.raises(UserError, match="in order"):
        anytime(np.ones(3), np.ones(3), low=1, high=1)


def test_truncated_bounds_are_the_best_of_their_thresholds() -> None:
    """Of 1,000 decisions the thresholds are 1, 2, 4, ..., 64, and share the error."""
    w, r = draw(np.random.default_rng(5), 1000)
    low, high = truncated_bernstein(w, r, 0, 1)
    bounds = []
    for c in 2.0 ** np.arange(7):
        level = 1 - 0.05 / 7
        below = empirical_bernstein(np.minimum(w, c) * r, 0, c, level=level).low
        above = 1 - empirical_bernstein(np.minimum(w, c) * (1 - r), 0, c, level=level).low
        bounds.append((below, above))
    assert low == pytest.approx(max(below for below, _ in bounds))
    assert high == pytest.approx(min(above for _, above in bounds))
    shifted = truncated_bernstein(w, 10 * r - 5, -5, 5)
    assert shifted == pytest.approx((10 * low - 5, 10 * high - 5))
    # what is rounded is within the bounds
    truncated_bernstein(w, r * (1 + 1e-12), 0, 1)


def test_events_of_equal_rows_are_as_much_as_one_row_each() -> None:
    w, r = draw(np.random.default_rng(6), 200)
    single = anytime(w, r)
    groups = np.repeat(np.arange(200), 3)
    assert anytime(w.repeat(3), r.repeat(3), groups=groups) == pytest.approx(single)
    one = truncated_bernstein(w, r, 0, 1)
    repeated = truncated_bernstein(w.repeat(3), r.repeat(3), 0, 1, groups=groups)
    assert repeated[0] <= one[0]
    assert repeated[1] >= one[1]
    # a part of a slate is in no interval more than a whole one
    uneven = groups[: 3 * 200 - 1]
    shorter = anytime(w.repeat(3)[:-1], r.repeat(3)[:-1], groups=uneven)
    assert shorter[:3] == pytest.approx(single[:3], abs=0.02)


WORLDS = {
    # a sale of 50 in 2 % of decisions, 100 logged
    "sale": (100, 50.0, 0.02, 0.0),
    # clicks of 10 %, and 1,000 once in 5,000 decisions
    "clicks and a rare 1,000": (2000, 1000.0, 0.0002, 0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_bounded_intervals_hold_rare_large_rewards_that_the_log_may_lack(world: str) -> None:
    """At least 95 % of 400 logs of a uniform choice of two; the range is stated, not seen."""
    n, large, rare, click = WORLDS[world]
    value, g, held = large * rare + click, np.random.default_rng(9), np.zeros(2)
    for _ in range(400):
        w = 2.0 * (g.random(n) < 0.5)
        r = large * (g.random(n) < rare) + (g.random(n) < click)
        r = np.minimum(r, large)
        low, high = truncated_bernstein(w, r, 0, large)
        found = anytime(w, r, low=0, high=large)
        held += [low <= value <= high, found.low <= value <= found.high]
    assert (held >= 0.95 * 400).all(), held


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["equal", "unequal"])
def test_the_confidence_sequence_holds_for_positions_that_depend_on_each_other(sizes: str) -> None:
    """200 logs of 150 slates of 8 equal positions, looked at five times: at least 95 %."""
    g, kept, S = np.random.default_rng(10), 0, 8
    for _ in range(200):
        w, r = draw(g, 150)
        size = np.full(150, S) if sizes == "equal" else g.integers(1, S + 1, 150)
        groups = np.repeat(np.arange(150), size)
        bounds = confidence_sequence(
            w.repeat(size), r.repeat(size), looks=[10, 30, 60, 100, 150], groups=groups
        )
        kept += bool(((bounds[:, 0] <= VALUE) & (bounds[:, 1] >= VALUE)).all())
    assert kept >= 0.95 * 200


@pytest.mark.slow
def test_truncated_bounds_hold_where_heavy_weights_are_rare() -> None:
    """A target that always takes an action of propensity .005, 400 logs of 500: at least 95 %."""
    g, held = np.random.default_rng(11), 0
    for _ in range(400):
        w = 200.0 * (g.random(500) < 0.005)
        low, high = truncated_bernstein(w, (g.random(500) < 0.3).astype(float), 0, 1)
        held += low <= 0.3 <= high
    assert held >= 0.95 * 400
