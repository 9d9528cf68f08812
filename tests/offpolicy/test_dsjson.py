"""dsjson as Personalizer and Vowpal Wabbit write it: names, odd lines, weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.cli import main as cli
from bandits.offpolicy import REGISTRY, evaluate, write_dsjson
from bandits.offpolicy.dsjson import read_dsjson
from tests.offpolicy.support import simulate

DRINKS = ("Cold brew", "Latte", "Mocha", "Tea")


def entry(
    candidates: Sequence[dict[str, Any]], shown: int, reward: float, p: Sequence[float], **more: Any
) -> str:
    """Write a line in which the candidate ``shown`` (from 0) was chosen."""
    others = [k for k in range(len(candidates)) if k != shown]
    return json.dumps(
        {
            "_label_cost": -reward,
            "_label_probability": p[shown],
            "_label_Action": shown + 1,
            "_labelIndex": shown,
            "a": [k + 1 for k in [shown, *others]],
            "p": [p[k] for k in [shown, *others]],
            "c": {"_multi": list(candidates), **more.pop("context", {})},
            **more,
        }
    )


def personalizer(n: int = 1200) -> tuple[list[str], dict[str, float]]:
    """Simulate a log whose candidates stand in random order, three or four of them; return its
    lines and the IPS of showing each drink wherever it can be shown.
    """
    g, lines = np.random.default_rng(3), []
    totals = dict.fromkeys(DRINKS, 0.0)
    for i in range(n):
        names = [DRINKS[k] for k in g.permutation(4)[: g.integers(3, 5)]]
        m = len(names)
        p = np.full(m, 0.4 / m)
        p[int(g.integers(m))] += 0.6
        shown = int(g.choice(m, p=p))
        reward = float(g.random() < 0.2 + 0.4 * (names[shown] == "Latte"))
        candidates = [
            {"_tag": name, "i": {"constant": 1, "id": name}, "j": [{"hot": name != "Cold brew"}]}
            for name in names
        ]
        context = {"FromUrl": [{"hour": i % 24, "_age": i}]}
        lines.append(entry(candidates, shown, reward, p.tolist(), context=context, EventId=f"e{i}"))
        for name in DRINKS:
            target = float(names[shown] == name) if name in names else 1 / m
            totals[name] += target * reward / p[shown] / n
    return lines, totals


def ips(lines: Sequence[str], target: str) -> float:
    return evaluate(read_dsjson(lines), target, estimators=["ips"]).estimates["ips"].value


@pytest.mark.parametrize("key", ["_tag", "id", "nested", "deep"])
def test_items_have_their_names_wherever_the_writer_puts_them(key: str) -> None:
    lines, totals = personalizer()

    def moved(candidate: dict[str, Any]) -> dict[str, Any]:
        name = candidate["_tag"]
        return {
            "_tag": candidate,
            "id": {"id": name, "_tag": "same"},
            "nested": {"_tag": "same", "i": {"id": name}},
            "deep": {"x": [{"y": {"id": name}}]},
        }[key]

    rewritten = []
    for line in lines:
        one = json.loads(line)
        one["c"]["_multi"] = [moved(candidate) for candidate in one["c"]["_multi"]]
        rewritten.append(json.dumps(one))
    log = read_dsjson(rewritten)
    assert log.names == DRINKS
    assert log.feature_names == ("FromUrl.0.hour",)
    for name, value in totals.items():
        assert ips(rewritten, f"always:{name}") == pytest.approx(value)


def test_items_known_by_place_only_raise_an_alarm_where_the_places_vary() -> None:
    two = [{"a": {"f": 0}}, {"a": {"f": 1}}]
    for second, kinds in (
        (two, set()),
        (two[::-1], {"by_place"}),
        ([*two, {"a": {"f": 2}}], {"by_place"}),
    ):
        m = len(second)
        lines = [entry(two, 0, 1, [0.5, 0.5])] * 200 + [entry(second, 0, 1, [1 / m] * m)] * 200
        log = read_dsjson(lines)
        assert log.names == ("0", "1", "2")[: max(2, m)]
        for target, expected in (("always:0", kinds), ("greedy:ridge", kinds), ("random", set())):
            alarms = {alarm.kind for alarm in evaluate(log, target, estimators=["ips"]).alarms}
            assert alarms & {"by_place"} == expected


def test_candidates_of_one_name_are_one_action() -> None:
    """The probability that the name is shown is the sum of theirs."""
    twice = [{"id": "a"}, {"id": "b"}, {"id": "a"}]
    log = read_dsjson([entry(twice, 0, 1, [0.25, 0.5, 0.25]), entry(twice, 1, 0, [0.2, 0.5, 0.3])])
    assert log.names == ("a", "b")
    assert log.actions.tolist() == [0, 1]
    assert np.asarray(log.propensities).tolist() == [0.5, 0.5]
    assert np.asarray(log.distributions).tolist() == [[0.5, 0.5], [0.5, 0.5]]


JUNK = {
    "a checkpoint": ["[checkpoint_info,2021-02-04T16:40:00Z]"],
    "a reward": ['{"Timestamp": "x", "RewardValue": 1.0, "EventId": "lost-7"}'],
    "a cut line": ['{"_label_cost":-1.0,"_label_probability":0.7,"_label_Ac'],
    "a dangling observation": ['{"EventId": "x", "o": [{"v": 1}]}', '{"EventId": "y", "v": 2}'],
    "a comment": ["# rotated", "null"],
    "several decisions": ['{"_outcomes": [{"_label_cost": 0}], "c": {"_multi": []}}'],
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_lines_that_are_no_decisions_are_left_out_counted_and_stated(junk: list[str]) -> None:
    lines, totals = personalizer(300)
    with_junk = [*lines[:100], *junk[1:], *lines[100:], junk[0]]
    log = read_dsjson(with_junk)
    assert log == read_dsjson(lines)
    word = "lines" if len(junk) > 1 else "line"
    assert sum(int(note.split(" ")[0]) for note in log.notes) == len(junk)
    assert f"{len(junk)} {word} left out (line " in log.notes[0]
    assert evaluate(log, "random").notes == log.notes
    assert ips(with_junk, "always:Latte") == pytest.approx(totals["Latte"])
    first = 101 if len(junk) > 1 else 301
    with pytest.raises(UserError, match=f"^line {first}: "):
        read_dsjson(with_junk, strict=True)


def test_the_command_states_what_was_left_out_and_strict_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, _ = personalizer(200)
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join([*lines, *JUNK["a cut line"]]))
    assert cli.main(["evaluate", str(path), "--target", "random"]) == 0
    assert (
        "note: 1 line left out (line 201): no JSON object, such as a checkpoint or a cut last line."
        in capsys.readouterr().out
    )
    assert cli.main(["evaluate", str(path), "--target", "random", "--strict"]) == 2
    assert "error: line 201: must be one JSON object" in capsys.readouterr().err


def test_a_file_without_any_decision_is_refused_with_its_first_line() -> None:
    with pytest.raises(UserError, match=r"^line 1: a reward without its decision; a, c and p are"):
        read_dsjson(JUNK["a reward"] * 2)


def test_minimal_lines_are_read() -> None:
    lines = [entry([{"a": {"f": "0"}}, {"a": {"f": "1"}}], i % 2, i, [0.5, 0.5]) for i in range(4)]
    log = read_dsjson(lines)
    assert (log.names, log.times, log.event_ids, log.versions) == (("0", "1"), None, None, None)
    assert log.rewards.mean() == 1.5
    assert ips(lines, "always:1") == pytest.approx((1 + 3) / 0.5 / 4)
    some = read_dsjson([lines[0], json.dumps({**json.loads(lines[1]), "EventId": "x"})])
    assert np.asarray(some.event_ids).tolist() == ["line 1", "x"]


def test_dropped_lines_count_as_often_as_they_were_dropped() -> None:
    """Three of four decisions without a click are dropped; weights undo it."""
    g, lines, clicks, shown_high = np.random.default_rng(5), [], [], []
    for _ in range(4000):
        high = int(g.random() < 0.3)
        click = float(g.random() < (0.5 if high else 0.2))
        pdrop = 0.0 if click else 0.75
        if g.random() < pdrop:
            continue
        lines.append(entry([{"id": "low"}, {"id": "high"}], high, click, [0.7, 0.3], pdrop=pdrop))
        clicks.append(click)
        shown_high.append(high)
    u = np.where(np.array(clicks) > 0, 1.0, 4.0)
    log = read_dsjson(lines)
    assert np.asarray(log.row_weights).tolist() == u.tolist()
    found = evaluate(log, "always:high", estimators=["ips", "dr"])
    weight = np.array(shown_high) / 0.3
    assert found.logged == pytest.approx((u * clicks).sum() / u.sum())
    assert found.estimates["ips"].value == pytest.approx((u * weight * clicks).sum() / u.sum())
    for e in found.estimates.values():
        assert e.low < 0.5 < e.high
    assert not found.alarms
    with pytest.raises(UserError, match="interval anytime: not offered for rows with weights"):
        evaluate(log, "always:high", interval="anytime", reward_range=(0, 1))


def test_row_weights_are_written_and_read_back(tmp_path: Path) -> None:
    log = replace(simulate(np.random.default_rng(0), 20).log, row_weights=np.linspace(0.1, 3, 20))
    write_dsjson(log, tmp_path / "a.dsjson")
    back = read_dsjson((tmp_path / "a.dsjson").read_text().splitlines())
    np.testing.assert_array_equal(back.row_weights, log.row_weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", REGISTRY)
def test_a_row_of_weight_k_is_worth_k_equal_rows(name: str) -> None:
    """Estimate, mean weight and effective size; with predicted rewards that are given."""
    g = np.random.default_rng(6)
    setting = simulate(g, 300)
    times = g.integers(1, 4, 300)
    index = np.repeat(np.arange(300), times)
    weighted = replace(setting.log, row_weights=times.astype(float))
    found, repeated = (
        evaluate(
            log,
            setting.target[rows],
            estimators=[name],
            q=setting.rewards[rows] + 0.1,
            generator=np.random.default_rng(0),
        )
        for log, rows in ((weighted, np.arange(300)), (setting.log.select(index), index))
    )
    assert found.logged == pytest.approx(repeated.logged)
    assert found.support.mean_weight == pytest.approx(repeated.support.mean_weight)
    if REGISTRY[name].tuned or name == "replay":
        # what is tuned, or drawn, depends on the number of rows
        assert found.estimates[name].value == pytest.approx(
            repeated.estimates[name].value, abs=0.15
        )
    else:
        assert found.estimates[name].value == pytest.approx(repeated.estimates[name].value)


@pytest.mark.slow
def test_intervals_of_weighted_rows_hold_the_value() -> None:
    """Coverage of 400 logs from which 3 of 4 decisions without a click are dropped: 95 % within 4
    standard errors for IPS and SNIPS.
    """
    g, inside = np.random.default_rng(8), np.zeros(2)
    for _ in range(400):
        setting = simulate(g, 1500)
        kept = (setting.log.rewards > 0) | (g.random(1500) < 0.25)
        log = replace(
            setting.log.select(kept),
            row_weights=np.where(setting.log.rewards[kept] > 0, 1.0, 4.0),
        )
        found = evaluate(log, setting.target[kept], estimators=["ips", "snips"]).estimates
        inside += [e.low <= setting.value <= e.high for e in found.values()]
    assert (np.abs(inside / 400 - 0.95) < 4 * (0.95 * 0.05 / 400) ** 0.5).all()


def test_rare_values_of_a_text_share_what_has_no_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [{"id": "a"}, {"id": "b"}]
    texts = ["usual"] * 40 + [f"user {i}" for i in range(60)]
    lines = [
        entry(items, 0, 1, [0.5, 0.5], context={"u": {"id": text, "n": i, "_text": "x"}})
        for i, text in enumerate(texts)
    ]
    log = read_dsjson(lines)
    assert len(log.feature_names) == 51
    assert {"u.n", "u.id=usual"} <= set(log.feature_names)
    assert "1 text in the context with more than 50 different values" in log.notes[0]
    monkeypatch.setattr("bandits.offpolicy.dsjson_context.MAX_FEATURES", 2)
    log = read_dsjson(lines)
    assert set(log.feature_names) == {"u.n", "u.id=usual"}
    assert log.notes[1].startswith("49 rare features left out: at most 2 are read")
