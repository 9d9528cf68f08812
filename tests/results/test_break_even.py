"""Coverage of the break-even interval: where the truth is known, and with agents."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from bandits import run
from bandits.results.comparison import paired_tests
from bandits.results.figures import board as figures
from bandits.results.result import Result
from tests.support import experiment, history, thinned

REPEATS = 1000
# .95 within 2.9 standard errors of a coverage measured 1,000 times
LOW, HIGH = 0.93, 0.97
REPLICATIONS = (4, 8, 16, 32, 64)
# expected difference in clicks at each of 400 steps; the noise of a step has standard deviation 1
DRIFTS = {
    "steep": np.where(np.arange(400) < 120, -0.5, 0.5),
    "flat": np.where(np.arange(400) < 120, -0.2, 0.2),
    "concave": 0.25 - 0.75 * np.exp(-np.arange(400) / 40),
}


def truth(mean: np.ndarray) -> int:
    """Return the first index from which the expected curve stays positive, found step by step."""
    at = len(mean)
    while at > 0 and mean[at - 1] > 0:
        at -= 1
    return at


def covers(gap: np.ndarray, true_step: int) -> bool:
    """Whether the interval contains the true step.

    An interval without an upper end covers all later steps.
    """
    grid = np.arange(len(gap))
    found = paired_tests._break_even_interval(gap, grid)
    # the lower end alone: the interval of the same differences with a certain lead at the end
    if found is None:
        found = paired_tests._break_even_interval(
            np.vstack([gap, np.full(gap.shape[1], 1e9)]), np.arange(len(gap) + 1)
        )
    assert found is not None
    return found[0] <= true_step <= found[1]


def coverage(drift: np.ndarray, rows: int, repeats: int, seed: int) -> float:
    """Measure the coverage for independent normal steps with a known expected difference."""
    generator = np.random.default_rng(seed)
    true_step = truth(np.concatenate([[0.0], np.cumsum(drift)]))
    inside = 0
    for _ in range(repeats):
        steps = drift[:, None] + generator.standard_normal((len(drift), rows))
        inside += covers(np.concatenate([np.zeros((1, rows)), np.cumsum(steps, axis=0)]), true_step)
    return inside / repeats


def test_the_interval_covers_the_true_break_even_step() -> None:
    """400 repetitions with 8 replications: .95 within three standard errors.

    Quartiles would cover half.
    """
    assert coverage(DRIFTS["steep"], 8, 400, 1) == pytest.approx(
        0.95, abs=3 * math.sqrt(0.95 * 0.05 / 400)
    )


def test_without_an_expected_break_even_an_interval_is_rare() -> None:
    """An expected difference that ends at zero has no break-even step: 2.5 % of the comparisons
    state an interval.
    """
    generator, stated = np.random.default_rng(2), 0
    drift = np.concatenate([np.full(50, -0.2), np.full(50, 0.2)])[:, None]
    for _ in range(400):
        gap = np.cumsum(drift + generator.standard_normal((100, 8)), axis=0)
        stated += paired_tests._break_even_interval(gap, np.arange(100)) is not None
    assert stated <= 10 + 3 * math.sqrt(10)


@pytest.mark.parametrize("rows", [4, 8])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_agent_that_was_ahead_all_along_seldom_made_up_for_anything(
    rows: int, sparse: bool
) -> None:
    """Ahead from the first step, in noise or in rare rewards: a deficit of a click is chance.

    Each look errs in 2.5 %, and there are several: at most 10 % of 400.
    """
    generator, trailed, noise = np.random.default_rng(3), 0, 0
    for _ in range(400):
        gains = 0.1 + generator.standard_normal((200, rows))
        if sparse:
            u = generator.random((1000, rows))
            gains = 1.0 * (u < 0.03) - 1.0 * (u > 0.98)
        found = paired_tests.compare(history(gains), history(np.zeros_like(gains)))
        noise += bool(found.break_even_step) and found.exploration_cost >= 1
        trailed += found.overtook
    assert trailed <= 40
    assert noise > trailed


def test_an_agent_that_was_clearly_behind_made_up_for_it() -> None:
    generator, trailed = np.random.default_rng(4), 0
    for _ in range(100):
        drift = np.concatenate([np.full(50, -1.0), np.full(150, 1.0)])[:, None]
        gains = drift + generator.standard_normal((200, 8))
        found = paired_tests.compare(history(gains), history(np.zeros_like(gains)))
        trailed += found.overtook
    assert trailed == 100


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_interval_is_withheld_below_four_replications(rows: int) -> None:
    steps = np.repeat([[-1.0]] * 5 + [[1.0]] * 20, rows, axis=1)
    actual = paired_tests.compare(
        history(steps + np.arange(rows) / 100), history(np.zeros((25, rows)))
    )
    assert actual.break_even_step is not None
    assert actual.break_even_interval is None


@pytest.mark.parametrize(
    ("name", "rows"),
    # each drift and each number of replications once at least
    thinned(product(DRIFTS, REPLICATIONS), lambda _: False, lambda n: n // 5 == n % 5 % 3),
)
def test_coverage_by_number_of_replications(name: str, rows: int) -> None:
    """The table of docs/decisions/intervals.md: 1,000 repetitions for each number of
    replications.
    """
    found = coverage(DRIFTS[name], rows, REPEATS, rows)
    print(f"{name}, {rows} replications: {found:.3f}")
    assert LOW <= found <= HIGH


@pytest.mark.stress
def test_coverage_with_agents() -> None:
    """LinUCB with alpha 1.5 against .1 on the pet shop: the truth from 1,024 replications, 1,000
    samples of them.
    """
    agents = (
        {"kind": "linucb", "alpha": 1.5},
        {"kind": "linucb", "alpha": 0.1, "label": "LinUCB alpha 0.1"},
    )
    shop = {"kind": "petshop", "n_products": 10}
    a, b = run(
        experiment(*agents, simulator=shop, steps=2000, replications=1024)
    ).histories.values()
    gap = a.sums["clicks"] - b.sums["clicks"]
    true_step, generator = truth(gap.mean(axis=1)), np.random.default_rng(3)
    assert 0 < true_step < len(gap)
    for rows in REPLICATIONS[::2]:
        samples = (
            gap[:, generator.choice(gap.shape[1], rows, replace=False)] for _ in range(REPEATS)
        )
        found = np.mean([covers(sample, true_step) for sample in samples])
        print(f"agents, {rows} replications: {found:.3f}")
        # four differences of an agent that may settle early are not normal
        assert (LOW if rows > 4 else 0.91) <= found <= HIGH


def overtaking() -> Result:
    """Return a run in which the second agent falls behind the first, and stays ahead from step 8
    on.
    """
    slow, fast = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    made = experiment("ab_test", "ucb1", steps=10, replications=4)
    histories = [history(np.tile(np.array(c, float)[:, None], 4)) for c in (slow, fast)]
    return Result(made, dict(zip(made.labels, histories, strict=True)))


def test_cumulative_clicks_have_a_diamond_where_the_leader_overtakes() -> None:
    result = overtaking()
    step = result.compare("UCB1", "A/B test").break_even_step
    plot = figures.plot(result, "clicks")
    (mark,) = [trace for trace in plot["data"] if trace["name"] == "break-even"]
    assert (mark["x"].tolist(), mark["y"].tolist()) == ([step], [4.0])
    assert mark["legendgroup"] == "A/B test"
    assert "ahead of A/B test from step 8" in mark["hovertemplate"]
    assert "from which UCB1 stays ahead" in plot["layout"]["meta"]["note"]
    assert "A/B test, 8." in plot["layout"]["meta"]["note"]


def test_there_is_no_diamond_without_a_deficit_or_against_clicks() -> None:
    result = overtaking()
    alone = Result(result.experiment, {"UCB1": result.histories["UCB1"]})
    plots = [
        figures.plot(alone, "clicks"),
        figures.plot(result, "pseudo_regret"),
        figures.plot(result, "clicks", figures.Options(x="earned")),
    ]
    for plot in plots:
        assert "break-even" not in {trace["name"] for trace in plot["data"]}
        assert "Diamonds" not in plot["layout"]["meta"]["note"]
