"""Sweeps with points proposed by Optuna: better than random search, reproducible on any executor,
resumable.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import Experiment, sweeps
from bandits.base.errors import UserError
from bandits.base.processes import worker_environment
from bandits.cli.sweep import save, summary_text
from bandits.runtime.pool import Pool
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps import url as link
from bandits.sweeps.analysis import importance
from bandits.sweeps.analysis.nearest import nearest_proposed
from bandits.sweeps.blocks import Block, StoppedError
from bandits.sweeps.execution.executors import InProcessExecutor, PoolExecutor
from bandits.sweeps.figures import scatter as scattered_figures
from bandits.sweeps.optuna_search import OptunaSearch
from bandits.sweeps.runner import Runner
from bandits.sweeps.storage.block_files import BlockFiles
from bandits.sweeps.sweep import read_with_proposals
from tests.gate import Gate
from tests.support import wait_for

ROOT = Path(__file__).parents[2]
ALPHA = {"path": "agents.0.alpha", "low": 0.05, "high": 10, "scale": "log"}
RIDGE = {"path": "agents.0.ridge", "low": 0.01, "high": 10, "scale": "log"}
SHARING = {"path": "agents.0.sharing", "values": ["per_arm", "shared"]}
PRODUCTS = {"path": "simulator.n_products", "low": 8.5, "high": 11}
NAMES = ("Exploration bonus", "Ridge", "Sharing")
SHOP = {"kind": "petshop", "n_products": 10, "n_users": 40}


def scattered(axes: Any = (ALPHA, RIDGE, SHARING), **changes: Any) -> Sweep:
    """Return a search of 24 points in four batches."""
    own = {
        name: changes.pop(name)
        for name in ("number", "batch", "sampler", "metric")
        if name in changes
    }
    experiment = {
        "simulator": SHOP,
        "agents": [{"kind": "linucb"}],
        "steps": 300,
        "replications": 4,
        **changes,
    }
    search = {"search": "optuna", "number": 24, "batch": 6, **own}
    return sweeps.read({"experiment": experiment, "axes": list(axes), **search})


def kept(home: Path, sweep: Sweep) -> list[tuple[Any, ...]]:
    """Return the stored proposals of a sweep."""
    return BlockFiles(sweep, home).proposals()


class Counted(InProcessExecutor):
    """Executor that counts the computed blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []

    def submit(self, sweep: Sweep, block: Block, on_step: Any) -> Any:
        self.blocks.append(block)
        return super().submit(sweep, block, on_step)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweeps")


@pytest.fixture(scope="module")
def whole(home: Path) -> Landscape:
    """Run a sweep without interruption."""
    sweep = scattered()
    return sweeps.run(sweep, files=BlockFiles(sweep, home))


def same(actual: Landscape, other: Landscape) -> None:
    assert actual.sweep.proposed == other.sweep.proposed
    for metric in ("ctr", "pseudo_regret"):
        assert np.array_equal(actual.numbers(metric), other.numbers(metric), equal_nan=True)
    assert actual.summary() == other.summary()


# -- search
# -------------------------------------------------------------------------------------------------------  # noqa: E501


@pytest.mark.slow
def test_optuna_finds_better_points_than_random_search(whole: Landscape) -> None:
    best, chance = whole.best(), sweeps.run(scattered(sampler="random", seed=7))
    assert best is not None
    means = [cell.estimate.mean for cell in chance.results()]
    assert best.estimate.mean > np.median(means) + 0.05
    # after the first batches
    late = [cell.estimate.mean for cell in whole.results() if cell.point >= 12]
    assert np.median(late) > np.median(means)


def test_all_proposals_are_stored_with_the_sweep(whole: Landscape, home: Path) -> None:
    # none was proposed twice
    assert len(whole.sweep.proposed) == 24
    for stored, (alpha, ridge, sharing) in zip(
        kept(home, whole.sweep), whole.sweep.proposed, strict=True
    ):
        assert list(stored) == [
            pytest.approx(alpha, rel=1e-5),
            pytest.approx(ridge, rel=1e-5),
            sharing,
        ]


