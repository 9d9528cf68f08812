"""Metrics: those of known histories, and the words and plots of all."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import run
from bandits.experiments.history import History
from bandits.experiments.lane import Trace
from bandits.results.figures.board import board, fourth_plots
from bandits.results.metric_registry import METRICS, OBJECTIVES
from bandits.results.metrics import late_start
from tests.support import experiment

T, R = 1000, 3


def known() -> History:
    """Return a history in which row r is worth r / 10 per step, and every click comes in the last
    tenth.
    """
    worth = np.broadcast_to(np.arange(R) / 10, (T, R))
    clicks = np.repeat((np.arange(T) >= 900).astype(float)[:, None], R, axis=1)
    best, random = np.full((T, R), 0.5), np.full((T, R), 0.1)
    found = History(T, R, 5, 0)
    shown, segments = np.zeros((T, R, 1), np.int64), np.zeros((T, R), np.int64)
    alive = np.ones(R, np.bool_)
    found.extend(Trace(0, shown, segments, clicks, best, worth, best, random, alive))
    return found


def test_metrics_of_a_known_history() -> None:
    history = known()
    actual = {name: metric.rows(history) for name, metric in OBJECTIVES.items()}
    np.testing.assert_allclose(actual["ctr"], 0.1)
    # 100 clicks in the last fifth, 200 steps
    np.testing.assert_allclose(actual["late_ctr"], 0.5)
    np.testing.assert_allclose(actual["pseudo_regret"], T * (0.5 - np.arange(R) / 10), rtol=1e-9)
    np.testing.assert_allclose(actual["oracle_share"], (np.arange(R) / 10 - 0.1) / 0.4, atol=1e-9)
    # no row is worth the 0.5 of the best
    np.testing.assert_array_equal(actual["optimal_choice"], 0.0)
    assert [metric.better for metric in OBJECTIVES.values()] == [1, 1, -1, 1, 1, 1, 1]


def test_the_final_part_has_at_least_one_interval() -> None:
    assert late_start(np.array([0, 250, 500, 750, 1000])) == 3
    assert late_start(np.array([0, 20])) == 0
    assert late_start(np.arange(0, 1001, 100)) == 8


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (
            "petshop",
            {
                "ctr": ("Click-through rate", "clicks per step", "clicks per step"),
                "late_ctr": (
                    "Final click-through rate",
                    "clicks per step, last fifth of the run",
                    "clicks per step",
                ),
                "pseudo_regret": ("Cumulative regret", "expected clicks lost", "expected clicks"),
                "oracle_share": (
                    "Share of the oracle's gain",
                    "share, 0: random, 1: oracle",
                    "of the gain",
                ),
            },
        ),
        (
            "wheel",
            {
                "ctr": ("Reward per step", "points per step", "points per step"),
                "late_ctr": (
                    "Final reward per step",
                    "points per step, last fifth of the run",
                    "points per step",
                ),
                "pseudo_regret": ("Cumulative regret", "expected points lost", "expected points"),
            },
        ),
        (
            "classification",
            {
                "ctr": (
                    "Share of right answers",
                    "right answers per step",
                    "right answers per step",
                ),
            },
        ),
    ],
)
def test_metrics_have_the_words_of_the_simulator(
    kind: str, named: dict[str, tuple[str, ...]]
) -> None:
    for name, words in named.items():
        metric = OBJECTIVES[name].of(experiment("random", simulator={"kind": kind}))
        assert (metric.title, metric.full_unit, metric.gap_unit) == words


def test_every_metric_states_its_words_in_every_simulator() -> None:
    for kind in ("petshop", "wheel", "classification", "ranking"):
        e = experiment("random", simulator={"kind": kind})
        for metric in METRICS.values():
            shown = metric.of(e)
            assert shown.title
            assert shown.unit
            assert not any(
                "{" in text
                for text in (shown.title, shown.unit, shown.note, shown.caption, shown.gap_unit)
            )
            assert metric.curve is None or (shown.note and shown.caption)
            assert metric.curve is not None or metric.value is not None


def test_the_fourth_plot_of_the_board_can_be_any_other_curve() -> None:
    result = run(experiment("oracle", "linucb", "random", steps=500, replications=3))
    names = fourth_plots(result.experiment)
    assert {"clicks", "average_regret", "spectrum", "catalogue_coverage"} <= set(names)
    assert not {"ctr", "pseudo_regret", "entropy", "counted"} & set(names)
    for name in names:
        drawn = board(result, fourth=name)[3]
        assert drawn["layout"]["title"]["text"] == METRICS[name].title.format(noun="clicks")


def test_cumulative_clicks_are_drawn_below_those_of_the_oracle() -> None:
    result = run(experiment("linucb", "random", steps=500, replications=3))
    drawn = board(result, fourth="clicks")[3]
    ends = {
        t["name"]: t["y"][-1]
        for t in drawn["data"]
        if t["mode"] == "lines" and t.get("fill") is None
    }
    assert drawn["layout"]["yaxis"]["title"]["text"] == "clicks"
    for label, history in result.histories.items():
        assert ends[label] == history.sums["clicks"][-1].mean()
    assert (
        ends["oracle"]
        == result.histories["Random"].sums["best_value"][-1].mean()
        > ends["random choice"]
    )


def test_the_average_regret_is_the_cumulative_regret_divided_by_the_step() -> None:
    result = run(experiment("linucb", "random", steps=500, replications=3))
    drawn = board(result, fourth="average_regret")[3]
    for label, history in result.histories.items():
        (line,) = [
            t for t in drawn["data"] if t.get("legendgroup") == label and t.get("fill") is None
        ]
        lost = (history.sums["best_value"] - history.sums["value"]).mean(axis=1)
        assert line["x"][-1] == 500
        np.testing.assert_allclose(line["y"][-1], lost[-1] / 500)
        # Averages over few steps are left out
        assert line["x"][0] >= 500 / 20
    assert drawn["layout"]["yaxis"]["title"]["text"] == "expected clicks lost per step"


def test_late_rates_are_those_of_the_last_fifth_of_the_steps_reached() -> None:
    half = History(T, R, 5, 0)
    shown, segments = np.zeros((T // 2, R, 1), np.int64), np.zeros((T // 2, R), np.int64)
    clicks = np.repeat((np.arange(T // 2) >= T * 2 // 5).astype(float)[:, None], R, axis=1)
    half.extend(
        Trace(0, shown, segments, clicks, clicks, clicks, clicks, clicks, np.ones(R, np.bool_))
    )
    np.testing.assert_allclose(METRICS["late_ctr"].rows(half), 1.0)
    assert np.isnan(METRICS["late_ctr"].rows(History(T, R, 5, 0))).all()
