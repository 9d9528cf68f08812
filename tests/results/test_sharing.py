"""One model for all titles against one per title: differences and factors from known histories, and their coverage."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits import read, run
from bandits.experiments.history import History
from bandits.experiments.trace import Trace
from bandits.results import sharing
from bandits.results.result import Result

STEPS = 6000
SHARED = {"kind": "linucb", "label": "S", "sharing": "shared"}
TITLE = {"kind": "linucb", "label": "T", "sharing": "per_category"}
PICTURES = {"kind": "artwork", "n_titles": 20, "n_pictures": [3, 5], "n_users": 60, "n_retrieved": 3}


def known(value: np.ndarray, clicks: np.ndarray | None = None) -> History:
    """Return a history of expected rewards (T, R), where the oracle earns 0.6 and random choice 0.2 per step."""
    steps, rows = value.shape
    best, random, nothing = np.full((steps, rows), 0.6), np.full((steps, rows), 0.2), np.zeros((steps, rows), np.int64)
    history = History(steps, rows, 2)
    earned = value if clicks is None else clicks
    history.extend(Trace(0, nothing[:, :, None], nothing, earned, best, value, best, random, np.ones(rows, np.bool_)))
    return history


def learning(at: list[int], early: float = 0.3, late: float = 0.5) -> History:
    """Return a history that earns more from a step on, by replication."""
    return known(np.where(np.arange(STEPS)[:, None] < np.array(at), early, late))


def result(agents: list[dict[str, Any]], **histories: History) -> Result:
    rows = next(iter(histories.values())).rows
    e = read({"simulator": PICTURES, "agents": agents, "steps": STEPS, "replications": rows})
    return Result(e, histories)


def test_pairs_are_agents_of_one_kind_and_name_what_else_differs() -> None:
    lints = {"kind": "lints", "label": "L", "sharing": "shared"}
    agents = [TITLE, {**SHARED, "alpha": 0.7}, lints, {"kind": "popularity"}]
    e = read({"simulator": PICTURES, "agents": agents, "steps": 10, "replications": 2})
    assert sharing.pairs(e) == [("S", "T", ("alpha",))]


def test_the_first_whole_window_that_closes_the_gap_is_found() -> None:
    """0.7 of the gap from 0.2 to 0.6 is 0.48: a window of 1,000 steps needs 900 at 0.5 and 100 at 0.3."""
    needed = sharing.impressions_needed(learning([0, 2000, 3000, STEPS]))
    spacing = int(learning([0]).grid[1])
    np.testing.assert_allclose(needed[:3], [1000, 2900, 3900], atol=spacing)
    assert needed[0] == 1000
    assert np.isinf(needed[3])


def test_the_difference_is_paired_and_the_factor_is_a_ratio() -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, 4)
    shared, apart = learning([1500, 1600, 1700, 1800]), learning([4500, 4700, 4900, 5100])
    for history in (shared, apart):
        history.sums["clicks"] = history.sums["value"] + noise * history.grid[:, None]  # replications differ much
    (found,) = sharing.comparisons(result([SHARED, TITLE], S=shared, T=apart))
    gain = 0.2 * np.array([3000, 3100, 3200, 3300]) / STEPS
    np.testing.assert_allclose(found.difference.mean, gain.mean(), rtol=1e-9)
    half = 3.182446 * gain.std(ddof=1) / 2
    np.testing.assert_allclose(found.difference.high - found.difference.mean, half, rtol=1e-5)
    np.testing.assert_allclose(found.rates[0] - found.rates[1], gain.mean(), rtol=1e-9)
    assert found.factor is not None
    assert 2.2 < found.factor.low < found.factor.mean < found.factor.high < 2.4
    assert found.learned == (4, 4)
    assert not found.censored
    same = sharing.comparisons(result([TITLE, SHARED], T=apart, S=shared))  # whichever comes first
    np.testing.assert_allclose(np.array(same[0].difference), np.array(found.difference))


def test_sentences_follow_from_the_numbers() -> None:
    early, late, never = learning([2400, 2500, 2450]), learning([4900, 5000, 4950]), learning([STEPS] * 3)
    first = {label: sharing.conclusions(result([SHARED, TITLE], S=a, T=b))[0] for label, a, b in (
        ("ahead", early, late), ("behind", late, early), ("never", early, never), ("at once", learning([0] * 3), late),
        ("same", early, early),
    )}  # fmt: skip
    assert first["ahead"].startswith("S has the higher take fraction: 0.418, against 0.335 of T; S minus T 0.083")
    assert "T needed 1.7 times as many impressions" in first["ahead"]
    assert first["behind"].startswith("T has the higher take fraction: 0.418, against 0.335 of S; S minus T −0.083")
    assert (
        "S closed 70 % of the gap between random choice and the oracle in 3 of 3 replications, T in 0."
        in first["never"]
    )
    assert "T needed at least 5.8 times as many impressions" in first["at once"]
    assert first["same"].startswith("S (0.418) and T (0.418) are not shown to differ in take fraction")
    one = sharing.conclusions(result([SHARED, TITLE], S=learning([2400]), T=learning([4900])))[0]
    assert "one replication, which gives no interval" in one
    assert not sharing.conclusions(result([SHARED], S=early))


def test_a_difference_that_chance_explains_is_not_stated() -> None:
    """The interval is corrected for all pairs, so that it agrees with the other sentences of the run."""
    base = np.full((STEPS, 4), 0.4)
    apart, other = known(base), known(base + np.array([0.05, -0.02, 0.03, -0.04]))
    shared = known(base + np.array([0.01, 0.004, 0.008, -0.002]))
    agents = [SHARED, TITLE, {"kind": "popularity", "label": "P"}]
    found = result(agents, S=shared, T=apart, P=other)
    (one,) = sharing.comparisons(found)
    (alone,) = sharing.comparisons(result([SHARED, TITLE], S=shared, T=apart))
    assert one.p_value > alone.p_value > 0.05
    assert one.difference.low < alone.difference.low < 0
    assert "are not shown to differ" in sharing.conclusions(found)[0]


def test_intervals_of_the_factor_hold_it() -> None:
    """200 runs of 8 replications; impressions vary by 20 %, so that a ratio of 2 is estimated."""
    generator, held = np.random.default_rng(1), 0
    for _ in range(200):
        visitors = np.exp(generator.normal(0, 0.2, 8))  # of a replication, for both agents
        needed = 2000 * visitors * np.exp(generator.normal(0, 0.2, 8))
        found = sharing.impressions_factor(needed, 4000 * visitors * np.exp(generator.normal(0, 0.2, 8)))
        assert found is not None
        held += found.low <= 2 <= found.high
    assert held >= 182  # 95 % expected; fewer than 91 % in one of 200 tries


def test_a_run_of_both_is_compared() -> None:
    e = read({"simulator": PICTURES, "agents": [SHARED, TITLE], "steps": 1500, "replications": 3})
    found = run(e, workers=0, progress=False)
    (one,) = sharing.comparisons(found)
    clicks = [found.histories[label].sums["clicks"][-1] for label in ("S", "T")]
    np.testing.assert_allclose(one.difference.mean, (clicks[0] - clicks[1]).mean() / 1500)
    assert sharing.conclusions(found)[0].count("take fraction") == 1
