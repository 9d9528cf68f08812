"""The main statements of docs/MONITORS.md: false alarms, detections and delays of the monitors."""

from __future__ import annotations

import pytest

from benchmarks.reproduction.monitors import CHANGES, Row, measure, table, trials

REPLICATIONS = 40
# false alarms per 10,000 steps, and delays from .50 to .14 and to .40
PUBLISHED = {
    "ADWIN": (0.0, 87, 631),
    "Page-Hinkley": (0.85, 105, 396),
}


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    found = {name: measure(name, range(REPLICATIONS)) for name in CHANGES}
    return {row.kind: row for row in table(found, REPLICATIONS)}


def test_the_detectors_have_the_published_false_alarms_and_delays() -> None:
    """Within a factor of 1.5."""
    for trial in trials():
        false_alarms, *delays = PUBLISHED[trial.title.partition(",")[0]]
        assert false_alarms / 1.5 <= trial.false_alarms <= 1.5 * false_alarms
        for measured, published in zip(trial.delays.values(), delays, strict=True):
            assert published / 1.5 <= measured <= 1.5 * published


def test_a_shock_is_detected_at_once_by_the_reward(rows: dict[str, Row]) -> None:
    for kind, delay in (("page_hinkley", 200), ("adwin", 150), ("ctr_range", 1000)):
        scored = rows[kind].scores["shock"]
        assert scored.detected == 1
        assert scored.median_delay <= delay


def test_a_broken_feature_is_seen_in_the_features_and_hardly_in_the_reward(
    rows: dict[str, Row],
) -> None:
    assert rows["feature_drift"].scores["feature"].detected == 1
    assert rows["feature_drift"].scores["feature"].median_delay == 1000
    assert rows["feature_drift"].learned < 0.05
    assert rows["adwin"].scores["feature"].detected < 0.2
    assert rows["ctr_range"].scores["feature"].detected < 0.1


def test_a_slow_drift_escapes_windows_and_is_found_by_adwin_more_often_than_by_chance(
    rows: dict[str, Row],
) -> None:
    assert rows["adwin"].chance < 0.1
    assert rows["adwin"].scores["drift"].detected > 0.3
    assert rows["ctr_range"].scores["drift"].detected < 0.1


def test_adwin_gives_few_false_alarms_and_page_hinkley_one_in_ten_thousand_steps(
    rows: dict[str, Row],
) -> None:
    assert rows["adwin"].learned < 0.15
    assert 0.7 < rows["page_hinkley"].learned < 1.7
    assert rows["page_hinkley"].chance > 0.6


def test_rules_on_entropy_and_coverage_are_broken_by_a_good_agent(rows: dict[str, Row]) -> None:
    """They raise an alarm in nearly every replication without a change, and then detect no
    shock.
    """
    for kind in ("segment_entropy", "coverage"):
        assert 0.9 < rows[kind].learning < 1.2
        assert rows[kind].scores["shock"].detected < 0.1
