"""In which run an agent earns more: the words, and how often one is named although runs are equal."""

from __future__ import annotations

import numpy as np

from bandits import Result, run
from bandits.base.types import FloatArray
from bandits.results.run_comparison import paired
from bandits.results.run_conclusion import conclusions
from tests.support import experiment, history


def concluded(**results: Result) -> list[str]:
    return conclusions(results, paired(results))


def result_of(clicks: dict[str, FloatArray]) -> Result:
    """Return a run with these clicks (T, R) of each agent."""
    steps, rows = next(iter(clicks.values())).shape
    e = experiment(*({"kind": "linucb", "label": label} for label in clicks), steps=steps, replications=rows)
    return Result(e, {label: history(of, n_items=10) for label, of in clicks.items()})


def test_the_sentence_of_two_runs() -> None:
    clicks = np.zeros((40, 8))
    up = clicks.copy()
    up[:20] = 1  # 20 clicks in every replication, and 0 or 1 more
    up[20, :6] = 1
    half = up.copy()
    half[:10] = 0
    noise = clicks.copy()
    noise[0, :2] = 1
    first = result_of({"better": clicks, "worse": up, "equal": up, "open": clicks})
    second = result_of({"better": half, "worse": clicks, "equal": up, "open": noise})
    assert concluded(A=first, B=second) == [
        "B compared with A: worse earns 21 clicks more in A (95 % CI 20 to 21); better earns 11 clicks more in B "
        "(95 % CI 10 to 11); the difference for open is not significant; equal earns the same in both."
    ]


def test_runs_of_different_length_are_compared_up_to_the_end_of_the_shorter() -> None:
    long, short = (run(experiment("linucb", steps=steps)) for steps in (400, 300))
    assert concluded(A=long, B=short) == ["B compared with A up to step 300: LinUCB earns the same in both."]


def test_one_replication_tells_nothing_and_runs_without_common_numbers_have_no_sentence() -> None:
    one, other, apart = (
        run(experiment({"kind": "linucb", "alpha": alpha}, replications=1, seed=seed))
        for alpha, seed in ((0.0, 1), (2.0, 1), (0.0, 2))
    )
    assert concluded(A=one, B=other) == ["B compared with A: one replication cannot tell for LinUCB."]
    assert concluded(A=one, B=apart) == []


def test_an_agent_matched_by_its_parameters_has_both_labels() -> None:
    mine, yours = (run(experiment({"kind": "linucb", "label": label})) for label in ("mine", "yours"))
    assert concluded(A=mine, B=yours) == ["B compared with A: mine (in B: yours) earns the same in both."]


def test_equal_runs_seldom_have_an_agent_that_earns_more() -> None:
    """At most 5 % of 400 triples of runs with two agents, and three standard errors."""
    g, wrong = np.random.default_rng(8), 0
    for _ in range(400):
        runs = {
            name: result_of({label: (g.random((50, 6)) < 0.5).astype(float) for label in ("x", "y")}) for name in "ABC"
        }
        wrong += any(" more in " in sentence for sentence in concluded(**runs))
    assert 0 < wrong / 400 < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
