"""The sections of docs/NEW.md on sharing and privacy: their verdicts follow from the numbers."""

from __future__ import annotations

import numpy as np

from benchmarks.reproduction.new_sweeps import (
    HYBRID,
    NAMES,
    PER_ARM,
    SHARED,
    privacy,
    sharing,
    wins_from,
)

NOISE = np.array([-1.0, 1, 0.5, -0.5, 1, -1])


def rates(gaps: dict[int, float]) -> dict[tuple[int, str], np.ndarray]:
    """Return rates of shops in which sharing earns these gaps more per step than all others."""
    others = {
        (n, way): 0.5 + 0.01 * NOISE for n in gaps for way in NAMES if (n, way) != (5000, HYBRID)
    }
    return others | {(n, SHARED): 0.5 + gap - 0.01 * NOISE for n, gap in gaps.items()}


def test_sharing_wins_from_the_size_on_above_which_every_interval_is_above_zero() -> None:
    found = rates({20: 0.2, 50: -0.1, 1000: 0.2, 5000: 0.3})
    assert wins_from(found, PER_ARM) == 1000
    assert wins_from(rates({20: 0.2, 50: 0.0}), PER_ARM) is None
    assert wins_from(rates({20: 0.2, 50: 0.2}), PER_ARM) == 20
    assert wins_from(found, HYBRID) == 1000
    text = sharing({0.3: found})
    assert "per arm: from 1,000 products on" in text
    assert (
        "| 5,000 | 0.500 (0.490 to 0.510) | 0.500 (0.490 to 0.510) | not run | 0.800 (0.790 to "
        "0.810) |" in text
    )


def test_privacy_is_free_from_the_smallest_budget_on_that_costs_nothing_significant() -> None:
    small = {
        None: 0.5 + 0.01 * NOISE,
        0.1: 0.2 + NOISE * 0,
        1.0: 0.5 - 0.01 * NOISE,
        10.0: 0.5 + 0.0 * NOISE,
    }
    order = {budget: small[budget] for budget in (0.1, 1.0, 10.0, None)}
    text = privacy({"LinUCB": order})
    assert (
        "clicks do not always rise with the budget; no significant clicks are lost from ε = 1 on"
        in text
    )
    text = privacy({"LinUCB": {**order, 10.0: 0.3 + 0.01 * NOISE}})
    assert "every budget costs clicks" in text
    assert "| none | 0.500 (0.490 to 0.510) |  |" in text
