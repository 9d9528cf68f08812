"""Metrics, compared with their formulas computed directly from every step of a run."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bandits import Experiment, History, Trace, run
from bandits.experiments.history import SegmentCounts
from bandits.experiments.lane import COLUMNS, join
from bandits.experiments.lockstep import make_lane
from bandits.experiments.snapshots import snapshot_steps
from bandits.results import metrics
from bandits.results.comparison import paired_tests
from bandits.results.metric_registry import CURVES
from bandits.results.result import Result
from tests.support import experiment, history, traces

WINDOWS = [1, 7, 100, 1000, 10_000]


class Run:
    """A run with its histories and all its steps; it has more steps than grid points."""

    def __init__(self) -> None:
        self.experiment = experiment(
            {"kind": "linucb", "sharing": "shared", "ridge": 2.0},
            "lints",
            "popularity",
            "random",
            steps=4103,
        )
        self.result = run(self.experiment)
        self.traces = traces(self.experiment)


@lru_cache(maxsize=1)
def the_run() -> Run:
    return Run()


@pytest.fixture(params=["LinUCB", "LinTS", "Popularity", "Random"])
def pair(request: pytest.FixtureRequest) -> tuple[History, Trace]:
    return the_run().result.histories[request.param], the_run().traces[request.param]


def close(band: metrics.Band, x: Any, rows: Any) -> None:
    """Compare a band with values (G, R): mean and Student t interval."""
    rows = np.asarray(rows, dtype=float)
    np.testing.assert_array_equal(band.x, x)
    np.testing.assert_allclose(band.mid, rows.mean(axis=1), atol=1e-9)
    spread = stats.sem(rows, axis=1)
    half = np.where(spread > 0, stats.t.ppf(0.975, rows.shape[1] - 1) * spread, 0)
    np.testing.assert_allclose(band.high - band.mid, half, atol=1e-9)
    np.testing.assert_allclose(band.mid - band.low, half, atol=1e-9)
    assert band.rows == rows.shape[1]


def starts(grid: np.ndarray, window: int) -> list[int]:
    """Return the start of the window of every grid point: at least ``window`` steps before,
    or 0.
    """
    return [max([g for g in grid if g <= t - window], default=0) for t in grid[1:]]


def test_grids_contain_the_start_regular_steps_and_the_end() -> None:
    h = the_run().result.histories["LinUCB"]
    assert h.grid[0] == 0
    assert h.grid[-2:].tolist() == [4100, 4103]
    assert len(set(np.diff(h.grid[:-1]))) == 1
    # otherwise these tests would not cover the rounding of windows to the grid
    assert h.grid[1] > 1
    assert len(set(np.diff(h.count_grid[:-1]))) == 1
    assert h.count_grid[-1] == 4103
    assert h.size == len(h.grid) <= 2002


@pytest.mark.parametrize("window", WINDOWS)
def test_click_rate_is_the_mean_click_of_the_window(
    pair: tuple[History, Trace], window: int
) -> None:
    h, trace = pair
    ends = h.grid[1:]
    begins = starts(h.grid, window)
    rows = [trace.rewards[s:t].mean(axis=0) for s, t in zip(begins, ends, strict=True)]
    # a window is at least as long as requested, unless the run is shorter, and at most one grid
    # spacing longer
    assert all(t - s >= min(window, t) for s, t in zip(begins, ends, strict=True))
    assert all(t - s <= window + h.grid[1] for s, t in zip(begins, ends, strict=True))
    close(metrics.ctr(h, window), ends, rows)


@pytest.mark.parametrize("name", ["best_value", "random_value"])
def test_references_are_the_mean_expectation_of_the_window(
    pair: tuple[History, Trace], name: str
) -> None:
    h, trace = pair
    for window in WINDOWS:
        spans = zip(starts(h.grid, window), h.grid[1:], strict=True)
        close(
            metrics.reference(h, name, window),
            h.grid[1:],
            [getattr(trace, name)[s:t].mean(axis=0) for s, t in spans],
        )


def test_sums_over_time(pair: tuple[History, Trace]) -> None:
    h, t = pair

    def summed(column: np.ndarray) -> np.ndarray:
        return np.stack([column[:g].sum(axis=0) for g in h.grid])

    pseudo, realised = summed(t.best_value - t.value), summed(t.best_rewards - t.rewards)
    close(metrics.cumulative_clicks(h), h.grid, summed(t.rewards))
    close(metrics.pseudo_regret(h), h.grid, pseudo)
    close(metrics.realised_regret(h), h.grid, realised)
    later = h.grid[1:]
    close(metrics.pseudo_regret(h, average=True), later, pseudo[1:] / later[:, None])
    close(metrics.realised_regret(h, average=True), later, realised[1:] / later[:, None])
    np.testing.assert_allclose(metrics.total(h, "clicks"), t.rewards.sum(axis=0))


@pytest.mark.parametrize("window", WINDOWS)
def test_entropy_and_coverage_of_what_was_shown(pair: tuple[History, Trace], window: int) -> None:
    h, trace = pair
    bits, covered = [], []
    for s, t in zip(starts(h.count_grid, window), h.count_grid[1:], strict=True):
        shown = [np.bincount(trace.items[s:t, r, 0], minlength=10) for r in range(3)]
        bits.append([stats.entropy(n) / np.log(min(10, t - s)) for n in shown])
        covered.append([(n > 0).mean() for n in shown])
    close(metrics.entropy(h, window), h.count_grid[1:], bits)
    close(metrics.catalogue_coverage(h, window), h.count_grid[1:], covered)


def test_entropy_of_a_window_shorter_than_the_catalogue() -> None:
    # four different items in four steps, of 100
    items = np.arange(4).repeat(3).reshape(4, 3, 1)
    actual = metrics.entropy(history(np.zeros((4, 3)), items, n_items=100))
    assert actual.mid[-1] == pytest.approx(1.0)  # the maximum
    same = metrics.entropy(history(np.zeros((4, 3)), n_items=100))
    # also in a window of one step
    assert same.mid.tolist() == [0.0] * 4
    half = metrics.entropy(history(np.zeros((4, 3)), items // 2, n_items=100), window=4)
    assert half.mid[-1] == pytest.approx(np.log(2) / np.log(4))


def test_entropy_of_optimal_play_on_the_published_pet_shop() -> None:
    """Two personas prefer cat food, so only three of fifty products are ever shown."""
    e = Experiment.model_validate(
        {"agents": [{"kind": "oracle"}], "steps": 4000, "replications": 4}
    )
    h = run(e).histories["Oracle"]
    # if the four personas were equally frequent: .266
    even = stats.entropy([1, 2, 1]) / np.log(50)
    assert metrics.entropy(h, 4000).mid[-1] == pytest.approx(even, abs=0.02)
    assert metrics.catalogue_coverage(h, 4000).mid[-1] == pytest.approx(3 / 50)


def test_the_spectrum_is_that_of_the_design_matrix_on_the_span_of_the_features() -> None:
    r = the_run()
    simulator = make_lane(r.experiment, 0).simulator
    h, items = r.result.histories["LinUCB"], r.traces["LinUCB"].items[:, :, 0]
    (basis,) = simulator.bases(False)
    A = np.stack([2.0 * np.eye(9)] * 3)
    by_step = {}
    for t in range(4103):
        x = simulator.round_at(t).features[np.arange(3), items[t]]
        A += x[:, :, None] * x[:, None, :]
        by_step[t + 1] = A.copy()
    assert [s.step for s in h.spectra] == snapshot_steps(4103)
    assert h.spectra[-1].step == 4103
    expected = np.stack(
        [np.linalg.eigvalsh(basis.T @ by_step[s.step] @ basis)[:, ::-1] for s in h.spectra]
    )
    for i, step in ((-1, None), (4, h.spectra[4].step), (4, h.spectra[5].step - 1)):
        band = metrics.spectrum(h, step)
        assert band is not None
        np.testing.assert_allclose(band.mid, np.median(expected[i], axis=0), rtol=1e-9)
        np.testing.assert_allclose(band.low, np.quantile(expected[i], 0.1, axis=0), rtol=1e-9)
        np.testing.assert_allclose(band.high, np.quantile(expected[i], 0.9, axis=0), rtol=1e-9)
        # one-hots: nine features span eight directions
        np.testing.assert_array_equal(band.x, np.arange(1, 9))
    whole = metrics.spectrum(h, rest=metrics.Rest(2.0, 9))
    assert whole is not None
    every = np.linalg.eigvalsh(by_step[4103])[:, ::-1]
    np.testing.assert_allclose(whole.mid, np.median(every, axis=0), rtol=1e-9)
    smallest, condition = metrics.smallest_eigenvalue(h), metrics.condition_number(h)
    assert smallest is not None
    assert condition is not None
    steps = [s.step for s in h.spectra]
    np.testing.assert_allclose(smallest.mid, expected[:, :, -1].mean(axis=1), rtol=1e-9)
    np.testing.assert_allclose(
        condition.mid, (expected[:, :, 0] / expected[:, :, -1]).mean(axis=1), rtol=1e-9
    )
    np.testing.assert_array_equal(smallest.x, steps)


def test_spectra_of_one_model_per_arm() -> None:
    h = the_run().result.histories["LinTS"]
    values = h.spectra[-1].eigenvalues  # (R, arms, m)
    assert values.shape[:2] == (3, 10)
    band, one = metrics.spectrum(h), metrics.spectrum(h, arm=4)
    assert band is not None
    assert one is not None
    np.testing.assert_allclose(band.mid, np.nanmedian(values.reshape(30, -1), axis=0))
    np.testing.assert_allclose(one.mid, np.nanmedian(values[:, 4], axis=0))


def test_smallest_eigenvalues_of_one_model_per_arm_are_their_median() -> None:
    h = the_run().result.histories["LinTS"]
    smallest, condition = metrics.smallest_eigenvalue(h), metrics.condition_number(h)
    assert smallest is not None
    assert condition is not None
    values = np.stack([s.eigenvalues for s in h.spectra])  # (snapshots, R, arms, m)
    low, high = np.nanmin(values, axis=3), np.nanmax(values, axis=3)
    np.testing.assert_allclose(smallest.mid, np.median(low, axis=2).mean(axis=1))
    np.testing.assert_allclose(condition.mid, np.median(high / low, axis=2).mean(axis=1))


def test_agents_without_a_design_matrix_have_no_spectrum() -> None:
    h = the_run().result.histories["Random"]
    assert [metrics.spectrum(h), metrics.smallest_eigenvalue(h), metrics.condition_number(h)] == [
        None
    ] * 3
    # before the first snapshot
    assert metrics.spectrum(the_run().result.histories["LinUCB"], step=3) is None


def test_exploration_rate_averages_the_checks_of_a_run(pair: tuple[History, Trace]) -> None:
    h, _ = pair
    rows = np.stack([c.values[:, 0] for c in h.exploration_checks])
    rate = metrics.exploration_rate(h)
    assert rate is not None
    close(rate, snapshot_steps(4103), rows)
    mean, early = (
        metrics.mean_exploration_rate(h),
        metrics.mean_exploration_rate(h, snapshot_steps(4103)[4]),
    )
    assert mean is not None
    assert early is not None
    np.testing.assert_allclose(mean, rows.mean(axis=0))
    np.testing.assert_allclose(early, rows[:5].mean(axis=0))
    assert metrics.mean_exploration_rate(h, 0) is None
    (label,) = [name for name, each in the_run().result.histories.items() if each is h]
    summary = the_run().result.summary()["agents"][label]["exploration_rate"]
    assert summary["mean"] == pytest.approx(rows.mean())


def test_every_curve_of_a_result_is_an_attribute() -> None:
    result = the_run().result
    for name in CURVES:
        curve = getattr(result, name)
        assert set(curve) <= set(result.histories)
        assert all(np.isfinite(b.mid).all() and (b.low <= b.high).all() for b in curve.values())
    with pytest.raises(AttributeError, match="its curves are ctr"):
        _ = result.profit


def test_oracle_share_is_between_random_and_the_oracle() -> None:
    e = experiment("oracle", "random", "linucb", steps=2000)
    result, all_steps = run(e), traces(e)
    for label, t in all_steps.items():
        rows = (t.value - t.random_value).sum(axis=0) / (t.best_value - t.random_value).sum(axis=0)
        share = metrics.estimate(metrics.oracle_share(result.histories[label]))
        assert share.mean == pytest.approx(rows.mean())
        assert share.high - share.mean == pytest.approx(
            stats.t.ppf(0.975, 2) * stats.sem(rows), abs=1e-12
        )
    assert metrics.estimate(metrics.oracle_share(result.histories["Oracle"])).mean == pytest.approx(
        1.0
    )
    assert abs(metrics.estimate(metrics.oracle_share(result.histories["Random"])).mean) < 0.1


def test_oracle_share_is_nan_if_all_arms_are_equal() -> None:
    flat = {"kind": "petshop", "n_products": 5, "click_rates": [[0.5] * 5] * 4}
    result = run(experiment("random", simulator=flat))
    assert np.isnan(metrics.estimate(metrics.oracle_share(result.histories["Random"])).mean)


@pytest.mark.parametrize("n", [2, 3, 16, 100])
def test_band_and_estimate_are_student_t_intervals(n: int) -> None:
    values = np.random.default_rng(n).normal(3, 2, size=(7, n))
    actual = metrics.band(np.arange(7), values, np.ones(n, np.bool_))
    low, high = stats.t.interval(
        0.95, n - 1, loc=values.mean(axis=1), scale=stats.sem(values, axis=1)
    )
    np.testing.assert_allclose(actual.low, low)
    np.testing.assert_allclose(actual.high, high)
    assert metrics.estimate(values[0]) == pytest.approx((values[0].mean(), low[0], high[0]))


def test_one_row_has_no_interval_and_none_no_value() -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    one = metrics.band(np.arange(2), values, np.array([False, True]))
    assert (one.mid.tolist(), one.low.tolist(), one.high.tolist(), one.rows) == (
        [2, 4],
        [2, 4],
        [2, 4],
        1,
    )
    none = metrics.band(np.arange(2), values, np.zeros(2, np.bool_))
    assert none.rows == 0
    assert np.isnan([none.mid, none.low, none.high]).all()
    mean, *interval = metrics.estimate(np.array([2.0]))
    assert mean == 2.0
    assert np.isnan(interval).all()
    assert np.isnan(metrics.estimate(np.array([np.nan]))).all()


def test_stopped_rows_are_excluded_from_metrics() -> None:
    rng = np.random.default_rng(5)
    clicks = (rng.random((50, 4)) < 0.4).astype(float)
    items = rng.integers(0, 5, size=(50, 4, 1))
    stopped_clicks = clicks.copy()
    stopped_clicks[20:, 2] = np.nan
    stopped, remaining = (
        history(stopped_clicks, items, alive=[True, True, False, True]),
        history(clicks[:, [0, 1, 3]], items[:, [0, 1, 3]]),
    )
    for metric in (
        metrics.ctr,
        metrics.cumulative_clicks,
        metrics.entropy,
        metrics.catalogue_coverage,
        metrics.pseudo_regret,
    ):
        a, b = metric(stopped), metric(remaining)
        assert a.rows == b.rows == 3
        for own, other in zip(a[1:4], b[1:4], strict=True):
            np.testing.assert_array_equal(own, other)
    assert metrics.estimate(metrics.total(stopped, "clicks")) == metrics.estimate(
        metrics.total(remaining, "clicks")
    )
    other = history(np.roll(clicks, 1, axis=0), items)
    kept = history(np.roll(clicks, 1, axis=0)[:, [0, 1, 3]], items[:, [0, 1, 3]])
    np.testing.assert_equal(
        tuple(paired_tests.compare(stopped, other)), tuple(paired_tests.compare(remaining, kept))
    )


def test_agents_with_all_rows_stopped_are_reported() -> None:
    nothing = history(np.full((10, 2), np.nan), alive=[False, False])
    assert metrics.ctr(nothing).rows == 0
    actual = paired_tests.compare(nothing, history(np.ones((10, 2))))
    assert np.isnan(actual.difference.mean)
    assert actual.p_value == 1.0
    assert actual.probability_better == 0.5
    assert actual.rows == 0
    assert actual.break_even_step is None


def histories_with_gap(*steps: float, rows: int = 6, noise: float = 0.0) -> tuple[History, History]:
    """Two histories whose clicks differ by ``steps`` on average."""
    rng = np.random.default_rng(0)
    common = rng.integers(0, 2, size=(len(steps), rows)).astype(float)
    more = np.array(steps)[:, None] + noise * rng.normal(size=(len(steps), rows))
    return history(common + more), history(common)


def test_a_comparison_is_paired_by_row() -> None:
    result, all_steps = the_run().result, the_run().traces
    a, b = (all_steps[name].rewards.sum(axis=0) for name in ("LinUCB", "Random"))
    actual = result.compare("LinUCB", "Random")
    d = a - b
    assert actual.difference.mean == pytest.approx(d.mean())
    assert actual.difference[1:] == pytest.approx(stats.t.interval(0.95, 2, d.mean(), stats.sem(d)))
    assert actual.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert actual.probability_better == pytest.approx(
        1 - stats.ttest_rel(a, b, alternative="greater").pvalue
    )
    back = result.compare("Random", "LinUCB")
    assert back.difference.mean == -actual.difference.mean
    assert back.probability_better == pytest.approx(1 - actual.probability_better)
    assert back.p_value == pytest.approx(actual.p_value)


def test_common_random_numbers_narrow_the_intervals_of_differences() -> None:
    a, b = histories_with_gap(*[0.5] * 40, noise=0.1)
    own = [metrics.estimate(metrics.total(h, "clicks")) for h in (a, b)]
    paired = paired_tests.compare(a, b).difference
    assert paired.high - paired.low < min(e.high - e.low for e in own)


@pytest.mark.parametrize(
    ("steps", "at", "cost"),
    [
        ((1, 1, 1, 1), 0, 0),  # always ahead
        ((-1, -1, -1, -1), None, 4),  # never
        # never: ties are not a lead
        ((0, 0, 0, 0), None, 0),
        # crosses once, ahead from step 5
        ((-1, -1, 1, 1, 1, 1), 5, 2),
        ((0, 0, 1, 1), 3, 0),  # equal at first
        # leads, falls behind, leads to the end
        ((1, 1, -3, 1, 1, 1), 5, 1),
        # crosses back at the end
        ((1, 1, 1, -4), None, 1),
        # back to equal at the end
        ((1, 1, -2), None, 0),
    ],
)
def test_break_even_is_the_first_step_of_a_lasting_lead(
    steps: tuple[int, ...], at: int | None, cost: float
) -> None:
    actual = paired_tests.compare(*histories_with_gap(*steps))
    assert actual.break_even_step == at
    assert actual.exploration_cost == pytest.approx(cost)
    if at is None:
        assert actual.break_even_interval is None
    else:
        # all rows are equal, so resampling does not change the result
        assert actual.break_even_interval == (at, at)


def test_the_break_even_interval_covers_the_step_and_requires_significance() -> None:
    actual = paired_tests.compare(*histories_with_gap(*[-0.5] * 20, *[0.5] * 60, noise=0.4))
    assert actual.break_even_step is not None
    assert actual.break_even_interval is not None
    low, high = actual.break_even_interval
    assert low <= actual.break_even_step <= high
    assert low < high
    assert actual == paired_tests.compare(
        *histories_with_gap(*[-0.5] * 20, *[0.5] * 60, noise=0.4)
    )  # fixed seed
    barely = paired_tests.compare(*histories_with_gap(*[-0.5] * 20, *[0.5] * 20, 0.2, noise=0.4))
    assert barely.break_even_interval is None


def test_break_even_is_stated_in_steps_of_a_long_run() -> None:
    shift = np.concatenate([np.full(3000, -0.5), np.full(7000, 0.5)])
    a, b = histories_with_gap(*shift)
    actual = paired_tests.compare(a, b)
    # the first stored step after they were equal
    assert actual.break_even_step == a.grid[a.grid > 6000][0]
    assert actual.exploration_cost == pytest.approx(1500)


def test_agents_at_different_steps_are_compared_at_common_steps() -> None:
    a, _ = histories_with_gap(*[1.0] * 10)
    late = history(np.zeros((4, 6)), steps=10)
    assert paired_tests.compare(a, late).difference.mean == a.sums["clicks"][4].mean()
    # one has not started
    assert paired_tests.compare(late, History(10, 6, 5)).break_even_step is None


def test_one_row_gives_no_significance() -> None:
    actual = paired_tests.compare(*histories_with_gap(1.0, 1.0, rows=1))
    assert actual.p_value == 1.0
    assert actual.break_even_interval is None
    assert actual.difference.mean == 2.0
    assert actual.rows == 1
    assert np.isnan(actual.difference[1:]).all()
    assert actual.probability_better == 0.5


def test_the_window_of_a_curve_is_rounded_up_to_stored_steps() -> None:
    long = History(4_000_000, 1, 5)
    spacing, counts = int(long.grid[1]), int(long.count_grid[1])
    assert spacing > 1
    assert metrics.effective_window(long, 3 * spacing + 1) == 4 * spacing
    assert metrics.effective_window(long, 3 * spacing) == 3 * spacing
    assert metrics.effective_window(long, 1) == spacing
    assert metrics.effective_window(long, counts + 1, of_counts=True) == 2 * counts
    assert metrics.effective_window(long, 5_000_000) == 4_000_000


def test_click_rates_and_stops_are_those_of_stored_steps() -> None:
    clicks = np.arange(10.0)[:, None] * np.ones((10, 3))
    clicks[6:, 1] = np.nan
    stopped = history(clicks, alive=[True, False, True])
    assert metrics.stopped(stopped).tolist() == [6]
    assert metrics.click_rate(stopped, 4)[0] == pytest.approx((0 + 1 + 2 + 3) / 4)
    assert metrics.click_rate(stopped)[0] == pytest.approx(4.5)


def test_a_comparison_from_a_step_on_counts_from_there_and_from_common_rows() -> None:
    clicks = np.random.default_rng(2).random((20, 4))
    a = history(clicks, alive=[True, True, False, True])
    b = history(np.zeros((20, 4)), alive=[True, True, True, False])
    assert paired_tests.mean_lead(a, b) == pytest.approx(clicks[:, :2].sum(axis=0).mean())
    actual = paired_tests.compare(a, b, since=5)
    assert actual.rows == 2
    assert actual.difference.mean == pytest.approx(clicks[5:, :2].sum(axis=0).mean())


def test_a_comparison_by_t_test_equals_that_of_scipy() -> None:
    gap = np.random.default_rng(8).normal(0.4, 1, 9)
    better, p_value = paired_tests.paired_test(gap)
    assert p_value == pytest.approx(stats.ttest_1samp(gap, 0).pvalue)
    assert better == pytest.approx(stats.ttest_1samp(gap, 0, alternative="greater").pvalue * -1 + 1)
    assert paired_tests.paired_test(-gap) == pytest.approx((1 - better, p_value))


def test_a_family_of_comparisons_has_wider_intervals_and_larger_p_values() -> None:
    a, b = histories_with_gap(*[0.5] * 5, noise=0.5)
    alone, one = paired_tests.compare(a, b), paired_tests.compare(a, b, family=3)
    (d, n), wide = (alone.difference, alone.rows), one.difference
    half = (d.high - d.low) / 2 * stats.t.isf(0.025 / 3, n - 1) / stats.t.isf(0.025, n - 1)
    assert (wide.mean, wide.low, wide.high) == pytest.approx((d.mean, d.mean - half, d.mean + half))
    assert one.p_value == min(1.0, 3 * alone.p_value)


def test_holm_against_a_worked_example() -> None:
    assert paired_tests.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert paired_tests.holm([]) == []
    assert paired_tests.holm([0.2]) == [0.2]
    assert paired_tests.holm([0.9, 0.8, 0.7]) == [1.0, 1.0, 1.0]
    assert paired_tests.holm([0.0, 0.0]) == [0.0, 0.0]


def test_a_history_does_not_depend_on_how_traces_are_split() -> None:
    e = experiment(steps=2500)
    whole = traces(e)["LinUCB"]
    pieces = [
        Trace(s, *(getattr(whole, c)[s : s + 333] for c in COLUMNS), whole.alive)
        for s in range(0, 2500, 333)
    ]
    assert join(pieces).rewards.shape == whole.rewards.shape
    made = History(2500, 3, 10)
    for piece in pieces:
        made.extend(piece)
    expected = run(e).histories["LinUCB"]
    for name in History.SUMS:
        np.testing.assert_array_equal(made.sums[name], expected.sums[name])
    with pytest.raises(ValueError, match="ends at 2500"):
        made.extend(pieces[0])


def test_items_are_counted_for_each_segment() -> None:
    """Against the trace itself, at every snapshot.

    A grid of fewer points where the catalogue is larger.
    """
    e = experiment(steps=450)
    whole, segments = traces(e)["LinUCB"], run(e).histories["LinUCB"].segments
    assert segments is not None
    assert segments.grid.tolist() == [0, *snapshot_steps(450)]
    for step, counts in zip(segments.grid, segments.counts, strict=True):
        by_hand = np.zeros((3, 4, 10), np.int64)
        rows = np.broadcast_to(np.arange(3), (step, 3))
        np.add.at(by_hand, (rows, whole.segments[:step], whole.items[:step, :, 0]), 1)
        np.testing.assert_array_equal(counts, by_hand)
    assert [SegmentCounts.points(4, n) for n in (10, 5000, 25_000, 25_001)] == [40, 20, 4, 0]
    assert SegmentCounts.points(1, 10) == 0


def test_click_rate_counts_the_steps_whose_clicks_are_stored() -> None:
    """Long runs are stored on a grid of steps.

    A run stopped in between has clicks up to the last grid step.
    """
    every = int(History(10_000_000, 1, 5).grid[1])
    stopped = history(np.ones((2 * every - 1, 2)), steps=10_000_000)
    assert stopped.step > stopped.grid[stopped.size - 1] == every
    assert metrics.click_rate(stopped).tolist() == [1.0, 1.0]
    barely = history(np.ones((every - 1, 2)), steps=10_000_000)
    # no step stored yet: no division by zero
    assert metrics.click_rate(barely).tolist() == [0.0, 0.0]
    assert paired_tests.compare(barely, stopped).break_even_step is None


def test_an_empty_result_has_curves_without_points() -> None:
    e = experiment()
    result = Result(e, {label: History(e.steps, 3, 10) for label in e.labels})
    assert {len(b.x) for b in result.ctr.values()} == {0}
    assert {len(b.x) for b in result.entropy.values()} == {0}
    assert result.spectrum == {}
