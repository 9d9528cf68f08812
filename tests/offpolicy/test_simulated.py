"""Logs of simulated runs: they are the run, the truth is known, and agents learn from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import UserError, run
from bandits.agents.linear.lints import LinTS
from bandits.cli.main import main
from bandits.experiments.lockstep import make_lane
from bandits.offpolicy import (
    DecisionLog,
    Matrix,
    evaluate,
    learned_agent,
    read_log,
    record,
    true_value,
    write_dsjson,
    write_parquet,
)
from bandits.offpolicy.recording import check
from bandits.offpolicy.targets import Always, Random
from tests.support import experiment, often, thinned

SHOP = {"kind": "petshop", "n_products": 10}
FLOOR = {"kind": "floor", "epsilon": 0.2}


@pytest.mark.parametrize(
    "simulator", thinned([SHOP, {"kind": "synthetic"}, {"kind": "wheel"}], lambda n: n == 0)
)
def test_a_log_is_the_run(simulator: dict[str, Any], tmp_path: Path) -> None:
    agents = (
        {"kind": "epsilon_greedy", "epsilon": 0.2},
        {"kind": "linucb", "guards": [FLOOR]},
        "linucb",
    )
    e = experiment(*agents, simulator=simulator, steps=300, replications=3)
    result = run(e, workers=0)
    for label, kind in zip(e.labels, ("exact", "exact", "deterministic"), strict=True):
        log = record(e, label)
        assert len(log) == 900
        clicks = np.bincount(np.asarray(log.rows), log.rewards)
        np.testing.assert_allclose(clicks, result.histories[label].sums["clicks"][-1])
        assert set(np.asarray(log.kinds)) == {kind}
        if kind == "exact":
            stated = np.asarray(log.distributions)[np.arange(len(log)), log.actions]
            np.testing.assert_array_equal(stated, np.asarray(log.propensities))
        write_parquet(log, tmp_path / "log.parquet")
        assert read_log(tmp_path / "log.parquet") == log


@pytest.mark.parametrize(
    "agent", [{"kind": "epsilon_greedy"}, {"kind": "linucb", "guards": [FLOOR]}, {"kind": "ucb1"}]
)
@pytest.mark.parametrize(
    "simulator", [SHOP, {"kind": "petshop", "layout": "per_row"}, {"kind": "synthetic"}]
)
def test_a_log_of_some_replications_is_that_part_of_the_log_of_all(
    simulator: dict[str, Any], agent: dict[str, Any]
) -> None:
    e = experiment(agent, simulator=simulator, steps=120, replications=4)
    whole = record(e)
    for rows in ([0, 1], [3], [2, 0]):
        part = record(e, rows=rows)
        chosen = whole.select(
            np.concatenate(
                [
                    np.flatnonzero((whole.steps == t) & (whole.rows == r))
                    for t in range(120)
                    for r in rows
                ]
            )
        )
        # each replication has contexts of its own, numbered in the log
        if rows != [0, 1] and simulator != SHOP:
            chosen = replace(chosen, contexts=part.contexts)
        assert part == chosen
        assert part.event_ids is not None
        assert part.event_ids[0] == f"{rows[0]}-0"
        assert len(set(part.event_ids)) == len(part)
        assert true_value(part, Random()) == true_value(chosen, Random())


def test_rows_that_the_experiment_does_not_have_are_refused_and_few_rows_make_a_long_run_possible() -> (  # noqa: E501
    None
):
    e = experiment("random", simulator=SHOP, steps=50, replications=2)
    for rows in ([], [2], [-1], [0, 0]):
        with pytest.raises(
            UserError, match="rows must be one or more different replications from 0 to 1; got"
        ):
            record(e, rows=rows)
    check(experiment("random", steps=100_000, replications=32), rows=[0, 5])


@pytest.mark.parametrize("agent", ["random", {"kind": "linucb", "guards": [FLOOR]}])
def test_progress_is_told_at_most_about_100_times(agent: str | dict[str, Any]) -> None:
    for steps in (7, 100, 101, 1003):
        told: list[int] = []
        e = experiment(agent, simulator=SHOP, steps=steps, replications=2)
        assert record(e, progress=told.append) == record(e)
        assert told == sorted(set(told))
        assert told[-1] == steps
        assert min(steps, 50) <= len(told) <= 101


def test_the_truth_of_random_choice_and_of_the_logging_policy_is_that_of_the_run() -> None:
    e = experiment({"kind": "linucb", "guards": [FLOOR]}, simulator=SHOP, steps=400, replications=3)
    log, trace = record(e), make_lane(e, 0).advance(400)
    assert true_value(log, Random()).value == pytest.approx(trace.random_value.mean())
    mixed = Matrix(np.asarray(log.distributions))
    values = np.array(
        [
            true_value(
                log.select(np.asarray(log.rows) == r), Matrix(mixed.matrix[log.rows == r])
            ).value
            for r in range(3)
        ]
    )
    assert true_value(log, mixed).value == pytest.approx(values.mean())
    noise = trace.value.std() / np.sqrt(trace.value.size)
    assert abs(trace.value.mean() - true_value(log, mixed).value) < 4 * noise


@pytest.mark.slow
def test_ips_is_unbiased_for_logs_of_our_own_agents() -> None:
    """Under a floor, the logged propensities recover the true value of a fixed policy."""
    errors, n = [], often(40, 400)
    for seed in range(n):
        agent = {"kind": "linucb", "guards": [FLOOR]}
        log = record(experiment(agent, simulator=SHOP, steps=150, replications=4, seed=seed))
        target = Always(str(seed % 10))
        found = evaluate(log, target, estimators=["ips"])
        assert found.truth is not None
        errors.append(found.estimates["ips"].value - found.truth.value)
    assert abs(np.mean(errors)) < 4 * np.std(errors, ddof=1) / np.sqrt(n)


def test_an_agent_that_learns_from_its_own_log_is_where_it_was() -> None:
    params = {"kind": "linucb", "alpha": 0.4}
    e = experiment(params, simulator=SHOP, steps=400, replications=3)
    log = record(e)
    rest, target = learned_agent(log, json.dumps(params))
    steps = np.asarray(rest.steps)
    assert steps.min() == 200
    first = steps == 200
    np.testing.assert_array_equal(target.matrix[first].argmax(axis=1), rest.actions[first])
    assert len(rest) == 600


def test_what_it_learned_is_worth_more_than_random_choice() -> None:
    log = record(experiment("random", simulator=SHOP, steps=2000, replications=2))
    found = evaluate(log, '{"kind": "linucb", "alpha": 0}', estimators=["dr"])
    assert found.truth is not None
    assert found.n == 2000
    assert found.estimates["dr"].low > 0.25
    assert found.truth.value > 0.4
    assert found.target == "LinUCB"


def test_what_is_impossible_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="a row for each of 10 slots"):
        record(experiment("random", simulator={"kind": "ranking"}, steps=5000))
    with pytest.raises(UserError, match=r"at most|may have 2,000,000 decisions"):
        record(experiment("random", steps=100_000, replications=32))
    e = experiment("random", simulator=SHOP, steps=50, replications=2)
    with pytest.raises(UserError, match=r"agent is Nobody; it must be one of Random"):
        record(e, "Nobody")
    log = record(e)
    for spec, words in (
        ("{", "is not JSON"),
        ('{"kind": "x"}', "kind"),
        ('{"kind": "linucb", "alpha": -1}', "alpha"),
    ):
        with pytest.raises(UserError, match=words):
            evaluate(log, spec)
    foreign = DecisionLog(actions=log.actions, rewards=log.rewards, names=log.names)
    with pytest.raises(UserError, match="not one of a simulated run"):
        evaluate(foreign, '{"kind": "linucb"}')
    file = tmp_path / "e.json"
    file.write_text(e.model_dump_json(by_alias=True), encoding="utf-8")
    assert main(["run", str(file), "--log"]) == 2
    assert "--out" in capsys.readouterr().err


def test_the_command_line_logs_a_run_and_evaluates_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    e = experiment(
        {"kind": "epsilon_greedy", "label": "Mine"},
        "random",
        simulator=SHOP,
        steps=300,
        replications=2,
    )
    file = tmp_path / "e.json"
    file.write_text(e.model_dump_json(by_alias=True), encoding="utf-8")
    assert main(["run", str(file), "--log", "--out", str(tmp_path / "out"), "--workers", "0"]) == 0
    log = tmp_path / "out" / "log" / "Mine.parquet"
    assert read_log(log) == record(e, "Mine")
    assert main(["evaluate", str(log), "--target", "random", "--out", str(tmp_path)]) == 0
    assert "(of the simulator)" in capsys.readouterr().out
    saved = json.loads((tmp_path / "estimates.json").read_text(encoding="utf-8"))
    assert set(saved["truth"]) == {"value", "low", "high"}


SLATES = {
    "kind": "ranking",
    "n_items": 12,
    "n_candidates": 10,
    "slate": 3,
    "n_users": 5,
    "embedding": 4,
    "choice": "sigmoid",
    "intercept": 1.5,
}


@pytest.mark.parametrize(
    ("agent", "kind"),
    thinned(
        [
            ({"kind": "random"}, "exact"),
            ({"kind": "epsilon_greedy", "epsilon": 0.3, "decay": 0.001}, "exact"),
            ({"kind": "linucb", "guards": [FLOOR]}, "exact"),
            ({"kind": "linucb", "guards": [{**FLOOR, "new": 0.3, "shows": 40}]}, "exact"),
            (
                {
                    "kind": "linucb",
                    "guards": [
                        {
                            "kind": "fallback",
                            "to": "epsilon_greedy",
                            "median_ms": 90,
                            "p99_ms": 300,
                            "budget_ms": 100,
                        }
                    ],
                },
                "exact",
            ),
            (
                {
                    "kind": "epsilon_greedy",
                    "guards": [{"kind": "cap", "share": 0.35, "window": 50}],
                },
                "exact",
            ),
            ({"kind": "ab_test", "winner": "all", "test": 15}, "monte_carlo"),
            ({"kind": "lints", "sharing": "shared"}, "monte_carlo"),
            (
                {
                    "kind": "lints",
                    "sharing": "shared",
                    "sigma2": 0.05,
                    "guards": [{"kind": "fallback", "to": "random"}],
                },
                "monte_carlo",
            ),
            ({"kind": "linucb"}, "deterministic"),
        ],
        lambda number: number in (0, 2, 3, 6),
    ),
)
def test_a_log_of_slates_states_the_probability_of_each_item_at_each_position(
    agent: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    """Shows of an item at a position minus their probabilities are a martingale: |z| < 4.5 for each
    of 36.
    """
    steps = 30 if kind == "monte_carlo" else 150
    e = experiment(agent, simulator=SLATES, steps=steps, replications=3)
    log = record(e)
    assert len(log) == steps * 3 * 3
    assert set(np.asarray(log.kinds)) == {kind}
    assert np.asarray(log.positions)[:6].tolist() == [1, 2, 3, 1, 2, 3]
    per_event = log.actions.reshape(-1, 3)
    assert all(len(set(slate)) == 3 for slate in per_event.tolist())
    clicks = np.bincount(np.asarray(log.rows), log.rewards)
    np.testing.assert_allclose(clicks, run(e, workers=0).histories[e.labels[0]].sums["clicks"][-1])
    clicked = log.rewards.reshape(-1, 3).cumsum(axis=1)
    np.testing.assert_array_equal(
        log.columns["examined"].reshape(-1, 3)[:, 1:], clicked[:, :-1] == 0
    )
    if kind == "deterministic":
        assert (log.propensities == 1).all()
    else:
        p = np.asarray(log.distributions)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_array_equal(
            p[np.arange(len(log)), log.actions], np.asarray(log.propensities)
        )
        for position in (1, 2, 3):
            at = np.asarray(log.positions) == position
            shows, expected = np.bincount(log.actions[at], minlength=12), p[at].sum(axis=0)
            spread = np.sqrt((p[at] * (1 - p[at])).sum(axis=0))
            assert (np.abs(shows - expected) <= 4.5 * spread + 1).all()
    write_parquet(log, tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet") == log
    write_dsjson(log, tmp_path / "log.dsjson")
    back = read_log(tmp_path / "log.dsjson")
    # dsjson holds everything but the experiment and the name of its agent
    assert replace(back, experiment=log.experiment, agent=log.agent) == log


@pytest.mark.parametrize(
    "guard",
    [
        {"kind": "fallback", "to": "random", "median_ms": 3, "p99_ms": 50},
        {"kind": "floor", "epsilon": 0.05},
    ],
    ids=["fallback", "floor"],
)
def test_inverse_propensities_of_mixtures_with_redraws_are_unbiased(
    guard: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 8 redraws, the mean of 1 / (K p) over 3,000 decisions is 1: |z| < 4, with the variance
    that follows from the distributions.
    """
    monkeypatch.setattr(LinTS, "n_redraws", 8)
    agent = {"kind": "lints", "sharing": "shared", "guards": [guard]}
    log = record(experiment(agent, simulator=SHOP, steps=150, replications=20))
    assert set(np.asarray(log.kinds)) == {"monte_carlo"}
    distributions = np.asarray(log.distributions)
    assert distributions.min() > 0
    weights = 1 / (10 * np.asarray(log.propensities))
    variance = (1 / (100 * distributions)).sum(axis=1) - 1
    assert abs((weights - 1).sum()) < 4 * np.sqrt(variance.sum())
    # wrong by a third would show
    assert 4 * np.sqrt(variance.sum()) < 0.35 * len(log)


def test_slates_are_evaluated_position_by_position() -> None:
    """Of random choice from its own log: the truth is in the interval, the positions sum up.

    Agents are refused.
    """
    log = record(experiment("random", simulator=SLATES, steps=500, replications=3))
    found = evaluate(log, "random", estimators=["ips", "dr"])
    assert found.truth is not None
    assert found.estimates["ips"].low < found.truth.value < found.estimates["ips"].high
    ips = evaluate(log, "random", estimators=["ips"])
    assert list(ips.positions) == ["1", "2", "3"]
    assert np.mean([e.value for e in ips.positions.values()]) == pytest.approx(
        ips.estimates["ips"].value
    )
    clicks = [log.rewards[np.asarray(log.positions) == s].mean() for s in (1, 2, 3)]
    assert [e.value for e in ips.positions.values()] == pytest.approx(clicks)
    assert ips.positions["1"].standard_error == pytest.approx(
        log.rewards[::3].std(ddof=1) / 1500**0.5
    )
    assert [alarm.kind for alarm in found.alarms] == ["positions"]
    assert evaluate(log, "always:3", estimators=["ips"]).truth is None
    with pytest.raises(UserError, match="shows one item at a time; on a log of slates random"):
        evaluate(log, '{"kind": "linucb"}')