def test_regret_is_minimised_and_integers_stay_integers() -> None:
    landscape = sweeps.run(scattered([ALPHA, PRODUCTS], metric="pseudo_regret", number=12))
    products = {values[1] for values in landscape.sweep.proposed}
    assert products <= {9, 10, 11}
    assert all(isinstance(n, int) for n in products)
    best = landscape.best("pseudo_regret")
    assert best is not None
    assert best.estimate.mean == min(
        cell.estimate.mean for cell in landscape.results("pseudo_regret")
    )


def test_repeated_proposals_are_not_recomputed() -> None:
    # four points in all
    executor, axes = Counted(), [SHARING, {**PRODUCTS, "high": 10}]
    landscape = sweeps.run(scattered(axes, number=16), executor)
    computed = [row for block in executor.blocks for row in block.rows]
    assert len(computed) == len(set(computed)) == 4 * len(landscape.sweep.proposed) <= 16
    assert landscape.progress == 1
    assert landscape.saved_share == 1 - len(landscape.sweep.proposed) / 16


def test_invalid_combinations_are_skipped() -> None:
    axes = [
        {"path": "simulator.n_items", "low": 20, "high": 60},
        {"path": "simulator.n_candidates", "low": 10, "high": 60},
    ]
    settings = {"kind": "ranking", "n_items": 100, "n_candidates": 20, "slate": 5, "n_users": 20}
    landscape = sweeps.run(scattered(axes, simulator=settings, steps=10, replications=1, number=12))
    assert 0 < len(landscape.sweep.proposed) < 12
    assert all(candidates <= items for items, candidates in landscape.sweep.proposed)


@pytest.mark.slow
def test_a_gaussian_process_proposes_within_bounds() -> None:
    sweep = scattered([ALPHA, SHARING], sampler="gp", number=12, batch=11, steps=50)
    landscape = sweeps.run(sweep)
    assert len(landscape.sweep.proposed) == 12
    assert all(0.05 <= alpha <= 10 for alpha, _ in landscape.sweep.proposed)


def test_a_point_equals_its_experiment(whole: Landscape) -> None:
    best = whole.best()
    assert best is not None
    point = whole.sweep.point(best.point)
    assert (point.agents[0].alpha, point.agents[0].ridge, point.agents[0].sharing) == best.values  # type: ignore[attr-defined]


def test_a_forest_estimates_parameter_importance() -> None:
    """z = x + .5 c with x uniform and c Bernoulli(1/2): variances 1/12 and 1/16, shares 4/7 and
    3/7, and 0 for y.
    """
    rng = np.random.default_rng(1)
    x, y, c = rng.random(400), rng.random(400), rng.integers(0, 2, 400)
    points = [
        (0.05 * 200**a, 0.01 * 1000**b, ["per_arm", "shared"][i])
        for a, b, i in zip(x, y, c, strict=True)
    ]
    sweep = scattered(number=400).with_proposals(points)
    assert importance.explained_shares(sweep, x + 0.5 * c) == pytest.approx(
        [4 / 7, 0, 3 / 7], abs=0.06
    )
    assert np.isnan(importance.explained_shares(sweep, np.full(400, np.nan))).all()
    chance = importance.explained_shares(
        scattered(number=64).with_proposals(points[:64]), rng.normal(size=64)
    )
    # without predictive power nothing is explained
    assert max(chance) < 0.1
    # half of the variance is noise: at most half is explained, where its root would be .7
    noisy = importance.explained_shares(sweep, x + rng.normal(scale=12**-0.5, size=400))
    assert 0.25 < sum(noisy) < 0.55


# -- reproducible and resumable
# ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    workers = Pool(2)
    yield workers
    workers.close()


