"""Who recovers first and who loses least: what the sentence rests on, its words, and its error
rates.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from bandits import Result, read, run
from bandits.results.change.conclusion import (
    all_gain,
    common_rows,
    conclusion,
    first_to_recover,
    least_lost,
    recovered,
)
from bandits.results.change.lost_clicks import lost_by_row, without_changes
from bandits.results.change.recovery import MIN_ROWS, Recovery, recovery_from
from bandits.results.metrics import estimate
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
        # its own end is beyond the run
        ({"a": made(500, 400, None), "b": made(None, 900, None)}, "a", ("b",)),
        # b's whole interval is beyond it
        ({"a": made(500, 400, 600), "b": made(None, None, None)}, "a", ()),
        ({"a": made(None, 900, None), "b": made(None, None, None)}, None, ()),
    ],
)
def test_an_agent_is_first_where_the_others_intervals_begin_later(
    found: dict[str, Recovery], leader: str | None, tied: tuple[str, ...]
) -> None:
    first = first_to_recover(found, dict.fromkeys(found, 8))
    assert (None if first is None else first.label) == leader
    assert first is None or first.tied == tied


@pytest.mark.parametrize(
    ("others", "stated"),
    [
        ((made(0, 0, 0), made(700, 500, 900)), "a and b recover at once; c recovers later."),
        (
            (made(0, 0, 0), made(1500, 900, None)),
            "a and b recover at once; c recovers later or not at all.",
        ),
        (
            (made(0, 0, 0), made(None, 900, None)),
            "a and b recover at once; c is not shown to recover.",
        ),
        (
            (made(0, 0, 40), made(700, 500, 900)),
            "a or b recovers first (with 8 replications it is not certain which); c recovers "
            "later.",
        ),
        ((made(0, 0, 0), made(0, 0, 0)), "a, b and c recover at once."),
    ],
)
def test_what_is_known_of_agents_that_are_not_apart(
    others: tuple[Recovery, ...], stated: str
) -> None:
    found = dict(zip("abc", (made(0, 0, 0), *others), strict=True))
    assert recovered(first_to_recover(found, dict.fromkeys(found, 8)), found, 8, "") == stated


@pytest.mark.parametrize("b", [made(900, None, None), made(None, None, None)])
def test_nothing_is_shown_of_an_agent_with_too_few_replications_for_an_interval(
    b: Recovery,
) -> None:
    for found, rows in (
        ({"a": made(500, 400, 600), "b": b}, {"a": 16, "b": MIN_ROWS - 1}),
        ({"a": made(500, None, None), "b": b}, {"a": MIN_ROWS - 1, "b": MIN_ROWS - 1}),
        ({"a": made(500, None, None), "b": made(900, 800, None)}, {"a": MIN_ROWS - 1, "b": 16}),
    ):
        first = first_to_recover(found, rows)
        assert first is not None
        assert (first.label, first.tied) == ("a", ("b",))


def test_the_least_loss_is_compared_with_each_other_agent_by_replication() -> None:
    g = np.random.default_rng(1)
    # what all replications share does not matter
    common = 100 * g.standard_normal(16)
    lost = {
        name: common + mean + g.standard_normal(16)
        for name, mean in (("a", 50), ("b", 20), ("c", 20.2), ("d", 90))
    }
    leader = least_lost(lost)
    assert (leader.label, leader.tied) == ("b", ("c",))
    alone = least_lost({name: lost[name] for name in "dba"})
    assert (alone.label, alone.tied, alone.closest) == ("b", (), "a")
    assert alone.ahead == estimate(lost["a"] - lost["b"], family=3)
    assert alone.ahead.low > 25
    assert alone.ahead.high - alone.ahead.low < 5


def test_losses_are_compared_in_the_replications_that_all_finished() -> None:
    g = np.random.default_rng(1)
    b = 100 + g.standard_normal(16)
    # four replications cost much more; a diverged in them
    b[:4] += 500
    a = b + 20 + g.standard_normal(16)
    a[:4] = np.nan
    lost = common_rows({"none": np.full(16, np.nan), "a": a, "b": b})
    assert list(lost) == ["a", "b"]
    assert np.nanmean(a) < b.mean()
    leader = least_lost(lost)
    assert (leader.label, leader.tied, leader.closest) == ("b", (), "a")
    assert leader.ahead.mean == pytest.approx((a - b)[4:].mean())
    assert common_rows({"none": np.full(16, np.nan)}) == {}


def test_a_gain_of_all_is_seldom_stated_where_one_gains_nothing() -> None:
    """At most 2.5 % of 2,000 runs in which two agents gain and one does not, and three standard
    errors.
    """
    g = np.random.default_rng(6)
    draws = g.standard_normal((2000, 3, 16)) - np.array([3.0, 3.0, 0.0])[:, None]
    wrong = np.mean(
        [all_gain({str(i): estimate(lost) for i, lost in enumerate(draw)}) for draw in draws]
    )
    assert 0 < wrong < 0.025 + 3 * (0.025 * 0.975 / 2000) ** 0.5


def test_equal_agents_seldom_have_one_that_recovers_first() -> None:
    """At most 5 % of runs with three equal agents, and three standard errors."""
    g, wrong = np.random.default_rng(2), 0
    for _ in range(REPEATS):
        histories = [
            forgotten(g.standard_normal(16), g.standard_normal((80, 16))) for _ in range(3)
        ]
        found = {
            str(i): recovery_from(history, 1000, family=3) for i, history in enumerate(histories)
        }
        first = first_to_recover(
            {label: r for label, r in found.items() if r is not None}, dict.fromkeys(found, 16)
        )
        wrong += first is not None and len(first.tied) < 2
    assert wrong / REPEATS < 0.05 + 3 * (0.05 * 0.95 / REPEATS) ** 0.5


def test_equal_agents_seldom_have_one_that_loses_least() -> None:
    """At most 5 % of 400 runs with six equal agents, and three standard errors."""
    g = np.random.default_rng(5)
    leaders = [
        least_lost({str(i): lost for i, lost in enumerate(g.standard_normal((6, 16)))})
        for _ in range(400)
    ]
    wrong = np.mean([len(leader.tied) < 5 for leader in leaders])
    assert wrong < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


@pytest.mark.slow
def test_a_difference_is_found() -> None:
    """One agent recovers in a third of the time of the others, and loses less."""
    g, found = np.random.default_rng(3), np.zeros(2)
    for _ in range(50):
        histories = [
            forgotten(g.standard_normal(16) - 2.2 * (i == 0), g.standard_normal((80, 16)))
            for i in range(3)
        ]
        each = {
            str(i): recovery_from(history, 1000, family=3) for i, history in enumerate(histories)
        }
        first = first_to_recover(
            {label: r for label, r in each.items() if r is not None}, dict.fromkeys(each, 16)
        )
        assert first is not None
        leader = least_lost(
            {str(i): (100 + 400 * (i > 0)) * g.exponential(1, 16) for i in range(3)}
        )
        found += [(first.label, first.tied) == ("0", ()), (leader.label, leader.tied) == ("0", ())]
    assert found.min() >= 30


def shocked(agents: list[dict[str, Any]], **options: Any) -> Any:
    simulator = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "shock", "at": 1500}]}
    return read(
        {
            "simulator": simulator,
            "agents": agents,
            "steps": 3500,
            "replications": 16,
            "seed": 5,
            **options,
        }
    )


SLOW, FAST = (
    {"kind": "linucb", "alpha": 0.4, "gamma": gamma, "label": label}
    for label, gamma in (("slow", 1.0), ("fast", 0.998))
)


AGAIN = {**FAST, "label": "again", "gamma": 0.99801}


@pytest.fixture(scope="module")
def everyone() -> tuple[Result, Result]:
    """A run with a shock, and without it."""
    e = shocked([SLOW, FAST, AGAIN, {"kind": "random"}, {"kind": "oracle"}])
    return run(e), run(without_changes(e))


def only(both: tuple[Result, Result], *labels: str) -> tuple[Result, Result]:
    """Return the runs of some of the agents: no result depends on other agents."""
    result, unchanged = both
    named = zip(result.experiment.labels, result.experiment.agents, strict=True)
    e = shocked([agent.model_dump() for label, agent in named if label in labels])
    return tuple(
        Result(of, {label: r.histories[label] for label in of.labels})
        for of, r in ((e, result), (without_changes(e), unchanged))
    )  # type: ignore[return-value]


def test_the_sentence_of_a_run(everyone: tuple[Result, Result]) -> None:
    result, unchanged = only(everyone, "slow", "fast", "Random", "Oracle")
    lost = {label: lost_by_row(result, unchanged, label) for label in ("slow", "fast")}
    difference = round(float((lost["slow"] - lost["fast"]).mean()))
    stated = conclusion(result, unchanged)
    assert stated.startswith("fast recovers first, after ")
    assert (
        f"It also loses least to the change: {round(float(lost['fast'].mean()))} clicks, "
        f"{difference} fewer than slow" in stated
    )
    # it had nothing to recover
    assert "Random" not in stated
    assert "Oracle" not in stated
    assert conclusion(result) == stated.partition(" It also")[0]
    assert conclusion(unchanged) == ""
    assert conclusion(*only(everyone, "fast", "again")) == (
        "With 16 replications it is not certain which of again and fast recovers first. Nor is it "
        "certain which of fast and again loses least to the change."
    )
    assert conclusion(*only(everyone, "slow", "fast", "again")) == (
        "With 16 replications it is not certain which of again, slow and fast recovers first. "
        "fast or again loses least to the change (with 16 replications it is not certain which); "
        "slow loses more."
    )
    assert conclusion(*only(everyone, "fast")) == ""


@pytest.fixture(scope="module")
def pair(everyone: tuple[Result, Result]) -> tuple[Result, Result]:
    """A run of two agents with a shock, and without it."""
    return only(everyone, "slow", "fast")


def losing(pair: tuple[Result, Result], **lost: Any) -> tuple[Result, Result]:
    """Return the pair with these losses (R,) of each agent."""
    result, unchanged = copy.deepcopy(pair)
    for label, rows in lost.items():
        unchanged.histories[label].sums["clicks"][-1] = (
            result.histories[label].sums["clicks"][-1] + rows
        )
    return result, unchanged


NOISE = np.random.default_rng(7).standard_normal(16)
NOISE = (NOISE - NOISE.mean()) / NOISE.std()


@pytest.mark.parametrize(
    ("own", "other", "stated"),
    [
        (
            -5 + 26 * NOISE,
            193,
            "It also loses least to the change, 198 clicks fewer than slow (95 % CI 184 to 212): "
            "it earned 5 more than without the change (95 % CI −12 to 22).",
        ),
        (
            -50 + NOISE,
            193,
            "It also loses least to the change, 243 clicks fewer than slow (95 % CI 242 to 244): "
            "it earned 50 more than without the change (95 % CI 49 to 51).",
        ),
        (
            -50 + NOISE,
            -20 + NOISE[::-1],
            "It also gains most from the change: 50 clicks, 30 more than slow (95 % CI ",
        ),
        (
            -0.3 + NOISE,
            NOISE[::-1],
            "With 16 replications it is not certain which of fast and slow loses least to ",
        ),
        (
            -0.3 + NOISE,
            200,
            "It also loses least to the change: 0 clicks, 200 fewer than slow (95 % CI 200 to "
            "201).",
        ),
    ],
)
def test_a_gain_is_stated_only_where_all_gain(
    pair: tuple[Result, Result], own: Any, other: Any, stated: str
) -> None:
    assert stated in conclusion(*losing(pair, fast=own, slow=other))


def test_an_agent_that_loses_more_may_have_gained(everyone: tuple[Result, Result]) -> None:
    lost = {"fast": -50 + NOISE, "again": -50 + NOISE[::-1], "slow": -5 + 26 * NOISE}
    stated = conclusion(*losing(only(everyone, *lost), **lost))
    assert " loses least to the change (" in stated
    assert stated.endswith("not certain which); slow loses more or gains less.")


def test_replications_that_diverged_choose_no_agent(pair: tuple[Result, Result]) -> None:
    costly = np.where(np.arange(16) < 4, 600.0, 100.0)
    result, unchanged = losing(pair, fast=costly + NOISE, slow=costly + 20 + NOISE[::-1])
    unchanged.histories["slow"].alive[:4] = False
    stated = conclusion(result, unchanged)
    assert "fast recovers first, after " in stated
    assert "It also loses least to the change: 100 clicks, 20 fewer than slow (95 % CI " in stated
    assert stated.endswith("; 12 replications that all finished).")
    unchanged.histories["slow"].alive[:] = False
    assert "loses" not in conclusion(result, unchanged)
    # too few for an interval of when it recovers
    result.histories["slow"].alive[7:] = False
    assert (
        conclusion(result, unchanged)
        == "With 7 replications it is not certain which of fast and slow recovers first."
    )


def test_several_changes_are_named_as_such() -> None:
    simulator = {
        "kind": "petshop",
        "n_products": 10,
        "changes": [{"kind": "shock", "at": at} for at in (1000, 1500)],
    }
    e = shocked([SLOW, FAST], simulator=simulator)
    stated = conclusion(run(e), run(without_changes(e)))
    assert "recovers first from the last change" in stated
    assert " to the changes" in stated


def test_no_agent_is_said_not_to_recover() -> None:
    e = shocked([SLOW, {**SLOW, "label": "again"}], steps=3600)
    assert conclusion(run(e)) == "slow and again are not shown to recover within the run."
