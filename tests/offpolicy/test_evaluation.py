"""Evaluations of targets: predicted rewards, support and alarms, Open Bandit logs, the command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bandits.base.errors import UserError
from bandits.cli import main as cli
from bandits.offpolicy import (
    DecisionLog,
    Greedy,
    Matrix,
    Random,
    Truth,
    evaluate,
    read_log,
    read_target,
)
from bandits.offpolicy.conclusion import UNRELIABLE
from bandits.offpolicy.open_bandit import NAMES
from bandits.offpolicy.regression import MODELS, cross_fit, estimated_propensities, read_model
from bandits.offpolicy.support import (
    Support,
    alarms,
    decisions_required,
    few_rewards,
    measure,
    verdict,
)
from tests.offpolicy.support import full_log, simulate
from tests.support import often


@pytest.mark.parametrize("model", MODELS)
def test_predicted_rewards_explain_rewards_and_cross_fitting_leaves_no_row_out(model: str) -> None:
    setting, q = simulate(np.random.default_rng(1), 3000), np.full((3000, 5), np.nan)
    for rows, block in cross_fit(read_model(model), setting.log, np.random.default_rng(0)):
        assert np.isnan(q[rows]).all()
        q[rows] = block
    assert np.corrcoef(q.ravel(), setting.rewards.ravel())[0, 1] > 0.8
    assert np.mean((q - setting.rewards) ** 2) < 0.4 * np.var(setting.rewards)


def test_a_row_is_predicted_without_its_own_reward() -> None:
    """The reward of one row changes no prediction of that row."""
    log = simulate(np.random.default_rng(2), 60).log
    changed = replace(log, rewards=np.where(np.arange(60) == 7, 1 - log.rewards, log.rewards))
    found = []
    for one in (log, changed):
        for rows, q in cross_fit(read_model("ridge"), one, np.random.default_rng(0)):
            if 7 in rows:
                found.append(q[rows == 7])
    np.testing.assert_array_equal(found[0], found[1])


def test_linear_predictions_equal_those_of_the_design_matrix() -> None:
    from bandits.offpolicy.regression import _design, _standardised

    setting = simulate(np.random.default_rng(3), 300, positions=2)
    log, train = setting.log, np.arange(200)
    predict = read_model("logistic").fit_predict(log, train, None)
    x, s = _standardised(log, train), np.asarray(log.positions) - 1
    from sklearn.linear_model import LogisticRegression

    design = _design(x[train], log.actions[train], s[train], 5, 2, True)
    fitted = LogisticRegression(C=1.0, max_iter=1000).fit(design, log.rewards[train])
    for k in range(5):
        expected = fitted.predict_proba(_design(x, np.full(300, k), s, 5, 2, True))[:, 1]
        np.testing.assert_allclose(predict(np.arange(300))[:, k], expected, rtol=1e-9)


def test_greedy_targets_learn_from_the_log_and_are_better_than_the_logging_policy() -> None:
    setting = simulate(np.random.default_rng(4), 4000)
    for spec in ("greedy:logistic", "greedy_ips:ridge"):
        target = read_target(spec, np.random.default_rng(0))
        assert isinstance(target, Greedy)
        shares = target.probabilities(setting.log, slice(None))
        value = (shares * setting.rewards).sum(axis=1).mean()
        logging = (setting.logging * setting.rewards).sum(axis=1).mean()
        assert value > logging + 0.5 * (setting.rewards.max(axis=1).mean() - logging)
        found = evaluate(setting.log, target, estimators=["dr"]).estimates["dr"]
        assert abs(found.value - value) < 4 * found.standard_error


def test_weighted_greedy_targets_weigh_rows_by_one_over_their_propensity() -> None:
    log = simulate(np.random.default_rng(5), 600).log
    assert log.propensities is not None
    as_rows = replace(log, row_weights=1 / np.asarray(log.propensities))
    weighted = read_target("greedy_ips:ridge", np.random.default_rng(0))
    plain = read_target("greedy:ridge", np.random.default_rng(0))
    np.testing.assert_array_equal(
        weighted.probabilities(log, slice(None)), plain.probabilities(as_rows, slice(None))
    )


@pytest.mark.slow
def test_intervals_of_all_estimators_hold_the_truth_with_fitted_rewards() -> None:
    """Of 250 logs of 1,000 decisions (ESS about 490): DR and SNDR within 2.5 standard errors of
    95 %, biased ones not below. A share of 90 % would be seen with probability .80.
    """
    g, hits, logs = np.random.default_rng(5), [], often(250, 1000)
    error = 2.5 * (0.95 * 0.05 / logs) ** 0.5
    kinds = ["dr", "sndr", "dm", "switch_dr", "dros", "clipped_ips"]
    for _ in range(logs):
        setting = simulate(g, 1000)
        found = evaluate(
            setting.log, setting.target, estimators=kinds, model="ridge", generator=g
        ).estimates
        hits.append([found[kind].low <= setting.value <= found[kind].high for kind in kinds])
    rates = dict(zip(kinds, np.mean(hits, axis=0), strict=True))
    assert all(abs(rates[kind] - 0.95) <= error for kind in ("dr", "sndr")), rates
    assert all(rates[kind] >= 0.95 - error for kind in kinds[2:]), rates


def test_targets_have_the_probabilities_they_state() -> None:
    log = full_log(np.random.default_rng(0))
    available = np.asarray(log.available)
    everything = slice(0, len(log))
    random = Random().probabilities(log, everything)
    np.testing.assert_allclose(random, available / available.sum(axis=1, keepdims=True))
    always = read_target("always:b", np.random.default_rng(0))
    p = always.probabilities(log, everything)
    np.testing.assert_allclose(p[available[:, 1]], np.eye(4)[[1] * int(available[:, 1].sum())])
    np.testing.assert_allclose(p[~available[:, 1]], random[~available[:, 1]])
    table = np.random.default_rng(1).dirichlet(np.ones(4), 3).T
    by_position = Matrix(table)
    by_position.check(log)
    np.testing.assert_allclose(
        by_position.probabilities(log, everything), table.T[np.asarray(log.positions)]
    )
    for target in (Random(), always, by_position, Matrix(table[:, 0])):
        expected = target.probabilities(log, everything)[np.arange(len(log)), log.actions]
        np.testing.assert_allclose(target.logged(log), expected)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("always:q", "target: 'q' is no action of the log; its 4 actions are a, b, ä|c, d"),
        ("column:x", "target: the log has no numeric column 'x'; further columns: pi"),
        ("best", "target 'best': must be random, always:ITEM, column:NAME"),
        ('{"kind": "linucb"}', "the log is not one of a simulated run"),
        ("greedy:forest", "model 'forest': must be one of logistic, ridge, gradient_boosting"),
        ("greedy:logistic", "model logistic: rewards must be 0 or 1"),
    ],
)
def test_bad_targets_are_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        evaluate(full_log(np.random.default_rng(0)), spec)
    assert sentence in str(refused.value)


def test_bad_matrices_and_arguments_are_refused() -> None:
    log = simulate(np.random.default_rng(0), 20, 3).log
    p = np.full((20, 3), 1 / 3)
    for change, sentence in (
        (-0.5, "must be between 0 and 1; got -0.5"),
        (0.5, "must sum to 1; their sum is 1.16667"),
    ):
        wrong = p.copy()
        wrong[4, 1] = change
        with pytest.raises(UserError, match=f"row 5, target: .*{sentence}"):
            evaluate(log, wrong)
    with pytest.raises(UserError, match=r"target: must have the shape \(n, K\) = \(20, 3\)"):
        evaluate(log, p[:5])
    with pytest.raises(UserError, match="estimator 'x': must be one of ips"):
        evaluate(log, p, estimators=["x"])
    with pytest.raises(UserError, match="interval 'x': must be one of normal"):
        evaluate(log, p, interval="x")
    with pytest.raises(UserError, match="estimator dr: the interval anytime is only for ips"):
        evaluate(log, p, estimators=["dr"], interval="anytime")
    with pytest.raises(
        UserError, match=r"q: must have the shape \(n, K\) = \(20, 3\); got \(20, 2\)"
    ):
        evaluate(log, p, q=np.zeros((20, 2)))
    with pytest.raises(UserError, match="level must be between 0 and 1; got 2"):
        evaluate(log, p, level=2)


def test_a_log_without_propensities_answers_by_dm_and_replay_or_estimated_ones() -> None:
    setting = simulate(np.random.default_rng(1), 2000)
    log = replace(setting.log, propensities=None, distributions=None)
    found = evaluate(log, setting.target)
    assert list(found.estimates) == ["dm"]
    assert [alarm.kind for alarm in found.alarms] == ["model"]
    assert found.as_dict()["ess"] is None
    (alarm,) = evaluate(log, setting.target, estimators=["replay"]).alarms
    assert alarm.kind == "replay"
    with pytest.raises(
        UserError, match="estimator ips: requires propensities, and the log has none"
    ):
        evaluate(log, setting.target, estimators=["ips"])
    estimated = evaluate(log, setting.target, estimate_propensities=True)
    assert estimated.alarms[0].kind == "estimated_propensities"
    e = estimated.estimates["snips"]
    assert abs(e.value - setting.value) < 4 * e.standard_error


def test_alarms_ring_beyond_their_bounds() -> None:
    quiet = Support(1000, 3, 0.01, 1.0, 0.01, 0.005, {"a": 0.005})
    assert alarms(5000, quiet) == ()
    for change, n, kind, words in (
        ({"ess": 99}, 5000, "ess", "is 99 of 5,000 decisions; at least 100 is required. A longer"),
        # too small a share, of any length
        ({"ess": 20}, 5000, "ess", "would help, a longer one not."),
        (
            {"ess": 150},
            20_000,
            "ess",
            "is 150 of 20,000 decisions; at least 200 is required. A log",
        ),
        ({"largest_share": 0.11}, 5000, "max_weight", "One event has 11 % of the sum"),
        (
            {"mean_weight": 1.05},
            5000,
            "mean_weight",
            "The mean weight is 1.05, 5 standard errors from 1",
        ),
        (
            {"mean_weight": 1.05},
            5000,
            "mean_weight",
            "propensities are wrong, or the log hardly ever takes actions",
        ),
        (
            {"mean_weight": 0.95, "exact_error": 0.02},
            5000,
            "mean_weight",
            "few of the target's rare actions are in the",
        ),
        (
            {"mean_weight": 0.95, "exact_error": 0.01},
            5000,
            "mean_weight",
            "propensities are wrong, or the log hardly",
        ),
        (
            {"mean_weight": 1.05, "exact_error": 0.02},
            5000,
            "mean_weight",
            "propensities are wrong, or the log hardly",
        ),
        (
            {"mean_weight": 0.5, "mean_weight_error": 1e-17},
            5000,
            "mean_weight",
            "is 0.5, which all weights are, instead of 1",
        ),
        (
            {"unsupported_mass": 0.02},
            5000,
            "unsupported",
            "gives 2.0 % of its probability to actions that the log",
        ),
        (
            {"by_segment": {"a": 0.02}},
            5000,
            "unsupported_segment",
            "In the segment a the target gives 2.0 %",
        ),
    ):
        (alarm,) = alarms(n, quiet._replace(**change))  # type: ignore[arg-type]
        assert alarm.kind == kind
        assert words in alarm.sentence


def test_the_rewards_that_an_estimate_rests_on_are_counted_by_their_weight() -> None:
    clicks = np.repeat([1.0, 0.0], [20, 980])
    assert few_rewards(np.full(1000, 0.5), clicks) == ()
    (alarm,) = few_rewards(np.full(1000, 0.5), np.roll(clicks, 1) * (np.arange(1000) > 1))
    assert alarm.kind == "few_rewards"
    # a warning that contradicts no estimate
    assert alarm.kind not in UNRELIABLE
    assert "the rewards of 19 decisions (effective number), fewer than 20" in alarm.sentence
    # one click has most of the weight
    (alarm,) = few_rewards(np.where(np.arange(1000) == 3, 100.0, 1.0), clicks)
    assert f"rewards of {119**2 / (100**2 + 19):.3g} decisions" in alarm.sentence
    assert "of 0 decisions" in few_rewards(np.ones(1000), np.zeros(1000))[0].sentence
    assert (
        "sample size counts all decisions, each by its weight; this number only" in alarm.sentence
    )
    assert few_rewards(np.ones(50), np.linspace(-1, 1, 50)) == ()


@pytest.mark.slow
def test_intervals_without_a_warning_of_few_rewards_hold_the_truth() -> None:
    """IPS and SNIPS of one of five items, on 600 logs of 2,000 uniform decisions each, with CTRs
    that give from 2 to 100 clicks: at least 92 % where no log is warned of, and less among those
    that are.
    """
    g, held = np.random.default_rng(8), {True: [], False: []}  # type: ignore[var-annotated]
    for rate in np.repeat([0.005, 0.01, 0.02, 0.04, 0.1, 0.25], 100):
        actions, n = g.integers(0, 5, 2000), 2000
        log = DecisionLog(
            actions=actions,
            rewards=(g.random(n) < rate).astype(float),
            features=np.zeros((n, 0)),
            names=tuple("abcde"),
            propensities=np.full(n, 0.2),
        )
        found = evaluate(log, "always:a", estimators=["ips", "snips"])
        warned = "few_rewards" in {alarm.kind for alarm in found.alarms}
        held[warned] += [e.low <= rate <= e.high for e in found.estimates.values()]
    assert min(map(len, held.values())) > 300
    assert np.mean(held[False]) > 0.92
    assert np.mean(held[True]) < min(0.92, np.mean(held[False]))


def test_support_equals_plain_formulas() -> None:
    log = full_log(np.random.default_rng(3))
    w = np.random.default_rng(4).exponential(size=len(log))
    found = measure(log, Random(), w)
    assert found.ess == pytest.approx(sum(w) ** 2 / sum(w**2))
    assert found.largest_share == pytest.approx(w.reshape(-1, 3).sum(axis=1).max() / w.sum())
    assert found.mean_weight_error == pytest.approx(np.std(w, ddof=1) / len(w) ** 0.5)
    never = replace(
        log,
        distributions=None,
        available=None,
        actions=np.where(log.segments == "s0", 0, log.actions % 2),
    )
    found = measure(never, Matrix(np.array([0.4, 0.3, 0.2, 0.1])), w)
    assert found.unsupported_mass == pytest.approx(0.3)
    assert found.by_segment == pytest.approx({"s0": 0.6, "s1": 0.3})
    vectors = np.zeros((len(log), 4))
    vectors[np.arange(len(log)), never.actions] = 1
    exact = replace(never, distributions=vectors, propensities=np.ones(len(log)))
    assert measure(exact, Random(), w).unsupported_mass == pytest.approx(0.75)


def test_the_error_of_the_mean_weight_is_exact_where_all_propensities_are_known() -> None:
    """Over 4,000 logs of the same contexts, the mean weight deviates by it (5 %).

    Candidates differ between rows.
    """
    g, log = np.random.default_rng(9), full_log(np.random.default_rng(3))
    rows, target = np.arange(len(log)), Random()
    wanted = target.probabilities(log, slice(None))
    stated = (np.asarray(log.distributions) + wanted) / 2  # none is tiny
    log = replace(log, distributions=stated, propensities=stated[rows, log.actions])
    means = []
    for _ in range(4000):
        actions = np.minimum((stated.cumsum(axis=1) < g.random((len(log), 1))).sum(axis=1), 3)
        means.append(float((wanted[rows, actions] / stated[rows, actions]).mean()))
    found = measure(log, target, np.ones(len(log)))
    assert found.exact_error == pytest.approx(np.std(means), rel=0.05)
    assert np.mean(means) == pytest.approx(1, abs=4 * found.exact_error / 4000**0.5)


def test_rare_actions_that_are_not_in_the_log_are_named_and_right_propensities_are_not_called_wrong() -> (  # noqa: E501
    None
):
    """Epsilon of .001: where no random choice is logged, the mean weight is far below 1, with
    hardly any variation.
    """
    n, g = 2000, np.random.default_rng(10)
    stated = np.full((n, 4), 0.001 / 4)
    stated[:, 0] += 0.999
    target = np.tile([0.85, 0.05, 0.05, 0.05], (n, 1))
    rare = wrong = without = 0
    for _ in range(500):
        actions = np.minimum((stated.cumsum(axis=1) < g.random((n, 1))).sum(axis=1), 3)
        log = DecisionLog(
            actions=actions,
            rewards=np.zeros(n),
            names=tuple("abcd"),
            distributions=stated,
            propensities=stated[np.arange(n), actions],
        )
        w = target[np.arange(n), actions] / np.asarray(log.propensities)
        texts = [
            a.sentence
            for a in alarms(n, measure(log, Matrix(target), w))
            if a.kind == "mean_weight"
        ]
        rare += any("few of the target's rare actions are in the log" in text for text in texts)
        wrong += any("propensities are wrong" in text for text in texts)
        without += not actions.any()
    assert rare >= without > 100
    assert wrong <= 5


def test_actions_with_propensity_0_explain_a_mean_weight_below_1() -> None:
    n, g = 400, np.random.default_rng(11)
    for logging in ([1 / 3, 1 / 3, 1 / 3, 0], [0.6, 0.3, 0.1, 0]):
        stated = np.tile(logging, (n, 1))
        actions = g.choice(4, n, p=logging)
        log = DecisionLog(
            actions=actions,
            rewards=np.zeros(n),
            names=tuple("abcd"),
            distributions=stated,
            propensities=stated[np.arange(n), actions],
        )
        w = 0.25 / np.asarray(log.propensities)
        texts = {a.kind: a.sentence for a in alarms(n, measure(log, Random(), w))}
        assert "gives 25.0 % of its probability to actions" in texts["unsupported"]
        # all weights are alike
        if logging[0] < 0.5:
            assert (
                "never takes actions with 25.0 % of the target's probability"
                in texts["mean_weight"]
            )
        assert "wrong" not in texts.get("mean_weight", "")
        wrong = {a.kind: a.sentence for a in alarms(n, measure(log, Random(), 2 * w))}
        assert "propensities are wrong, or" in wrong["mean_weight"]


@pytest.mark.parametrize("vectors", [False, True])
def test_alarm_of_the_mean_weight_is_rare_with_right_propensities_and_usual_with_wrong_ones(
    vectors: bool,
) -> None:
    """At most 3 of 1,000 right logs ring (4 standard errors).

    95 of 100 with halved propensities do.
    """
    g, false, true = np.random.default_rng(6), 0, 0
    for i in range(1000):
        setting = simulate(g, 400, vectors=vectors)
        chosen = setting.target[np.arange(400), setting.log.actions]
        w = chosen / np.asarray(setting.log.propensities)
        false += any(
            a.kind == "mean_weight"
            for a in alarms(400, measure(setting.log, Matrix(setting.target), w))
        )
        if i < 100:
            rung = alarms(400, measure(setting.log, Matrix(setting.target), 2 * w))
            true += "mean_weight" in {a.kind for a in rung}
    assert false <= 3
    assert true >= 95


def test_the_decisions_required_have_the_stated_power() -> None:
    """A difference of 10 % is found in 77 to 83 % of 4,000 logs of that size."""
    n = round(decisions_required(10_000, 0.3, (0.3 * 0.7 / 10_000) ** 0.5))
    clicks = np.random.default_rng(8).binomial(n, 0.33, 4000) / n
    assert ((clicks - 0.3) / (0.3 * 0.7 / n) ** 0.5 > 1.96).mean() == pytest.approx(0.8, abs=0.03)


def test_the_truth_and_the_default_seed_are_kept() -> None:
    setting = simulate(np.random.default_rng(1), 500)
    found = evaluate(setting.log, setting.target, truth=Truth(0.3, 0.2, 0.4))
    assert found.as_dict()["truth"] == {"value": 0.3, "low": 0.2, "high": 0.4}
    assert evaluate(setting.log, setting.target).estimates == found.estimates
    assert set(found.tuned) == {"switch_dr", "dros"}
    for interval in ("bootstrap", "bernstein", "anytime"):
        e = evaluate(setting.log, setting.target, interval=interval, reward_range=(0, 1)).estimates[
            "ips"
        ]
        assert e.low < found.estimates["ips"].value < e.high


@pytest.mark.parametrize("name", NAMES)
def test_open_bandit_logs_answer_for_three_targets(name: str) -> None:
    log = read_log(name)
    assert len(log) == 10_000
    assert log.n_actions == {"all": 80, "men": 34, "women": 46}[name.split("/")[2]]
    clicks = np.bincount(log.actions, weights=log.rewards) / np.bincount(log.actions)
    frequency = np.zeros((log.n_actions, 3))
    bts = read_log(name.replace("/random/", "/bts/"))
    np.add.at(frequency, (bts.actions, np.asarray(bts.positions) - 1), 1)
    targets = {
        "random": Random(),
        "bts": Matrix(frequency / frequency.sum(axis=0), "bts"),
        "best": read_target(f"always:{log.names[int(clicks.argmax())]}", np.random.default_rng(0)),
    }
    found = {
        key: evaluate(log, target, estimators=["ips", "snips"]) for key, target in targets.items()
    }
    for key, one in found.items():
        assert one.estimates["snips"].low < 0.02
        if key == "random" and "/random/" in name:
            assert one.verdict == "The target chooses as the logging policy does."
        else:
            assert one.verdict.startswith(
                "To find a difference of 10 % from the logging policy in 80 % of such logs, about "
            )
    kinds = {alarm.kind for alarm in found["random"].alarms}
    few = {"few_rewards"} if name.startswith("open_bandit/bts/") else set()
    assert kinds == ({"ess", "max_weight"} if name == "open_bandit/bts/women" else few)
    if "/random/" in name:
        value = found["random"].estimates["ips"]
        assert value.value == pytest.approx(log.rewards.mean())
        # no smaller difference can be resolved
        assert (value.high - value.value) / value.value > 0.25
        assert found["best"].support.ess == pytest.approx((log.actions == clicks.argmax()).sum())


def test_the_command_writes_estimates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "evaluate",
        "open_bandit/bts/women",
        "--target",
        "random",
        "--out",
        str(tmp_path / "out"),
    ]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "This log cannot answer reliably what choosing at random would have earned: DR estimates "
    )
    assert "too few decisions carry that for a confidence interval" in printed
    assert "find a difference" not in printed
    assert " to " not in printed.partition("\n    ips")[2].partition("\n")[0]
    assert "alarm: The effective sample size is 2 of 10,000 decisions" in printed
    assert "CC BY 4.0" in printed
    found = json.loads((tmp_path / "out" / "estimates.json").read_text(encoding="utf-8"))
    assert list(found) == [
        "n",
        "target",
        "estimates",
        "ess",
        "max_weight",
        "mean_weight",
        "mean_weight_error",
        "unsupported_mass",
        "alarms",
        "truth",
        "main",
        "logged",
        "gain",
    ]
    assert set(found["estimates"]["ips"]) == {"value", "low", "high", "standard_error"}
    assert {alarm["kind"] for alarm in found["alarms"]} == {"ess", "max_weight"}
    assert found["truth"] is None
    assert found["max_weight"] == pytest.approx(1 / 46 / 1e-6, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["a.csv", "--target", "random"],
            "error: row 2 (line 2 of the file), propensity: must be above 0 and at most 1; got 0",
        ),
        (
            ["a.csv", "--target", "random", "--map", "reward=x"],
            "error: column 'x' for reward: the table has",
        ),
        (["b.csv", "--target", "random"], "b.csv: No such file"),
        (["open_bandit/x", "--target", "random"], "error: 'open_bandit/x' is no shipped log"),
        (["open_bandit/bts/men", "--target", "x"], "error: target 'x': must be random"),
        (
            ["open_bandit/bts/men", "--target", "random", "--seed", "x"],
            "error: seed: must be a whole number",
        ),
        (
            ["open_bandit/bts/men", "--target", "random", "--estimators", "ips,x"],
            "error: estimator 'x': must be one of",
        ),
    ],
)
def test_the_command_refuses_bad_input(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"action": [1, 2], "reward": [0, 1], "propensity": [0, 1]}).to_csv(
        "a.csv", index=False
    )
    assert cli.main(["evaluate", *arguments, "--out", "out"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert sentence in output.err
    assert len(output.err.splitlines()) == 1
    assert not Path("out").exists()


@pytest.mark.parametrize("interval", ["bernstein", "anytime"])
def test_bounded_intervals_take_the_range_of_a_reward_from_the_user_or_its_kind(
    interval: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = simulate(np.random.default_rng(0), 300).log
    with pytest.raises(UserError, match="requires the least and the largest possible reward"):
        evaluate(log, "random", interval=interval)
    with pytest.raises(UserError, match="must be two finite numbers in order; got 1 and 0"):
        evaluate(log, "random", interval=interval, reward_range=(1, 0))
    with pytest.raises(UserError, match=r"rewards must be between 0 and 0\.5; got 0 to 1"):
        evaluate(log, "random", interval=interval, reward_range=(0, 0.5))
    narrow, wide = (
        evaluate(log, "random", interval=interval, reward_range=(0, high)).estimates["ips"]
        for high in (1, 10)
    )
    assert narrow.high < wide.high
    # clicks
    assert evaluate("open_bandit/random/men", "always:3", interval=interval).gain.high < 1
    pd.DataFrame({"action": [0, 1] * 50, "reward": 2.0, "propensity": 0.5}).to_csv(
        tmp_path / "a.csv", index=False
    )
    command = ["evaluate", str(tmp_path / "a.csv"), "--target", "random", "--interval", interval]
    assert cli.main([*command, "--reward-range", "-1", "3"]) == 0
    assert "ips" in capsys.readouterr().out
    assert cli.main(command) == 2
    assert "--reward-range LOW HIGH" in capsys.readouterr().err


def test_predicted_rewards_that_are_not_finite_are_refused() -> None:
    setting = simulate(np.random.default_rng(0), 20, 3)
    for value in (np.nan, np.inf):
        q = np.zeros((20, 3))
        q[6, 1] = value
        with pytest.raises(UserError, match="row 7, q: must hold finite numbers"):
            evaluate(setting.log, setting.target, q=q)


def test_an_interval_without_width_raises_an_alarm() -> None:
    found = evaluate("open_bandit/bts/all", "always:3", estimators=["ips"])
    assert found.estimates["ips"].high == 0
    assert "All contributions to IPS are equal" in next(
        a.sentence for a in found.alarms if a.kind == "no_variation"
    )


def test_the_difference_that_a_log_tells_apart_is_found_with_the_stated_power() -> None:
    """The target earns that much more in 1,500 logs of 2,000 decisions.

    80 % within 4 standard errors see it.
    """
    g, n, repetitions, rate = np.random.default_rng(9), 2000, 1500, 0.3
    # of a target that doubts half of the decisions
    weights = np.where(g.random((repetitions, n)) < 0.5, 0.5, 1.5)
    error = float(((weights - 1) * (g.random((repetitions, n)) < rate)).std() / n**0.5)
    stated = verdict(n, rate, error)
    for level, quantile in ((0.95, 1.959964), (0.8, 1.281552)):
        half = 100 * quantile * error / rate
        assert f"is now ±{half:.0f} %" in verdict(n, rate, error, level) or half < 10
    least = float(re.findall(r"find a difference of ([\d.]+) % as", stated)[0].split()[-1]) / 100
    # items that the target prefers (weight 1.5) earn more, and the others less, so that it gains
    # `least`
    chance = np.where(weights > 1, rate + 2 * least * rate, rate - 2 * least * rate)
    gains = (weights - 1) * (g.random((repetitions, n)) < chance)
    mean, errors = gains.mean(axis=1), gains.std(axis=1, ddof=1) / n**0.5
    found = float((mean / errors > 1.96).mean())
    assert found == pytest.approx(0.8, abs=4 * (0.16 / repetitions) ** 0.5)


def test_estimated_propensities_are_mixed_with_uniform_choice() -> None:
    """Of two actions that the features separate, no estimate exceeds .995."""
    g = np.random.default_rng(3)
    actions = g.integers(0, 2, 400)
    log = DecisionLog(
        actions=actions,
        rewards=np.ones(400),
        features=(10.0 * actions + g.normal(size=400))[:, None],
        names=("a", "b"),
    )
    found = estimated_propensities(log, g)
    assert 0.99 < found.max() <= 0.01 / 2 + 0.99
    assert found.min() >= 0.01 / 2
