"""In which run an agent earns more: the words, and how often one is named although runs are
equal.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy.special import stdtrit

from bandits import Estimate, Result, run
from bandits.base.types import FloatArray
from bandits.lessons.sources import RunSource
from bandits.results import metrics, words
from bandits.results.caveats import stopped_notes
from bandits.results.comparison import paired_tests
from bandits.results.comparison.conclusion import reference_comparisons
from bandits.results.comparison.run_comparison import conclusions, paired
from tests.support import experiment, history


def concluded(**results: Result) -> list[str]:
    return conclusions(results, paired(results))


def result_of(clicks: dict[str, FloatArray], alpha: float = 0.5) -> Result:
    """Return a run with these clicks (T, R) of each agent."""
    steps, rows = next(iter(clicks.values())).shape
    agents = ({"kind": "linucb", "label": label, "alpha": alpha} for label in clicks)
    e = experiment(*agents, steps=steps, replications=rows)
    return Result(e, {label: history(of, n_items=10) for label, of in clicks.items()})


def test_the_sentence_of_two_runs() -> None:
    clicks = np.zeros((40, 8))
    up = clicks.copy()
    # 20 clicks in every replication, and 0 or 1 more
    up[:20] = 1
    up[20, :6] = 1
    half = up.copy()
    half[:10] = 0
    noise = clicks.copy()
    noise[0, :2] = 1
    first = result_of(
        {
            "better": clicks,
            "worse": up,
            "equal": up,
            "open": clicks,
            "exact": clicks,
            "rare": clicks,
        }
    )
    constant, rare = clicks.copy(), clicks.copy()
    constant[:3], rare[0, :3] = 1, 1
    rare[0, 3] = 1
    second = result_of(
        {
            "better": half,
            "worse": clicks,
            "equal": up,
            "open": noise,
            "exact": constant,
            "rare": rare,
        },
        alpha=1.5,
    )
    assert concluded(A=first, B=second) == [
        "B compared with A, 8 paired replications: worse earns 21 clicks fewer in B (95 % CI 20 "
        "to 21); better earns 11 clicks more in B (95 % CI 10 to 11); exact earns 3 clicks more "
        "in B in each replication; the difference for open and rare is not significant; equal "
        "earns the same in both."
    ]


def test_a_small_difference_is_not_rounded_to_nothing() -> None:
    clicks = np.zeros((10, 60))
    more = clicks.copy()
    more[0, :24] = 1
    assert concluded(A=result_of({"x": more}), B=result_of({"x": clicks})) == [
        "B compared with A, 60 paired replications: x earns 0.4 clicks fewer in B (95 % CI 0.3 to "
        "1)."
    ]


def test_diverged_replications_are_counted() -> None:
    g = np.random.default_rng(2)
    first, second = (
        result_of({"x": g.random((40, 8)) < p, "y": g.random((40, 8)) < p}) for p in (0.2, 0.8)
    )
    second.histories["x"].alive[:3] = False
    (stated,) = concluded(A=first, B=second)
    assert re.fullmatch(
        r"B compared with A: [xy] earns .* more in B \(95 % CI \d+ to \d+; . paired replications\); [xy] earns .*\.",  # noqa: E501
        stated,
    )
    assert "; 5 paired replications)" in stated
    assert "; 8 paired replications)" in stated
    second.histories["x"].alive[:7] = False
    assert concluded(A=first, B=second)[0].endswith("; one common replication cannot tell for x.")
    second.histories["x"].alive[:] = False
    assert concluded(A=first, B=second)[0].endswith("; no replication finished in both for x.")


def test_runs_of_different_length_are_compared_up_to_the_end_of_the_shorter() -> None:
    long, short = (run(experiment("linucb", steps=steps)) for steps in (400, 300))
    assert concluded(A=long, B=short) == [
        "B compared with A up to step 300, 3 paired replications: LinUCB earns the same in both."
    ]


def test_one_replication_tells_nothing_and_runs_without_common_numbers_have_no_sentence() -> None:
    one, other, apart = (
        run(experiment({"kind": "linucb", "alpha": alpha}, replications=1, seed=seed))
        for alpha, seed in ((0.0, 1), (2.0, 1), (0.0, 2))
    )
    assert concluded(A=one, B=other) == [
        "B compared with A: one common replication cannot tell for LinUCB."
    ]
    assert concluded(A=one, B=apart) == []


def test_an_agent_matched_by_its_parameters_has_both_labels() -> None:
    mine, yours = (
        run(experiment({"kind": "linucb", "label": label})) for label in ("mine", "yours")
    )
    assert concluded(A=mine, B=yours) == [
        "B compared with A, 3 paired replications: mine (in B: yours) earns the same in both."
    ]


def test_equal_runs_seldom_have_an_agent_that_earns_more() -> None:
    """At most 5 % of 400 triples of runs with two agents, and three standard errors."""
    g, wrong = np.random.default_rng(8), 0
    for _ in range(400):
        runs = {
            name: result_of(
                {label: (g.random((50, 6)) < 0.5).astype(float) for label in ("x", "y")}, alpha
            )
            for alpha, name in enumerate("ABC")
        }
        wrong += any(
            " in B (" in sentence or " in C (" in sentence for sentence in concluded(**runs)
        )
    assert 0 < wrong / 400 < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_intervals_of_all_pairs_hold_together() -> None:
    """Of 1,000 runs of four agents with unequal spread: all six hold in 95 % or more, and three
    standard errors; alone they would not.
    """
    g, inside, alone = np.random.default_rng(3), 0, 0
    means = np.arange(4.0)
    for _ in range(1000):
        clicks = means[:, None] + (g.normal(size=(4, 8)) * [[0.5], [1.0], [1.0], [2.0]])
        result = result_of({str(i): clicks[i][None] for i in range(4)})
        pairs = paired_tests.compare_pairs(result, list(result.histories))
        gaps = {pair: means[int(pair[0])] - means[int(pair[1])] for pair in pairs}
        own = {pair: result.compare(*pair).difference for pair in pairs}
        inside += all(
            pairs[pair].difference.low <= gap <= pairs[pair].difference.high
            for pair, gap in gaps.items()
        )
        alone += all(own[pair].low <= gap <= own[pair].high for pair, gap in gaps.items())
    error = 3 * (0.05 * 0.95 / 1000) ** 0.5
    assert inside / 1000 > 0.95 - error
    assert alone / 1000 < 0.95 - error


def test_the_coverage_in_docs_decisions_intervals() -> None:
    """Of 4,000 runs: all intervals hold in 95 % or more, and three standard errors. Printed with
    ``pytest -s``: the table.
    """
    g, error = np.random.default_rng(3), 3 * (0.05 * 0.95 / 4000) ** 0.5
    for agents in (3, 4, 6, 12):
        i, j = np.triu_indices(agents, 1)
        for rows in (4, 8, 16):
            spread = np.exp(g.normal(0, 0.7, (4000, agents, 1)))
            clicks = g.normal(size=(4000, agents, rows)) * spread
            gap = clicks[:, i] - clicks[:, j]
            t = np.abs(gap.mean(axis=2)) / (gap.std(axis=2, ddof=1) / rows**0.5)
            together, alone = (
                float((t <= metrics.t_quantile(rows, family)).all(axis=1).mean())
                for family in (len(i), 1)
            )
            print(f"{agents} agents, {rows} replications: {together:.3f}, alone {alone:.3f}")
            assert alone < 0.95 - error < together


def test_what_is_stated_of_two_agents_depends_on_the_number_of_the_others_alone() -> None:
    """Whatever they earn, and also if they diverge; everywhere alike."""
    g, stated = np.random.default_rng(5), set()
    shared = {name: g.normal(mean, 1, (20, 8)) for name, mean in (("one", 1.0), ("two", 0.5))}
    for third in (0.0, 0.7, 5.0, math.nan):
        result = result_of({**shared, "other": g.normal(third, 1, (20, 8))})
        result.histories["other"].alive[:] = math.isfinite(third)
        (said,) = (s for s in reference_comparisons(result, "two") if "one" in s)
        pair = result.summary()["comparisons"][0]
        assert (pair["a"], pair["b"], pair["corrected"]["pairs"]) == ("one", "two", 3)
        assert pair["corrected"]["p_value"] == min(1.0, 3 * pair["p_value"])
        corrected = Estimate(**pair["corrected"]["difference"])
        assert words.interval(corrected, "count") in said
        source = RunSource(result.experiment, result)
        assert source.quantity("difference", ("one", "two")) == corrected
        assert source.quantity("difference_alone", ("one", "two")) == Estimate(**pair["difference"])
        stated.add(said)
    assert len(stated) == 1
    (alone,) = reference_comparisons(result_of(shared), "two")
    assert alone not in stated


@pytest.mark.parametrize("agents", [2, 4])
def test_looks_at_a_run_find_as_many_false_differences_as_stopped_runs_state(agents: int) -> None:
    """Of 1,000 runs of equal agents: 38 to 52 % with 100 looks, about 5 % or less with one."""
    g, rows, looks = np.random.default_rng(1), 8, 100
    clicks = g.normal(size=(1000, looks, rows, agents)).cumsum(axis=1)
    i, j = np.triu_indices(agents, 1)
    gaps = clicks[..., i] - clicks[..., j]
    t = gaps.mean(axis=2) / (gaps.std(axis=2, ddof=1) / rows**0.5)
    found = (np.abs(t) > stdtrit(rows - 1, 1 - 0.025 / len(i))).any(axis=2)
    assert 0.38 < found.any(axis=1).mean() < 0.52
    assert found[:, -1].mean() < 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5
    (note,) = stopped_notes(Result(experiment("linucb", "lints"), {}))
    assert "significant difference at one of the looks in 4 to 5 of 10 runs" in note
    assert stopped_notes(Result(experiment("linucb", replications=1), {})) == []
