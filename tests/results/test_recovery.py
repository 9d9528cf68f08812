"""Recovery from changes: where the truth is known, in a run, in files and in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from bandits import read, run
from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.experiments.lockstep import Lockstep
from bandits.results.change import recovery
from bandits.results.change.recovery import Recovery
from bandits.results.export import report
from bandits.results.result import Result
from tests.support import often

REPEATS = often(400, 2000)


def made(gap: FloatArray, points: int = 100_000) -> History:
    """Return a history whose optimum is 1 at every step and whose shortfall below it is ``gap (T,
    R)``.
    """
    steps, rows = gap.shape
    found = History(steps, rows, 0, points=points)
    value, best = (
        np.vstack([np.zeros(rows), np.cumsum(1 - gap, axis=0)]),
        np.arange(steps + 1.0)[:, None],
    )
    found.sums["value"][:], found.sums["best_value"][:] = (
        value[found.grid],
        np.repeat(best[found.grid], rows, axis=1),
    )
    found.step = steps
    return found


def after_shock(lost: FloatArray, rows: int = 1) -> History:
    """Return a history with a shock at step 1,000, after which ``lost (T,)`` is lost at each step,
    in every row.
    """
    gap = np.concatenate([np.zeros(1000), lost])
    return made(np.repeat(gap[:, None], rows, axis=1))


def test_recovery_is_the_end_of_the_first_window_that_loses_at_most_five_percent() -> None:
    lost = np.where(np.arange(3000) < 700, 0.5, 0.0)
    found = recovery.recovery_from(after_shock(lost), 1000)
    # of a window that ends t steps after the shock, 1200 - t steps lose .5 each: at most 5 % of 500
    # from t = 1150 on
    assert found == recovery.Recovery(step=1150, low=None, high=None, recovered_share=1.0)


@pytest.mark.parametrize(
    ("lost", "step"),
    [
        (np.zeros(3000), 0),
        (np.full(3000, 0.04), 0),
        (np.full(3000, 0.06), None),
        (np.zeros(499), "nothing"),
    ],
    ids=["nothing lost", "four percent", "six percent", "too short"],
)
def test_recovery_at_once_and_never(lost: FloatArray, step: Any) -> None:
    found = recovery.recovery_from(after_shock(lost, rows=8), 1000)
    if step == "nothing":
        assert found is None
        return
    assert found is not None
    assert (found.step, found.low) == (step, step)
    assert found.recovered_share == (step == 0)


def test_the_first_window_begins_at_the_change() -> None:
    lost = np.where(np.arange(3000) < 500, 0.0, 0.9)
    history = made(np.concatenate([np.zeros(1000), lost])[:, None], points=80)
    assert history.grid[-3:].tolist() == [3800, 3900, 4000]
    found = recovery.recovery_from(history, 1000)
    assert found is not None
    assert found.step == 0


def test_the_share_that_recovered_counts_replications_by_themselves() -> None:
    slow, quick = np.full(2000, 0.5), np.where(np.arange(2000) < 300, 0.5, 0.0)
    gap = np.column_stack(
        [np.concatenate([np.zeros(1000), lost]) for lost in (slow, quick, quick, quick)]
    )
    found = recovery.recovery_from(made(gap), 1000)
    assert found is not None
    assert found.recovered_share == 0.75
    # the mean over replications still loses 12.5 %
    assert found.step is None
    # fewer than eight replications
    assert found.low is None


def test_diverged_replications_are_left_out() -> None:
    gap = np.column_stack([np.full(3000, np.nan), np.zeros(3000)])
    history = made(gap)
    history.alive[0] = False
    found = recovery.recovery_from(history, 1000)
    assert found is not None
    assert found.step == 0


def forgotten(normals: FloatArray, noise: FloatArray) -> History:
    """Return replications whose recovery times are skewed to the right: ``normals (R,)``, ``noise
    (80, R)``.
    """
    t = np.arange(4000)[:, None]
    gap = 0.4 * np.exp(-t / (800 * np.exp(0.5 * normals))) + 0.02 * noise.repeat(50, axis=0)
    return made(np.vstack([np.zeros((1000, len(normals))), gap]), points=200)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [8, 16, 32])
def test_the_interval_covers_the_expected_recovery(rows: int) -> None:
    generator = np.random.default_rng(rows)
    quantiles = ndtri((np.arange(1000) + 0.5) / 1000)
    expected = recovery.recovery_from(forgotten(quantiles, np.zeros((80, 1000))), 1000)
    assert expected is not None
    assert expected.step is not None
    inside = above = 0
    for _ in range(REPEATS):
        drawn = forgotten(generator.standard_normal(rows), generator.standard_normal((80, rows)))
        found = recovery.recovery_from(drawn, 1000)
        assert found is not None
        assert found.low is not None
        high = np.inf if found.high is None else found.high
        inside += found.low <= expected.step <= high
        above += expected.step > high
    error = np.sqrt(0.05 * 0.95 / REPEATS)
    assert inside / REPEATS > 0.95 - 3 * error - 0.01
    assert above / REPEATS < 0.05 + 3 * error


@pytest.mark.stress
def test_discounting_halves_the_recovery_from_a_shock_and_costs_clicks_without_one() -> None:
    """The figures of a trial with eight replications: 5,320 steps for plain LinUCB, 1,380 for a
    discount of .9995.
    """
    agents = [
        {"kind": "linucb", "alpha": 0.4, "label": "all"},
        {"kind": "linucb", "alpha": 0.4, "gamma": 0.9995, "label": "discounted"},
        {"kind": "linucb", "alpha": 0.4, "window": 5000, "label": "window"},
    ]
    shocked, still = (
        run(
            read(
                {
                    "simulator": {"kind": "petshop", "changes": changes},
                    "agents": agents,
                    "replications": 16,
                }
            )
        )
        for changes in ([{"kind": "shock", "at": 10_000}], [])
    )
    plain, discounted, windowed = (recovery.recovery(shocked, a["label"]) for a in agents)
    assert plain is not None
    assert plain.step is not None
    for found in (discounted, windowed):
        assert found is not None
        assert found.step is not None
        assert found.step <= plain.step / 2
    assert shocked.compare("discounted", "all").difference.low > 0
    assert still.compare("discounted", "all").difference.high < 0
    assert recovery.sentences(still) == []


def test_files_reports_and_the_command_line_state_the_recovery(tmp_path: Path) -> None:
    parts = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "shock", "at": 600}]}
    agents = [{"kind": "linucb"}, {"kind": "random"}, {"kind": "oracle"}]
    result = run(
        read({"simulator": parts, "agents": agents, "steps": 2400, "replications": 8}), workers=0
    )
    result.save(tmp_path)
    saved = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["agents"]
    found = recovery.recovery(result, "LinUCB")
    assert found is not None
    assert saved["LinUCB"]["recovery"] == {**found._asdict()}
    assert saved["Oracle"]["recovery"]["step"] == 0
    sentence, never = recovery.sentences(result)
    assert sentence.startswith(
        "Recovery from the change at step 600 (within 5 % of the best choice over 500 steps): "
    )
    # it had nothing to recover
    assert "Random" not in sentence
    assert never.startswith(
        "Random had nothing to recover: it never reached 95 % of the best choice before the change"
    )
    assert "Oracle" not in sentence
    assert sentence in report(result)


def test_before_a_change_the_share_of_the_last_window_counts_and_any_window_can_reach_the_level() -> (  # noqa: E501
    None
):
    gap = np.repeat(np.concatenate([np.full(600, 0.04), np.full(900, 0.3)])[:, None], 2, axis=1)
    found = recovery.before_change(made(gap), 1300)
    assert found == recovery.Before(share=pytest.approx(0.7), reached=True)
    found = recovery.before_change(made(np.where(gap == 0.04, 0.06, gap)), 1300)
    assert found == recovery.Before(share=pytest.approx(0.7), reached=False)
    assert recovery.before_change(made(gap), 499) is None
    exact = recovery.before_change(made(np.full((500, 2), 0.05)), 500)
    assert exact is not None
    assert exact.share == pytest.approx(0.95)


def test_the_change_is_named_from_its_start_to_its_end_and_counted_from_the_end() -> None:
    drift = {
        "kind": "drift",
        "start": 300,
        "end": 800,
        "from": "new_puppy_parent",
        "to": "mature_dog_owner",
    }
    parts = {"kind": "petshop", "n_products": 10, "changes": [drift]}
    result = run(
        read({"simulator": parts, "agents": [{"kind": "linucb"}], "steps": 1600}), workers=0
    )
    assert recovery.change_span(result.experiment.simulator) == (300, 800)
    assert recovery.last_change(result.experiment.simulator) == 800
    # fewer than 500 steps before it: nothing is stated about them
    (sentence,) = recovery.sentences(result)
    assert sentence.startswith(
        "Recovery from the change from step 300 to 800 (within 5 % of the best choice over 500 "
        "steps, counted from step 800): LinUCB "
    )


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (None, ""),
        (recovery.Before(0.97, reached=True), ""),
        (recovery.Before(0.6, reached=True), ""),
        (recovery.Before(float("nan"), reached=False), ""),
        (
            recovery.Before(0.42, reached=False),
            "UCB1 had nothing to recover: it never reached 95 % of the best choice before the "
            "change (42 % in the last 500 steps before it).",
        ),
    ],
)
def test_an_agent_that_was_never_at_the_level_cannot_recover(
    before: recovery.Before | None, words: str
) -> None:
    assert recovery._never_there("UCB1", before) == words


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Recovery(None, None, None, 0.0), "not within the run"),
        (Recovery(None, 3000, None, 0.25), "not within the run (95 % CI 3,000 to beyond the run)"),
        (Recovery(0, None, None, 1.0), "at once"),
        (Recovery(0, 0, 0, 1.0), "at once"),
        (Recovery(0, 0, 1200, 0.9), "at once (95 % CI 0 to 1,200)"),
        (Recovery(800, 500, None, 0.9), "after 800 steps (95 % CI 500 to beyond the run)"),
    ],
)
def test_the_interval_is_always_stated(found: Recovery, words: str) -> None:
    assert recovery._spoken(found, None) == words


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Recovery(None, None, None, 0.0), "not by step 12,000"),
        (Recovery(None, 3000, None, 0.25), "not by step 12,000"),
        (Recovery(800, 500, None, 0.9), "after 800 steps"),
        (Recovery(800, 500, 1200, 0.9), "after 800 steps (95 % CI 500 to 1,200)"),
    ],
)
def test_before_the_end_of_the_run_what_lies_beyond_is_not_known(
    found: Recovery, words: str
) -> None:
    assert recovery._spoken(found, 12_000) == words


def test_the_words_follow_from_the_step_that_an_agent_has_reached() -> None:
    parts = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "shock", "at": 300}]}
    e = read({"simulator": parts, "agents": [{"kind": "random"}], "steps": 1200, "replications": 2})
    lockstep = Lockstep(e)
    list(lockstep.advance(1000))
    result = Result(e, lockstep.histories)
    assert recovery.in_words(result, "Random") == "not by step 1,000"
    assert "Random not by step 1,000" in recovery.sentences(result)[0]
    list(lockstep.advance(200))
    assert recovery.in_words(Result(e, lockstep.histories), "Random") == "not within the run"


def test_without_a_change_nothing_is_stated() -> None:
    parts = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "season", "period": 100}]}
    for simulator in (parts, {**parts, "changes": []}):
        result = run(
            read({"simulator": simulator, "agents": [{"kind": "random"}], "steps": 900}), workers=0
        )
        assert recovery.recovery(result, "Random") is None
        assert "recovery" not in result.summary()["agents"]["Random"]
        assert recovery.sentences(result) == []
