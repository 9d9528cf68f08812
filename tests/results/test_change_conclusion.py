"""Who recovers first and who loses least: what the sentence rests on, its words, and its error rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import read, run
from bandits.results.change_conclusion import conclusion, first_to_recover, least_lost
from bandits.results.lost_clicks import lost_by_row, without_changes
from bandits.results.recovery import Recovery, recovery_from
from tests.results.test_recovery import forgotten
from tests.support import often

REPEATS = often(60, 1500)


def made(step: int | None, low: int | None, high: int | None) -> Recovery:
    return Recovery(step, low, high, 1.0)


@pytest.mark.parametrize(
    ("found", "leader", "tied"),
    [
        ({"a": made(900, 700, 1200), "b": made(500, 400, 600)}, "b", ()),
        ({"a": made(900, 600, 1200), "b": made(500, 400, 600)}, "b", ("a",)),
        ({"a": made(0, 0, None), "b": made(0, 0, 0), "c": made(910, 810, 1250)}, "b", ("a",)),
        ({"a": made(500, 400, None), "b": made(None, 900, None)}, "a", ("b",)),  # its own end is beyond the run
        ({"a": made(500, 400, 600), "b": made(None, None, None)}, "a", ()),  # b's whole interval is beyond it
        ({"a": made(500, None, None), "b": made(900, None, None)}, "a", ("b",)),  # too few replications
        ({"a": made(None, 900, None), "b": made(None, None, None)}, None, ()),
    ],
)
def test_an_agent_is_first_where_the_others_intervals_begin_later(
    found: dict[str, Recovery], leader: str | None, tied: tuple[str, ...]
) -> None:
    first = first_to_recover(found)
    assert (None if first is None else first.label) == leader
    assert first is None or first.tied == tied


def test_the_least_loss_is_compared_with_each_other_agent_by_replication() -> None:
    g = np.random.default_rng(1)
    common = 100 * g.standard_normal(16)  # what all replications share does not matter
    lost = {
        name: common + mean + g.standard_normal(16) for name, mean in (("a", 50), ("b", 20), ("c", 20.2), ("d", 90))
    }
    lost["d"][3] = np.nan
    leader = least_lost(lost)
    assert (leader.label, leader.tied) == ("b", ("c",))
    alone = least_lost({name: lost[name] for name in "dba"})
    assert (alone.label, alone.tied, alone.closest) == ("b", (), "a")
    assert alone.ahead.mean == pytest.approx((lost["a"] - lost["b"]).mean())
    assert alone.ahead.low > 25
    assert alone.ahead.high - alone.ahead.low < 5


def test_equal_agents_seldom_have_one_that_recovers_first() -> None:
    """At most 5 % of runs with three equal agents, and three standard errors."""
    g, wrong = np.random.default_rng(2), 0
    for _ in range(REPEATS):
        histories = [forgotten(g.standard_normal(16), g.standard_normal((80, 16))) for _ in range(3)]
        found = {str(i): recovery_from(history, 1000, family=3) for i, history in enumerate(histories)}
        first = first_to_recover({label: r for label, r in found.items() if r is not None})
        wrong += first is not None and len(first.tied) < 2
    assert wrong / REPEATS < 0.05 + 3 * (0.05 * 0.95 / REPEATS) ** 0.5


def test_equal_agents_seldom_have_one_that_loses_least() -> None:
    """At most 5 % of 400 runs with six equal agents, and three standard errors."""
    g = np.random.default_rng(5)
    leaders = [least_lost({str(i): lost for i, lost in enumerate(g.standard_normal((6, 16)))}) for _ in range(400)]
    wrong = np.mean([len(leader.tied) < 5 for leader in leaders])
    assert wrong < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


@pytest.mark.slow
def test_a_difference_is_found() -> None:
    """One agent recovers in a third of the time of the others, and loses less."""
    g, found = np.random.default_rng(3), np.zeros(2)
    for _ in range(50):
        histories = [forgotten(g.standard_normal(16) - 2.2 * (i == 0), g.standard_normal((80, 16))) for i in range(3)]
        each = {str(i): recovery_from(history, 1000, family=3) for i, history in enumerate(histories)}
        first = first_to_recover({label: r for label, r in each.items() if r is not None})
        assert first is not None
        leader = least_lost({str(i): (100 + 400 * (i > 0)) * g.exponential(1, 16) for i in range(3)})
        found += [(first.label, first.tied) == ("0", ()), (leader.label, leader.tied) == ("0", ())]
    assert found.min() >= 30


def shocked(agents: list[dict[str, Any]], **options: Any) -> Any:
    simulator = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "shock", "at": 3000}]}
    return read({"simulator": simulator, "agents": agents, "steps": 7000, "replications": 16, "seed": 4, **options})


def test_the_sentence_of_a_run() -> None:
    fast = {"kind": "linucb", "alpha": 0.4, "gamma": 0.999, "label": "fast"}
    e = shocked([{"kind": "linucb", "alpha": 0.4, "label": "slow"}, fast, {"kind": "random"}, {"kind": "oracle"}])
    result, twin = run(e), run(without_changes(e))
    lost = {label: lost_by_row(result, twin, label) for label in ("slow", "fast")}
    difference = round(float((lost["slow"] - lost["fast"]).mean()))
    stated = conclusion(result, twin)
    assert stated.startswith("fast recovers first, after ")
    assert (
        f"It also loses least to the change: {round(float(lost['fast'].mean()))} clicks, {difference} fewer than slow"
        in stated
    )
    assert "Random" not in stated  # it had nothing to recover
    assert "Oracle" not in stated
    assert conclusion(result) == stated.partition(" It also")[0]
    twins = shocked([fast, {**fast, "label": "again", "gamma": 0.99901}])
    assert conclusion(run(twins), run(without_changes(twins))) == (
        "With 16 replications it is not certain which of again and fast recovers first. Nor is it certain which of "
        "again and fast loses least to the change."
    )
    assert conclusion(run(shocked([fast]))) == ""
    assert conclusion(twin) == ""
