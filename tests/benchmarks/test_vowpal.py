"""The comparison with Vowpal Wabbit: both sides meet the same visitors."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import vowpal


def test_the_exported_visitors_are_those_of_our_simulator() -> None:
    steps, runs = 300, 3
    lane = vowpal._lane({"kind": "random"}, steps, runs)
    trace = lane.advance(steps)
    data = vowpal.visitors(steps, runs)
    assert data["rates"].shape == (runs, 4, 50)
    rows = np.arange(runs)
    rates = data["rates"][rows, data["personas"], trace.items[:, :, 0]]
    np.testing.assert_array_equal(data["uniforms"] < rates, trace.rewards)
    np.testing.assert_array_equal(rates, trace.value)
    assert data["categories"].shape == (runs, 50)
    # each run has its own shop
    assert not np.array_equal(data["categories"][0], data["categories"][1])
