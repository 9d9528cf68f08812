"""Verdicts on exploration: too little, about right, too much, or not informative, and the
conclusion per agent.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import Experiment, diagnostics, run
from bandits.diagnostics import Conclusion, Finding, OracleReference
from bandits.diagnostics.finding import SEVERITY
from bandits.diagnostics.regret import is_locked_in, regret_shares, regret_sources
from bandits.diagnostics.rules import exploration
from bandits.experiments.history import History
from bandits.experiments.lane import Trace
from bandits.experiments.snapshots import ExplorationCheck
from bandits.results import words
from bandits.results.comparison import paired_tests
from bandits.results.result import Result
from benchmarks.reproduction.exploration import LOSS

STEPS, K = 2000, 5


def made(
    *,
    value: float,
    greedy: float,
    rate: float,
    locked: bool = False,
    rows: int = 4,
    spread: float = 0.005,
    late: float | None = None,
    checks: bool = True,
) -> History:
    """Construct a history: random choice earns 0 and the optimum 1 per step, the agent ``value``,
    greedily ``greedy``.

    ``late`` is the greedy value over the last third; ``locked``: each replication shows one item
    only."""
    offset = spread * (np.arange(rows) - (rows - 1) / 2)
    earned, best, random = (
        np.tile(v, (STEPS, 1)) for v in (value + offset, np.ones(rows), np.zeros(rows))
    )
    shown = np.arange(rows) % K if locked else (np.arange(STEPS)[:, None] + np.arange(rows)) % K
    items = np.broadcast_to(shown, (STEPS, rows))[:, :, None].astype(np.int64)
    history = History(STEPS, rows, K)
    segments = np.zeros((STEPS, rows), np.int64)
    history.extend(
        Trace(0, items, segments, earned, best, earned, best, random, np.ones(rows, np.bool_))
    )
    for step in range(100, STEPS + 1, 100) if checks else ():
        at = greedy if late is None or step <= STEPS * 2 / 3 else late
        columns = [
            np.full(rows, rate),
            value + offset,
            np.full(rows, at),
            np.ones(rows),
            np.zeros(rows),
        ]
        history.exploration_checks.append(ExplorationCheck(step, np.stack(columns, axis=1)))
    return history


def diagnose(
    history: History,
    kind: str = "linucb",
    oracle: OracleReference | None = None,
    steps: int = STEPS,
    **simulator: Any,
) -> tuple[Finding, Conclusion]:
    e = Experiment.model_validate(
        {
            "simulator": {"kind": "petshop", **simulator},
            "agents": [{"kind": kind}],
            "steps": steps,
            "replications": history.rows,
        }
    )
    result = Result(e, {e.labels[0]: history})
    found = diagnostics.findings(result, e.labels[0], oracle)
    return found["exploration"], diagnostics.conclude(found)


@pytest.mark.parametrize(
    ("case", "verdict", "direction", "message"),
    [
        (
            {"value": 0.5, "greedy": 0.98, "rate": 0.9},
            "alarm",
            "too much",
            "still explores in 90 %",
        ),
        (
            {"value": 0.97, "greedy": 0.98, "rate": 0.03},
            "healthy",
            "about right",
            "Exploring costs 1 %",
        ),
        (
            {"value": 0.9, "greedy": 1.0, "rate": 0.1},
            "healthy",
            "about right",
            "Exploring costs 10 %",
        ),
        ({"value": 0.9, "greedy": 1.0, "rate": 0.7}, "watch", "too much", "Exploring costs 10 %"),
        (
            {"value": 0.4, "greedy": 0.4, "rate": 0.01, "locked": True},
            "alarm",
            "too little",
            "decided by chance",
        ),
        (
            {"value": 0.4, "greedy": 0.4, "rate": 0.01},
            "none",
            "",
            "its reward model may be the cause",
        ),
        ({"value": 0.4, "greedy": 0.4, "rate": 0.0}, "watch", "too little", "never explores"),
        (
            {"value": 0.6, "greedy": 0.65, "rate": 0.2, "late": 0.9},
            "none",
            "",
            "the agent is still learning",
        ),
        ({"value": 0.3, "greedy": 0.6, "rate": 0.3}, "alarm", "too much", "wrong estimates cost"),
    ],
)
def test_the_source_of_the_regret_decides(
    case: dict[str, Any], verdict: str, direction: str, message: str
) -> None:
    finding, conclusion = diagnose(made(**case))
    assert (finding.verdict, finding.direction) == (verdict, direction)
    assert message in finding.text
    assert conclusion.exploration == direction
    lost = round(100 * (1 - case["value"]))
    assert conclusion.text.startswith(f"It loses {lost} % of the possible gain")


def test_a_cost_within_its_sampling_error_is_no_alarm() -> None:
    """The same mean cost of exploring; once the replications agree, once they do not."""
    sure, unsure = (
        diagnose(made(value=0.8, greedy=0.99, rate=0.3, spread=s))[0] for s in (0.005, 0.2)
    )
    assert (sure.verdict, sure.direction) == ("alarm", "too much")
    assert (unsure.verdict, unsure.direction) == ("watch", "too much")


def test_the_conclusion_states_the_regret_and_the_step_in_plain_words() -> None:
    _, conclusion = diagnose(made(value=0.56, greedy=1.0, rate=0.5))
    expected = (
        "It loses 44 % of the possible gain: it still explores at step 2,000, in 50 % of its "
        "decisions (95 % CI 50 % to 50 %)."
    )
    assert conclusion == ("alarm", "too much", f"{expected} Less exploration would earn more.")
    # as a test that has ended: it does not explore "still, in 0 % of its decisions"
    _, ended = diagnose(made(value=0.56, greedy=1.0, rate=0.002))
    assert "explored for too long, and hardly does at step 2,000." in ended.text
    _, worse = diagnose(made(value=-0.1, greedy=-0.1, rate=0.0, locked=True))
    assert worse.text.startswith(
        "It loses all of the possible gain (it earns no more than random choice): it stopped"
    )


@pytest.mark.parametrize(
    "case",
    [
        {"value": 0.4, "greedy": 0.4, "rate": 0.01, "locked": True},
        {"value": 0.4, "greedy": 0.4, "rate": 0.0},
        {"value": 0.5, "greedy": 0.98, "rate": 0.9},
        {"value": 0.97, "greedy": 0.98, "rate": 0.03},
        {"value": 0.4, "greedy": 0.4, "rate": 0.01, "checks": False},
    ],
    ids=["locked in", "never explores", "too much", "about right", "no checks"],
)
def test_no_direction_is_stated_after_a_change(case: dict[str, Any]) -> None:
    """Neither for a shock nor for a drift; a change that is still to come does not count."""
    shock, move = {"kind": "shock", "at": 1000}, {"from": "fish_hobbyist", "to": "budget_shopper"}
    drift = {"kind": "drift", "start": 1000, "end": 1500, **move}
    later = {"kind": "shock", "at": STEPS}
    before, _ = diagnose(made(**case))
    for change in (shock, drift):
        finding, conclusion = diagnose(made(**case), changes=[change])
        assert (finding.verdict, finding.direction) == ("none", "")
        assert "cannot be decided: the simulator has changed" in finding.text
        assert "More exploration" not in conclusion.text
        assert "Less exploration" not in conclusion.text
        assert conclusion.text.endswith("no error rates of this verdict are known.")
    assert diagnose(made(**case), steps=2 * STEPS, changes=[later])[0] == before


def test_a_sibling_that_earns_more_is_evidence_after_a_change_too() -> None:
    own, less = (
        {"value": 0.9, "greedy": 0.98, "rate": 0.3},
        {"value": 0.99, "greedy": 0.99, "rate": 0.02},
    )
    simulator = {"kind": "petshop", "changes": [{"kind": "shock", "at": 1000}]}
    agents = [{"kind": "linucb", "label": "A", "alpha": 1.5}, LESS]
    e = Experiment.model_validate(
        {"simulator": simulator, "agents": agents, "steps": STEPS, "replications": 4}
    )
    found = diagnostics.findings(Result(e, {"A": made(**own), "B": made(**less)}), "A")
    assert found["exploration"].direction == "too much"


LESS = {"kind": "linucb", "label": "B", "alpha": 0.5}


def beside(own: History, other: History, **changed: Any) -> tuple[Finding, Conclusion]:
    """Diagnose LinUCB with alpha 1.5 beside one with alpha 0.5 and these changes."""
    agents = [{"kind": "linucb", "label": "A", "alpha": 1.5}, {**LESS, **changed}]
    e = Experiment.model_validate({"agents": agents, "steps": STEPS, "replications": own.rows})
    found = diagnostics.findings(Result(e, {"A": own, "B": other}), "A")
    return found["exploration"], diagnostics.conclude(found)


def test_an_agent_that_differs_in_one_parameter_and_earns_more_is_evidence() -> None:
    own = {"value": 0.9, "greedy": 0.98, "rate": 0.3}
    assert diagnose(made(**own))[0].direction == "about right"
    less, more = (
        {"value": 0.99, "greedy": 0.99, "rate": 0.02},
        {"value": 0.99, "greedy": 0.99, "rate": 0.5},
    )
    finding, conclusion = beside(made(**own), made(**less))
    assert (finding.verdict, finding.direction) == ("watch", "too much")
    expected = (
        "It loses 10 % of the possible gain. Less exploration earns more: B, with exploration "
        "bonus 0.5 instead of 1.5, "
    )
    expected += (
        "explores in 2 % of its decisions instead of 30 % and earned 180 more clicks (95 % CI "
    )
    assert conclusion.text.startswith(expected)
    assert beside(made(**own), made(**more))[0].direction == "too little"
    much_better = made(**{**less, "value": 1.0}), made(**{**own, "value": 0.85})
    assert beside(much_better[1], much_better[0])[0].verdict == "alarm"
    assert beside(made(**own), made(**{**less, "rate": 0.275}))[0].direction == "too much"
    for other, changed in (
        # it earns more for another reason
        (made(**{**less, "rate": 0.3}), {}),
        (made(**{**less, "value": 0.93}), {}),  # hardly more
        # within the sampling error
        (made(**{**less, "spread": 0.5}), {}),
        # two parameters differ
        (made(**less), {"ridge": 5.0}),
        # a parameter that does not set how much it explores
        (made(**less), {"alpha": 1.5, "ridge": 5.0}),
        (made(**less), {"alpha": 1.5, "gamma": 0.99}),
        # explores 1.5 percentage points less
        (made(**{**less, "rate": 0.285}), {}),
        (made(**less), {"kind": "logistic_ucb"}),
        (made(**less, checks=False), {}),
    ):
        assert beside(made(**own), other, **changed)[0].direction == "about right"


@pytest.mark.parametrize(
    ("kind", "changed", "direction"),
    [
        ("ensemble", {"learning_rate": 1e-5}, "about right"),
        ("logistic_ts", {"ridge": 300.0}, "about right"),
        # which also changes what it learns
        ("mc_dropout", {"dropout": 0.8}, "about right"),
        ("beta_ts", {"prior_clicks": 10.0}, "about right"),
        ("logistic_ts", {"sigma2": 1.0}, "too much"),
        ("epsilon_greedy", {"epsilon": 0.4}, "too much"),
        ("neural_click_ts", {"sigma2": 1.0}, "too much"),
        # its prior precision
        ("neural_click_ts", {"epsilon": 0.1}, "about right"),
    ],
)
def test_only_a_parameter_declared_to_set_exploration_is_evidence(
    kind: str, changed: dict[str, float], direction: str
) -> None:
    agents = [{"kind": kind, "label": "A", **changed}, {"kind": kind, "label": "B"}]
    e = Experiment.model_validate({"agents": agents, "steps": STEPS, "replications": 4})
    histories = {
        "A": made(value=0.9, greedy=0.98, rate=0.3),
        "B": made(value=0.99, greedy=0.99, rate=0.02),
    }
    assert diagnostics.findings(Result(e, histories), "A")["exploration"].direction == direction


def test_the_rule_that_decides_words_the_conclusion() -> None:
    """The conclusion adds alarms that the rule leaves open, nothing else."""
    for case in (
        {"value": 0.5, "greedy": 1.0, "rate": 0.5},
        {"value": 0.8, "greedy": 0.8, "rate": 0.0, "late": 1.0},
    ):
        finding, conclusion = diagnose(made(**case))
        assert conclusion.text == finding.summary
    alarm = Finding("Calibration", "", "alarm", "")
    good, _ = diagnose(made(value=0.97, greedy=0.98, rate=0.03))
    concluded = diagnostics.conclude({"exploration": good, "regret": good, "calibration": alarm})
    expected = (
        "watch",
        "about right",
        "It loses 3 % of the possible gain. No sign of too little or too much exploration. Losses "
        "of up to 10 % of the gain (here 100 per 1,000 steps) may go unseen: in measured runs of "
        "LinUCB, LinTS and ε-greedy this rule found all significantly larger ones. "
        "See Calibration.",
    )
    assert concluded == expected
    early = good.without_verdict("Too early.")
    assert diagnostics.conclude({"exploration": early, "calibration": alarm}) == (
        "none",
        "",
        "Too early.",
    )


def test_no_sign_states_the_smallest_loss_that_the_error_rates_hold_for() -> None:
    assert exploration.DETECTED == LOSS
    measured = (Path(__file__).parents[2] / "docs" / "EXPLORATION.md").read_text("utf-8")
    assert re.search(
        r"sick settings that are named, in the right direction \| \d+ \| 100.0 %", measured
    )
    assert "LinUCB, LinTS and ε-greedy" in measured


def test_an_undecided_cause_does_not_hide_the_loss() -> None:
    """An agent with an alarm on its regret is not listed after healthy ones."""
    finding, conclusion = diagnose(made(value=0.4, greedy=0.4, rate=0.01))
    assert (finding.verdict, conclusion.verdict, conclusion.exploration) == ("none", "alarm", "")
    _, unsure = diagnose(made(value=0.4, greedy=0.4, rate=0.0))
    assert unsure.text.endswith("it cannot know what it misses. More exploration may earn more.")


def test_where_the_rule_cannot_decide_it_says_why() -> None:
    one, _ = diagnose(made(value=0.5, greedy=1.0, rate=0.5, rows=1))
    assert (one.verdict, one.direction) == ("none", "")
    assert "at least 2 are required" in one.text
    context_free, _ = diagnose(
        made(value=0.4, greedy=0.4, rate=0.0, locked=True), kind="popularity"
    )
    assert (context_free.verdict, "ignores the context" in context_free.text) == ("none", True)
    for kind in ("random", "oracle"):
        finding, conclusion = diagnose(made(value=0.0, greedy=0.0, rate=0.8), kind=kind)
        assert (finding.verdict, conclusion.verdict) == ("none", "none")
        assert "does not learn during the run" in conclusion.text
    flat = made(value=1.0, greedy=1.0, rate=0.0)
    flat.sums["best_value"] = flat.sums["random_value"] = flat.sums["value"]
    assert diagnose(flat)[0].verdict == "none"


@pytest.mark.parametrize(
    ("value", "entropy", "verdict", "direction"),
    [
        (0.5, 0.2, "watch", "too much"),
        (0.5, 1.0, "none", ""),
        (0.97, 0.2, "healthy", "about right"),
    ],
)
def test_a_run_stored_without_checks_is_judged_by_regret_and_entropy(
    value: float, entropy: float, verdict: str, direction: str
) -> None:
    history = made(value=value, greedy=value, rate=0.0, checks=False)
    finding, _ = diagnose(history, oracle=OracleReference(entropy, 0.0))
    assert (finding.verdict, finding.direction) == (verdict, direction)
    assert ("too few snapshots" in finding.text) == (verdict == "none")
    narrow = made(value=value, greedy=value, rate=0.0, checks=False, locked=True)
    expected = "too little" if value < 0.9 else "about right"
    assert diagnose(narrow, oracle=OracleReference(0.9, 0.0))[0].direction == expected


def test_regret_is_split_into_exploring_and_estimating() -> None:
    history = made(value=0.5, greedy=0.9, rate=0.4)
    shares, sources = regret_shares(history), regret_sources(history)
    assert shares is not None
    assert sources is not None
    np.testing.assert_allclose(shares.total.mean(), 0.5)
    np.testing.assert_allclose(shares.late.mean(), 0.5)
    np.testing.assert_allclose(sources.exploring + sources.estimating, shares.total)
    np.testing.assert_allclose([sources.exploring.mean(), sources.estimating.mean()], [0.4, 0.1])
    assert is_locked_in(history) is False
    assert is_locked_in(made(value=0.5, greedy=0.5, rate=0.0, locked=True)) is True


@pytest.mark.slow
def test_known_cases_on_the_pet_shop() -> None:
    """Far too much, a good and no exploration, and random choice; findings come by severity."""
    agents = [{"kind": "linucb", "label": f"alpha {a:g}", "alpha": a} for a in (10.0, 0.35, 0.0)]
    data = {
        "simulator": {"kind": "petshop", "n_products": 20},
        "agents": [*agents, {"kind": "random"}],
    }
    result = run(Experiment.model_validate({**data, "steps": 3000, "replications": 4}))
    found = {label: diagnostics.findings(result, label) for label in result.histories}
    concluded = {label: diagnostics.conclude(each) for label, each in found.items()}
    assert {label: c.exploration for label, c in concluded.items()} == {
        "alpha 10": "too much",
        "alpha 0.35": "about right",
        "alpha 0": "too little",
        "Random": "",
    }
    assert not [f for f in found["alpha 0.35"].values() if f.verdict == "alarm"]
    sentences = diagnostics.reservations(found["alpha 0.35"])
    assert any(
        sentence.endswith(": not informative, because the agent loses little reward.")
        for sentence in sentences
    )
    lowered = [f for f in found["alpha 0.35"].values() if f.reservation]
    # one sentence for several diagnostics
    assert len(lowered) > len(sentences)
    assert all(
        f.title.split(" (")[0] in " ".join(sentences) and "loses little" not in f.text
        for f in lowered
    )
    assert diagnostics.reservations(found["alpha 0"]) == []
    assert found["alpha 0"]["condition_number"].verdict == "none"
    assert "hardly any data" in found["alpha 0"]["condition_number"].text
    assert not [f for f in found["Random"].values() if f.verdict in ("healthy", "alarm")]
    for each in found.values():
        assert list(each)[:2] == ["exploration", "regret"]
        order = [SEVERITY[f.verdict] for f in list(each.values())[2:]]
        assert order == sorted(order)


def test_the_cost_of_exploring_is_a_share_of_what_the_estimates_would_gain() -> None:
    """Greedily .5 of the gain, in truth .45: a tenth of that half; at least a quarter of the gain
    divides.
    """
    assert "Exploring costs 10 % of" in diagnose(made(value=0.45, greedy=0.5, rate=0.2))[0].text
    assert "Exploring costs 20 % of" in diagnose(made(value=0.05, greedy=0.1, rate=0.2))[0].text


@pytest.mark.parametrize("order", ["ABC", "BAC"])
def test_the_interval_of_a_sibling_is_corrected_for_all_pairs(order: str) -> None:
    """A third agent, of which nothing is known, makes the interval wider."""
    own, less = (
        made(value=0.9, greedy=0.98, rate=0.3, spread=0.005),
        made(value=0.99, greedy=0.99, rate=0.02, spread=-0.005),
    )
    histories = {"A": own, "B": less, "C": made(value=0.95, greedy=0.98, rate=0.3, spread=0.1)}
    agents = {
        "A": {"kind": "linucb", "label": "A", "alpha": 1.5},
        "B": LESS,
        "C": {"kind": "lints", "label": "C"},
    }
    e = Experiment.model_validate(
        {"agents": [agents[x] for x in order], "steps": STEPS, "replications": own.rows}
    )
    result = Result(e, {label: histories[label] for label in order})
    text = diagnostics.findings(result, "A")["exploration"].text
    plain = paired_tests.compare(histories["B"], histories["A"]).difference
    wide = paired_tests.compare(histories["B"], histories["A"], family=3).difference
    assert wide.high - wide.low > 1.1 * (plain.high - plain.low)
    stated = f"{words.interval(wide, 'count')}, corrected for 3 pairs of agents"
    assert f"more clicks ({stated})" in text
