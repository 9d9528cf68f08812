"""Comparison of runs: differing settings, exact differences, and pairing only where rows
correspond.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bandits import Experiment, Result, run
from bandits.base.types import FloatArray
from bandits.experiments.snapshots import nice_spacing
from bandits.results import metrics
from bandits.results.change.lost_clicks import lost, without_changes
from bandits.results.comparison import paired_tests
from bandits.results.comparison.overlay import MAX_RUNS, overlay, shade, styles_of_runs
from bandits.results.comparison.run_comparison import (
    MISSING,
    Outcome,
    PairedDifference,
    compared_pairs,
    describe_difference,
    describe_settings,
    matches,
    metric_titles,
    outcomes,
    paired,
    pairing_obstacle,
    reasons,
    settings,
)
from bandits.results.describe import parameter_changes, relabelled
from bandits.results.instant import gain
from tests.support import experiment, history


def result_of(clicks: FloatArray, **changes: object) -> Result:
    """Return a run of one agent with these clicks (T, R)."""
    e = experiment("linucb", steps=len(clicks), replications=clicks.shape[1], **changes)
    return Result(e, {"LinUCB": history(clicks, n_items=10)})


def test_only_differing_settings_are_listed_by_path() -> None:
    a = experiment({"kind": "linucb", "alpha": 0.5}, "random", seed=1)
    b = experiment(
        {"kind": "linucb", "alpha": 2.0}, seed=2, simulator={"kind": "petshop", "n_products": 20}
    )
    found = settings([a, b])
    assert {d.path: d.values for d in found} == {
        "seed": ("1", "2"),
        "simulator.n_products": ("10", "20"),
        "agents.LinUCB.alpha": ("0.5", "2"),
        "agents.Random.kind": ("Random", MISSING),
    }
    assert [d.name for d in found] == ["seed", "Pet shop: products", "LinUCB: alpha", "Random"]
    assert [describe_difference(d, "AB") for d in found] == [
        "seed 2 instead of 1",
        "Pet shop: products 20 instead of 10",
        "LinUCB: alpha 2 instead of 0.5",
        "Random runs only in A",
    ]
    assert settings([a, a]) == []
    assert settings([a]) == []


def test_changes_and_guards_are_described_in_words() -> None:
    shock = {"kind": "shock", "at": 1500}
    shop = {"kind": "petshop", "n_products": 10}
    floor = {"kind": "floor", "epsilon": 0.1}
    a = experiment(
        {"kind": "linucb", "guards": [floor]}, simulator={**shop, "changes": [shock]}, steps=2000
    )
    after = [{**shock, "how": "reverse"}, {"kind": "launch", "at": 20, "items": 2}]
    b = experiment("linucb", simulator={**shop, "changes": after}, steps=2000)
    found = [describe_difference(d, "AB") for d in settings([a, b])]
    assert found == [
        "Pet shop: change 1 Market shock (at 1,500, how reverse) instead of Market shock (at "
        "1,500)",
        "LinUCB: guard 1 exploration floor (epsilon 0.1), only in A",
        "Pet shop: change 2 Launch (at 20, items 2), only in B",
    ]


def test_parameters_of_different_simulators_are_not_compared() -> None:
    a, b = experiment("linucb"), experiment("linucb", simulator={"kind": "wheel"})
    found = [describe_difference(d, "AB") for d in settings([a, b])]
    assert [s for s in found if "only in" not in s] == ["Simulator: Wheel instead of Pet shop"]


def test_an_agent_with_another_label_is_the_same_one() -> None:
    a = experiment("linucb", "lints")
    b = experiment({"kind": "linucb", "label": "Mine"}, {"kind": "lints", "sigma2": 2.0})
    assert describe_settings({"A": a, "B": b}) == [
        "LinTS: sigma2 2 instead of 0.005",
        "LinUCB is named Mine in B",
    ]


def test_agents_that_are_equal_in_both_runs_count_in_no_correction() -> None:
    """What is stated of two runs is then what a slider states of its agent."""
    a, b = experiment("linucb", "lints", "random"), experiment({"kind": "linucb", "alpha": 2.0})
    b = b.model_copy(update={"agents": (*b.agents, *a.agents[1:])})
    runs = {"A": run(a), "B": run(b)}
    assert compared_pairs({"A": a, "B": b}) == 1
    changed = next(pair for pair in paired(runs) if pair.label == "LinUCB")
    one, two = (r.histories["LinUCB"] for r in runs.values())
    assert changed.difference == gain(a, one, two)
    shocked = experiment(
        "linucb",
        "lints",
        "random",
        simulator={"kind": "petshop", "n_products": 10, "shock_step": 100},
    )
    assert compared_pairs({"A": a, "B": shocked}) == 3
    assert compared_pairs({"A": a, "B": b, "C": a}) == 2


def test_a_previous_run_is_comparable_only_with_the_same_simulator_and_random_numbers() -> None:
    before = experiment(
        {"kind": "linucb", "alpha": 0.0}, {"kind": "lints", "ridge": 2.0}, "random", "ucb1"
    )
    agents = [
        {"kind": "linucb", "alpha": 0.5, "sharing": "shared"},
        {"kind": "lints", "ridge": 2.0},
        {"kind": "popularity", "label": "Random"},
        {"kind": "ucb1", "label": "Mine"},
    ]
    found = parameter_changes(before, experiment(*agents))
    # unchanged, of another kind, and new agents are left out
    assert list(found) == ["LinUCB"]
    assert found["LinUCB"].text == "sharing per arm to shared, alpha 0 to 0.5"
    assert found["LinUCB"].before == "sharing per arm, alpha 0"
    shop = {"kind": "petshop", "n_products": 20}
    for other in ({"seed": 8}, {"steps": 200}, {"replications": 2}, {"simulator": shop}):
        assert parameter_changes(before, experiment(*agents, **other)) == {}
    assert parameter_changes(before, before) == {}


def test_an_agent_whose_label_follows_its_value_is_the_same_one() -> None:
    kinds = ("linucb", "lints", "linucb")
    values = [{"label": "LinUCB gamma 0.9995", "gamma": 0.9995}, {}, {"label": "B"}]
    now = [{"label": "LinUCB gamma 0.999", "gamma": 0.999}, {}, {"label": "B"}]
    before, after = (
        experiment(*({"kind": kind, **more} for kind, more in zip(kinds, each, strict=True)))
        for each in (values, now)
    )
    found = parameter_changes(before, after)
    assert {label: (c.label, c.text) for label, c in found.items()} == {
        "LinUCB gamma 0.999": ("LinUCB gamma 0.9995", "gamma 0.9995 to 0.999")
    }
    curve = object()
    assert relabelled({"rate": {"LinUCB gamma 0.9995": curve, "B": curve}}, found) == {
        "rate": {"LinUCB gamma 0.999": curve}
    }
    swapped = experiment(
        {"kind": "linucb", "label": "B", "gamma": 0.5}, "lints", {"kind": "linucb", "label": "C"}
    )
    assert parameter_changes(before, swapped)["B"].label == "B"


def test_agents_are_matched_by_label_and_not_by_position() -> None:
    a, b = experiment("linucb", "random"), experiment("random", "linucb")
    assert a.hash != b.hash
    assert settings([a, b]) == []


def test_simulators_of_different_kinds_and_tables_list_their_values() -> None:
    rates = [list(row) for row in experiment().model_dump()["simulator"]["click_rates"]]
    other = [list(row) for row in rates]
    other[0][2] = 0.99

    def formatted(row: list[float]) -> str:
        return ", ".join(map(str, row))

    a = experiment(simulator={"kind": "petshop", "click_rates": rates})
    b = experiment(simulator={"kind": "petshop", "click_rates": other})
    (row,) = settings([a, b])
    assert row.path == "simulator.click_rates.0"
    assert row.name.startswith("Pet shop: click probabilities, ")
    assert row.values == (formatted(rates[0]), formatted(other[0]))
    c = experiment(simulator={"kind": "classification", "data": "wine"})
    actual = {d.path: d.values for d in settings([a, b, c])}
    assert actual["simulator.kind"] == ("Pet shop", "Pet shop", "Real data (classification)")
    assert actual["simulator.data"] == (MISSING, MISSING, "wine")
    assert "simulator.n_products" not in actual  # at its default
    assert [describe_difference(d, ("B", "C")) for d in settings([experiment(), c])] == [
        "Simulator: Real data (classification) instead of Pet shop",
        "Pet shop: products 10, only in B",
        "Real data (classification): data set wine, only in C",
    ]
    wide = {"kind": "static_mlp", "hidden": [64, 32]}
    (layers,) = settings([experiment(wide), experiment({**wide, "hidden": [8]})])
    assert (layers.path, layers.values) == ("agents.Static MLP.hidden", ("64, 32", "8"))


def test_metrics_are_named_in_the_words_of_the_simulators() -> None:
    shop, wheel = experiment("random"), experiment("random", simulator={"kind": "wheel"})
    assert list(metric_titles([shop, shop]).values())[:2] == [
        "Click-through rate",
        "Cumulative clicks",
    ]
    assert list(metric_titles([wheel]).values())[:2] == ["Reward per step", "Cumulative points"]
    assert list(metric_titles([shop, wheel]).values())[:2] == [
        "Reward per step",
        "Cumulative reward",
    ]


def test_outcomes_equal_the_numbers_of_each_run() -> None:
    clicks = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    a, b = result_of(clicks), run(experiment("linucb", "random", steps=200))
    actual = outcomes([a, b])
    assert [(o.label, o.metric) for o in actual] == [
        (label, metric)
        for label in ("LinUCB", "Random")
        for metric in ("ctr", "clicks", "pseudo_regret", "oracle_share", "optimal_choice")
    ]
    rate, total = actual[0].values[0], actual[1].values[0]
    assert rate == metrics.estimate(np.array([1.0, 0.5, 0.5]))
    assert total == metrics.estimate(np.array([4.0, 2.0, 2.0]))
    assert actual[5] == Outcome(
        "Random", "ctr", (None, metrics.estimate(metrics.click_rate(b.histories["Random"])))
    )
    summary = b.summary()["agents"]["LinUCB"]
    for outcome, name in zip(
        actual[:5],
        ("ctr", "clicks", "pseudo_regret", "oracle_share", "optimal_choice"),
        strict=True,
    ):
        assert outcome.values[1] is not None
        assert outcome.values[1]._asdict() == summary[name]


def test_paired_differences_are_exact_at_the_last_common_step() -> None:
    rng = np.random.default_rng(5)
    short = (rng.random((2999, 4)) < 0.4).astype(float)
    # grids of 2, 10 and 100 steps, and one that ends off the other's
    for steps in (2999, 3000, 6000, 45_000):
        first = (rng.random((steps, 4)) < 0.5).astype(float)
        (actual,) = paired({"A": result_of(first), "B": result_of(short)})
        spacing = nice_spacing(steps, 2000)
        step = 2999 if steps == 2999 else 2999 // spacing * spacing
        gap = first[:step].sum(axis=0) - short[:step].sum(axis=0)
        assert actual == PairedDifference(
            "LinUCB", "A", "B", step, metrics.estimate(gap), 4, paired_tests.paired_test(gap)[1]
        )


def test_a_paired_difference_between_runs_equals_that_within_one_run() -> None:
    """Results of an agent do not depend on other agents, so differences within and between runs are
    equal.
    """
    both = run(
        experiment(
            {"kind": "linucb", "label": "cold"}, {"kind": "linucb", "alpha": 0.0, "label": "warm"}
        )
    )
    cold = Result(experiment("linucb"), {"LinUCB": both.histories["cold"]})
    warm = run(experiment({"kind": "linucb", "alpha": 0.0}))
    (actual,) = paired({"A": cold, "B": warm})
    expected = both.compare("cold", "warm")
    assert actual.difference == expected.difference
    assert (actual.rows, actual.step) == (expected.rows, 300)
    assert actual.difference.mean != 0


def test_stopped_rows_are_left_out() -> None:
    clicks = np.ones((10, 3))
    a = Result(
        experiment("linucb", steps=10),
        {"LinUCB": history(clicks, n_items=10, alive=[True, False, True])},
    )
    (actual,) = paired({"A": a, "B": result_of(np.zeros((10, 3)))})
    assert (actual.rows, actual.difference.mean) == (2, 10.0)


@pytest.mark.parametrize(
    ("changes", "why", "instead"),
    [
        ({"seed": 7}, "seed", "Compare their intervals instead."),
        (
            {"simulator": {"kind": "petshop", "n_products": 20}},
            "simulator",
            "Compare their intervals instead.",
        ),
        (
            {"seed": 7, "simulator": {"kind": "classification"}},
            "simulator and seed",
            "Rates of different simulators are not comparable.",
        ),
    ],
)
def test_runs_with_different_visitors_are_not_paired(
    changes: dict[str, object], why: str, instead: str
) -> None:
    a, b = experiment("random"), experiment("random", **changes)
    assert pairing_obstacle(a, b) == why
    assert paired({"A": run(a), "B": run(b)}) == []
    assert reasons({"A": a, "B": b, "C": a}) == [
        f"{pair} cannot be paired: they differ in {why}. {instead}"
        for pair in ("A and B", "B and C")
    ]


def test_runs_with_different_lengths_and_agents_are_paired() -> None:
    a, b = experiment("random"), experiment("linucb", "random", steps=100)
    assert pairing_obstacle(a, b) == ""
    assert reasons({"A": a, "B": b}) == []
    (actual,) = paired({"A": run(a), "B": run(b)})
    assert actual == PairedDifference(
        "Random", "A", "B", 100, metrics.Estimate(0.0, 0.0, 0.0), 3, 1.0
    )


@pytest.mark.parametrize(
    "change", [{"changes": [{"kind": "shock", "at": 100}]}, {"shock_step": 100}]
)
def test_a_run_is_paired_with_the_same_run_without_its_change(change: dict[str, object]) -> None:
    changed = run(experiment("linucb", simulator={"kind": "petshop", **change}))
    plain = run(without_changes(changed.experiment))
    assert pairing_obstacle(plain.experiment, changed.experiment) == ""
    (actual,) = paired({"plain": plain, "changed": changed})
    assert actual.difference == lost(changed, plain, "LinUCB")
    assert actual.difference.mean != 0
    elsewhere = experiment("linucb", simulator={"kind": "petshop", "n_products": 20, **change})
    assert pairing_obstacle(plain.experiment, elsewhere) == "simulator"


def test_runs_with_different_replications_are_paired_in_common_rows() -> None:
    few, many = experiment("linucb"), experiment({"kind": "linucb", "alpha": 0.0}, replications=5)
    (actual,) = paired({"A": run(few), "B": run(many)})
    gap = (
        run(few).histories["LinUCB"].sums["clicks"][-1]
        - run(many).histories["LinUCB"].sums["clicks"][-1][:3]
    )
    assert (actual.rows, actual.difference) == (3, metrics.estimate(gap))


def test_agents_of_equal_label_and_different_kind_are_distinct() -> None:
    a, b = (
        experiment({"kind": "linucb", "label": "x"}),
        experiment({"kind": "random", "label": "x"}),
    )
    assert paired({"A": run(a), "B": run(b)}) == []


def test_the_correction_counts_all_pairs_shown() -> None:
    runs = {
        n: run(experiment({"kind": "linucb", "alpha": a}))
        for n, a in zip("ABC", (0, 1, 4), strict=True)
    }
    actual = paired(runs)
    alone = [
        paired({n: runs[n] for n in pair})[0].p_value for pair in itertools.combinations("ABC", 2)
    ]
    assert [pair.p_value for pair in actual] == [min(1.0, 3 * p) for p in alone]
    # intervals agree with them
    for pair in actual:
        assert (pair.difference.low * pair.difference.high > 0) is (pair.p_value < 0.05)
    single = paired({n: runs[n] for n in "AC"})[0]
    both = next(pair for pair in actual if (pair.a, pair.b) == ("A", "C"))
    assert (
        both.difference.low
        <= single.difference.low
        < single.difference.high
        <= both.difference.high
    )


def test_an_overlay_has_a_hue_per_agent_and_a_line_style_and_a_lightness_per_run() -> None:
    es = {"A": experiment("linucb", "random"), "B": experiment("random", "lints")}
    rates, regrets = overlay({name: run(e) for name, e in es.items()})
    for spec in (rates, regrets):
        lines = {t["name"]: t["line"] for t in spec["data"] if "fill" not in t}
        assert list(lines) == ["A · LinUCB", "A · Random", "B · Random", "B · LinTS"]
        assert len({line["color"] for line in lines.values()}) == 4
        assert lines["B · Random"]["color"] == shade(lines["A · Random"]["color"], 0.4)
        assert {n: line["dash"] for n, line in lines.items()} == {
            n: ("solid", "dash")["AB".index(n[0])] for n in lines
        }
    assert rates["layout"]["title"]["text"] == "Click-through rate"
    assert regrets["layout"]["title"]["text"] == "Cumulative regret"
    regret = next(t for t in regrets["data"] if t["name"] == "B · LinTS" and "fill" not in t)
    band = metrics.pseudo_regret(run(es["B"]).histories["LinTS"])
    np.testing.assert_array_equal(regret["y"], band.mid)
    many = {
        str(i): Experiment.model_validate({"agents": [{"kind": "linucb"}] * 8})
        for i in range(MAX_RUNS)
    }
    for dark in (False, True):
        looks = [
            look for each in styles_of_runs(many, dark=dark).values() for look in each.values()
        ]
        assert len(set(looks)) == len(looks)
        assert len({look.dash for look in looks}) == MAX_RUNS
    assert (shade("#0072B2", 0.5), shade("#0072B2", 0.5, dark=True)) == ("#003959", "#80B8D8")


def test_runs_of_different_simulators_never_share_an_axis() -> None:
    es = {
        "A": experiment("random", steps=100),
        "B": experiment("random", simulator={"kind": "wheel"}, steps=100),
        "C": experiment("linucb", steps=100),
    }
    figures = overlay({name: run(e) for name, e in es.items()})
    assert [f["layout"]["title"]["text"] for f in figures] == [
        "Click-through rate, runs A, C",
        "Cumulative regret, runs A, C",
        "Reward per step, run B",
        "Cumulative regret, run B",
    ]
    names = [{t["name"] for t in f["data"]} for f in figures]
    assert names == [{"A · Random", "C · LinUCB"}] * 2 + [{"B · Random"}] * 2
    assert [f["layout"]["yaxis"]["title"]["text"] for f in figures] == [
        "clicks per step",
        "expected clicks lost",
        "points per step",
        "expected points lost",
    ]


def test_agents_are_matched_by_label_first_and_then_by_equal_parameters() -> None:
    a = experiment(
        {"kind": "linucb", "alpha": 0.5}, {"kind": "lints", "label": "Sampler"}, "random"
    )
    b = experiment(
        {"kind": "linucb", "alpha": 1.0}, {"kind": "linucb", "alpha": 0.5, "label": "Low"}, "lints"
    )
    assert matches(a, b) == [("LinUCB", "LinUCB"), ("Sampler", "LinTS")]
    pairs = paired({"A": run(a), "B": run(b)})
    assert [(pair.label, pair.other) for pair in pairs] == [("LinUCB", ""), ("Sampler", "LinTS")]
    # the same agent on the same random numbers
    assert pairs[1].difference.mean == 0
    twins = experiment({"kind": "lints", "label": "One"}, {"kind": "lints", "label": "Two"})
    assert matches(twins, experiment("lints")) == [("One", "LinTS")]
    assert (
        matches(
            experiment({"kind": "lints", "label": "X"}),
            experiment({"kind": "linucb", "label": "X"}),
        )
        == []
    )
