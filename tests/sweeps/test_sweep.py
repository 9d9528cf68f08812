"""Sweeps: points equal experiments, blocks do not affect results, and the landscape has correct
statistics.
"""

from __future__ import annotations

import itertools
import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bandits
from bandits import sweeps
from bandits.agents import REGISTRY as AGENTS
from bandits.base.errors import UserError
from bandits.base.params import Params, param, schemas
from bandits.cli import sweep as command
from bandits.experiments.presets import presets
from bandits.experiments.validation import describe_range
from bandits.results.comparison import paired_tests
from bandits.results.metric_registry import OBJECTIVES
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps.blocks import Block, StoppedError, coarse_to_fine, compute, pack
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.figures import grid as figures
from bandits.sweeps.halving import eliminate, rung_rows, rungs
from bandits.sweeps.parameters import is_integer, suggest_axis, sweepable
from bandits.sweeps.runner import Runner
from bandits.sweeps.storage.block_files import BlockFiles

SHOP = {"kind": "petshop", "n_products": 10, "n_users": 40}
ALPHA = {"path": "agents.0.alpha", "low": 0.1, "high": 10, "number": 3, "scale": "log"}


def small(axes: Any = None, agent: Any = None, **changes: Any) -> Sweep:
    search = {name: changes.pop(name) for name in ("search", "metric") if name in changes}
    experiment = {
        "simulator": SHOP,
        "agents": [agent or {"kind": "linucb"}],
        "steps": 300,
        "replications": 4,
        **changes,
    }
    return sweeps.read({"experiment": experiment, "axes": axes or [ALPHA], **search})


def rows_of(sweep: Sweep) -> list[tuple[int, int]]:
    return rung_rows(sweep, range(sweep.experiment.replications), Landscape(sweep))


@lru_cache(maxsize=64)
def points(P: int, R: int) -> Sweep:
    return small([{**ALPHA, "number": P}], replications=R)


def filled(numbers: np.ndarray) -> Landscape:
    """Return a landscape with these click-through rates (P, R)."""
    landscape = Landscape(points(*numbers.shape))
    landscape.completed[...] = True
    landscape.alive[...] = np.isfinite(numbers)
    landscape.numbers("ctr")[...] = numbers
    return landscape


