"""What a slider shows: the numbers of a run, within limits, with an honest difference from where it
was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import Experiment, Preview, Result, UserError, read, run
from bandits.results import instant as module
from bandits.results.figures.board import XAxis, agent_traces, board
from bandits.results.instant import (
    MOVING,
    RESTING,
    Instant,
    NotQuickError,
    difference,
    shortened,
    too_slow,
)
from bandits.results.metrics import Estimate, t_quantile
from tests.support import experiment

PETSHOP = {"kind": "petshop", "n_products": 10}


def raced(**changes: Any) -> Experiment:
    return experiment({"kind": "linucb", "alpha": 0.5}, "lints", "ucb1", "random", **changes)


@pytest.mark.parametrize(
    ("steps", "replications", "decisions", "expected"),
    [
        (2000, 4, MOVING, (2000, 4)),
        # fewer replications first
        (2000, 64, MOVING, (2000, 20)),
        # then fewer steps, with at least four replications
        (20_000, 16, MOVING, (10_000, 4)),
        (20_000, 2, MOVING, (20_000, 2)),
        (100_000, 1, MOVING, (40_000, 1)),
        (20_000, 16, RESTING, (20_000, 16)),
        (10_000_000, 4096, RESTING, (100_000, 4)),
    ],
)
def test_fewer_replications_and_then_fewer_steps(
    steps: int, replications: int, decisions: int, expected: tuple[int, int]
) -> None:
    short = shortened(experiment(steps=steps, replications=replications), decisions)
    assert (short.steps, short.replications) == expected


def test_an_answer_has_the_numbers_of_two_runs_and_their_paired_interval() -> None:
    e = raced(steps=900, replications=5)
    found = Instant().answer(e, "LinUCB", {"alpha": 2.0})
    data = e.model_dump(mode="json")
    data["agents"][0]["alpha"] = 2.0
    before, after = (
        run(e, workers=0).histories["LinUCB"],
        run(read(data), workers=0).histories["LinUCB"],
    )
    np.testing.assert_array_equal(
        found.result.histories["LinUCB"].sums["clicks"], after.sums["clicks"]
    )
    gap = after.sums["clicks"][-1] - before.sums["clicks"][-1]
    half = t_quantile(5) * gap.std(ddof=1) / 5**0.5
    assert found.whole
    np.testing.assert_allclose(found.gain, (gap.mean(), gap.mean() - half, gap.mean() + half))
    assert "alpha 0.5" in found.sentence
    assert "5 replications, 900 steps" in found.sentence
    assert found.short == f"{'+' if gap.mean() > 0 else '−'}{abs(gap.mean()):.0f} against 0.5"


def test_what_takes_long_is_no_quick_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    e, instant = raced(steps=300, replications=4), Instant()

    def quick(**more: bool) -> Any:
        return instant.answer(e, "LinUCB", {"alpha": 2.0}, quick=True, **more).gain

    # nothing is prepared
    with pytest.raises(NotQuickError):
        quick()
    expected = instant.answer(e, "LinUCB", {"alpha": 2.0}).gain
    assert quick() == expected
    with pytest.raises(NotQuickError):
        quick(rest=True)
    (kept,) = instant._previews.values()
    with kept.lock, pytest.raises(NotQuickError):
        quick()
    monkeypatch.setattr(module, "QUICK", 0.0)
    with pytest.raises(NotQuickError):
        quick()


def test_kept_simulators_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = Instant()
    monkeypatch.setattr("bandits.results.instant.MEMORY", 2 * raced(steps=300).memory())
    for seed in range(5):
        instant._subject(raced(steps=300, seed=seed), "LinUCB")
        assert instant.memory <= 2 * raced(steps=300).memory()
    assert [seed for _, seed in instant._previews] == [3, 4]


@pytest.mark.parametrize("x", ["step", "log step", "earned"])
def test_the_curves_of_an_answer_are_those_of_the_board(x: XAxis) -> None:
    result = Instant().answer(raced(steps=900, replications=5), "LinUCB", {"alpha": 2.0}).result
    whole = [
        [t for t in plot["data"] if t.get("legendgroup") == "LinUCB"]
        for plot in board(result, 100, x=x)
    ]
    curves = agent_traces(result, 100, x=x)
    np.testing.assert_equal(curves, whole)
    # a band and a line
    assert [len(traces) for traces in curves] == [2] * 4
    assert agent_traces(result, 100, x=x, spectrum=False)[3] == []


def test_a_short_answer_says_so_and_one_replication_has_no_interval() -> None:
    whole = raced(steps=30_000, replications=8)
    found = Instant().answer(whole, "LinUCB", {"alpha": 2.0})
    assert not found.whole
    assert "4 replications, first 10,000 steps" in found.sentence
    assert found.short.endswith(" in 10,000 steps")
    single = Instant().answer(raced(steps=200, replications=1), "LinUCB", {"alpha": 2.0})
    assert "no interval" in single.sentence
    assert "CI" not in single.sentence


def test_back_at_the_start_nothing_is_claimed() -> None:
    instant = Instant()
    for label, params in (("LinUCB", {"alpha": 0.5}), ("UCB1", {})):
        if params:
            found = instant.answer(raced(), label, params)
            assert found.sentence == "alpha 0.5: where the slider was"
            assert found.gain.mean == 0
            assert found.short == "as with 0.5"


def test_fewer_clicks_are_a_positive_number() -> None:
    text = difference(Estimate(-20.0, -30.0, -10.0), "alpha 1", raced())
    assert text.startswith("20 fewer clicks than with alpha 1 (95 % CI 10 to 30; ")


def test_a_difference_that_may_be_chance_is_called_that() -> None:
    found = Instant().answer(raced(steps=300, replications=4), "LinUCB", {"ridge": 1.01})
    assert found.gain.low <= 0 <= found.gain.high
    assert found.sentence.startswith("No significant difference from ridge 1")


@pytest.mark.parametrize(
    ("label", "params", "message"),
    [
        ("Nobody", {"alpha": 1.0}, "no agent of that name"),
        ("LinUCB", {"gammaa": 1.0}, "no such parameter"),
        ("LinUCB", {"fourier": 300}, "decides the agent's size"),
        ("LinUCB", {"kind": 1.0}, "no such parameter"),
        ("LinUCB", {"label": 1.0}, "no such parameter"),
        ("LinUCB", {"alpha": -1.0}, "must be"),
        ("LinUCB", {"alpha": float("nan")}, "must be"),
    ],
)
def test_what_cannot_be_tried_is_refused_in_a_sentence(
    label: str, params: dict[str, float], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Instant().answer(raced(), label, params)


def test_agents_that_cannot_follow_say_why() -> None:
    e = experiment("linucb", "neural_greedy", "static_mlp")
    assert too_slow(e, "LinUCB") == ""
    assert too_slow(e, "Neural greedy").endswith("trains a network.")
    assert too_slow(e, "Static MLP").endswith("trains a network.")
    assert too_slow(e, "LinUCB", 1.0).startswith("Runs on release (")
    assert too_slow(e, "LinUCB", 1e-7) == ""
    with pytest.raises(UserError, match="network"):
        Instant().answer(e, "Neural greedy", {"learning_rate": 0.1})
    large = experiment("linucb", simulator={**PETSHOP, "n_products": 2000}, replications=100)
    assert "memory" in too_slow(large, "LinUCB")


def test_an_agent_that_turns_out_to_be_slow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOWEST", 0.0)
    with pytest.raises(UserError, match="Runs on release"):
        Instant().answer(raced(), "LinUCB", {"alpha": 1.0})


def test_a_slider_moves_where_its_shorter_run_ends_before_a_change() -> None:
    simulator = {**PETSHOP, "changes": [{"kind": "shock", "at": 15_000}]}
    e = experiment("ucb1", simulator=simulator, steps=20_000, replications=4)
    found = Instant().answer(e, "UCB1", {"alpha": 2.0})
    assert (found.whole, found.result.experiment.steps) == (False, 10_000)


def test_visitors_share_simulators_and_few_are_kept() -> None:
    instant = Instant()
    for seed in range(module.KEPT + 2):
        for alpha in (0.1, 0.2):
            other = experiment({"kind": "linucb", "alpha": alpha}, seed=seed, steps=50)
            instant.answer(other, "LinUCB", {"alpha": 1.0})
    assert len(instant._previews) == module.KEPT
    (kept,) = {
        id(w): w for (_, seed), w in instant._previews.items() if seed == module.KEPT
    }.values()
    # two experiments of one simulator and seed
    assert len(kept._starts) == 2


@pytest.mark.parametrize(
    ("alive", "words"),
    [([True, False, True, True], "1 of 4 replications diverged."), ([False] * 4, "All")],
)
def test_replications_that_diverge_are_counted(
    monkeypatch: pytest.MonkeyPatch, alive: list[bool], words: str
) -> None:
    whole = Preview.run

    def diverging(self: Preview, e: Experiment, label: str) -> Result:
        result = whole(self, e, label)
        result.histories[label].alive[:] = alive
        return result

    monkeypatch.setattr(Preview, "run", diverging)
    found = Instant().answer(raced(replications=4), "LinUCB", {"alpha": 2.0})
    assert found.sentence.startswith(words)


def test_a_hiccup_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([9.0, 9.0, 9.0, 0.01])
    monkeypatch.setattr(Preview, "seconds_of", lambda *_: next(times))
    instant = Instant()
    with pytest.raises(UserError, match="Runs on release"):
        instant.answer(raced(), "LinUCB", {"alpha": 2.0})
    # held up once, and fast after all
    assert instant.answer(raced(), "LinUCB", {"alpha": 2.0}).sentence
