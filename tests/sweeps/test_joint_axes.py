"""Axes along which several parameters move together, the presets that use them, and their
curves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import UserError
from bandits.experiments.lockstep import make_lane
from bandits.sweeps import Landscape, Sweep, read, run, url
from bandits.sweeps.analysis.nearest import nearest_points
from bandits.sweeps.figures import grid, lines
from bandits.sweeps.presets import presets
from tests.sweeps.test_refinement import with_means

WAYS = ["per_arm+category", "shared+zero"]
JOINT = "agents.0.sharing+prior"


def sweep(*axes: dict[str, Any], **agent: Any) -> Sweep:
    e = {
        "simulator": {"kind": "petshop", "n_products": 10},
        "agents": [{"kind": "linucb", **agent}],
        "steps": 200,
        "replications": 3,
    }
    given = axes or (
        {"path": "simulator.n_products", "values": [10, 15, 20]},
        {"path": JOINT, "values": WAYS},
    )
    return read({"experiment": e, "axes": list(given)})


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    return run(sweep())


def test_each_point_is_the_run_with_all_its_values(landscape: Landscape) -> None:
    s = landscape.sweep
    for point in range(s.size):
        products, way = s.values_at(point)
        e = s.point(point)
        assert (e.simulator.n_products, f"{e.agents[0].sharing}+{e.agents[0].prior}") == (
            products,
            way,
        )
        rewards = make_lane(e, 0).advance(200).rewards.mean(axis=0)
        assert np.allclose(landscape.numbers("ctr")[point], rewards, rtol=0, atol=1e-12)


def test_links_keep_them_and_runs_find_their_point(landscape: Landscape) -> None:
    s = landscape.sweep
    assert url.parse_query(url.to_query(s)).hash == s.hash
    (found,) = nearest_points([(s, landscape.estimate_at)], s.point(3))
    assert (found.point, found.exact) == (3, True)
    pooled = sweep(prior="pooled").experiment
    # per_arm+pooled is no value of the axis
    assert not nearest_points([(s, landscape.estimate_at)], pooled)
    assert grid.parameter_label(s, 1) == "Sharing and prior"
    assert grid.hover_text(landscape, "ctr", 0, np.full(3, 0.5)).startswith(
        "Products 10<br>Sharing and prior per arm + category"
    )


def test_curves_compare_the_choices_along_the_number(landscape: Landscape) -> None:
    (spec,) = lines.curves_by_choice(landscape, "ctr")
    drawn = {
        t["name"]: t["y"]
        for t in spec["data"]
        if t.get("mode") == "lines" and t["name"] in grid_names()
    }
    means = landscape.numbers("ctr").mean(axis=1).reshape(3, 2)
    assert list(drawn) == grid_names()
    for i, name in enumerate(grid_names()):
        assert np.allclose(drawn[name], means[:, i])
    assert spec["layout"]["xaxis"]["ticktext"] == ["10", "15", "20"]
    numbers = sweep(
        {"path": "agents.0.alpha", "values": [0.1, 1.0]},
        {"path": "agents.0.ridge", "values": [0.1, 1.0]},
    )
    assert lines.curves_by_choice(with_means(numbers, [1, 2, 3, 4]), "ctr") == []


def test_other_parameters_have_the_values_of_the_best_point() -> None:
    third = {"path": "agents.0.alpha", "values": [0.1, 1.0]}
    s = sweep(third, *sweep().model_dump(exclude_unset=True)["axes"])
    means = np.arange(1, 13) / 100
    for best in (means, means[::-1]):
        (spec,) = lines.curves_by_choice(with_means(s, best), "ctr")
        drawn = {t["name"]: t["y"] for t in spec["data"] if t.get("mode") == "lines"}
        expected = best.reshape(2, 3, 2)[int(best.argmax()) // 6]
        np.testing.assert_allclose([drawn[name] for name in grid_names()], expected.T, atol=1e-5)


def grid_names() -> list[str]:
    return [grid.format_value(way) for way in WAYS]


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ({"path": JOINT, "values": ["per_arm", "shared+zero"]}, "it must be 2 values joined by +"),
        (
            {"path": JOINT, "values": ["per_arm+one", "shared+zero"]},
            "agents.0.prior takes the value one; it must be",
        ),
        (
            {"path": JOINT, "values": ["shared+category", "shared+zero"]},
            "prior category needs sharing per_arm",
        ),
        ({"path": "agents.0.sharing+size", "values": WAYS}, "linucb has no such parameter as size"),
        ({"path": "agents.0.sharing+kind", "values": WAYS}, "kind is neither"),
        ({"path": "agents.0.alpha+ridge", "low": 1, "high": 2}, "moves several parameters"),
    ],
)
def test_impossible_axes_are_refused(axis: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error:
        sweep(axis)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_values_that_move_together_may_be_written_with_exponents() -> None:
    axis = sweep({"path": "agents.0.alpha+ridge", "values": ["1e-1+1e+0", "0.5+2e0"]}).axes[0]
    assert [axis.assigned(value) for value in axis.grid_values(False)] == [
        {"alpha": 0.1, "ridge": 1.0},
        {"alpha": 0.5, "ridge": 2.0},
    ]


def test_a_parameter_moves_along_one_axis_only() -> None:
    with pytest.raises(UserError, match=r"agents\.0\.prior is listed twice"):
        sweep(
            {"path": JOINT, "values": WAYS},
            {"path": "agents.0.prior", "values": ["zero", "pooled"]},
        )


def test_presets_are_sweeps_with_links() -> None:
    for preset in presets().values():
        assert url.parse_query(url.to_query(preset.sweep)).hash == preset.sweep.hash
    sizes = [presets()[name].sweep.values[0] for name in ("identical", "alike", "varied")]
    assert all((values[0], values[-1]) == (20, 5000) for values in sizes)
    assert presets()["private-linucb"].sweep.values == ((0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, None),)