@pytest.mark.slow
def test_worker_processes_give_identical_results(whole: Landscape, pool: Pool) -> None:
    same(sweeps.run(scattered(), PoolExecutor(pool)), whole)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [7, 19])
def test_a_stopped_search_resumes_to_identical_results(
    stop: int, whole: Landscape, tmp_path: Path
) -> None:
    sweep, first, second = scattered(), Counted(), Counted()
    with pytest.raises(StoppedError):
        sweeps.run(
            sweep, first, BlockFiles(sweep, tmp_path), stop=lambda: len(first.blocks) >= stop
        )
    before = len(list(tmp_path.rglob("*.block")))
    again = Runner(sweep, second, BlockFiles(sweep, tmp_path))
    assert not again.load()
    # completed batches
    assert len(again.landscape.sweep.proposed) in range(6 * (stop > 12), 24, 6)
    same(again.run(), whole)
    assert len(list(tmp_path.rglob("*.block"))) == before + len(second.blocks)
    assert len(kept(tmp_path, sweep)) == 24
    assert Runner(sweep, Counted(), BlockFiles(sweep, tmp_path)).load()


@pytest.mark.slow
def test_a_killed_command_resumes_to_identical_files(gate: Gate, tmp_path: Path) -> None:
    sweep, home = scattered(seed=19), tmp_path / "home"
    whole = sweeps.run(sweep)
    gate.hold(19, 100, passes=9)  # of 32
    (tmp_path / "sweep.json").write_text(sweep.model_dump_json())
    command = [
        sys.executable,
        "-m",
        "bandits",
        "sweep",
        str(tmp_path / "sweep.json"),
        "--workers",
        "0",
    ]
    environment = {**worker_environment(), "BANDITS_HOME": str(home)}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(
        lambda: len(list(home.rglob("*.block"))) > 8,
        "blocks",
        lambda: process.poll() is not None and "it ended",
    )
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    landscape = sweeps.run(sweep, files=BlockFiles(sweep, home / "sweeps"))
    same(landscape, whole)
    assert len(kept(home / "sweeps", sweep)) == 24
    for folder, completed in (("a", landscape), ("b", whole)):
        save(completed, tmp_path / folder)
    for name in ("sweep.json", "points.parquet", "summary.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_damaged_or_missing_proposals_are_made_again(tmp_path: Path) -> None:
    sweep, executor = scattered(number=8, batch=4, steps=50), Counted()
    files, path = BlockFiles(sweep, tmp_path), tmp_path / sweep.hash / "sweep.json"
    before = sweeps.run(sweep, files=files)
    whole, proposals = path.read_bytes(), files.proposals()
    for damaged in (
        b"nonsense",
        whole.replace(b'"proposals"', b'"proposal"'),
        b"per_arm".join(whole.rsplit(b"shared", 1)),
    ):
        assert damaged != whole
        path.write_bytes(damaged)
        assert files.proposals() == []
        same(sweeps.run(sweep, executor, files), before)
        assert (files.proposals(), path.read_bytes()) == (proposals, whole)
    path.unlink()
    same(sweeps.run(sweep, executor, files), before)
    assert executor.blocks == []


def test_stored_proposals_lead_to_the_same_next_ones() -> None:
    """Also where a value is missing: a failed trial."""
    values = [0.1, 0.2, 0.3, float("nan"), 0.5, 0.6]
    for sampler in ("tpe", "gp", "random"):
        sweep = scattered(number=12, sampler=sampler)
        whole = OptunaSearch(sweep)
        first = whole.ask()
        whole.tell(values)
        again = OptunaSearch(sweep, whole.proposals)
        assert again.ask(propose=False) == first
        again.tell(values)
        assert again.ask(propose=False) == []
        assert again.ask() == whole.ask()
        assert again.proposals == whole.proposals


def test_reading_a_sweep_proposes_no_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proposing may take minutes, and opening a page reads the sweep."""
    sweep, files = scattered(number=12), BlockFiles(scattered(number=12), tmp_path)
    files.save_sweep()
    asked: list[int] = []
    monkeypatch.setattr(OptunaSearch, "_propose", lambda _, number: asked.append(number))
    assert not Runner(sweep, InProcessExecutor(), files).load()
    assert asked == []


def test_a_full_disk_is_reported_in_one_sentence(whole: Landscape, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    sweep = scattered()
    runner = Runner(sweep, InProcessExecutor(), BlockFiles(sweep, tmp_path / "file"))
    same(runner.run(), whole)
    assert "could not be kept on disk" in runner.error


# -- data
# ----------------------------------------------------------------------------------------------------------  # noqa: E501


def test_link_json_and_hash() -> None:
    sweep = scattered(sampler="random", metric="oracle_share")
    assert link.parse_query(link.to_query(sweep)) == sweep == sweeps.read(sweep.model_dump_json())
    assert (
        scattered().hash == scattered([{**ALPHA, "number": 5}, RIDGE, SHARING]).hash
    )  # of no grid
    others = [
        scattered(number=25),
        scattered(batch=5),
        scattered(sampler="random"),
        scattered(metric="oracle_share"),
        scattered([{**ALPHA, "scale": "linear"}, RIDGE, SHARING]),
    ]
    assert len({s.hash for s in [*others, scattered()]}) == 6
    third = scattered([{**ALPHA, "low": 1 / 3}, RIDGE])
    # rounded to six digits
    assert link.parse_query(link.to_query(third)).hash == third.hash
    started = sweep.with_proposals([(1.0, 1.0, "shared")])
    assert started.hash == sweep.hash
    assert read_with_proposals(started.model_dump_json()) == started


@pytest.mark.parametrize(
    ("axes", "changes", "message"),
    [
        ([ALPHA], {"number": 1}, "number is 1; it must be"),
        ([ALPHA], {"number": 5000}, "number is 5000; it must be"),
        ([ALPHA], {"batch": 0}, "batch is 0; it must be"),
        ([ALPHA], {"sampler": "oracle"}, "sampler is oracle"),
        (
            [ALPHA],
            {"sampler": "gp", "number": 129},
            "a Gaussian process proposes at most 128 points",
        ),
        ([{**ALPHA, "high": 100}], {}, "takes the value 100.0; it must be a number from 0 to 10"),
        ([{**PRODUCTS, "low": 5.2, "high": 5.8}], {}, "only one value between"),
        ([ALPHA], {"number": 500, "replications": 200}, "100,000 rows"),
    ],
)
def test_invalid_search_axes_are_refused_in_one_sentence(
    axes: Any, changes: Any, message: str
) -> None:
    with pytest.raises(UserError) as refused:
        scattered(axes, **changes)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_points_are_not_taken_from_a_file() -> None:
    with pytest.raises(UserError, match="proposed is filled in by the search"):
        sweeps.read(scattered().with_proposals([(1.0, 1.0, "shared")]).model_dump_json())
    with pytest.raises(UserError, match="with a value for each axis"):
        read_with_proposals(scattered().with_proposals([(1.0,)]).model_dump_json())


def test_without_optuna_it_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "optuna.py").write_text("raise ImportError('not here')")
    (tmp_path / "sweep.json").write_text(scattered().model_dump_json())
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "BANDITS_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "bandits", "sweep", str(tmp_path / "sweep.json")]
    actual = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    message = (
        "a search by Optuna needs Optuna, which is not installed: pip install "
        '"bandit-playground[optuna]"'
    )
    assert (actual.returncode, actual.stderr) == (2, f"error: {message}\n")


def test_figures_show_the_best_value_so_far_and_every_parameter(whole: Landscape) -> None:
    best_path = scattered_figures.progress(whole, "ctr")
    means = np.array([cell.estimate.mean for cell in whole.results()])
    assert np.array_equal(best_path.means, means)
    assert np.array_equal(best_path.means[best_path.best], np.maximum.accumulate(means))
    assert best_path.best[-1] == whole.leader("ctr")
    regret = scattered_figures.progress(whole, "pseudo_regret")
    assert np.array_equal(regret.means[regret.best], np.minimum.accumulate(regret.means))
    specs = scattered_figures.figures(whole, "ctr", 3)
    titles = [spec["layout"]["title"]["text"] for spec in specs]
    assert titles == [
        "Click-through rate: best so far",
        *(f"Click-through rate against {n}" for n in NAMES),
    ]
    # every point can be selected in every figure
    for spec in specs:
        dots = [trace for trace in spec["data"] if trace.get("name") == "points"]
        places = [(x, y) for trace in dots for x, y in zip(trace["x"], trace["y"], strict=True)]
        picked = {
            scattered_figures.point_at(whole, "ctr", float(np.float32(x)), float(np.float32(y)))
            for x, y in places
        }
        assert len(places) == 24
        # points may hide one another
        assert {means[p] for p in picked if p is not None} == set(means)
    assert scattered_figures.point_at(whole, "ctr", 1.0, 2.0) is None
    (empty,) = scattered_figures.figures(Landscape(scattered()), "ctr")
    assert empty["data"] == []


def test_the_computed_point_near_a_setting_stands_for_it(whole: Landscape) -> None:
    """Exactly, nearly, or not at all: far away, with another value of a list, or different in what
    is not swept.
    """
    sweep, at = whole.sweep, 3
    exact = nearest_proposed(sweep, whole.estimate_at, sweep.point(at))
    assert exact is not None
    assert (exact.point, exact.exact, exact.runs) == (at, True, sweep.experiment.replications)
    assert exact.estimate == whole.estimate_at(at)[0]  # type: ignore[index]
    alpha, ridge, sharing = sweep.values_at(at)
    assert isinstance(alpha, float)
    other = "shared" if sharing == "per_arm" else "per_arm"
    near = nearest_proposed(
        sweep, whole.estimate_at, sweep.with_values((alpha * 1.01, ridge, sharing))
    )
    assert near is not None
    assert (near.point, near.exact) == (at, False)
    one = sweep.with_proposals([sweep.values_at(at)])
    for values in (
        (min(alpha * 10, 9.9) if alpha < 1 else alpha / 10, ridge, sharing),
        (alpha, ridge, other),
    ):
        assert nearest_proposed(one, whole.estimate_at, sweep.with_values(values)) is None
    changed = Experiment.model_validate(
        {**sweep.point(at).model_dump(mode="json"), "steps": sweep.experiment.steps + 1}
    )
    assert nearest_proposed(sweep, whole.estimate_at, changed) is None
    marked = scattered_figures.figures(whole, "ctr", setting=at)[1:]
    for i, spec in enumerate(marked[:2]):
        (cross,) = [trace for trace in spec["data"] if trace["name"] == "x"]
        assert cross["x"].tolist() == [sweep.values_at(at)[i]]
        assert spec["layout"]["meta"]["note"].endswith("✕ the point nearest to your setting.")


def test_the_summary_and_the_saved_files(whole: Landscape, tmp_path: Path) -> None:
    lines = summary_text(whole).splitlines()
    assert lines[0].startswith("best: alpha ")
    assert "of 24 points" in lines[1]
    assert {line.split(":")[0] for line in lines[2:]} == {"alpha", "ridge", "sharing"}
    save(whole, tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [each["by"] for each in summary["sensitivity"]] == ["random forest"] * 3
    assert sum(each["share"] for each in summary["sensitivity"]) <= 1.2
    assert json.loads((tmp_path / "sweep.json").read_text()) == json.loads(
        scattered().model_dump_json()
    )
