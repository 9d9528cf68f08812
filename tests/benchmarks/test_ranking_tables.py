"""Small versions of what `python -m benchmarks.reproduction.ranking` runs in full."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.reproduction import ranking

SMALL: dict[str, Any] = {"n_users": 200, "n_items": 1000, "n_candidates": 100}


def test_who_sees_products_learns_with_less_than_half_the_regret_of_neural_click_ts() -> None:
    world = {**ranking.LEARNABLE, **SMALL, "temperature": 0.005}
    linear = ranking.race(ranking.LINEAR[0], world, 600, 6)
    thompson = ranking.race({"kind": "neural_click_ts"}, world, 600, 6)
    assert (linear.best == thompson.best).all()  # the same users and candidates: paired
    assert (linear.regret < thompson.regret / 2).all()


def test_as_published_nobody_is_better_than_random() -> None:
    """Whatever is learned in 300 rounds is less than its luck: three standard errors."""
    world = {**ranking.PUBLISHED, **SMALL}
    random = ranking.race({"kind": "random"}, world, 300, 6)
    for agent in ranking.AGENTS[:3]:
        found = ranking.race(agent, world, 300, 6)
        gap = (found.value - random.value) / (random.best - random.value)
        assert abs(gap.mean()) < 3 * gap.std(ddof=1) / np.sqrt(6) + 0.02


def test_what_is_expected_of_a_slot_is_compared_with_its_truth() -> None:
    world = {**ranking.LEARNABLE, **SMALL, "temperature": 0.01, "slate": 4}
    runs = {}
    for position in ("ignored", "aware"):
        agent = {**ranking.LINEAR[0], "position": position}
        run, off = ranking.by_slot(agent, world, 800, 6, 200)
        assert off.shape == (6, 4)
        assert run.clicks.shape == (6,)
        runs[position] = off
    below = runs["ignored"][:, 0]  # who takes unseen slots for misses thinks too little of what it shows first
    assert below.mean() + 3 * below.std(ddof=1) / np.sqrt(6) < 0
    assert abs(runs["aware"][:, 0].mean()) < abs(below.mean())
