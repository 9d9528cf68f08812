"""Conclusions of an evaluation: the gain over the logging policy, its sentences, weights, and
background tasks.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bandits.base.errors import UserError
from bandits.offpolicy import (
    DecisionLog,
    Matrix,
    conclusion,
    evaluate,
    figures,
    read_log,
    write_parquet,
)
from bandits.offpolicy.anytime import anytime
from bandits.offpolicy.background import (
    EvaluationTask,
    RecordTask,
    columns,
    summarise_file,
    summary,
)
from bandits.offpolicy.choices import (
    rows_at_first,
    suggested_logger,
    suggested_target,
    summarise,
    summarise_run,
    target_agents,
)
from bandits.offpolicy.intervals import truncated_bernstein
from bandits.offpolicy.recording import record
from bandits.offpolicy.support import verdict
from bandits.offpolicy.user_table import suggested_map
from bandits.offpolicy.weight_histogram import histogram
from tests.offpolicy.support import simulate
from tests.support import experiment, wait_for


def test_the_gain_is_the_paired_difference_from_the_logged_rewards() -> None:
    setting = simulate(np.random.default_rng(1), 4000)
    found = evaluate(setting.log, Matrix(setting.target), estimators=["ips", "snips"])
    w = setting.target[np.arange(4000), setting.log.actions] / setting.log.propensities
    r, mean = setting.log.rewards, w.mean()
    ratio = (w * r).mean() / mean
    d = ratio + (w * r - ratio * w) / mean - r
    assert found.main == "snips"
    assert found.logged == r.mean()
    assert found.gain.value == pytest.approx(d.mean(), rel=1e-12)
    assert found.gain.standard_error == pytest.approx(d.std(ddof=1) / 4000**0.5, rel=1e-12)


@pytest.mark.slow
def test_the_interval_of_the_gain_covers_and_seldom_sees_a_difference_that_is_not_there() -> None:
    """2,000 logs of 1,000 decisions.

    Shares within 5 standard errors of 95 % and 5 %, and 1 point for the small n.
    """
    g, repetitions, n = np.random.default_rng(3), 2000, 1000
    many = simulate(g, 400_000, 4, vectors=False)
    difference = many.value - float((many.logging * many.rewards).sum(axis=1).mean())
    covered = wrong = 0
    for _ in range(repetitions):
        setting = simulate(g, n, 4, vectors=False)
        gain = evaluate(setting.log, Matrix(setting.target), estimators=["snips"]).gain
        covered += gain.low <= difference <= gain.high
        # all actions earn the same
        alike = replace(setting.log, rewards=(g.random(n) < 0.3).astype(float))
        gain = evaluate(alike, Matrix(setting.target), estimators=["snips"]).gain
        wrong += not gain.low <= 0 <= gain.high
    bound = 5 * (0.05 * 0.95 / repetitions) ** 0.5 + 0.01
    assert abs(covered / repetitions - 0.95) < bound
    assert abs(wrong / repetitions - 0.05) < bound


def test_the_first_sentence_says_more_less_apart_or_that_the_log_cannot_answer() -> None:
    setting = simulate(np.random.default_rng(4), 20_000)
    best = np.eye(5)[setting.rewards.argmax(axis=1)] * 0.5 + 0.1
    worst = np.eye(5)[setting.rewards.argmin(axis=1)] * 0.5 + 0.1
    more, less, same = (
        conclusion.sentences(evaluate(setting.log, Matrix(p)))[0]
        for p in (best, worst, 0.97 * setting.logging + 0.03 / 5)
    )
    shape = (
        r"Matrix would have earned (0\.\d{3}) per decision \(95 % confidence interval 0\.\d{3} to 0\.\d{3}\): "  # noqa: E501
        r"(0\.\d{3}) \((\d+(?:\.\d)?) %\) (more|less) than the logging policy, which earned (0\.\d{3}) "  # noqa: E501
        r"\(interval of the difference (0\.\d{3}) to (0\.\d{3})\)\."
    )
    for sentence, word, sign in ((more, "more", 1), (less, "less", -1)):
        found = re.fullmatch(shape, sentence)
        assert found is not None, sentence
        value, difference, logged, low, high = (float(found[i]) for i in (1, 2, 5, 6, 7))
        assert found[4] == word
        assert low < difference < high
        # printed numbers subtract
        assert value - logged == pytest.approx(sign * difference, abs=1e-9)
        assert float(found[3]) == pytest.approx(100 * difference / logged, abs=0.6)
    assert "cannot tell the two apart" in same
    few = setting.log.select(np.arange(60))
    assert conclusion.sentences(evaluate(few, "always:item 2"))[0].startswith(
        "This log cannot answer reliably what"
    )
    exact = evaluate(setting.log, "column:propensity")
    stated = conclusion.sentences(exact)
    assert stated[0].startswith(
        "The policy in the column propensity is the policy that made this log, which earned "
    )
    assert len(stated) == 1
    nothing = evaluate(
        replace(setting.log, rewards=np.zeros(20_000)), Matrix(best), estimators=["ips"]
    )
    assert "the same as the logging policy" in conclusion.sentences(replace(nothing, alarms=()))[0]


def test_a_target_that_made_the_log_has_no_difference_whatever_the_model_predicts() -> None:
    """Predicted rewards differ between items, so that DR differs from the mean reward.

    1/3 is written as .333.
    """
    g, n = np.random.default_rng(15), 3000
    actions = g.integers(0, 3, n)
    rewards = (g.random(n) < 0.2 + 0.2 * actions).astype(float)
    log = DecisionLog(
        actions=actions, rewards=rewards, names=("a", "b", "c"), propensities=np.full(n, 0.333)
    )
    found = evaluate(log, "random")
    assert found.same
    assert found.main == "snips"
    assert tuple(found.gain) == (0, 0, 0, 0)
    assert found.estimates["snips"].value == pytest.approx(rewards.mean())
    assert found.estimates["dr"].value != pytest.approx(rewards.mean(), rel=1e-6)
    assert found.alarms == ()
    (stated,) = conclusion.sentences(found)
    earned = f"which earned {rewards.mean():.{conclusion.decimals(found)}f} per decision"
    assert stated.startswith(
        f"Choosing at random is the policy that made this log, {earned}: there is no difference"
    )
    by_model = conclusion.sentences(evaluate(log, "random", estimators=["dr"]))[0]
    # what the log holds, whatever is estimated
    assert earned in by_model
    for other in (np.full(n, 0.329), np.where(actions == 1, 0.5, 1 / 3)):
        assert not evaluate(replace(log, propensities=other), "random", estimators=["ips"]).same
    bare = replace(log, propensities=None)
    assert not evaluate(bare, "random").same
    # a model of the log is no record of it
    guessed = evaluate(bare, "random", estimate_propensities=True)
    assert conclusion.sentences(guessed)[0].startswith("This log cannot answer reliably")


def test_a_small_difference_of_probabilities_counts_where_rewards_are_of_both_signs() -> None:
    """Weights within 1 % of 1: 0.0045 x 20 = 0.09 more per decision, ten standard errors of the
    difference.
    """
    g, n = np.random.default_rng(16), 200_000
    actions = g.integers(0, 2, n)
    log = DecisionLog(
        actions=actions,
        rewards=np.where(actions == 1, 10.0, -10.0),
        names=("a", "b"),
        propensities=np.full(n, 0.5),
        columns={"p": np.where(actions == 1, 0.5045, 0.4955)},
    )
    found = evaluate(log, "column:p", estimators=["snips"])
    assert not found.same
    assert found.gain.low > 0.08
    assert "more than the logging policy" in conclusion.sentences(found)[0]
    alike = replace(log, rewards=(g.random(n) < 0.3).astype(float))
    assert evaluate(alike, "column:p", estimators=["snips"]).same
    # of one action alone
    other = replace(alike, columns={"p": np.where(actions == 1, 0.52, 0.5)})
    assert not evaluate(other, "column:p", estimators=["snips"]).same


@pytest.mark.parametrize(("n", "least"), [(2000, 0.3), (200_000, 0.03)])
def test_the_decisions_that_10_percent_takes_follow_from_the_interval_of_the_difference(
    n: int, least: float
) -> None:
    """The half width shrinks with the root of the decisions, so that N = n (half · 2.80 / 1.96 / 10
    %)².
    """
    setting = simulate(np.random.default_rng(16), n, vectors=False)
    found = evaluate(setting.log, Matrix(setting.target), estimators=["ips"])
    half = 100 * (found.gain.high - found.gain.low) / 2 / found.logged
    stated = re.fullmatch(
        r"To find a difference of 10 % from the logging policy in 80 % of such logs, about ([\d,]+)( of the [\d,]+)? "  # noqa: E501
        r"evaluated decisions are (?:needed; the [\d,]+ of this log|enough; all of them) find a difference of "  # noqa: E501
        r"([\d.]+) % as often\. The interval of the difference is now ±([\d.]+) %\.",
        found.verdict,
    )
    assert stated is not None, found.verdict
    assert float(stated[4]) == pytest.approx(half, abs=0.5)
    assert float(stated[3]) == pytest.approx(half * 2.8016 / 1.96, abs=0.5)
    required = n * (half * 2.8016 / 1.96 / 10) ** 2
    assert float(stated[1].replace(",", "")) == pytest.approx(required, rel=0.06)
    assert bool(stated[2]) is (required < n) is (least < 0.1)


def test_replay_of_a_log_that_is_not_uniform_answers_nothing() -> None:
    """Item 1 is shown with .9 where rewards are frequent and with .1 where they are rare: replay
    sees the former.
    """
    g, n = np.random.default_rng(10), 20_000
    good = g.random(n) < 0.5
    p = np.where(good, 0.9, 0.1)
    actions = (g.random(n) < p).astype(int)
    rewards = (g.random(n) < np.where(good, 0.46, 0.12)).astype(float)
    log = DecisionLog(
        actions=actions,
        rewards=rewards,
        names=("0", "1"),
        propensities=np.where(actions == 1, p, 1 - p),
    )
    found = evaluate(log, "always:1", estimators=["replay"])
    assert found.gain.low > 0.1  # the truth is 0
    assert conclusion.sentences(found)[0].startswith("This log cannot answer reliably")
    assert not evaluate(log, "always:1").gain.low > 0.02


@pytest.mark.parametrize("interval", ["bootstrap", "bernstein", "anytime"])
def test_the_gain_has_the_kind_of_interval_that_was_asked_for(interval: str) -> None:
    setting = simulate(np.random.default_rng(11), 2000)
    w = setting.target[np.arange(2000), setting.log.actions] / setting.log.propensities
    r = setting.log.rewards
    found = evaluate(
        setting.log,
        Matrix(setting.target),
        estimators=["ips"],
        interval=interval,
        reward_range=(0, 1),
    )
    plain = evaluate(setting.log, Matrix(setting.target), estimators=["ips"])
    assert found.gain.value == plain.gain.value == pytest.approx(((w - 1) * r).mean())
    if interval == "bootstrap":
        assert found.gain.low == pytest.approx(plain.gain.low, abs=0.01)
    elif interval == "bernstein":
        ends = truncated_bernstein(w, r, 0, 1, less=1)
        assert (found.gain.low, found.gain.high) == pytest.approx(ends)
        assert ends[0] < plain.gain.low < plain.gain.high < ends[1]
    else:
        target, logged = anytime(w, r, level=0.975), anytime(np.ones(2000), r, level=0.975)
        assert (found.gain.low, found.gain.high) == pytest.approx(
            (target.low - logged.high, target.high - logged.low)
        )


def test_looking_again_and_again_finds_no_difference_that_is_not_there() -> None:
    """60 logs without a difference, looked at four times: chances of 5 % give more than 9 with
    probability .001.
    """
    g, wrong = np.random.default_rng(12), 0
    for _ in range(60):
        actions, rewards = g.integers(0, 2, 6000), (g.random(6000) < 0.09).astype(float)
        log = DecisionLog(
            actions=actions, rewards=rewards, names=("0", "1"), propensities=np.full(6000, 0.5)
        )
        looks = (log.select(np.arange(n)) for n in range(300, 6001, 1900))
        gains = [
            evaluate(
                look, "always:1", estimators=["ips"], interval="anytime", reward_range=(0, 1)
            ).gain
            for look in looks
        ]
        wrong += any(not gain.low <= 0 <= gain.high for gain in gains)
    assert wrong <= 9


def test_what_the_target_would_never_show_has_no_answer() -> None:
    g = np.random.default_rng(13)
    log = DecisionLog(
        actions=g.integers(0, 2, 50),
        rewards=g.random(50),
        names=("0", "1"),
        propensities=np.full(50, 0.5),
        columns={"never": np.zeros(50)},
    )
    found = evaluate(log, "column:never", estimators=["snips"])
    assert conclusion.sentences(found) == [
        "This log cannot answer what the policy in the column never would have earned: it would "
        "never have shown what was shown."
    ]


def test_a_log_whose_simulator_is_not_here_can_be_evaluated_all_the_same() -> None:
    log = record(experiment("random", seed=14, steps=50), 0)
    strange = replace(log, experiment=log.experiment.replace('"petshop"', '"later"', 1))
    found = summarise(strange)
    assert found.agents == {}
    assert found.problem
    assert found.reward_range is None
    with pytest.raises(UserError, match="least and the largest possible reward"):
        evaluate(strange, "random", estimators=["ips"], interval="bernstein")
    evaluation = evaluate(strange, "random", estimators=["ips"])
    assert evaluation.truth is None
    assert [alarm.kind for alarm in evaluation.alarms if alarm.kind == "truth"] == ["truth"]
    wrong = replace(log, steps=np.asarray(log.steps) + 50)
    assert "step: must be between 0 and 49" in summarise(wrong).problem


@pytest.mark.slow
def test_a_file_is_summarised_in_a_process_of_its_own(tmp_path: Path) -> None:
    e = experiment("random", "linucb", seed=15, steps=50)
    write_parquet(record(e, 0), tmp_path / "log.parquet")
    found = summarise_file((tmp_path / "log.parquet").read_bytes(), ".parquet", None)
    assert found == summarise_run(e, 3, "Random")
    wrong = summarise_file(b"item,click\n1,0\n2,x\n", ".csv", {"action": "item", "reward": "click"})
    assert wrong == (1, ("row 3 (line 3 of the file), click: must be a number; got 'x'",))


def test_a_page_takes_few_columns_and_short_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the table has 201 columns; at most 200 are allowed"):
        columns(",".join(f"c{i}" for i in range(201)).encode() + b"\n", ".csv")
    frame = pd.DataFrame({"action": ["a", "b"], "x" * 201: [0, 1]})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(UserError, match="has a name of 201 characters; at most 200 are allowed"):
        columns((tmp_path / "a.parquet").read_bytes(), ".parquet")
    for wrong in ("action", "segment"):
        texts = {"action": "a", "segment": "s"} | {wrong: "y" * 201}
        text = f"action,reward,segment\n{texts['action']},1,{texts['segment']}\nb,0,s\n".encode()
        found = columns(text, ".csv")
        assert found is not None
        with pytest.raises(UserError, match="has a name of 201 characters; at most 200"):
            summary(text, ".csv", found.guessed)


def test_numbers_have_the_digits_of_the_logged_mean() -> None:
    found = evaluate("open_bandit/bts/all", "random")
    assert conclusion.sentences(found)[0] == (
        "Choosing at random would have earned 0.00288 per decision (95 % confidence interval "
        "0.00106 to 0.00469). The logging policy earned 0.00420; this log cannot tell the two "
        "apart (interval of the difference −0.00308 to 0.00044)."
    )


def test_a_table_states_which_values_have_the_interval_of_another() -> None:
    log = simulate(np.random.default_rng(4), 400).log
    found = evaluate(log, "random")
    stated = conclusion.how_to_read(found)
    assert "DM, Switch-DR and " in stated
    assert "by design they have the interval of DR, extended to the value" in stated
    assert conclusion.how_to_read(evaluate(log, "random", estimators=["ips", "snips"])) == ""


def test_the_truth_is_compared_with_the_interval() -> None:
    # that chooses at random so often that the interval is stated
    explorer = {"kind": "epsilon_greedy", "epsilon": 0.6}
    e = experiment(explorer, "linucb", seed=5, steps=400, replications=2)
    found = evaluate(record(e, 0), "random", estimators=["snips"])
    assert found.has_intervals
    assert "The simulator knows the true value" in conclusion.sentences(found)[1]
    assert found.truth is not None
    far = found.truth._replace(value=9.0, low=9.0, high=9.0)
    assert conclusion.sentences(replace(found, truth=far))[1].endswith("the interval misses it.")


def test_a_histogram_of_weights_holds_every_decision_and_all_of_the_weight() -> None:
    g = np.random.default_rng(6)
    weights = np.where(g.random(1000) < 0.3, 0.0, g.lognormal(size=1000))
    found = histogram(weights)
    assert found.zero == pytest.approx((weights == 0).mean())
    assert sum(found.decisions) + found.zero == pytest.approx(1)
    assert sum(found.weight) == pytest.approx(1)
    expected, _ = np.histogram(weights[weights > 0], bins=found.edges)
    np.testing.assert_allclose(np.asarray(found.decisions) * 1000, expected, atol=1e-6)
    assert sum(histogram(np.ones(7)).decisions) == pytest.approx(1)
    assert (found.edges[0], found.edges[-1]) == pytest.approx(
        (weights[weights > 0].min(), weights.max())
    )


def test_the_bins_of_weights_show_what_counts() -> None:
    """Thompson sampling gives most items next to no probability.

    A policy that is the log's has the weight 1 alone.
    """
    g = np.random.default_rng(7)
    weights = np.concatenate(
        [np.exp(-g.uniform(10, 60, 300)), g.uniform(0.5, 2, 600), g.uniform(50, 200, 100)]
    )
    found = histogram(weights)
    assert (found.edges[0], found.edges[-1]) == pytest.approx((0.001, weights.max()))
    assert found.decisions[0] == pytest.approx(0.3)
    assert sum(found.decisions) == pytest.approx(1)
    for equal in (1.0, 80.0, 1e-9):
        alone = histogram(np.full(5, equal))
        assert alone.edges[0] == pytest.approx(min(0.1, max(equal, 0.001)))
        assert alone.edges[-1] == pytest.approx(max(10, equal))
        assert sum(alone.decisions) == pytest.approx(1)
        shown = max(equal, 0.001)
        (place,) = np.flatnonzero(alone.decisions)
        assert alone.edges[place] * (1 - 1e-9) <= shown <= alone.edges[place + 1] * (1 + 1e-9)
    assert histogram(np.zeros(3)).zero == 1


def test_figures_show_estimates_logging_policy_and_truth() -> None:
    e = experiment({"kind": "epsilon_greedy", "epsilon": 0.6}, seed=7, steps=300, replications=2)
    found = evaluate(record(e, 0), "random")
    assert found.has_intervals
    spec = figures.forest(found)
    bars = [
        (x, x - down, x + up)
        for trace in spec["data"]
        if "text" in trace
        for x, down, up in zip(
            trace["x"], trace["error_x"]["arrayminus"], trace["error_x"]["array"], strict=True
        )
    ]
    expected = [tuple(e[:3]) for e in found.estimates.values()]
    np.testing.assert_allclose(sorted(bars), sorted(expected))
    lines = {trace["name"]: set(trace["x"]) for trace in spec["data"] if trace["mode"] == "lines"}
    assert found.truth is not None
    assert lines == {"logging policy": {found.logged}, "true value": {found.truth.value}}
    low, high = spec["layout"]["xaxis"]["range"]
    assert low < min(e.low for e in found.estimates.values())
    assert high > max(e.high for e in found.estimates.values())
    drawn = figures.weights(found)
    assert drawn is not None
    assert "SNIPS, self-normalised inverse propensity scoring:" in "".join(
        t for d in spec["data"] for t in d.get("text", ())
    )
    assert [trace["name"] for trace in drawn["data"]] == [
        "share of decisions",
        "share of sum of weights",
    ]
    assert figures.weights(replace(found, weights=None)) is None


@pytest.mark.slow
def test_tasks_record_and_evaluate_as_direct_calls_do() -> None:
    e = experiment("epsilon_greedy", "linucb", seed=8, steps=300, replications=3)
    task = RecordTask(e, "ε-greedy", 2)
    wait_for(lambda: not task.active, "the recording")
    assert task.error == ""
    assert task.steps == 300
    evaluation = EvaluationTask(
        task.content(), ".parquet", None, "random", {"estimators": ["ips", "dr"]}
    )
    wait_for(lambda: not evaluation.active, "the evaluation")
    direct = evaluate(record(e, 0, rows=[0, 1]), "random", estimators=["ips", "dr"])
    assert repr(evaluation.evaluation) == repr(direct)


@pytest.mark.slow
def test_a_task_that_is_refused_says_why() -> None:
    evaluation = EvaluationTask("open_bandit/bts/all", "", None, "always:no such item", {})
    wait_for(lambda: not evaluation.active, "the refusal")
    assert evaluation.status == "failed"
    assert evaluation.evaluation is None
    assert "'no such item' is no action of the log" in evaluation.error


def test_a_page_offers_what_a_log_can_answer(tmp_path: Path) -> None:
    e = experiment(
        "linucb", "epsilon_greedy", "random", "oracle", seed=9, steps=200, replications=2
    )
    assert suggested_logger(e) == "Random"
    assert suggested_logger(experiment("linucb", "epsilon_greedy")) == "ε-greedy"
    assert suggested_logger(experiment("linucb")) == "LinUCB"
    assert list(target_agents(e)) == ["LinUCB", "ε-greedy"]
    before = summarise_run(e, 2)
    write_parquet(record(e, "ε-greedy"), tmp_path / "log.parquet")
    after = summarise(read_log(tmp_path / "log.parquet"))
    assert after == before
    assert not after.uniform
    write_parquet(record(e, "Random"), tmp_path / "random.parquet")
    assert summarise(read_log(tmp_path / "random.parquet")) == summarise_run(e, 2, "Random")
    assert summarise_run(e, 2, "Random").uniform
    floor = [{"kind": "floor", "epsilon": 0.1}]
    floored = experiment(
        {"kind": "linucb", "guards": floor}, "epsilon_greedy", "random", seed=9, steps=200
    )
    assert suggested_logger(floored) == floored.labels[0]
    slates = experiment(
        "linucb", "epsilon_greedy", simulator={"kind": "ranking", "n_items": 500}, steps=100
    )
    assert suggested_logger(slates) == "ε-greedy"
    summary = summarise_run(slates, 2)
    # a row for each of ten slots; no agent as the target
    assert (summary.n, summary.agents) == (2000, {})
    large = experiment("linucb", simulator={"kind": "ranking"}, steps=5000)
    assert suggested_logger(large) is None
    with pytest.raises(UserError, match="10 slots, 50,000 in all, and 10,000 items: record fewer"):
        summarise_run(large, 1)


def test_agents_whose_names_are_no_labels_can_be_the_target() -> None:
    e = experiment("epsilon_greedy", "ab_test", {"kind": "ab_test", "test": 50}, steps=200)
    log, agents = record(e, "ε-greedy"), target_agents(e)
    assert agents.keys() == {"ε-greedy", "A/B test", "A/B test 2"}
    names = [evaluate(log, agents[label], estimators=["snips"]).target for label in agents]
    assert names == ["ε-greedy", "A/B test", "A-B test 2"]


def test_the_first_target_is_never_the_policy_that_made_the_log() -> None:
    e = experiment("linucb", "epsilon_greedy", "random", seed=9, steps=200)
    assert suggested_target(summarise_run(e, 2, "LinUCB"), "LinUCB") == "agent:ε-greedy"
    assert suggested_target(summarise_run(e, 2, "Random"), "Random") == "agent:LinUCB"
    # an agent that no longer learns shows what its bonus favours
    bonus = experiment("epsilon_greedy", "linucb", "lints", seed=9, steps=200)
    assert suggested_target(summarise_run(bonus, 2, "ε-greedy"), "ε-greedy") == "agent:LinTS"
    greedy = experiment("epsilon_greedy", {"kind": "linucb", "alpha": 0}, "lints", steps=200)
    assert suggested_target(summarise_run(greedy, 2, "ε-greedy"), "ε-greedy") == "agent:LinUCB"
    alone = experiment("random", steps=200)
    assert suggested_target(summarise_run(alone, 2, "Random"), "Random") == "greedy:ridge"
    floor = {"kind": "linucb", "guards": [{"kind": "floor"}]}
    one = experiment(floor, steps=200)
    assert suggested_target(summarise_run(one, 2, one.labels[0]), one.labels[0]) == "random"
    assert suggested_target(summarise(read_log("open_bandit/bts/men"))) == "random"
    assert (
        suggested_target(summarise(read_log("open_bandit/random/men")), production="bts:men")
        == "bts:men"
    )
    part = DecisionLog(
        actions=np.array([0, 1]),
        rewards=np.ones(2),
        names=("a", "b", "c"),
        propensities=np.array([0.5, 1 / 3]),
        available=np.array([[True, True, False], [True] * 3]),
    )
    assert summarise(part).uniform
    assert not summarise(replace(part, propensities=np.full(2, 0.5))).uniform
    assert suggested_target(summarise(replace(part, propensities=None))) == "random"


def test_a_page_records_about_100_000_decisions() -> None:
    assert rows_at_first(experiment("linucb", steps=20_000, replications=16)) == 5
    assert rows_at_first(experiment("linucb", steps=20_000, replications=2)) == 2
    assert rows_at_first(experiment("linucb", steps=1_000_000, replications=2)) == 1


def test_columns_are_guessed_by_their_usual_names() -> None:
    names = [
        "timestamp",
        "item_id",
        "position",
        "click",
        "propensity_score",
        "user_feature_0",
        "user_feature_1",
        "other",
    ]
    assert suggested_map(names) == {
        "action": "item_id",
        "reward": "click",
        "propensity": "propensity_score",
        "position": "position",
        "time": "timestamp",
        "features": "user_feature_0|user_feature_1",
    }
    assert suggested_map(["a", "b"]) == {}


def costs(kind: str) -> DecisionLog:
    """Return a log whose mean reward is near 0 or below, in which one item is better."""
    g, n = np.random.default_rng(14), 400
    context, actions = g.integers(0, 2, n), g.integers(0, 2, n)
    r = {
        "costs": 10.0 * (2 * (context != actions) - 1),
        "votes": np.where(g.random(n) < 0.4 + 0.3 * actions, 1.0, -1.0),
        "centred": g.normal(size=n) + actions,
        "margins": g.normal(-3, 1, n) + 0.5 * actions,
        "tiny mean": 10.0 * (2 * (context != actions) - 1),
        "losses": -g.exponential(size=n) * (2 - actions),
    }[kind]
    if kind in ("costs", "centred", "tiny mean"):
        r = r - r.mean() + (1e-16 if kind == "tiny mean" else 0.0)
    return DecisionLog(
        actions=actions,
        rewards=r,
        names=("0", "1"),
        propensities=np.full(n, 0.5),
        features=context[:, None].astype(float),
        feature_names=("context",),
    )


@pytest.mark.parametrize("kind", ["costs", "votes", "centred", "margins", "tiny mean", "losses"])
@pytest.mark.parametrize("target", ["always:1", "greedy:ridge"])
def test_where_rewards_can_be_negative_sentences_are_in_their_unit(kind: str, target: str) -> None:
    found = evaluate(costs(kind), target, estimators=["ips"])
    text = " ".join(conclusion.sentences(found))
    assert "no finite value" not in text
    assert "of 10 %" not in text
    assert re.findall(r"\([\d.]+ %\)", text) == []
    assert "evaluated decisions find a difference of" in text
    assert conclusion.decimals(found) <= 4
    if found.gain.low > 0:
        assert "more than the logging policy" in text
        assert "cannot tell" not in text


def test_the_difference_in_the_unit_of_the_reward_is_found_with_the_stated_power() -> None:
    """Normal rewards around 0, 4,000 logs with that difference: 80 % within 4 standard errors."""
    stated = verdict(400, 0.0, 0.1, relative=False)
    least = float(re.findall(r"difference of ([\d.]+) per", stated)[0])
    gains = np.random.default_rng(15).normal(least, 0.1, 4000)
    assert (gains > 1.959964 * 0.1).mean() == pytest.approx(0.8, abs=4 * 0.4 / 4000**0.5)
    assert "is now ±0.196" in stated
