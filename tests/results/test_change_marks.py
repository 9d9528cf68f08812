"""Plots mark the changes of a simulator that their curves have reached."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bandits import read, run
from bandits.results.change.marks import LINE, MARGIN, description, mark, variation_budget
from bandits.results.export import report
from bandits.results.figures import board as figures

DRIFT = {
    "kind": "drift",
    "start": 100,
    "end": 200,
    "from": "new_puppy_parent",
    "to": "mature_dog_owner",
}
SEASON = {"kind": "season", "period": 100, "amplitude": 0.5}


def result(*changes: dict[str, Any], **simulator: Any) -> Any:
    parts = {"kind": "petshop", "n_products": 10, "changes": changes, **simulator}
    return run(
        read({"simulator": parts, "agents": [{"kind": "random"}], "steps": 400, "replications": 2}),
        workers=0,
    )


def lines(plot: dict[str, Any]) -> list[float]:
    return [shape["x0"] for shape in plot["layout"].get("shapes", []) if shape["type"] == "line"]


def names(plot: dict[str, Any]) -> list[tuple[float, str]]:
    return [(name["x"], name["text"]) for name in plot["layout"].get("annotations", [])]


@pytest.mark.parametrize("x", ["step", "log step"])
def test_every_plot_over_steps_marks_every_change(x: Any) -> None:
    found = result(DRIFT, {"kind": "shock", "at": 300}, SEASON, shock_step=350)
    rate, regret, entropy, spectrum = figures.board(found, x=x)
    for plot in (rate, regret, entropy):
        assert lines(plot) == [100, 200, 300, 350]
        titles = ["Drift", "Drift ends", "Market shock", "Market shock"]
        expected = list(zip(lines(plot), titles, strict=True))
        # the places of names are logarithms; the last one may have no room
        if x == "log step":
            expected = [(math.log10(step), title) for step, title in expected]
            expected = expected[: max(3, len(names(plot)))]
        assert names(plot) == expected
        (strip,) = [s for s in plot["layout"]["shapes"] if s["type"] == "rect"]
        assert (strip["x0"], strip["x1"]) == (100, 200)
    assert "shapes" not in spectrum["layout"]
    assert description(found.experiment) in rate["layout"]["meta"]["note"]


def test_changes_that_are_not_reached_are_not_marked() -> None:
    found = result({"kind": "shock", "at": 300})
    (plot,) = [p for p in figures.board(found)][:1]
    short = {
        **plot,
        "data": [{**trace, "x": trace["x"][trace["x"] < 250]} for trace in plot["data"]],
    }
    unmarked = mark({**short, "layout": {}}, found.experiment)
    assert lines(unmarked) == names(unmarked) == []
    assert lines(mark({**short, "layout": {}}, found.experiment, (0, 400))) == [300]
    assert "shapes" not in figures.board(found, x="earned")[0]["layout"]


def test_names_stand_above_the_plot_beside_and_over_each_other_without_touching() -> None:
    steps = [100, 110, 120, 130, 390]
    plot = figures.board(result(*({"kind": "shock", "at": at} for at in steps)))[0]
    drawn = plot["layout"]["annotations"]
    assert lines(plot) == steps
    # no room for a fourth line of names
    assert [name["x"] for name in drawn] == [100, 110, 120, 390]
    assert [name["yshift"] for name in drawn] == [0, LINE, 2 * LINE, 0]
    assert {(name["y"], name["yref"], name["yanchor"]) for name in drawn} == {
        (1, "paper", "bottom")
    }
    assert plot["layout"]["margin"]["t"] == MARGIN + 3 * LINE
    # the last one would leave the plot
    assert drawn[-1]["xshift"] < 0 == drawn[0]["xshift"]


def test_changes_and_the_variation_budget_are_stated() -> None:
    found = result(DRIFT, SEASON, {"kind": "features", "at": 9, "column": 2})
    assert description(found.experiment) == (
        "Changes: drift: new puppy parent to mature dog owner from step 100 to 200; season of 100 "
        "steps throughout; feature 2 missing at step 9."
    )
    (sentence,) = variation_budget(result({"kind": "shock", "at": 300}).experiment)
    assert sentence.startswith("Variation budget B = 0.58: ")
    assert sentence in report(result({"kind": "shock", "at": 300}))
    assert variation_budget(result().experiment) == []
    assert description(result().experiment) == ""
