"""The verdict "wins from n on": what it rests on, and its error rate."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from bandits.base.types import FloatArray
from bandits.sweeps import read
from bandits.sweeps.analysis.wins_from import Lead, leads, wins_from
from bandits.sweeps.figures import lines
from tests.support import thinned
from tests.sweeps.test_refinement import with_means

NOISE = np.array([-1.0, 1, 0.5, -0.5, 1, -1])
LEVEL = 0.05


def choices(*gaps: list[float]) -> FloatArray:
    """Return a metric (C, N, R) in which the first choice has these gaps to each other one, with
    noise of .01.
    """
    first = np.full((len(gaps[0]), 6), 0.5)
    return np.stack([first, *(first - np.array(g)[:, None] - 0.01 * NOISE for g in gaps)])


def test_every_larger_value_must_be_significant() -> None:
    assert wins_from(choices([0.2, 0.0, 0.2, 0.2])[0] - choices([0.2, 0.0, 0.2, 0.2])[1], 1) == 2
    assert wins_from(np.tile(NOISE, (3, 1)), 1) is None
    assert wins_from(choices([0.2, 0.2, 0.0])[0] - choices([0.2, 0.2, 0.0])[1], 1) is None
    found = leads(choices([0.2, 0.2, 0.2], [-0.2, 0.1, 0.1]), LEVEL)
    assert found == [Lead(0, 1, 0), Lead(0, 2, 1)]
    # the best is the other one
    assert leads(choices([-0.2, -0.2, -0.2]), LEVEL) == [Lead(1, 0, 0)]
    assert leads(choices([0.2])[:1], LEVEL) == []
    diverged = choices([0.2, 0.2, 0.2])
    diverged[1, 2, :4] = np.nan
    # two replications are left, nearly alike
    assert leads(diverged, LEVEL) == [Lead(0, 1, 0)]


def test_claims_hold_for_all_pairs_of_choices_together() -> None:
    """A gap of t = 3.3 standard errors is significant between two choices (2.6), not among four
    (4.2).
    """
    noise = NOISE - NOISE.mean()
    gap = 3.3 * float(noise.std(ddof=1)) / 6**0.5 + noise
    two, four = (np.stack([np.tile(gap, (2, 1)), *[np.zeros((2, 6))] * n]) for n in (1, 3))
    assert leads(two, LEVEL) == [Lead(0, 1, 0)]
    assert leads(four, LEVEL) == [Lead(0, i, None) for i in (1, 2, 3)]
    assert leads(two, LEVEL / 10) == [Lead(0, 1, None)]


def test_the_page_states_it_for_a_number_and_a_choice() -> None:
    e: Any = {
        "simulator": {"kind": "petshop"},
        "agents": [{"kind": "linucb"}],
        "steps": 200,
        "replications": 3,
    }
    axes = [
        {"path": "simulator.n_products", "values": [10, 15, 20]},
        {"path": "agents.0.sharing", "values": ["per_arm", "shared"]},
    ]
    landscape = with_means(read({"experiment": e, "axes": axes}), [1, 1, 1, 3, 1, 3])
    sentence = lines.comparison(landscape, "ctr")
    assert sentence.startswith(
        "From products = 15 on, shared has a better click-through rate than per arm (paired"
    )
    assert lines.comparison(landscape, "pseudo_regret") == ""  # not measured
    axes[1]["values"] = ["per_arm", "shared", "hybrid"]
    three = read({"experiment": e, "axes": axes})
    for last, words in (
        (1, "; from products = 20 on, also than hybrid ("),
        (3, "; even at products = 20, its lead over hybrid is not certain ("),
    ):
        sentence = lines.comparison(with_means(three, [1, 1, 1, 1, 3, 3, 1, 3, last]), "ctr")
        assert sentence.startswith(
            f"From products = 15 on, shared has a better click-through rate than per arm{words}"
        )
    sentence = lines.comparison(with_means(three, [1] * 9), "ctr")
    assert sentence.startswith("Even at products = 20, it is not certain that ")
    landscape.completed[0, 0] = False
    assert lines.comparison(landscape, "ctr") == ""


@pytest.mark.parametrize(
    ("noise", "replications", "true"),
    # each pair of values in two parameters once at least
    thinned(
        product(["normal", "unequal", "clicks"], [6, 16], [0, 2]),
        lambda _: False,
        lambda number: number % 4 in (0, 3) if number // 4 != 1 else number % 4 in (1, 2),
    ),
)
def test_the_error_rate_is_at_most_the_level(noise: str, replications: int, true: int) -> None:
    """4 choices at 5 values, the first better at the ``true`` largest ones: no claim may begin
    before them.

    Of n experiments at most .05 + 3 standard deviations may make a false claim, n = 800; where
    there is a gap, four of five find it with 16 replications."""
    n, generator = 800, np.random.default_rng([replications, true])
    means = np.full((4, 5), 0.3)
    means[0, 5 - true :] += 0.1
    false = power = 0
    for _ in range(n):
        if noise == "clicks":
            numbers = generator.binomial(200, means[:, :, None], (4, 5, replications)) / 200
        else:
            spread = np.exp(generator.normal(0, 0.7, (4, 5, 1))) if noise == "unequal" else 1.0
            own = generator.standard_normal((4, 5, replications))
            numbers = means[:, :, None] + 0.03 * (
                spread * own + 2 * generator.standard_normal(replications)
            )
        found = leads(numbers, LEVEL)
        place = 5 - true
        false += any(
            lead.first is not None and (lead.choice > 0 or lead.first < place) for lead in found
        )
        power += all(lead.choice == 0 and lead.first == place for lead in found)
    assert false / n <= LEVEL + 3 * (LEVEL * (1 - LEVEL) / n) ** 0.5
    assert not true or replications < 16 or noise == "unequal" or power / n >= 0.8
