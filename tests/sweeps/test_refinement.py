"""Refinement around the best point: which values are added, and that the points before it are not
computed again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import sweeps
from bandits.agents import REGISTRY as AGENTS
from bandits.base.errors import UserError
from bandits.cli import main as cli
from bandits.results.metric_registry import OBJECTIVES
from bandits.sweeps import Landscape, Sweep, url
from bandits.sweeps.analysis.best_region import compare_with_leader
from bandits.sweeps.blocks import Block
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.parameters import log_axis, suggest_axis
from bandits.sweeps.refinement import MAX_RATIO, refinable_axes, refine, unresolved
from bandits.sweeps.storage.block_files import BlockFiles, stored_sweep
from bandits.sweeps.sweep import MAX_REFINEMENTS
from tests.sweeps.test_sweep import ALPHA, small

RIDGE = {"path": "agents.0.ridge", "values": [0.1, 1.0]}


def with_means(sweep: Sweep, means: Any) -> Landscape:
    """Return a landscape of four replications with these click-through rates, all differences
    significant.
    """
    landscape = Landscape(sweep)
    landscape.completed[...] = landscape.alive[...] = True
    noise = np.random.default_rng(1).normal(0, 1e-6, (sweep.size, sweep.experiment.replications))
    landscape.numbers("ctr")[...] = np.asarray(means, float)[:, None] + noise
    return landscape


def axis_of(**changes: Any) -> Sweep:
    return small([{**ALPHA, **changes}])


# -- default grids
# -------------------------------------------------------------------------------------------------


def test_scale_parameters_have_logarithmic_grids_with_zero() -> None:
    for kind, name in (
        ("linucb", "alpha"),
        ("lints", "sigma2"),
        ("epsilon_greedy", "epsilon"),
        ("ensemble", "beta"),
    ):
        axis = suggest_axis(AGENTS[kind].Params, name)
        assert axis["scale"] == "log", name
        assert axis["extra"] == (0.0,), name
    axis = suggest_axis(AGENTS["linucb"].Params, "ridge")
    # 0 is not allowed
    assert (axis["scale"], axis.get("extra")) == ("log", None)


@pytest.mark.parametrize("low", [0.0, -3.0, 0.5])
def test_a_range_from_any_number_can_be_put_on_a_log_scale(low: float) -> None:
    params = AGENTS["linucb"].Params
    axis = log_axis(params, "alpha", {"low": low, "high": 4.0, "number": 5, "scale": "linear"})
    values = small([{"path": "agents.0.alpha", **axis}]).values[0]
    assert values[0] == 0
    assert all(isinstance(v, float) and v > 0 for v in values[1:])
    assert values[-1] == 4


# -- what is added
# -------------------------------------------------------------------------------------------------


def test_a_wide_gap_is_divided_and_a_narrow_one_is_not() -> None:
    sweep = small([{"path": "agents.0.alpha", "values": [0.1, 0.2, 1.0, 1.9]}])
    (found,) = unresolved(with_means(sweep, [1, 2, 3, 2]), "ctr")
    assert (found.best, found.edge, found.neighbours) == (1.0, "", (0.2,))
    assert found.added == pytest.approx((0.2 * 5 ** (1 / 3), 0.2 * 5 ** (2 / 3)), rel=1e-5)
    refined = refine(with_means(sweep, [1, 2, 3, 2]))
    assert refined is not None
    ratios = np.diff(np.log(np.array(refined.values[0], float)))
    assert max(ratios[1:4]) < np.log(MAX_RATIO)
    assert "1, is more than a factor of 2 from its neighbour 0.2" in found.sentence()


@pytest.mark.parametrize(
    ("means", "edge", "added"),
    [([3, 2, 1], "smallest", (0.25, 0.5, 1.0)), ([1, 2, 3], "largest", (10.0,))],
)
def test_values_are_added_beyond_an_edge_up_to_the_limit(
    means: list[float], edge: str, added: Any
) -> None:
    sweep = small([{"path": "agents.0.alpha", "low": 2, "high": 8, "number": 3, "scale": "log"}])
    (found,) = unresolved(with_means(sweep, means), "ctr")
    assert (found.edge, found.added) == (edge, added)
    assert f"is the {edge} of the grid" in found.sentence()


def test_the_limit_of_a_parameter_is_no_edge() -> None:
    sweep = small([{"path": "agents.0.gamma", "values": [0.8, 0.9, 1.0]}])
    assert unresolved(with_means(sweep, [1, 2, 3]), "ctr") == []


def test_a_gap_to_zero_is_left_if_the_two_are_tied() -> None:
    sweep = small([{"path": "agents.0.alpha", "values": [0.0, 0.1, 0.2]}])
    (found,) = unresolved(with_means(sweep, [1, 3, 2]), "ctr")
    assert found.added == (0.025, 0.05)
    tied = with_means(sweep, [1, 1, 0])
    tied.numbers("ctr")[0] = tied.numbers("ctr")[1]
    assert unresolved(tied, "ctr") == []


def test_simulators_choices_and_lists_with_none_are_not_refined() -> None:
    for axis in (
        {"path": "simulator.n_users", "values": [10, 40]},
        {"path": "agents.0.sharing", "values": ["per_arm", "shared"]},
        {"path": "agents.0.window", "values": [None, 100]},
    ):
        assert unresolved(with_means(small([axis]), [1, 2]), "ctr") == []


def test_integers_stay_integers() -> None:
    sweep = small([{"path": "agents.0.fourier", "values": [4, 16, 64]}], {"kind": "linucb"})
    refined = refine(with_means(sweep, [1, 3, 2]))
    assert refined is not None
    assert refined.values == ((4, 8, 16, 32, 64),)


# -- the refined sweep
# ---------------------------------------------------------------------------------------------


def refined_once(**changes: Any) -> Sweep:
    data = small([ALPHA, RIDGE], **changes).model_dump(mode="json")
    return sweeps.read({**data, "refinements": [{"agents.0.alpha": [0.3, 3.0]}]})


def test_a_refined_sweep_is_a_new_definition_and_the_old_hash_stays() -> None:
    sweep = refined_once()
    first, last = sweep.stages
    assert first.hash == small([ALPHA, RIDGE]).hash != sweep.hash
    assert last is sweep
    assert sweep.values == ((0.1, 0.3, 1.0, 3.0, 10.0), (0.1, 1.0))
    assert [sweep.values_at(p) for p in sweep.points_of(first)] == [
        first.values_at(p) for p in range(6)
    ]
    assert sorted(sweep.new_points) == [2, 3, 6, 7]
    assert sweeps.read(sweep.model_dump_json()) == sweep
    assert url.parse_query(url.to_query(sweep)).hash == sweep.hash


@pytest.mark.parametrize(
    ("refinements", "message"),
    [
        ([{"agents.0.alpha": [1.0]}], "has the value 1.0 already"),
        ([{"agents.0.gamma": [0.9]}], "which is no axis of this sweep"),
        ([{"agents.0.alpha": []}], "adds no value"),
        ([{"agents.0.alpha": [70.0]}], "it must be a number from 0 to 10"),
        ([{"agents.0.alpha": [0.2]}] * 9, "refinements"),
    ],
)
def test_invalid_refinements_are_refused_in_one_sentence(refinements: Any, message: str) -> None:
    with pytest.raises(UserError) as refused:
        sweeps.read({**small([ALPHA, RIDGE]).model_dump(mode="json"), "refinements": refinements})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


class Recorder(InProcessExecutor):
    """Record the points of every block that is computed, as values of the axes."""

    def __init__(self) -> None:
        self.computed: set[Any] = set()

    def submit(self, sweep: Sweep, block: Block, on_step: Any) -> Any:
        self.computed |= {sweep.values_at(point) for point, _ in block.rows}
        return super().submit(sweep, block, on_step)


@pytest.mark.parametrize("search", ["grid", "halving"])
def test_only_new_points_are_computed_and_the_numbers_are_those_of_one_run(
    search: str, tmp_path: Path
) -> None:
    sweep = refined_once(search=search, replications=8)
    first = sweep.stages[0]
    alone = sweeps.run(sweep)
    before = sweeps.run(first, files=BlockFiles(first, tmp_path))
    recorder = Recorder()
    landscape = sweeps.run(sweep, recorder, BlockFiles(sweep, tmp_path))
    assert recorder.computed == {(0.3, 0.1), (0.3, 1.0), (3.0, 0.1), (3.0, 1.0)}
    old = sweep.points_of(first)
    for metric in OBJECTIVES:
        assert np.array_equal(landscape.numbers(metric), alone.numbers(metric), equal_nan=True)
        assert np.array_equal(
            landscape.numbers(metric)[old], before.numbers(metric), equal_nan=True
        )
    assert np.array_equal(landscape.dropped, alone.dropped)
    for point in (int(old[1]), 2):
        if landscape.completed[point].all():
            alone_sums = alone.curves(point).sums["value"]
            assert np.array_equal(landscape.curves(point).sums["value"], alone_sums)
    # the refined sweep has copies
    BlockFiles(first, tmp_path).delete()
    again = Recorder()
    sweeps.run(sweep, again, BlockFiles(sweep, tmp_path))
    assert again.computed == set()
    assert stored_sweep(tmp_path, sweep.hash) == sweep


def test_all_looks_together_have_level_5_percent() -> None:
    once = refined_once()
    twice = sweeps.read(
        {
            **once.model_dump(mode="json"),
            "refinements": [*once.refinements, {"agents.0.alpha": [5.0]}],
        }
    )
    assert [Landscape(sweep).level for sweep in twice.stages] == pytest.approx(
        [0.025, 0.0125, 0.00625]
    )
    refinements = [{"agents.0.alpha": [5.0 + i / 10]} for i in range(MAX_REFINEMENTS)]
    most = sweeps.read({**once.model_dump(mode="json"), "refinements": refinements})
    # all looks together
    assert sum(Landscape(sweep).level for sweep in most.stages) <= 0.05
    optuna = sweeps.read({**small([ALPHA]).model_dump(mode="json"), "search": "optuna"})
    # it is never refined
    assert Landscape(optuna).level == 0.05
    assert sweeps.run(once).summary()["looks"] == 2


def test_the_interval_of_the_worst_case_loss_has_the_level_of_the_look() -> None:
    sweep = refined_once()
    landscape = Landscape(sweep)
    landscape.completed[...] = landscape.alive[...] = True
    shape = landscape.alive.shape
    rates = np.random.default_rng(4).normal(0.5, 0.01, shape) - np.arange(shape[0])[:, None] / 10
    landscape.numbers("ctr")[...] = rates
    found = next(each for each in landscape.importance() if each.path == "agents.0.alpha")
    # the best point with the worst alpha, which is the last but one
    gaps, worst = 1000 * (rates - rates[0]), shape[0] - 2
    half = compare_with_leader(gaps, 0, np.ones(shape[0], np.bool_), 0.0125).half[worst]
    assert found.cost.mean == pytest.approx(-gaps[worst].mean())
    assert found.cost.high - found.cost.mean == pytest.approx(half)


def test_the_command_line_refines_until_the_best_value_is_enclosed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    file = tmp_path / "sweep.json"
    file.write_text(
        small([{**ALPHA, "high": 1.0, "number": 2}], steps=100).model_dump_json(), encoding="utf-8"
    )
    assert cli.main(["sweep", str(file), "--workers", "0"]) == 0
    assert "--refine adds values there." in capsys.readouterr().out
    assert (
        cli.main(["sweep", str(file), "--workers", "0", "--refine", "--out", str(tmp_path / "out")])
        == 0
    )
    out = capsys.readouterr().out
    assert "points are added" in out
    assert "replications, level 0.0" in out
    refined = sweeps.read((tmp_path / "out" / "sweep.json").read_bytes())
    assert refined.looks > 1
    assert stored_sweep(tmp_path / "home" / "sweeps", refined.hash) == refined


def test_only_numbers_of_the_agent_have_others_between_them() -> None:
    axes = [
        {"path": "agents.0.alpha", "values": [0, 1]},
        {"path": "agents.0.sharing", "values": ["per_arm", "shared"]},
    ]
    assert refinable_axes(small(axes)) == [0]
    assert refinable_axes(small([{"path": "simulator.n_products", "values": [10, 20]}])) == []
