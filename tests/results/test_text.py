"""Sentences, number formats and presets."""

from __future__ import annotations

import json
import math
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bandits import Experiment, History, read, run
from bandits.agents.guards.params import Fallback, Floor, GuardParams, Reset
from bandits.base.formatting import count, percent
from bandits.experiments.presets import Preset, presets
from bandits.results import metrics
from bandits.results.caveats import FEW_REWARDS, divergence_notes, rare_reward_notes, scope
from bandits.results.comparison import paired_tests
from bandits.results.comparison.conclusion import (
    describe_comparison,
    leader_comparisons,
    learning_summary,
    main_comparison,
    ranking,
    reference_comparisons,
)
from bandits.results.comparison.paired_tests import Comparison
from bandits.results.describe import describe_agents, describe_guard, describe_rarest_first
from bandits.results.metrics import Estimate
from bandits.results.result import Result
from tests.support import experiment, history


def comparison(
    difference: tuple[float, float, float] = (412.0, 380.0, 445.0),
    even: int | None = 0,
    interval: tuple[int, int] | None = None,
    cost: float = 0.0,
    rows: int = 16,
) -> Comparison:
    return Comparison(Estimate(*difference), rows, 0.99, 0.001, even, interval, cost, trailed=True)


@pytest.mark.parametrize(
    ("actual", "sentence"),
    [
        (
            comparison(),
            "A earned 412 more clicks than B (95 % CI 380 to 445; 16 paired replications).",
        ),
        (
            comparison(even=3100, interval=(2900, 3400), cost=57.2),
            "A earned 412 more clicks than B (95 % CI 380 to 445; 16 paired replications); "
            "break-even at step 3,100 (95 % CI 2,900 to 3,400), after trailing by up to 57 clicks.",
        ),
        (
            comparison(even=3100, cost=0.4),
            "A earned 412 more clicks than B (95 % CI 380 to 445; 16 paired replications).",
        ),
        (
            comparison((12345.6, 11000.0, 13000.0)),
            "A earned 12,346 more clicks than B (95 % CI 11,000 to 13,000; 16 paired "
            "replications).",
        ),
        (
            comparison((1.0, -20.0, 26.0), even=10)._replace(p_value=0.4),
            "A and B do not differ significantly: 1 click (95 % CI −20 to 26; 16 paired "
            "replications).",
        ),
        (
            # an end that is not 0 is not written as 0
            comparison((212.0, -0.3, 424.3))._replace(p_value=0.052),
            "A and B do not differ significantly: 212 clicks (95 % CI −0.3 to 424; 16 paired "
            "replications).",
        ),
        (
            comparison((5.0, float("nan"), float("nan")), rows=1),
            "A earned 5 more clicks than B in a single replication, which gives no interval.",
        ),
        (
            comparison((0.0, 0.0, 0.0)),
            "A and B differ by 0 clicks in each of the 16 replications.",
        ),
    ],
)
def test_a_comparison_in_one_sentence(actual: Comparison, sentence: str) -> None:
    assert describe_comparison("A", "B", actual) == sentence


@given(
    gap=st.lists(st.integers(-20, 20), min_size=2, max_size=8).filter(lambda v: len(set(v)) > 1),
    pairs=st.integers(1, 66),
)
def test_a_corrected_interval_contains_zero_if_and_only_if_p_exceeds_005(
    gap: list[int], pairs: int
) -> None:
    clicks = np.array([gap], dtype=float)
    actual = paired_tests.compare(history(clicks), history(np.zeros_like(clicks)), family=pairs)
    assume(abs(actual.p_value - 0.05) > 1e-9)
    d = actual.difference
    assert (d.low <= 0 <= d.high) == (actual.p_value > 0.05)


def test_numbers_are_formatted() -> None:
    assert [count(n) for n in (0, 999.6, 1234, math.nan, math.inf)] == [
        "0",
        "1,000",
        "1,234",
        "–",
        "–",
    ]
    assert [percent(n) for n in (0.874, math.nan)] == ["87 %", "–"]
    assert [percent(n, 1) for n in (0.8745, -0.031, -0.0001)] == ["87.5 %", "−3.1 %", "0.0 %"]


