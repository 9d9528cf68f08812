"""Reduced versions of `python -m benchmarks.reproduction.ranking`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.reproduction import ranking

SMALL: dict[str, Any] = {"n_users": 200, "n_items": 1000, "n_candidates": 100}


def test_linucb_on_product_features_has_less_than_half_the_regret_of_neural_click_ts() -> None:
    settings = {**ranking.LEARNABLE, **SMALL, "temperature": 0.005}
    linear = ranking.run_agent(ranking.LINEAR[0], settings, 600, 6)
    thompson = ranking.run_agent({"kind": "neural_click_ts"}, settings, 600, 6)
    # the same users and candidates: paired
    assert (linear.best == thompson.best).all()
    assert (linear.regret < thompson.regret / 2).all()


@pytest.mark.slow
def test_in_the_published_setting_no_agent_is_better_than_random() -> None:
    """What agents learn in 300 rounds is within three standard errors."""
    settings = {**ranking.PUBLISHED, **SMALL}
    random = ranking.run_agent({"kind": "random"}, settings, 300, 6)
    for agent in ranking.AGENTS[:3]:
        actual = ranking.run_agent(agent, settings, 300, 6)
        gap = (actual.value - random.value) / (random.best - random.value)
        assert abs(gap.mean()) < 3 * gap.std(ddof=1) / np.sqrt(6) + 0.02


def test_predictions_of_a_slot_are_compared_with_true_probabilities() -> None:
    settings = {**ranking.LEARNABLE, **SMALL, "temperature": 0.01, "slate": 4}
    runs = {}
    for position in ("ignored", "aware"):
        agent = {**ranking.LINEAR[0], "position": position}
        run, off = ranking.by_slot(agent, settings, 800, 6, 200)
        assert off.shape == (6, 4)
        assert run.clicks.shape == (6,)
        runs[position] = off
    # counting unexamined slots as misses underestimates the items shown first
    below = runs["ignored"][:, 0]
    assert below.mean() + 3 * below.std(ddof=1) / np.sqrt(6) < 0
    assert abs(runs["aware"][:, 0].mean()) < abs(below.mean())
