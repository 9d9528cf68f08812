"""Blocks of other processes: what no run can compute is refused, and a worker that returns it is
shut out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from bandits import sweeps
from bandits.base.errors import UserError
from bandits.base.files import Arrays, pack, seal
from bandits.contract.environments import capabilities, params_of
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.sweeps import Sweep
from bandits.sweeps.block_check import block_problem
from bandits.sweeps.blocks import Block, compute
from bandits.sweeps.blocks import pack as pack_rows
from bandits.sweeps.execution import audit
from bandits.sweeps.execution.audit import Audit
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.runner import Runner
from bandits.sweeps.storage.block_files import BlockFiles
from tests.support import thinned
from tests.sweeps.test_sweep import rows_of, small

Lie = Callable[[Arrays], object]


def first_block(sweep: Sweep) -> Block:
    return pack_rows(sweep, rows_of(sweep))[0]


def changed(name: str, at: Any, value: float) -> Lie:
    """Return a lie that changes one value of an array."""

    def lie(arrays: Arrays) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][at] = value

    return lie


def replaced(name: str, of: Callable[[np.ndarray], np.ndarray]) -> Lie:
    """Return a lie that replaces an array."""
    return lambda arrays: arrays.update({name: of(arrays[name])})


LIES: dict[str, Lie] = {
    "an array is missing": lambda arrays: arrays.pop("sum.value"),
    "the rows are missing": lambda arrays: arrays.pop("rows"),
    "an array is unknown": lambda arrays: arrays.update(extra=np.zeros(3)),
    "the curves are said to be deleted": lambda arrays: arrays.update(thin=np.array(True)),
    "it is empty": lambda arrays: arrays.clear(),
    "a value is no array": lambda arrays: cast(Any, arrays).update(seconds=1.0),
    "the rows are of other points": replaced("rows", lambda a: a + 1),
    "the rows are exchanged": replaced("rows", lambda a: a[::-1]),
    "a row is missing": replaced("rows", lambda a: a[:-1]),
    "sums are integers": replaced("sum.clicks", lambda a: a.astype(np.int64)),
    "sums are complex": replaced("sum.value", lambda a: a + 1j),
    "sums are texts": replaced("sum.value", lambda a: a.astype(str)),
    "sums have too few points": replaced("sum.clicks", lambda a: a[:-1]),
    "sums have too many rows": replaced("sum.clicks", lambda a: np.hstack([a, a])),
    "a sum is missing": changed("sum.clicks", (-1, 0), np.nan),
    "a sum is infinite": changed("sum.best_value", (5, 0), np.inf),
    "a sum begins above zero": replaced("sum.clicks", lambda a: a + 1),
    "clicks are negative": replaced("sum.clicks", lambda a: -a),
    "clicks decrease": changed("sum.clicks", (10, 0), 0.0),
    "clicks are fractions": replaced("sum.clicks", lambda a: 0.5 * a),
    "more clicks than steps": replaced("sum.clicks", lambda a: a * 1000),
    "more expected clicks than steps": replaced("sum.best_value", lambda a: a * 1000),
    "rows alive are numbers": replaced("alive", lambda a: a.astype(np.int64)),
    "rows alive are too many": replaced("alive", lambda a: np.append(a, True)),
    "it ends early": lambda arrays: arrays.update(step=np.array(10)),
    "it begins late": lambda arrays: arrays.update({"from": np.array([5, 5])}),
    "its duration is negative": lambda arrays: arrays.update(seconds=np.array(-1.0)),
    "its duration is no number": lambda arrays: arrays.update(seconds=np.array(np.nan)),
    "it has counts of arms": replaced(
        "counts", lambda a: np.zeros((len(a), a.shape[1], 7), np.int32)
    ),
}


@pytest.fixture(scope="module")
def honest() -> tuple[Sweep, Block, Arrays]:
    sweep = small(replications=16)
    block = first_block(sweep)
    assert len(block.rows) == 2
    return sweep, block, compute(sweep, block)


@pytest.mark.parametrize("lie", LIES)
def test_an_impossible_block_is_refused(lie: str, honest: tuple[Sweep, Block, Arrays]) -> None:
    sweep, block, arrays = honest[0], honest[1], dict(honest[2])
    assert block_problem(sweep, block, arrays) == ""
    LIES[lie](arrays)
    assert block_problem(sweep, block, arrays) != ""


@pytest.mark.parametrize(
    "environment", [e for e in [*sorted(SIMULATORS), "two stages"] if "truth" in capabilities(e)]
)
def test_what_a_simulator_computes_is_possible(environment: str) -> None:
    axis = {"path": "agents.0.epsilon", "values": [0.1, 0.5]}
    sweep = small(
        [axis], {"kind": "epsilon_greedy"}, simulator=params_of(environment).model_dump(), steps=50
    )
    for block in pack_rows(sweep, rows_of(sweep)):
        assert block_problem(sweep, block, compute(sweep, block)) == ""


def test_decisions_of_a_fallback_are_possible() -> None:
    sweep = small(agent={"kind": "linucb", "guards": [{"kind": "fallback", "to": "random"}]})
    block = first_block(sweep)
    arrays = compute(sweep, block)
    assert "sum.fallbacks" in arrays
    assert block_problem(sweep, block, arrays) == ""
    changed("sum.fallbacks", (-1, 0), 301.0)(arrays)
    assert block_problem(sweep, block, arrays) != ""


@pytest.mark.parametrize(
    ("name", "number"), [("sum.visits", 1000.0), ("sum.visits", -1.0), ("sum.lost", -1.0)]
)
def test_impossible_visits_are_refused(name: str, number: float) -> None:
    sweep = small(simulator=params_of("sessions").model_dump(), steps=50)
    block = first_block(sweep)
    arrays = compute(sweep, block)
    assert block_problem(sweep, block, arrays) == ""
    changed(name, (-1, 0), number)(arrays)
    assert f"{name} that no run can reach" in block_problem(sweep, block, arrays)


def test_a_diverged_row_is_possible(honest: tuple[Sweep, Block, Arrays]) -> None:
    sweep, block, arrays = honest[0], honest[1], dict(honest[2])
    for name in [name for name in arrays if name.startswith("sum.")]:
        changed(name, (slice(40, None), 0), np.nan)(arrays)
    assert "not finite" in block_problem(sweep, block, arrays)
    changed("alive", 0, False)(arrays)
    assert block_problem(sweep, block, arrays) == ""
    changed("sum.value", (60, 0), 3.0)(arrays)
    assert "not finite" in block_problem(sweep, block, arrays)


def test_a_stored_block_without_curves_is_possible(
    honest: tuple[Sweep, Block, Arrays], tmp_path: Path
) -> None:
    sweep, block, arrays = honest
    files = BlockFiles(sweep, tmp_path)
    files.save(block, arrays)
    assert files.drop_curves() > 0
    assert files.get(block) is not None


@pytest.mark.parametrize(
    "lie", thinned([(lie,) for lie in LIES], lambda _: False, lambda number: number % 6 == 0)
)
def test_a_stored_lie_does_not_stop_later_runs(
    lie: str, honest: tuple[Sweep, Block, Arrays], tmp_path: Path
) -> None:
    sweep, block, arrays = honest[0], honest[1], dict(honest[2])
    LIES[lie](arrays)
    files = BlockFiles(sweep, tmp_path)
    files.save_sweep()
    path = files._path(block)
    path.write_bytes(seal(f"{sweep.hash}/{path.stem}", pack(arrays)))
    again = sweeps.run(sweep, files=files)
    np.testing.assert_array_equal(again.numbers("ctr"), sweeps.run(sweep).numbers("ctr"))


class Worker(InProcessExecutor):
    """Lies about one block."""

    def __init__(self, lie: Lie) -> None:
        self._lie = lie

    def submit(self, sweep: Sweep, block: Block, on_step: Callable[[int], None]) -> Future[Arrays]:
        arrays = compute(sweep, block, on_step)
        self._lie(arrays)
        future: Future[Arrays] = Future()
        future.set_result(arrays)
        return future


def test_an_impossible_block_is_not_stored(tmp_path: Path) -> None:
    sweep = small()
    files = BlockFiles(sweep, tmp_path)
    with pytest.raises(
        UserError,
        match=r"a worker returned a block of this sweep that has no sum\.value; it was not",
    ):
        Runner(sweep, Worker(LIES["an array is missing"]), files).run()
    assert list(tmp_path.rglob("*.block")) == []


def judged(
    judge: Audit, honest: tuple[Sweep, Block, Arrays], arrays: Arrays, worker: str = "tcp://w:1"
) -> Arrays:
    future: Future[Arrays] = Future()
    judge.judge(honest[0], honest[1], arrays, worker, future)
    return future.result(timeout=0)


@pytest.mark.parametrize("lie", LIES)
def test_a_worker_with_an_impossible_block_is_shut_out(
    lie: str, honest: tuple[Sweep, Block, Arrays]
) -> None:
    judge, arrays = Audit(InProcessExecutor), dict(honest[2])
    LIES[lie](arrays)
    found = judged(judge, honest, arrays)
    assert judge.shut_out == {"tcp://w:1"}
    assert judge.note.startswith("the worker tcp://w:1 returned a block that ")
    np.testing.assert_array_equal(found["sum.clicks"], honest[2]["sum.clicks"])


def test_a_share_of_the_blocks_is_computed_again(
    honest: tuple[Sweep, Block, Arrays], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Audit(InProcessExecutor)
    likely = {**honest[2], "sum.value": honest[2]["sum.value"] * (1 - 1e-9)}
    monkeypatch.setattr(audit, "AUDIT_SHARE", 0.0)
    assert judged(judge, honest, likely) is likely
    monkeypatch.setattr(audit, "AUDIT_SHARE", 1.0)
    # the duration does not count
    judged(judge, honest, {**honest[2], "seconds": np.array(7.0)}, "tcp://w:2")
    assert judge.shut_out == set()
    found = judged(judge, honest, likely)
    np.testing.assert_array_equal(found["sum.value"], honest[2]["sum.value"])
    assert judge.shut_out == {"tcp://w:1"}
    assert judge.note == (
        "the worker tcp://w:1 computed other numbers than this machine and was shut out; 1 "
        "earlier blocks of this sweep are from it: delete the sweep and run it again"
    )
    monkeypatch.setattr(audit, "AUDIT_SHARE", 0.0)
    # also what it had still to return
    assert judged(judge, honest, likely) is not likely


def test_the_share_is_one_in_a_hundred(
    honest: tuple[Sweep, Block, Arrays], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000 blocks 200 are expected, within four standard deviations (56)."""
    judge, recomputed = Audit(InProcessExecutor), list[int]()
    monkeypatch.setattr(audit, "block_problem", lambda *_: "")
    monkeypatch.setattr(judge, "_recompute", lambda *_: recomputed.append(1))
    for _ in range(20_000):
        judge.judge(*honest, "tcp://w:1", Future())
    assert 144 <= len(recomputed) <= 256