@pytest.mark.parametrize(
    ("guard", "words"),
    [
        (Floor(), "exploration floor (epsilon 0.05)"),
        (Floor(epsilon=0.2, per="arm"), "exploration floor (epsilon 0.2, per arm)"),
        (Floor(segments=(0.1, 0.2)), "exploration floor (segments 0.1 / 0.2)"),
        (Floor(epsilon=0, shows=100), "exploration floor (epsilon 0, shows 100, new 0.05)"),
        (Reset(monitor="adwin"), "reset (monitor adwin)"),
        (Reset(every=500), "reset (every 500)"),
        (Fallback(p99_ms=50), "fallback (to random, budget ms 10, p99 ms 50)"),
    ],
)
def test_a_guard_is_named_with_its_main_values_and_what_is_changed(
    guard: GuardParams, words: str
) -> None:
    assert describe_guard(guard) == words


def test_what_fewest_runs_have_is_named_first() -> None:
    runs = [
        experiment("linucb", "random", {"kind": "epsilon_greedy", "epsilon": e}) for e in (0.1, 0.2)
    ]
    assert describe_rarest_first(runs) == [
        "ε-greedy (epsilon 0.1), LinUCB, Random",
        "ε-greedy (epsilon 0.2), LinUCB, Random",
    ]
    assert describe_rarest_first(runs[:1]) == [describe_agents(runs[0])]
    assert describe_rarest_first([]) == []


def test_ranking_is_by_clicks_per_step_so_far() -> None:
    e = experiment("linucb", "lints", "random", "ucb1", steps=10)
    lead, slow = np.ones((10, 3)), np.zeros((10, 3))
    dead = np.full((10, 3), np.nan)
    histories = {
        "LinUCB": history(slow),
        # half the steps, but more clicks per step
        "LinTS": history(lead[:5], steps=10),
        "Random": history(dead, alive=[False] * 3),
        "UCB1": History(10, 3, 5),
    }
    assert ranking(Result(e, histories)) == ["LinTS", "LinUCB", "UCB1", "Random"]


def test_verdicts_compare_the_leader_with_every_other_agent() -> None:
    result = run(experiment("linucb", "random", "oracle", steps=2000, replications=8))
    actual = leader_comparisons(result)
    assert len(actual) == 2
    assert actual[0].startswith("Oracle earned ")
    assert actual[1].startswith("Oracle earned ")
    assert "than LinUCB" in actual[0]
    assert "than Random" in actual[1]
    assert leader_comparisons(run(experiment("random"))) == []


def test_any_agent_can_be_the_reference_with_the_same_correction() -> None:
    result = run(experiment("linucb", "random", "oracle", "ucb1", steps=2000, replications=8))
    order = ranking(result)
    leader = reference_comparisons(result, None)
    assert reference_comparisons(result, order[0]) == leader
    assert reference_comparisons(result, "no such agent") == leader
    for label in order[1:]:
        found = reference_comparisons(result, label)
        assert len(found) == 3
        assert all(label in sentence for sentence in found)
        # the pair with the leader: the same interval
        assert len(set(found) & set(leader)) == 1


