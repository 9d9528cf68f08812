"""Change detectors against river, event for event, and their rows and chunks against each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import drift

from bandits.base.types import FloatArray
from bandits.models.detectors import Adwin, Detector, PageHinkley

T = 8000
DETECTORS = [PageHinkley, Adwin]


def streams() -> FloatArray:
    """Twenty streams (T, 20): five each of Bernoulli without change, with a step, with a drift, and
    Gaussian.
    """
    generator = np.random.default_rng(7)
    share = np.arange(T)[:, None] / T
    levels = np.array([0.02, 0.1, 0.3, 0.5, 0.9])
    constant = np.broadcast_to(levels, (T, 5))
    step = np.where(share < 0.5, levels, 0.5 * levels)
    drift_ = levels * (1 - 0.7 * share)
    clicks = (generator.random((T, 15)) < np.hstack([constant, step, drift_])).astype(np.float64)
    shift = np.array([0.0, 0.1, 0.5, 2.0, -3.0]) * (share >= 0.4)
    return np.hstack([clicks, generator.normal(shift, 1.0)])


def events(detector: object, stream: FloatArray) -> list[int]:
    """Steps at which a detector of river reports a change."""
    found = []
    for step, value in enumerate(stream.tolist()):
        detector.update(value)  # type: ignore[attr-defined]
        if detector.drift_detected:  # type: ignore[attr-defined]
            found.append(step)
    return found


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (PageHinkley(20), lambda: drift.PageHinkley()),
        (PageHinkley(20, 0.01, 8.0, 100, 0.999), lambda: drift.PageHinkley(100, 0.01, 8.0, 0.999)),
        (Adwin(20), lambda: drift.ADWIN()),
        (Adwin(20, 0.3), lambda: drift.ADWIN(0.3)),
    ],
    ids=["PageHinkley", "PageHinkley, other parameters", "ADWIN", "ADWIN, other delta"],
)
def test_events_equal_those_of_river(ours: Detector, theirs: object) -> None:
    values = streams()
    found = ours.detect(values).there
    expected = [events(theirs(), values[:, r]) for r in range(20)]  # type: ignore[operator]
    assert [np.flatnonzero(found[:, r]).tolist() for r in range(20)] == expected
    assert sum(map(bool, expected)) >= 8


def test_the_window_of_adwin_equals_that_of_river() -> None:
    values = streams()[:3000, [3, 15]]
    ours, theirs = Adwin(2), [drift.ADWIN(), drift.ADWIN()]
    for value in values:
        if not ours.update(value).any():
            for r in range(2):
                theirs[r].update(value[r])
                assert ours.width[r] == theirs[r].width
                assert ours.total[r] == theirs[r].total
                assert ours.variance[r] == theirs[r].variance


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_detection_states_direction_statistic_and_threshold(detector: type[Detector]) -> None:
    fall = np.repeat([0.9, 0.1], 1000)
    found = detector(2).detect(np.stack([fall, 1 - fall], axis=1))
    for r, sign in enumerate([-1, 1]):
        at = int(found.there[:, r].argmax())
        assert 1000 < at < 1200
        assert sign * found.statistic[at, r] > found.threshold[at, r] > 0
    assert np.isnan(found.statistic[~found.there]).all()
    assert np.isnan(found.threshold[~found.there]).all()


@pytest.mark.parametrize("detector", DETECTORS)
@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 1500), max_size=6), row=st.integers(0, 4), seed=st.integers(0, 99)
)
def test_chunks_and_rows_change_nothing(
    detector: type[Detector], cuts: list[int], row: int, seed: int
) -> None:
    """Steps in chunks of any size, rows alone, and values that are not there: the same events."""
    generator = np.random.default_rng(seed)
    values = generator.normal(np.repeat(generator.normal(0, 2, (3, 5)), 500, axis=0), 1.0)
    there = generator.random(values.shape) < 0.9
    together = detector(5).detect(values, there)
    chunked = detector(5)
    parts = [chunked.detect(values[a:b], there[a:b]) for a, b in pairwise([0, *sorted(cuts), 1500])]
    alone = detector(1)
    stream = values[there[:, row], row]
    for part in range(3):
        joined = np.concatenate([p[part] for p in parts])
        np.testing.assert_array_equal(joined, together[part])
    np.testing.assert_array_equal(
        alone.detect(stream[:, None]).there[:, 0], together.there[there[:, row], row]
    )
    assert not together.there[~there].any()


@pytest.mark.parametrize("detector", DETECTORS)
def test_state_is_saved_and_reset_by_row(detector: type[Detector]) -> None:
    values = streams()[3000:5000, 5:10]
    whole = detector(5)
    expected = whole.detect(values).there
    first, second = detector(5), detector(5)
    first.detect(values[:900])
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(second.detect(values[900:]).there, expected[900:])
    second.reset(np.array([True, False, True, False, False]))
    fresh = detector(5).state_dict()
    for name, array in second.state_dict().items():
        kept = whole.state_dict()[name]
        np.testing.assert_array_equal(array[[1, 3, 4]], kept[[1, 3, 4]])
        np.testing.assert_array_equal(array[[0, 2]], fresh[name][[0, 2]])
    assert detector.memory() == sum(array[:1].nbytes for array in fresh.values())


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_missing_value_is_skipped(detector: type[Detector]) -> None:
    values = streams()[:, 9:10].copy()
    expected = detector(1).detect(np.delete(values, range(100, 200), axis=0)).there
    assert expected.any()
    values[100:200] = np.nan
    np.testing.assert_array_equal(
        np.delete(detector(1).detect(values).there, range(100, 200), axis=0), expected
    )
