"""docs/REPRODUCED.md on the wheel and MAGIC: verdicts follow from the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.results import metrics
from benchmarks.reproduction import published


def test_a_share_agrees_within_the_interval_of_the_difference() -> None:
    """Both means err: the half width and 1.96 published standard errors are added as variances."""
    spread = np.array([-1.0, 1.0, -1.0, 1.0])
    half = metrics.estimate(spread).high
    allowed = [(half**2 + (1.96 * error) ** 2) ** 0.5 for _, error in published.WHEEL.values()]
    for factor, verdict in ((0.99, "agrees"), (1.01, "differs")):
        shares = [
            theirs + factor * a + spread
            for (theirs, _), a in zip(published.WHEEL.values(), allowed, strict=True)
        ]
        rows = published.wheel_rows([*map(published.Line.of, shares[:-1]), None])
        assert [row[-1].split(": ")[-1] for row in rows] == [verdict] * (len(shares) - 1) + ["–"]
        assert rows[-1][2] == "not run"


def test_earlier_replications_of_which_mean_and_deviation_were_kept_are_pooled() -> None:
    values = np.random.default_rng(0).normal(2000, 40, size=8)
    first, later = values[:4], values[4:]
    found = published.pooled((4, float(first.mean()), float(first.std(ddof=1))), later)
    assert found == pytest.approx((values.mean(), values.std(ddof=1)))


def test_a_machine_is_named_once_with_the_days_of_its_runs() -> None:
    where, start = "A, 2 cores; Python, numpy", "at the start"
    made = [
        f"{where}; 2026-01-02 10:00 UTC; load 1.0 {start}",
        f"{where}; 2026-01-01 09:00 UTC; load 2.5 {start}",
    ]
    assert published.machines(made) == "A, 2 cores, 2026-01-01, 2026-01-02"