def test_the_main_comparison_is_with_the_reference_else_a_test_else_the_second_agent() -> None:
    result = run(experiment("linucb", "ab_test", "random", steps=3000, replications=4))
    found = leader_comparisons(result)
    assert ranking(result) == ["LinUCB", "A/B test", "Random"]
    first, others = main_comparison(result)
    more = result.compare("LinUCB", "A/B test").difference.mean / 3
    assert first == (
        f"{found[0]} That is {more:.3g} clicks per 1,000 visitors. The test shows one winner to "
        "all users; one for each segment may earn more."
    )
    assert others == found[1:]
    assert main_comparison(result, "Random") == (
        reference_comparisons(result, "Random")[0],
        reference_comparisons(result, "Random")[1:],
    )
    kinds = {"kind": "ab_test", "label": "All"}, {"kind": "ab_test", "label": "Each"}
    both = [kinds[0] | {"test": 1000}, kinds[1] | {"test": 1000, "winner": "segment"}]
    tests = run(experiment("linucb", *both, steps=5000, replications=4))
    assert ranking(tests) == ["LinUCB", "Each", "All"]
    # the better one
    assert "more clicks than Each" in main_comparison(tests)[0]
    assert "its own winner" in main_comparison(tests)[0]
    untested = run(experiment("linucb", "random", steps=500, replications=4))
    assert main_comparison(untested) == (leader_comparisons(untested)[0], [])
    assert main_comparison(run(experiment("random"))) == ("", [])


