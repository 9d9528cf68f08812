"""Plots that are zoomed on the leading agents."""

from __future__ import annotations

import numpy as np

from bandits import run
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.results.figures.board import board
from bandits.results.figures.curves import LEADING, zoom
from tests.support import experiment


def test_the_axes_fit_the_leading_agents_and_the_note_names_the_others() -> None:
    result = run(experiment("linucb", "oracle", "random", steps=3000, replications=3))
    plots = board(result)
    rate, regret, *rest = zoom(plots, result)
    assert rest == plots[2:]
    # the original is unchanged
    assert "range" not in plots[0]["layout"]["yaxis"]
    low, high = rate["layout"]["yaxis"]["range"]
    drawn = {t.get("legendgroup", t["name"]): t for t in plots[0]["data"] if "fill" not in t}
    assert low > np.max(drawn["random choice"]["y"])
    assert low < np.min(drawn["LinUCB"]["y"][drawn["LinUCB"]["x"] >= 300])
    assert np.max(drawn["oracle, expected"]["y"][drawn["oracle, expected"]["x"] >= 300]) < high
    lost = {t["legendgroup"]: t["y"][-1] for t in regret["data"] if "fill" not in t}
    assert regret["layout"]["yaxis"]["range"][0] <= 0
    assert lost["LinUCB"] < regret["layout"]["yaxis"]["range"][1] < lost["Random"]
    assert rate["layout"]["meta"]["note"].endswith(" Zoomed: Random ends outside.")
    assert [p["layout"]["annotations"][-1]["text"] for p in (rate, regret)] == [
        "↓ Random",
        "↑ Random",
    ]


def test_an_agent_that_ends_in_sight_is_not_named_as_outside() -> None:
    # it learns nothing before step 2,000, and then all at once
    late = {"kind": "linucb", "label": "late", "guards": [{"kind": "batch", "steps": 2000}]}
    result = run(experiment("linucb", late, "random", steps=3000, replications=3))
    rate, regret, *_ = zoom(board(result), result)
    assert rate["layout"]["annotations"][-1]["text"] == "↓ Random"
    assert rate["layout"]["meta"]["note"].endswith(" Zoomed: Random ends outside.")
    assert regret["layout"]["annotations"][-1]["text"] == "↑ late and Random"


def test_without_agents_far_behind_or_without_leaders_nothing_is_zoomed() -> None:
    for kinds in (("oracle",), ("random",)):
        result = run(experiment(*kinds, steps=300, replications=2))
        plots = board(result)
        assert zoom(plots, result) is plots


def test_the_axes_fit_with_every_horizontal_and_a_logarithmic_vertical_axis() -> None:
    result = run(experiment("linucb", "random", steps=3000, replications=3))
    low, high = zoom(board(result), result)[1]["layout"]["yaxis"]["range"]
    assert low <= 0 < high
    for x in ("log step", "earned"):
        rate = zoom(board(result, x=x), result)[0]["layout"]["yaxis"]["range"]
        assert 0.2 < rate[0] < rate[1] < 0.8
    regret = zoom(board(result, log_regret=True), result)[1]["layout"]["yaxis"]
    # exponents
    assert regret["type"] == "log"
    assert regret["range"][0] < regret["range"][1] < np.log10(high) + 0.2


def test_the_agent_that_a_preset_is_about_is_in_sight() -> None:
    about = presets()["off"]
    result = run(about.experiment.model_copy(update={"replications": 2, "steps": 5000}), workers=0)
    subject = about.compared_with
    assert metrics.oracle_share(result.histories[subject]).mean() < LEADING
    plots = board(result)
    for plot, zoomed in zip(plots[:2], zoom(plots, result), strict=False):
        drawn = {t.get("legendgroup", t["name"]): t for t in plot["data"] if "fill" not in t}
        low, high = zoomed["layout"]["yaxis"].get("range", (-np.inf, np.inf))
        assert low <= drawn[subject]["y"][-1] <= high
