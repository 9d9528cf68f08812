"""Monitors: each raises its alarm where its rule is broken, and no alarm depends on chunks or other
rows.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandits import monitoring
from bandits.base.errors import UserError
from bandits.models.detectors import Adwin, Detector, PageHinkley
from bandits.monitoring import REGISTRY, Monitor, Samples, Setting, Steps, read
from bandits.results.metrics import normalised_entropy
from tests.monitoring.support import EVERY, SEGMENTS, K, broken, make, run, sampled


@pytest.mark.parametrize("kind", REGISTRY)
def test_an_alarm_follows_a_broken_rule_in_its_row_only(kind: str) -> None:
    T = 20_000
    steps = make(T)
    changes = {"threshold": 200.0} if kind == "page_hinkley" else {}
    assert run(kind, steps, **changes) == []
    found = run(kind, broken(kind, steps), **changes)
    assert {alarm.row for alarm in found} == {1}
    first = found[0]
    assert (first.monitor, first.label) == (kind, "LinUCB")
    assert T // 2 < first.step <= T // 2 + 5000
    below = kind in ("entropy", "segment_entropy", "correlation", "exploration")
    assert (first.statistic < first.threshold) if below else (first.statistic > first.threshold)
    assert first.sentence.endswith((".", ")."))
    assert first.sentence[0].isupper() or first.sentence[0].isdigit()
    assert "\n" not in first.sentence


@pytest.mark.parametrize("kind", REGISTRY)
@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.integers(0, 6000), max_size=8), seed=st.integers(0, 3))
def test_chunks_and_rows_change_no_alarm(kind: str, cuts: list[int], seed: int) -> None:
    """Feed chunks of any size, or one row alone: the same alarms, with windows of 1,000 steps and
    sensitive rules.
    """
    steps = broken(kind, make(6000, 3, seed))
    sensitive: dict[str, Any] = {
        "page_hinkley": {"threshold": 3.0},
        "adwin": {"delta": 0.5},
        "ctr_range": {"window": 100, "change": 0.01},
        "entropy": {"lowest": 0.99},
        "segment_entropy": {"lowest": 0.99},
        "coverage": {"share": 0.0},
        "correlation": {"lowest": 1.0, "window": 2000},
        "calibration": {"level": 0.5, "window": 1000},
        "importance_weight": {"level": 0.9, "window": 1000},
        "feature_drift": {"level": 0.5},
        "exploration": {"lowest": 0.3},
        "fallbacks": {"share": 0.01},
    }
    whole = run(kind, steps, **sensitive[kind])
    assert whole
    assert run(kind, steps, cuts, **sensitive[kind]) == whole
    samples = steps.samples
    assert samples is not None
    for r in range(3):
        only = Samples(
            samples.steps, *(None if c is None else c[:, r : r + 1].copy() for c in samples[1:])
        )
        assert steps.fell_back is not None
        alone = Steps(
            0,
            steps.items[:, r : r + 1],
            steps.segments[:, r : r + 1],
            steps.rewards[:, r : r + 1],
            only,
            steps.fell_back[:, r : r + 1],
        )
        mine = [alarm._replace(row=0) for alarm in whole if alarm.row == r]
        assert run(kind, alone, cuts, **sensitive[kind]) == mine


@pytest.mark.parametrize("kind", REGISTRY)
def test_a_row_that_has_stopped_raises_no_alarm(kind: str) -> None:
    steps = broken(kind, make(12_000))
    assert steps.samples is not None
    rewards = steps.rewards.copy()
    rewards[5000:, 1] = np.nan
    stopped = sampled(steps._replace(rewards=rewards), rewards=rewards[::EVERY])
    found = run(kind, stopped, [4000])
    assert all(alarm.step <= 5000 or alarm.row == 0 for alarm in found)


def test_an_alarm_is_not_repeated_while_the_rule_stays_broken() -> None:
    steps = make(6000, 1)
    items = steps.items.copy()
    items[1000:3000] = 0
    items[4000:4500] = 0
    found = run("entropy", steps._replace(items=items))
    assert [alarm.step for alarm in found] == [1500, 4500]
    assert found[0].statistic == 0.0
    assert found[0].sentence == "The selection entropy is 0, below 0.5."


def test_the_entropy_is_that_of_the_metrics() -> None:
    steps = make(500, 2, slots=3)
    found = run("entropy", steps, lowest=1.0)
    counts = np.stack([np.bincount(steps.items[:, r].ravel(), minlength=K) for r in range(2)])
    np.testing.assert_allclose([alarm.statistic for alarm in found], normalised_entropy(counts))
    by_segment = run("segment_entropy", steps, lowest=1.0, window=500)
    for r, alarm in enumerate(by_segment):
        of_group = [steps.items[steps.segments[:, r] == g, r].ravel() for g in range(2)]
        values = [float(normalised_entropy(np.bincount(each, minlength=K))) for each in of_group]
        assert alarm.statistic == pytest.approx(min(values))
        assert SEGMENTS[int(np.argmin(values))] in alarm.sentence


def test_every_monitor_is_registered() -> None:
    """Compare the folder with the registry, so that no file is silently absent."""
    modules = [
        import_module(f"bandits.monitoring.{file.stem}")
        for file in Path(monitoring.__file__).parent.glob("*.py")
    ]
    found = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    concrete = {
        each for each in found if issubclass(each, Monitor) and not inspect.isabstract(each)
    }
    assert concrete == set(REGISTRY.values())
    assert all(cls.Params.model_fields["kind"].default == kind for kind, cls in REGISTRY.items())


def test_large_catalogues_are_counted_in_buckets() -> None:
    steps = make(500, 1)
    (params,) = read([{"kind": "entropy", "lowest": 1.0}])
    (alarm,) = REGISTRY["entropy"](params, Setting("LinUCB", (0,), K, 4)).feed(steps)
    counts = np.bincount(steps.items.ravel() // 4)
    assert len(counts) == 3
    assert alarm.statistic == pytest.approx(float(normalised_entropy(counts)))


@pytest.mark.parametrize(("kind", "detector"), [("page_hinkley", PageHinkley), ("adwin", Adwin)])
def test_tests_on_the_reward_report_step_row_and_direction(
    kind: str, detector: type[Detector]
) -> None:
    rewards = np.repeat([[0.1, 0.9], [0.9, 0.1]], 1000, axis=0)
    (params,) = read([kind])
    setting = Setting("LinUCB", (5, 9), K)
    found = REGISTRY[kind](params, setting).feed(make(2000)._replace(rewards=rewards, start=300))
    places = np.argwhere(detector(2).detect(rewards).there)
    assert [(a.step, a.row) for a in found] == [(300 + t + 1, (5, 9)[r]) for t, r in places]
    for row, word in ((5, "The mean reward rose"), (9, "The mean reward fell")):
        assert next(a for a in found if a.row == row).sentence.startswith(word)


def test_segments_with_few_visitors_are_left_out() -> None:
    steps = make(1000, 1)
    segments, items = np.zeros_like(steps.segments), steps.items.copy()
    segments[:49], items[:49] = 1, 3
    rare = steps._replace(segments=segments, items=items)
    assert run("segment_entropy", rare) == []
    assert len(run("segment_entropy", rare, visitors=49)) == 1


def test_coverage_counts_arms_below_one_percent_or_half_of_the_uniform_share() -> None:
    steps = make(1000, 1)
    items = np.full_like(steps.items, 9)
    for arm in range(9):
        # 10 shows of 1,000: 1 %
        items[arm * 10 : arm * 10 + (10 if arm < 4 else 9)] = arm
    items[40:85] = np.repeat(np.arange(4, 9), 9)[:, None, None]
    items[85:] = 9
    (alarm,) = run("coverage", steps._replace(items=items), share=0.4)
    # arms 4 to 8, with 9 shows each
    assert alarm.statistic == 0.5
    assert run("coverage", steps._replace(items=items), share=0.5) == []


def test_single_clicks_make_the_rule_on_percentiles_void() -> None:
    """With one click per value the 5th percentile is 0 and the 95th 0 or 1, so that a loss of a
    third is not seen.
    """
    clicks = (
        np.random.default_rng(0).random((10_000, 1)) < np.repeat([0.6, 0.4], 5000)[:, None]
    ).astype(np.float64)
    for some in (clicks[:5000], clicks[5000:]):
        assert np.quantile(some, [0.05, 0.95]).tolist() == [0, 1]
    found = run("ctr_range", make(10_000, 1)._replace(rewards=clicks))
    assert found
    assert 5000 < found[0].step <= 9000


def test_the_range_of_the_ctr_is_compared_with_the_reference() -> None:
    # windows of 100: 2 warm-up, 3 reference, 3 now
    rates = np.repeat([0.2, 0.8, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8], 100)
    found = run(
        "ctr_range", make(800, 1)._replace(rewards=rates[:, None]), window=100, warm_up=2, windows=3
    )
    before, now = (
        np.quantile([0.5, 0.5, 0.5], [0.05, 0.95]),
        np.quantile([0.6, 0.7, 0.8], [0.05, 0.95]),
    )
    assert [alarm.step for alarm in found] == [800]
    assert found[0].statistic == pytest.approx(max(now / before - 1))
    text = "The 95th percentile of the CTR is 0.79, against 0.5 in the reference: a change of 58 %."
    assert found[0].sentence == text


def test_a_percentile_of_zero_is_not_compared() -> None:
    rates = np.repeat([0.0, 0.0, 0.0, 0.5, 0.5, 0.5], 100)
    assert (
        run(
            "ctr_range",
            make(600, 1)._replace(rewards=rates[:, None]),
            window=100,
            warm_up=0,
            windows=3,
        )
        == []
    )


def test_the_exploration_of_a_window_is_that_of_all_its_samples() -> None:
    steps = make(5000, 1)
    assert steps.samples is not None
    explored = np.zeros_like(steps.samples.explored)  # type: ignore[arg-type]
    explored[:300] = 1.0
    (alarm,) = run("exploration", sampled(steps, explored=explored))
    assert alarm.statistic == pytest.approx(300 / 500)


def test_too_much_exploration_raises_an_alarm_too() -> None:
    steps = make(10_000, 1)
    assert steps.samples is not None
    explored = steps.samples.explored.copy()  # type: ignore[union-attr]
    explored[500:] = 1.0
    (alarm,) = run("exploration", sampled(steps, explored=explored))
    assert (alarm.step, alarm.statistic, alarm.threshold) == (10_000, 1.0, 0.5)
    assert alarm.sentence == "100.0 % of the decisions explore, more than 50.0 %."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("drift", "the monitor is 'drift'; it must be one of page_hinkley, adwin"),
        ({"threshold": 3.0}, "the monitor is 'null'; it must be one of"),
        ({"kind": "adwin", "delta": 2.0}, "delta is 2.0; it must be a number above 0 and up to 1"),
        (
            {"kind": "entropy", "window": 1},
            "window is 1; it must be a whole number from 10 to 1,000,000",
        ),
        (
            {"kind": "entropy", "bins": 1},
            "bins is not a known field; known are kind, window, lowest",
        ),
        (
            {"kind": "exploration", "lowest": 0.6},
            "lowest is 0.6 and highest is 0.5; it must be below it",
        ),
    ],
)
def test_a_monitor_that_does_not_exist_is_refused_in_one_sentence(
    given: Any, sentence: str
) -> None:
    with pytest.raises(UserError) as error:
        read([given])
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_monitor_is_named_once() -> None:
    with pytest.raises(UserError, match="the monitor adwin is named twice; name each once"):
        read(["adwin", {"kind": "adwin", "delta": 0.1}])