def test_a_headline_compares_each_pair_of_agents_once(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(experiment("linucb", "ab_test", "random", "oracle", steps=500, replications=4))
    compare, compared = paired_tests.compare, list[frozenset[int]]()

    def counted(a: History, b: History, **settings: int) -> paired_tests.Comparison:
        compared.append(frozenset(map(id, (a, b))))
        return compare(a, b, **settings)

    monkeypatch.setattr(paired_tests, "compare", counted)
    assert "does not learn" in main_comparison(result)[0]
    assert len(compared) == len(set(compared)) == 6


def test_verdicts_are_corrected_for_the_number_of_pairs() -> None:
    """Pairs at p = .03 are significant alone and not after correction."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=(20, 8))
    shift = np.array([1.0, 1.2, 0.1, 0.9, -0.1, 0.2, 0.9, 0.15]) / 20
    lead, other = history(base + shift), history(base)
    e = experiment("linucb", "lints", steps=20, replications=8)
    pair = Result(e, {"LinUCB": lead, "LinTS": other})
    assert 0.01 < pair.compare("LinUCB", "LinTS").p_value < 0.05
    assert "earned" in leader_comparisons(pair)[0]
    kinds = "linucb", "lints", "random", "ucb1", "popularity"
    e = experiment(*kinds, steps=20, replications=8)
    crowd = Result(e, {label: other if i else lead for i, label in enumerate(e.labels)})
    assert all("do not differ significantly" in sentence for sentence in leader_comparisons(crowd))


def test_agents_stopped_in_every_replication_are_not_compared() -> None:
    e = experiment("linucb", "random", steps=10)
    histories = {
        "LinUCB": history(np.full((10, 3), np.nan), alive=[False] * 3),
        "Random": history(np.ones((10, 3))),
    }
    assert leader_comparisons(Result(e, histories)) == []


def test_the_summary_states_whether_agents_learned() -> None:
    learned = learning_summary(run(experiment("oracle", "linucb", "random", steps=1000)))
    assert learned.startswith("LinUCB closed ")
    assert "of the gap between random choice and the oracle (95 % CI " in learned
    assert (
        learning_summary(run(experiment("oracle", "random"))) == "No agent learns during this run."
    )
    stubborn = {"kind": "epsilon_greedy", "epsilon": 1.0}
    assert "No learning agent is significantly better than random choice" in learning_summary(
        run(experiment(stubborn, steps=1000))
    )
    flat = {"kind": "petshop", "n_products": 5, "click_rates": [[0.5] * 5] * 4}
    assert learning_summary(run(experiment("linucb", simulator=flat))).startswith(
        "Nothing can be learned here"
    )


def test_one_replication_is_reported_as_such() -> None:
    result = run(experiment("linucb", "oracle", steps=2000, replications=1))
    (sentence,) = leader_comparisons(result)
    assert sentence.endswith("in a single replication, which gives no interval.")


@pytest.mark.parametrize("preset", presets().values(), ids=presets())
def test_a_preset_is_a_valid_experiment_with_a_title_and_a_sentence(preset: Preset) -> None:
    assert 3 <= len(preset.title) <= 40
    # one line beside the title in the menu
    assert 20 <= len(preset.line) <= 80
    assert preset.line.endswith((".", "?"))
    assert preset.group
    assert preset.about.endswith((".", "?"))
    e = preset.experiment
    assert read(e.model_dump_json()) == e
    assert len(set(e.labels)) == len(e.labels) >= 2
    # a band needs more than one run
    assert e.replications > 1
    # a short run: seconds on two cores, or minutes where the text states it, and little memory
    assert e.steps * e.replications * len(e.agents) <= (
        4_000_000 if "minutes" in preset.about else 2_000_000
    )
    assert e.memory() < 2**30


def test_presets_equal_the_files_and_are_distinct() -> None:
    actual = [
        path
        for path in (files("bandits.experiments.presets")).iterdir()
        if path.name.endswith(".json")
    ]
    assert len(presets()) == len(actual) >= 5
    assert next(iter(presets())) == "race"
    assert len({p.title for p in presets().values()}) == len(actual)
    assert len({p.experiment.hash for p in presets().values()}) == len(actual)
    for path in actual:
        assert set(json.loads(path.read_text(encoding="utf-8"))) - {"depends", "compared_with"} == {
            "title",
            "group",
            "line",
            "about",
            "experiment",
        }


def test_the_first_preset_compares_two_exploration_bonuses_with_other_baselines() -> None:
    e: Experiment = presets()["race"].experiment
    assert [a.kind for a in e.agents] == [
        "linucb",
        "linucb",
        "lints",
        "epsilon_greedy",
        "static_mlp",
        "ab_test",
    ]
    assert [getattr(a, "alpha", None) for a in e.agents[:2]] == [0.5, 1.5]
    assert (e.simulator.kind, e.steps, e.replications) == ("petshop", 20_000, 16)


def test_diverged_replications_are_reported() -> None:
    result = run(experiment("linucb", "random", steps=300))
    assert divergence_notes(result) == []
    history = result.histories["Random"]
    history.alive[2] = False
    history.sums["value"][101:, 2] = np.nan
    (sentence,) = divergence_notes(result)
    assert sentence.startswith(
        f"1 of {history.rows} replications of Random diverged and stopped, the first near step 100"
    )


def test_agents_with_few_clicks_are_named() -> None:
    e = experiment("linucb", "lints", "random", steps=10)
    few, enough, half = np.zeros((10, 3)), np.zeros((10, 3)), np.full((10, 3), 0.25)
    few[0, :2], enough[:7] = 1, 1
    (note,) = rare_reward_notes(
        Result(e, {"LinUCB": history(few), "LinTS": history(enough), "Random": history(half)})
    )
    assert "LinUCB (2)" in note
    assert "LinTS" not in note
    # rewards that are no counts
    assert "Random" not in note
    assert rare_reward_notes(Result(e, {"LinTS": history(enough)})) == []


@pytest.mark.parametrize("replications", [4, 8, 16, 32])
def test_intervals_of_means_cover_from_the_stated_number_of_clicks(replications: int) -> None:
    """2,000 repetitions: .95 within .02 at the number of clicks below which the page warns, far
    less at 1.2 clicks.
    """

    def coverage(clicks: float) -> float:
        generator = np.random.default_rng(replications)
        samples = generator.poisson(clicks / replications, (2000, replications)).astype(float)
        found = (metrics.estimate(sample) for sample in samples)
        return sum(low <= clicks / replications <= high for _, low, high in found) / 2000

    assert coverage(FEW_REWARDS) == pytest.approx(0.95, abs=0.02)
    assert coverage(1.2) < 0.75


def test_intervals_do_not_cover_another_training_of_a_network_that_replications_share() -> None:
    trained = "nor another training of Static MLP, which all replications share"
    assert trained in scope(experiment("linucb", "static_mlp"))
    own = {"kind": "neural_greedy", "pretrain": 1000}
    assert "training" not in scope(experiment("linucb", own))
