"""Large states stay in files: they are written, sealed and read a part at a time."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.base import files
from bandits.base.files import pack, pack_file, seal, unpack, unpack_file
from bandits.base.mapped_arrays import PART, memory, parts
from bandits.base.processes import PREFIX, remove_leftovers
from bandits.runtime.protocol import mapped, send
from bandits.storage.run_store import Store
from tests.support import experiment

MANY = 3 * PART // 8 + 5


def state() -> dict[str, Any]:
    draws = np.random.default_rng(0)
    return {
        "step": np.array(7),
        "0.lane.agent.A": np.asfortranarray(draws.random((1000, MANY // 1000))),
        "0.history.x": draws.random(MANY),
        "0.lane.flags": np.array([True, False]),
        "0.lane.none": np.empty((0, 3)),
        "0.lane.name": np.array("dual"),
    }


def same_arrays(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        assert actual[name].dtype == array.dtype
        np.testing.assert_array_equal(actual[name], array, err_msg=name)


def test_a_worker_that_has_nothing_to_give_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert mapped(path) == {}


def test_what_a_worker_writes_is_mapped_and_sent_on(tmp_path: Path) -> None:
    path, again = tmp_path / "state", io.BytesIO()
    with path.open("wb") as file:
        send(file, {}, {"step": np.array(7)})
        send(file, {}, state())
    found = mapped(path)
    path.unlink()
    same_arrays(found, state())
    assert sum(map(memory, found.values())) == 0
    assert b"".join(parts(found["0.history.x"])) == state()["0.history.x"].tobytes()
    send(again, {}, found)
    assert len(again.getvalue()) > MANY * 8


def test_a_large_state_is_stored_and_read_as_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGE", 1000)
    packed = pack_file(state(), tmp_path)
    same_arrays(unpack(packed.read_bytes()), state())
    same_arrays(unpack_file(packed, 0, tmp_path), state())
    packed.write_bytes(pack(state()))
    found = unpack_file(packed, 0, tmp_path)
    same_arrays(found, state())
    assert sum(map(memory, found.values())) == 0
    assert list(tmp_path.iterdir()) == [packed]


def test_a_checkpoint_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    store, e, path = Store(tmp_path / "home"), experiment(), tmp_path / "packed"
    path.write_bytes(pack(state()))
    store.keep_checkpoint(e.hash, e, path)
    stored = (store.folder / "checkpoints" / e.hash).read_bytes()
    store.keep_checkpoint(e.hash, e, path.read_bytes())
    assert (store.folder / "checkpoints" / e.hash).read_bytes() == stored
    same_arrays(store.checkpoint_arrays(e.hash), state())
    assert not list(store.staging.iterdir())


@pytest.mark.parametrize("damage", ["cut", "length"])
def test_a_damaged_large_state_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(files, "LARGE", 1000)
    content = bytearray(pack(state()))
    if damage == "cut":
        content = content[: len(content) // 2]
    else:
        content[:8] = (2**40).to_bytes(8, "little")
    path = tmp_path / "packed"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read"):
        unpack_file(path, 0, tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_large_state_has_no_copy_in_memory(tmp_path: Path) -> None:
    path, e = tmp_path / "state", experiment()
    with path.open("wb") as file:
        send(file, {}, {"x": np.zeros(8 * PART)})
    found, store = mapped(path), Store(tmp_path / "home")
    tracemalloc.start()
    try:
        store.keep_checkpoint(e.hash, e, pack_file(found, store.staging))
        again = store.checkpoint_arrays(e.hash)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert again["x"].nbytes == 64 * PART
    assert peak < 8 * PART


def test_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    gone, mine = tmp_path / f"{PREFIX}{2**22 + 1}-x", tmp_path / "other-1-x"
    gone.write_bytes(seal("a", b"x"))
    mine.write_bytes(b"x")
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [mine]