def test_schemas_are_cached_and_not_modified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computing schemas for each field of a page would take a second."""
    data = small().model_dump(mode="json", include={"experiment", "axes"})
    assert sweeps.read(data) == small()
    for cls in (*AGENTS.values(), *SIMULATORS.values()):
        for name in sweepable(cls.Params):
            suggest_axis(cls.Params, name)
            describe_range(cls.Params, name)
        assert schemas(cls.Params) == cls.Params.model_json_schema()["properties"]

    def made(*_: object, **__: object) -> None:
        raise AssertionError("made anew")

    monkeypatch.setattr(Params, "model_json_schema", made)
    assert sweeps.read(data) == small()


# -- data
# ----------------------------------------------------------------------------------------------------------  # noqa: E501


def test_values_of_a_range_and_of_a_list() -> None:
    axes = [
        {**ALPHA, "number": 5},
        {"path": "agents.0.sharing", "values": ["per_arm", "shared"]},
        {"path": "simulator.n_products", "low": 5, "high": 7, "number": 9},
    ]
    sweep = small(axes)
    assert sweep.values == ((0.1, 0.316228, 1.0, 3.16228, 10.0), ("per_arm", "shared"), (5, 6, 7))
    assert (sweep.shape, sweep.size) == ((5, 2, 3), 30)
    assert [sweep.values_at(p) for p in range(30)] == list(itertools.product(*sweep.values))
    for p, point in enumerate(sweep.points):
        agent, simulator = point.agents[0], point.simulator
        assert (agent.alpha, agent.sharing, simulator.n_products) == sweep.values_at(p)  # type: ignore[attr-defined]


def test_a_sweep_survives_a_json_round_trip_and_its_hash_ignores_spelling() -> None:
    sweep = small()
    assert sweeps.read(sweep.model_dump_json()) == sweep
    listed = small([{"path": "agents.0.alpha", "values": [0.1, 1.0, 10.0]}])
    assert listed.hash == sweep.hash
    assert small([{**ALPHA, "number": 4}]).hash != sweep.hash
    assert small(search="halving").hash != sweep.hash


@pytest.mark.parametrize(
    ("axes", "changes", "message"),
    [
        ([], {}, "axes"),
        ([{"path": "agents.0.alpha"}], {}, "must have either values, or low and high"),
        ([{**ALPHA, "values": [1, 2]}], {}, "must have either values, or low and high"),
        (
            [{"path": "agents.0.alpha", "values": [1.0]}],
            {},
            "has 1 values; a sweep needs at least 2",
        ),
        ([{"path": "agents.0.alpha", "values": [1.0, 1.0]}], {}, "a value twice"),
        ([{"path": "agents.0.alpha+ridge", "values": ["0.1+1", "0.10+1"]}], {}, "a value twice"),
        ([{**ALPHA, "low": 10, "high": 10}], {}, "low must be below high"),
        ([{**ALPHA, "low": 0}], {}, "on a log scale it must begin above 0"),
        ([{**ALPHA, "high": 1e9}], {}, "takes the value 10000.0; it must be a number from 0 to 10"),
        ([{**ALPHA, "number": 1}], {}, "number"),
        (
            [{"path": "agents.0.alpha", "values": ["much", "more"]}],
            {},
            "it must be a number from 0",
        ),
        (
            [{"path": "agents.0.sharing", "low": 0, "high": 1}],
            {},
            "is not a number; give its values",
        ),
        (
            [{"path": "agents.0.colour", "values": [1, 2]}],
            {},
            "linucb has no such parameter, it has position",
        ),
        ([{"path": "agents.1.alpha", "values": [1, 2]}], {}, "path"),
        (
            [{"path": "agents.0.label", "values": ["a", "b"]}],
            {},
            "a sweep needs a number or a choice",
        ),
        ([ALPHA, ALPHA], {}, "is listed twice"),
        ([{"path": "simulator.n_products", "low": 5, "high": 5.4}], {}, "only one value between"),
        (
            [
                {**ALPHA, "number": 64},
                {"path": "agents.0.ridge", "low": 1, "high": 9, "number": 64},
            ],
            {},
            "4,096 points",
        ),
        ([{**ALPHA, "number": 64}], {"replications": 2000}, "128,000 rows"),
        (
            [{"path": "simulator.shock_step", "values": ["soon", None]}],
            {},
            "must be a whole number",
        ),
    ],
)
def test_invalid_axes_are_refused_in_one_sentence(axes: Any, changes: Any, message: str) -> None:
    experiment = {
        "simulator": SHOP,
        "agents": [{"kind": "linucb"}],
        "steps": 50,
        "replications": 2,
        **changes,
    }
    with pytest.raises(UserError) as refused:
        sweeps.read({"experiment": experiment, "axes": axes})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"axes": [ALPHA]}, "experiment is missing"),
        ({"experiment": {"agents": []}, "axes": [ALPHA]}, "agents"),
        (
            {"experiment": {"agents": [{"kind": "linucb"}] * 2}, "axes": [ALPHA]},
            "a sweep varies one agent; its experiment has 2",
        ),
        (
            {"experiment": {"agents": [{"kind": "linucb"}]}, "axes": [ALPHA], "speed": 3},
            "speed is not a known field",
        ),
        ({"experiment": {"agents": [{"kind": "linucb"}]}}, "axes is missing"),
        ("[1]", "must be an object"),
        ("{", "not JSON"),
    ],
)
def test_data_that_are_no_sweep_are_refused(data: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        sweeps.read(data)


def test_an_invalid_combination_names_its_point() -> None:
    ranking = {"kind": "ranking", "n_items": 100, "n_candidates": 20, "slate": 5}
    axes = [
        {"path": "simulator.n_items", "values": [10, 100]},
        {"path": "simulator.n_candidates", "values": [20, 30]},
    ]
    with pytest.raises(UserError, match=r"invalid point: simulator\.n_candidates is 20"):
        small(axes, simulator=ranking)


@pytest.mark.parametrize("kind", bandits.agents.REGISTRY)
def test_every_parameter_of_every_agent_has_a_default_axis(kind: str) -> None:
    params = bandits.agents.REGISTRY[kind].Params
    for name in sweepable(params):
        axis = sweeps.Axis.model_validate(
            {"path": f"agents.0.{name}", **suggest_axis(params, name, number=3)}
        )
        for value in axis.grid_values(is_integer(params, name)):
            params.__pydantic_validator__.validate_assignment(params(), name, value)


def test_a_suggested_axis_begins_above_a_limit_that_must_not_be_reached() -> None:
    class Softmax(Params):
        temperature: float = param(0.1, title="Temperature", help="Divides.", gt=0, lt=10)

    axis = sweeps.Axis.model_validate(
        {"path": "agents.0.temperature", **suggest_axis(Softmax, "temperature")}
    )
    assert all(0 < value < 10 for value in axis.grid_values(integers=False))


# which cannot be swept
@pytest.mark.parametrize("kind", [kind for kind in SIMULATORS if kind != "logged"])
def test_every_default_axis_of_a_simulator_can_be_run_with_its_preset(kind: str) -> None:
    cls = SIMULATORS[kind]
    preset = presets()[cls.preset].experiment
    experiment = preset.model_dump(mode="json")
    # the one that requires least: an axis may take away what another requires
    chosen = min(
        (agent for agent in preset.agents if agent.kind not in ("random", "oracle")),
        key=lambda agent: len(AGENTS[agent.kind].requires(agent)),
    )
    agent = chosen.model_dump(mode="json")
    names = sweepable(cls.Params)
    assert names
    for name in names:
        axis = {"path": f"simulator.{name}", **suggest_axis(cls.Params, name)}
        assert (
            sweeps.read({"experiment": {**experiment, "agents": [agent]}, "axes": [axis]}).size >= 2
        )


def test_ways_of_sharing_are_suggested_that_run_in_every_simulator() -> None:
    axis = {
        "path": "agents.0.sharing",
        **suggest_axis(bandits.agents.REGISTRY["linucb"].Params, "sharing"),
    }
    assert axis["values"] == ("per_arm", "shared", "hybrid")
    experiment = {
        "simulator": {"kind": "synthetic"},
        "agents": [{"kind": "linucb"}],
        "steps": 10,
        "replications": 2,
    }
    assert len(sweeps.read({"experiment": experiment, "axes": [axis]}).points) == 3


# -- blocks
# --------------------------------------------------------------------------------------------------------  # noqa: E501


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(2, 7), st.integers(1, 9))
def test_every_row_is_in_one_block(n: int, m: int, replications: int) -> None:
    ridge = {"path": "agents.0.ridge", "low": 0.1, "high": 9, "number": m}
    sweep = small([{**ALPHA, "number": n}, ridge], replications=replications)
    assert sorted(coarse_to_fine(sweep)) == list(range(sweep.size))
    packed = [row for block in pack(sweep, rows_of(sweep)) for row in block.rows]
    assert sorted(packed) == list(itertools.product(range(sweep.size), range(replications)))


def test_coarse_before_fine() -> None:
    order = coarse_to_fine(small([{**ALPHA, "number": 9}]))
    assert order == [0, 8, 4, 2, 6, 1, 3, 5, 7]


def test_rows_of_different_structure_or_simulator_are_in_different_blocks() -> None:
    axes = [
        ALPHA,
        {"path": "agents.0.sharing", "values": ["per_arm", "shared"]},
        {"path": "simulator.n_products", "values": [5, 6]},
    ]
    sweep = small(axes)
    blocks = pack(sweep, rows_of(sweep))
    for block in blocks:
        assert len({sweep.values_at(p)[1:] for p, _ in block.rows}) == 1
    assert len(blocks) >= 4


def test_large_rows_make_small_blocks() -> None:
    heavy = small(
        [{**ALPHA, "number": 8}],
        {"kind": "neural_ucb", "covariance": "exact"},
        steps=20_000,
        replications=16,
    )
    light = small([{**ALPHA, "number": 8}], steps=20_000, replications=16)
    assert max(len(b.rows) for b in pack(heavy, rows_of(heavy))) < max(
        len(b.rows) for b in pack(light, rows_of(light))
    )


@pytest.mark.parametrize(
    "agent",
    [{"kind": "linucb"}, {"kind": "lints", "sharing": "shared"}, {"kind": "epsilon_greedy"}],
    ids=str,
)
def test_a_point_equals_its_experiment_run_alone(agent: dict[str, Any]) -> None:
    name = {"linucb": "alpha", "lints": "sigma2", "epsilon_greedy": "epsilon"}[agent["kind"]]
    sweep = small([{"path": f"agents.0.{name}", "values": [0.05, 0.2, 0.7]}], agent)
    landscape = sweeps.run(sweep)
    for p, point in enumerate(sweep.points):
        (alone,) = bandits.run(point).histories.values()
        for metric, actual in OBJECTIVES.items():
            found = landscape.numbers(metric)[p]
            assert np.array_equal(found, actual.rows(alone), equal_nan=True), metric
        grid = landscape.curves(p).grid
        at = np.searchsorted(alone.grid, grid)
        for column, sums in landscape.curves(p).sums.items():
            assert np.array_equal(sums, alone.sums[column][at])


def test_points_of_agents_that_plan_are_ranked_by_the_visit() -> None:
    simulator = {"kind": "sessions", "n_products": 10, "observed": "mood"}
    axis = {"path": "agents.0.discount", "values": [0, 0.9]}
    agent = {"kind": "q_learning"}
    sweep = small([axis], agent, simulator=simulator, metric="late_per_visit")
    landscape = sweeps.run(sweep)
    for p, point in enumerate(sweep.points):
        (alone,) = bandits.run(point).histories.values()
        expected = OBJECTIVES["late_per_visit"].rows(alone)
        np.testing.assert_array_equal(landscape.numbers("late_per_visit")[p], expected)
    assert landscape.best("late_per_visit") is not None
    assert small([axis], agent, simulator=simulator).metric == "per_visit"
    assert small().metric == "ctr"
    with pytest.raises(UserError, match="metric late_per_visit is not known"):
        small(metric="late_per_visit")


def test_networks_depend_on_other_rows_by_rounding_only() -> None:
    agent = {"kind": "neural_greedy", "hidden": [8]}
    axis = {"path": "agents.0.learning_rate", "values": [0.001, 0.01]}
    sweep = small([axis], agent, steps=60, replications=2)
    together = compute(sweep, Block(tuple(itertools.product(range(2), range(2)))))
    for i, row in enumerate(together["rows"].tolist()):
        alone = compute(sweep, Block((tuple(row),)))
        np.testing.assert_allclose(alone["sum.value"][:, 0], together["sum.value"][:, i], rtol=1e-6)


def test_a_point_with_a_diverged_replication_is_not_the_best() -> None:
    landscape = filled(np.array([[0.5, 0.6, 0.7], [np.nan, 0.9, 0.9], [0.4, 0.5, 0.6]]))
    # not the point that is better in its other replications
    assert landscape.leader("ctr") == 0
    cell = landscape.results()[1]
    assert (cell.runs, cell.diverged, cell.best) == (2, 1, False)


# -- resuming
# ------------------------------------------------------------------------------------------------------  # noqa: E501


def test_stored_blocks_are_not_recomputed(tmp_path: Path) -> None:
    sweep, whole = small(), sweeps.run(small())
    files = BlockFiles(sweep, tmp_path)
    blocks = pack(sweep, rows_of(sweep))
    for block in blocks[: len(blocks) // 2]:
        files.save(block, compute(sweep, block))
    asked: list[Block] = []

    class Watched(InProcessExecutor):
        def submit(self, sweep: Sweep, block: Block, on_step: Any) -> Any:
            asked.append(block)
            return super().submit(sweep, block, on_step)

    again = sweeps.run(sweep, Watched(), files)
    assert asked == blocks[len(blocks) // 2 :]
    for metric in OBJECTIVES:
        # unknown where a simulator has no visits
        np.testing.assert_array_equal(again.numbers(metric), whole.numbers(metric))


def test_a_damaged_block_is_recomputed(tmp_path: Path) -> None:
    sweep = small()
    files = BlockFiles(sweep, tmp_path)
    whole = sweeps.run(sweep, files=files)
    for path in tmp_path.rglob("*.block"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    again = sweeps.run(sweep, files=files)
    assert np.array_equal(again.numbers("ctr"), whole.numbers("ctr"))
    assert all(files.get(block) is not None for block in pack(sweep, rows_of(sweep)))


def test_a_full_disk_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    runner = Runner(small(), InProcessExecutor(), BlockFiles(small(), tmp_path / "file"))
    landscape = runner.run()
    assert landscape.completed.all()
    assert "could not be kept on disk" in runner.error


def test_a_stopped_sweep_keeps_finished_blocks(tmp_path: Path) -> None:
    sweep = small([{**ALPHA, "number": 12}])
    files, calls = BlockFiles(sweep, tmp_path), itertools.count()
    with pytest.raises(StoppedError):
        sweeps.run(sweep, files=files, stop=lambda: next(calls) > 6)
    kept = len(list(tmp_path.rglob("*.block")))
    assert 0 < kept < len(pack(sweep, rows_of(sweep)))
    assert sweeps.run(sweep, files=files).completed.all()


# -- statistics
# ----------------------------------------------------------------------------------------------------  # noqa: E501


def test_estimates_gaps_and_region_equal_those_of_scipy() -> None:
    generator = np.random.default_rng(3)
    common = generator.normal(0, 1, 12)
    numbers = (
        5
        + common
        + generator.normal(0, 0.2, (6, 12))
        + np.array([0, -0.02, -0.1, -0.5, -1, -3])[:, None]
    )
    landscape = filled(numbers)
    leader = landscape.leader("ctr")
    assert leader == np.argmax(numbers.mean(axis=1))
    cells = landscape.results()
    others = np.delete(np.arange(6), leader)
    gaps = numbers[leader] - numbers
    error = np.maximum(
        gaps.std(axis=1, ddof=1), np.median(gaps[others].std(axis=1, ddof=1))
    ) / math.sqrt(12)
    left, before = list(others), 0
    # step by step, among the points that are left
    while len(left) != before:
        critical = stats.studentized_range.ppf(1 - landscape.level, len(left) + 1, 22) / math.sqrt(
            2
        )
        before, left = len(left), [p for p in left if gaps[p].mean() <= critical * error[p]]
    assert [p for p in others if cells[p].best] == left
    for p in left:
        low, high = -gaps[p].mean() - critical * error[p], -gaps[p].mean() + critical * error[p]
        assert cells[p].gap[1:] == pytest.approx((low, high), rel=1e-4)
    assert cells[leader].best
    assert cells[leader].gap == (0, 0, 0)


def test_the_best_region_has_nominal_coverage() -> None:
    """Point 2 is best by .001.

    The 95 % region of 300 landscapes: at least 285 - 3 sqrt(300 x .95 x .05) = 273.
    """
    generator = np.random.default_rng(4)
    truth = np.array([0.0, 0.0, 0.001, -0.3, -1.0])[:, None]
    held = sum(
        bool(filled(truth + generator.normal(0, 0.5, (5, 8))).best_region("ctr")[2])
        for _ in range(300)
    )
    assert held >= 273


def test_tied_too_noisy_and_worse_are_told_apart() -> None:
    generator = np.random.default_rng(5)
    noise = generator.normal(0, 1, (5, 16)) * np.array([0.005, 0.005, 0.005, 0.08, 0.005])[:, None]
    landscape = filled(np.array([0.5, 0.499, 0.499, 0.45, 0.3])[:, None] + noise)
    assert landscape.states() == ["tied", "tied", "tied", "unclear", "worse"]
    # of three, not the best one at the edge
    middle = landscape.recommended()
    assert middle is not None
    assert middle.point == 1


def test_a_point_that_loses_more_is_seldom_called_tied() -> None:
    """Two points lose a little more than the tolerance of .025.

    300 landscapes: at most 300 x .025 + 3 sqrt(300 x .025) = 15 call one of them tied; with an
    interval of half the width some hundred do.
    """
    generator = np.random.default_rng(6)
    truth = np.array([0.5, 0.474, 0.474, 0.49])[:, None]
    found = [filled(truth + generator.normal(0, 0.01, (4, 8))).states() for _ in range(300)]
    assert sum("tied" in states[1:3] for states in found) <= 15
    # and it is not said by never saying it
    assert sum("tied" in states[3:] for states in found) >= 30


@pytest.mark.parametrize("runs", [2, 3, 4, 8])
def test_equal_points_with_few_clicks_stay_in_the_best_region(runs: int) -> None:
    """Poisson counts: gaps are integers, and often equal in two or three replications.

    400 landscapes of 9 equal points at level .025: at most 10 + 3 sqrt(10) leave a point out.
    """
    generator = np.random.default_rng(runs)
    left_out = sum(
        not filled(generator.poisson(3.0, (9, runs)).astype(float)).best_region("ctr").all()
        for _ in range(400)
    )
    assert left_out <= 10 + 3 * math.sqrt(10)


def test_a_parameter_without_effect_is_not_reported_as_relevant() -> None:
    """On the same landscapes, one axis of 9 values: no effect is reported as often as the region
    holds all points.
    """
    generator = np.random.default_rng(9)
    shares = [filled(generator.normal(0.5, 0.1, (9, 8))).importance()[0] for _ in range(200)]
    assert sum(each.matters for each in shares) <= 5 + 3 * math.sqrt(5)
    # the only parameter explains all variance
    assert all(math.isnan(each.share) for each in shares)


def test_importance_is_corrected_for_noise() -> None:
    """On a grid of equal points, a parameter explains almost nothing on average after the
    correction for noise.
    """
    generator = np.random.default_rng(10)
    ridge = {"path": "agents.0.ridge", "values": [0.1, 1.0, 10.0, 100.0]}
    shares = []
    sweep = small([{**ALPHA, "number": 5}, ridge], replications=8)
    for _ in range(60):
        landscape = Landscape(sweep)
        landscape.completed[...] = landscape.alive[...] = True
        landscape.numbers("ctr")[...] = generator.normal(0.5, 0.1, (20, 8)) + generator.normal(
            0, 0.3, 8
        )
        shares += [each.share for each in landscape.importance()]
    assert np.median(shares) < 0.25


def test_points_with_fewer_replications_are_adjusted_for_common_random_numbers() -> None:
    """The first four replications are favourable to all points.

    A point dropped after them must not exceed the best.
    """
    common = np.array([0.03] * 4 + [-0.01] * 12)
    numbers = np.array([0.5, 0.49, 0.47])[:, None] + common
    numbers[1:, 4:] = np.nan
    landscape = filled(numbers)
    landscape.completed[1:, 4:] = False
    landscape.dropped[1:] = True
    assert landscape.leader("ctr") == 0
    assert [cell.estimate.mean for cell in landscape.results()] == pytest.approx([0.5, 0.49, 0.47])
    z = figures.landscape_figure(landscape, "ctr")["data"]
    points = next(trace for trace in z if trace["name"] == "points")
    assert points["y"] == pytest.approx([0.5, 0.49, 0.47])


def test_the_leader_is_not_eliminated_and_has_the_most_replications() -> None:
    numbers = np.array([[0.5, 0.6, 0.7], [0.9, 0.9, 0.9], [0.8, 0.8, np.nan], [0.4, 0.5, 0.7]])
    landscape = filled(numbers)
    landscape.dropped[1], landscape.completed[2, 2] = True, False
    assert landscape.leader("ctr") == 0
    assert landscape.eligible("ctr").tolist() == [True, False, True, True]
    assert landscape.candidates("ctr").tolist() == [True, False, False, True]


def test_the_worst_value_of_an_axis_is_that_whose_best_point_is_worst() -> None:
    ridge = {"path": "agents.0.ridge", "values": [0.1, 1.0, 10.0, 100.0]}
    landscape = Landscape(small([ALPHA, ridge], replications=5))
    landscape.completed[...] = landscape.alive[...] = True
    grid = np.array([[0.5, 0.5, 0.5, 0.5], [0.9, 0.0, 0.1, 0.1], [0.6, 0.4, 0.4, 0.3]])
    landscape.numbers("ctr")[...] = grid.ravel()[:, None] + np.linspace(0, 0.1, 5)
    alpha = next(each for each in landscape.importance() if each.path == "agents.0.alpha")
    # not the value with the worst point
    assert alpha.worst == landscape.sweep.values[0][0]
    assert alpha.cost.mean == pytest.approx(400)


def test_without_finished_replications_there_is_no_best_point() -> None:
    landscape = filled(np.full((3, 4), np.nan))
    assert landscape.best() is None
    assert landscape.summary()["best"] is None
    assert "every replication of every point diverged" in command.summary_text(landscape)


def test_pairing_gain_is_the_ratio_of_interval_widths() -> None:
    generator = np.random.default_rng(5)
    common = generator.normal(0, 1, 400)
    landscape = filled(
        np.stack(
            [common + generator.normal(0, 0.1, 400) + 1, common + generator.normal(0, 0.1, 400)]
        )
    )
    # var(a) = var(b) = 1.01, var(a - b) = .02: sqrt(2.02 / .02) = 10.05, with a standard error of
    # about 1 / sqrt(800)
    assert landscape.pairing() == pytest.approx(math.sqrt(101), rel=4 / math.sqrt(800))


def test_importance_of_an_additive_landscape() -> None:
    ridge = {"path": "agents.0.ridge", "values": [0.1, 1.0, 10.0, 100.0]}
    sweep = small([ALPHA, ridge], replications=5)
    landscape = Landscape(sweep)
    landscape.completed[...] = landscape.alive[...] = True
    a, r = np.array([0.0, 0.1, 0.3]), np.array([0.0, 0.02, 0.01, 0.03])
    grid = 0.1 + a[:, None] + r[None, :]
    landscape.numbers("ctr")[...] = grid.ravel()[:, None] + np.linspace(0, 0.1, 5)
    first, second = landscape.importance()
    assert (first.path, first.best, first.worst) == ("agents.0.alpha", 10.0, 0.1)
    assert first.cost.mean == pytest.approx(300)
    assert (second.path, second.best, second.worst) == ("agents.0.ridge", 100.0, 0.1)
    assert second.cost.mean == pytest.approx(30)
    assert first.share == pytest.approx(a.var() / (a.var() + r.var()))
    assert first.share + second.share == pytest.approx(1)
    assert first.good == (10.0,)


def test_halving_starts_with_a_quarter_of_the_replications_and_doubles() -> None:
    assert rungs(small(search="halving", replications=16)) == [range(4), range(4, 8), range(8, 16)]
    assert rungs(small(search="halving", replications=3)) == [range(3)]
    assert rungs(small(replications=16)) == [range(16)]


def test_halving_saves_replications_and_keeps_the_best_point() -> None:
    axis = [{"path": "agents.0.epsilon", "low": 0.0, "high": 1.0, "number": 9}]
    agent = {"kind": "epsilon_greedy"}
    whole = sweeps.run(small(axis, agent, replications=16, steps=2000))
    runner = Runner(
        small(axis, agent, replications=16, steps=2000, search="halving"), InProcessExecutor()
    )
    thin = runner.run()
    assert thin.saved_share > 0.2
    assert thin.progress == runner.progress == 1
    winner, best = thin.best(), whole.best()
    assert winner is not None
    assert best is not None
    assert not thin.dropped[winner.point]
    assert whole.results()[winner.point].best
    assert best.estimate.low <= winner.estimate.mean <= best.estimate.high
    others = [p for p in range(whole.sweep.size) if p != best.point]
    tested = [paired_tests.paired_test(whole.gaps("ctr")[p]) for p in others]
    corrected = dict(
        zip(others, paired_tests.holm([p_value for _, p_value in tested]), strict=True)
    )
    for p in np.flatnonzero(thin.dropped):
        assert corrected[p] < thin.level
        assert whole.results()[p].gap.mean < 0
    assert np.array_equal(thin.numbers("ctr")[~thin.dropped], whole.numbers("ctr")[~thin.dropped])


def test_halving_drops_the_best_point_at_most_at_its_level() -> None:
    """200 landscapes of equal points, all rounds: the best (say, point 3) is lost at most 10 + 3
    sqrt(9.5) times.
    """
    generator = np.random.default_rng(6)
    lost = 0
    halving = small([{**ALPHA, "number": 6}], replications=8, search="halving")
    for _ in range(200):
        landscape = filled(generator.normal(0, 1, (6, 8)))
        for rung in rungs(halving):
            eliminate(halving, landscape, rung.stop)
        lost += bool(landscape.dropped[3])
    assert lost <= 19


def test_halving_compares_with_the_best_point_that_lost_no_replication() -> None:
    """Point 2 has the best mean but a diverged row; against it, point 1 would be eliminated."""
    noise = 0.01 * np.random.default_rng(8).normal(size=(3, 8))
    numbers = np.array([0.0, 0.0, 5.0])[:, None] + noise
    numbers[2, 5] = np.nan
    halving = small([{**ALPHA, "number": 3}], replications=8, search="halving")
    landscape = filled(numbers)
    eliminate(halving, landscape, 8)
    assert landscape.dropped.tolist() == [False, False, False]
    numbers[1] -= 1
    landscape = filled(numbers)
    eliminate(halving, landscape, 8)
    assert landscape.dropped.tolist() == [False, True, False]


def test_repeating_a_halving_round_gives_the_same_decision() -> None:
    generator = np.random.default_rng(7)
    halving = small([{**ALPHA, "number": 12}], replications=16, search="halving")
    for _ in range(20):
        numbers = generator.normal(0, 1, (12, 16)) - np.linspace(0, 2, 12)[:, None]
        early, late = filled(numbers.copy()), filled(numbers)
        early.numbers("ctr")[:, 8:] = np.nan
        for landscape in (early, late, late):
            for rung in rungs(halving)[:2]:
                eliminate(halving, landscape, rung.stop)
        assert np.array_equal(early.dropped, late.dropped)


def test_a_stopped_halving_resumes_to_the_same_result(tmp_path: Path) -> None:
    axis = [{"path": "agents.0.epsilon", "low": 0.0, "high": 1.0, "number": 9}]
    sweep = small(axis, {"kind": "epsilon_greedy"}, replications=16, steps=400, search="halving")
    whole = sweeps.run(sweep)
    files = BlockFiles(sweep, tmp_path)
    for patience in (3, 9, 15):
        asked = iter([False] * patience)
        with pytest.raises(StoppedError):
            sweeps.run(sweep, files=files, stop=lambda asked=asked: next(asked, True))
    again = sweeps.run(sweep, files=files)
    assert np.array_equal(again.dropped, whole.dropped)
    assert np.array_equal(again.completed, whole.completed)
    for metric in OBJECTIVES:
        assert np.array_equal(again.numbers(metric), whole.numbers(metric), equal_nan=True)


def test_a_table_has_one_row_per_point() -> None:
    landscape = sweeps.run(small())
    table = landscape.table()
    assert list(table["agents.0.alpha"]) == [0.1, 1.0, 10.0]
    assert (table["replications"] == 4).all()
    assert table.loc[table["mean"].idxmax(), "best_region"]
    assert json.loads(table.to_json()) is not None


@pytest.mark.parametrize("width", [26, 40])
def test_the_labels_of_an_axis_do_not_touch(width: int) -> None:
    """Each has its half of the distance to its neighbour, whatever the digits of the values."""
    axis = {"path": "agents.0.sigma2", "low": 0.001, "high": 2, "number": 9, "scale": "log"}
    e = {"agents": [{"kind": "lints"}]}
    found = sweeps.read({"experiment": e, "axes": [{**axis, "extra": [0]}]})
    ticks = figures.axis_ticks(found, 0, width)
    step = width * (ticks["tickvals"][1] - ticks["tickvals"][0]) / found.shape[0]
    texts = ticks["ticktext"]
    assert len(texts) > 2
    assert all((len(a) + len(b)) / 2 < step for a, b in itertools.pairwise(texts))
