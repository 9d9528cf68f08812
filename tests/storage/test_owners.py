"""A file under another file's name is noticed: checkpoints, blocks and cached arrays belong to one
owner each.
"""

from __future__ import annotations

import hashlib
import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

from bandits import sweeps
from bandits.base.files import cached_arrays, damaged_caches, pack, seal, unpack, unseal
from bandits.storage.owners import DAMAGED, Owners
from bandits.storage.run_store import Store
from bandits.sweeps.storage.block_files import BlockFiles, remove_damaged
from tests.support import experiment
from tests.sweeps.test_sweep import small


def exchange(a: Path, b: Path) -> None:
    """Exchange the contents of two files."""
    a_data, b_data = a.read_bytes(), b.read_bytes()
    a.write_bytes(b_data)
    b.write_bytes(a_data)


def test_sealed_bytes_belong_to_their_owner() -> None:
    sealed = seal("a" * 64, b"numbers")
    assert unseal("a" * 64, sealed) == b"numbers"
    assert unseal("b" * 64, sealed) is None
    assert unseal("a" * 64, sealed[:-1]) is None
    assert unseal("a" * 64, hashlib.sha256(b"numbers").digest() + b"numbers") is None


def test_a_checkpoint_under_another_name_is_set_aside(tmp_path: Path) -> None:
    store, a, b = Store(tmp_path), experiment(seed=1), experiment(seed=2)
    for e in (a, b):
        store.keep_checkpoint(e.hash, e, f"state of {e.seed}".encode())
    exchange(tmp_path / "checkpoints" / a.hash, tmp_path / "checkpoints" / b.hash)
    assert store.checkpoint_files.state(a.hash) is None
    assert store.check() == [
        f"the checkpoint of run {b.hash[:12]} was damaged or of another run; it was set aside"
    ]
    assert store.checkpoints() == []
    assert len(list((tmp_path / "quarantine").iterdir())) == 2


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xff\xff\xff", b"\x02\0\0\0\xff\xff", b"\x02\0\0\0{}state"]
)
def test_a_forged_checkpoint_is_not_used(tmp_path: Path, body: bytes) -> None:
    store, e = Store(tmp_path), experiment()
    (tmp_path / "checkpoints" / e.hash).write_bytes(hashlib.sha256(body).digest() + body)
    assert store.checkpoint_files.state(e.hash) is None
    assert store.checkpoint_experiment(e.hash) is None
    assert store.checkpoints() == []


def test_exchanged_blocks_are_computed_again(tmp_path: Path) -> None:
    sweep, other = small(), small(seed=9)
    files, others = BlockFiles(sweep, tmp_path), BlockFiles(other, tmp_path)
    whole = sweeps.run(sweep, files=files)
    sweeps.run(other, files=others)
    blocks = sorted(files.folder.glob("*.block"))
    exchange(blocks[0], blocks[1])
    # both sweeps pack their rows alike
    shutil.copy(others.folder / blocks[2].name, blocks[2])
    (message,) = remove_damaged(tmp_path)
    assert (
        message
        == f"sweep {sweep.hash[:12]}: 3 damaged or unfinished blocks were removed; run it again"
    )
    shutil.copy(others.folder / blocks[2].name, blocks[2])
    again = sweeps.run(sweep, files=files)
    np.testing.assert_array_equal(again.numbers("ctr"), whole.numbers("ctr"))
    assert remove_damaged(tmp_path) == []


def test_cached_arrays_of_other_content_are_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    for n in (1, 2):
        cached_arrays("weights", f"network {n}", lambda n=n: {"w": np.full(5, n)})
    paths = sorted((tmp_path / "weights").iterdir())
    assert damaged_caches("weights") == []
    exchange(*paths)
    assert damaged_caches("weights") == paths
    for n in (1, 2):
        arrays = cached_arrays("weights", f"network {n}", lambda n=n: {"w": np.full(5, n)})
        np.testing.assert_array_equal(arrays["w"], np.full(5, n))
    assert damaged_caches("weights") == []


@pytest.mark.slow
def test_every_flipped_bit_of_a_cache_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    cached_arrays("weights", "network", lambda: {"w": np.arange(5.0)})
    (path,) = (tmp_path / "weights").iterdir()
    whole = path.read_bytes()
    assert damaged_caches("weights") == []
    for at, bit in itertools.product(range(len(whole)), range(8)):
        data = bytearray(whole)
        data[at] ^= 1 << bit
        path.write_bytes(data)
        assert damaged_caches("weights") == [path], (at, bit)


def test_damaged_arrays_raise_one_type_of_error() -> None:
    for data in (
        b"",
        b"x",
        pack({"a": np.arange(3)})[:-9],
        b"\xff" * 100,
        (2**62).to_bytes(8, "little") + b"zstd",
    ):
        with pytest.raises(ValueError, match="the arrays cannot be read"):
            unpack(data)


def test_a_damaged_record_of_an_owner_leaves_the_console_alone(tmp_path: Path) -> None:
    owners, (a, b) = Owners(tmp_path), ("a" * 64, "b" * 64)
    owners.record(a, "one browser")
    owners.record(b, "another browser")
    assert (owners.of(a), owners.of(b)) == ("one browser", "another browser")
    # every flipped bit, and the record of another run
    whole = (tmp_path / a).read_bytes()
    for i in range(len(whole)):
        (tmp_path / a).write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        assert owners.of(a) == DAMAGED
    (tmp_path / a).write_bytes(whole)
    exchange(tmp_path / a, tmp_path / b)
    for run, owner in itertools.product((a, b), ("one browser", "another browser")):
        owners.record(run, owner)
        assert not owners.may_delete(run, owner)
        assert not owners.may_edit(run, owner)
        assert owners.may_delete(run, None)
    # a record of the first files, which had no checksum
    (tmp_path / a).write_bytes(b"0123456789abcdef" * 2)
    assert owners.may_delete(a, "0123456789abcdef" * 2)
