"""Damage is found when the store is opened: in the indexes, in proposals of Optuna, in files that
cannot be decoded.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import sweeps
from bandits.base.files import pack, unpack
from bandits.storage.run_store import CorruptFileError, Store
from bandits.sweeps.storage.block_files import BlockFiles
from bandits.sweeps.storage.catalogue import Catalogue
from tests.storage.test_run_store import finished, flip, put
from tests.support import often
from tests.sweeps.test_sweep import small


def annotated(folder: Path, *seeds: int) -> Store:
    store = Store(folder)
    for seed in seeds:
        run = put(store, finished(seed))
        store.rename(run, f"run {seed}")
        store.tag(run, f"tag {seed}")
        store.note(run, f"notes on {seed}")
        store.star(run, seed % 2 == 1)
    return store


def test_flipped_bits_in_the_index_are_found_at_opening(tmp_path: Path) -> None:
    """No run is hidden, and no text or number changes, without any check."""
    expected = annotated(tmp_path, 1, 2, 3).runs()
    index, rng, rebuilt = tmp_path / "index.sqlite", np.random.default_rng(6), 0
    for _ in range(often(20, 1000)):
        whole = index.read_bytes()
        flip(index, rng)
        store = Store(tmp_path)
        assert store.runs() == expected
        assert store.notice == ""
        assert bool(store.repairs) == ("damaged" in " ".join(store.repairs))
        rebuilt += bool(store.repairs)
        index.write_bytes(whole)
    assert rebuilt >= 3


@pytest.mark.parametrize(
    "change",
    [
        "title = 'other'",
        "created = created + 1",
        "experiment = '{}'",
        "notes = NULL || ''",
        "checksum = NULL",
    ],
)
def test_a_changed_row_is_found_while_the_store_is_open(change: str, tmp_path: Path) -> None:
    store = annotated(tmp_path, 1, 2)
    expected = store.runs()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as index:
        index.execute("UPDATE OR IGNORE runs SET " + change)
        index.commit()
    assert store.runs() == expected


def test_a_damaged_row_is_not_changed(tmp_path: Path) -> None:
    store = annotated(tmp_path, 1)
    (run,) = store.runs()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as index:
        index.execute("UPDATE runs SET seconds = 99.0")
        index.commit()
    store.star(run.id, False)
    assert store.runs() == [run._replace(starred=False)]
    assert "damaged" in store.repairs[0]


def test_a_row_that_names_the_file_of_another_run_is_corrected(tmp_path: Path) -> None:
    store = annotated(tmp_path, 1, 2)
    first, second = finished(1), finished(2)
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as index:
        index.execute(
            "UPDATE runs SET content = (SELECT content FROM runs WHERE id = ?)",
            (first.experiment.hash,),
        )
        index.commit()
    actual = store.get(second.experiment.hash)
    assert actual is not None
    assert actual.summary() == second.summary()
    assert len(store.runs()) == 2


def forged(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Replace the file of the only run by one with other arrays and the name of its content."""
    (path,) = (folder / "objects").glob("*/*")
    arrays = unpack(path.read_bytes())
    change(arrays)
    replace(folder, path, pack(arrays))


def replace(folder: Path, path: Path, data: bytes) -> None:
    name = hashlib.sha256(data).hexdigest()
    path.unlink()
    target = folder / "objects" / name[:2] / name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(data)
    with closing(sqlite3.connect(folder / "index.sqlite")) as index:
        index.execute("UPDATE runs SET content = ?, checksum = NULL", (name,))
        index.commit()


@pytest.mark.parametrize(
    "data", [b"", b"no archive", b"\xff" * 64, (2**60).to_bytes(8, "little") + b"(\xb5/\xfd"]
)
def test_a_file_that_cannot_be_decoded_is_set_aside(data: bytes, tmp_path: Path) -> None:
    kept = put(Store(tmp_path), finished(1))
    orphan = hashlib.sha256(data).hexdigest()
    (tmp_path / "objects" / orphan[:2]).mkdir(exist_ok=True)
    (tmp_path / "objects" / orphan[:2] / orphan).write_bytes(data)
    store = Store(tmp_path)
    assert store.repairs == [f"{orphan[:12]} belongs to no run and was set aside"]
    assert [run.id for run in store.runs()] == [kept]
    (path,) = (tmp_path / "objects").glob("*/*")
    replace(tmp_path, path, data)
    store = Store(tmp_path)
    assert store.runs() == []
    assert len(list((tmp_path / "quarantine").iterdir())) == 2


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "an array is missing": lambda arrays: arrays.pop("0/sum.clicks"),
    "an array has another shape": lambda arrays: arrays.update({"0/sum.clicks": np.zeros((7, 7))}),
    "an array holds texts": lambda arrays: arrays.update({"0/sum.clicks": np.array(["x"])}),
    "a number is a list": lambda arrays: arrays.update({"0/step": np.zeros(3)}),
    "it covers too many steps": lambda arrays: arrays.update({"0/from": np.array([10**9, 10**9])}),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_run_is_set_aside(forgery: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = put(store, finished(1))
    forged(tmp_path, FORGERIES[forgery])
    store = Store(tmp_path)
    with pytest.raises(
        CorruptFileError, match="is damaged; it was set aside and the run must be run again"
    ):
        store.get(run)
    assert store.runs() == []
    assert Store(tmp_path).check() == []


def test_an_index_of_another_schema_is_made_from_the_files(tmp_path: Path) -> None:
    expected = annotated(tmp_path, 1, 2).runs()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as newer:
        newer.execute("PRAGMA user_version=99")
        newer.execute("ALTER TABLE runs ADD COLUMN colour TEXT")
        newer.commit()
    store = Store(tmp_path)
    assert store.runs() == expected
    assert store.notice == ""
    assert store.repairs == [
        "the index of stored runs was damaged or of another version; it was rebuilt from the "
        "files: 2 found"
    ]
    store.rename(expected[0].id, "new")
    assert Store(tmp_path).runs() == [expected[0]._replace(title="new"), expected[1]]


def test_flipped_bits_in_the_index_of_sweeps_change_nothing(tmp_path: Path) -> None:
    sweep = small()
    sweeps.run(sweep, files=BlockFiles(sweep, tmp_path))
    catalogue, index, rng = Catalogue(tmp_path), tmp_path / "index.sqlite", np.random.default_rng(7)
    entries = catalogue.entries()
    expected = [catalogue.estimate_at(sweep.hash, point) for point in range(sweep.size)]
    whole = index.read_bytes()
    for _ in range(often(30, 1000)):
        flip(index, rng)
        catalogue = Catalogue(tmp_path)
        estimates = [catalogue.estimate_at(sweep.hash, point) for point in range(sweep.size)]
        assert all(found in (None, right) for found, right in zip(estimates, expected, strict=True))
        assert catalogue.entries() == entries
        assert [catalogue.estimate_at(sweep.hash, point) for point in range(sweep.size)] == expected
        for ending in ("-wal", "-shm"):
            Path(f"{index}{ending}").unlink(missing_ok=True)
        index.write_bytes(whole)


@pytest.mark.slow
def test_flipped_bits_in_stored_proposals_change_no_proposal(tmp_path: Path) -> None:
    data = small().model_dump(mode="json", include={"experiment", "axes"})
    sweep = sweeps.read({**data, "search": "optuna", "number": 6, "batch": 2, "sampler": "random"})
    files, path = BlockFiles(sweep, tmp_path), tmp_path / sweep.hash / "sweep.json"
    whole = sweeps.run(sweep, files=files)
    stored, rng = path.read_bytes(), np.random.default_rng(8)
    for _ in range(often(4, 300)):
        flip(path, rng)
        again = sweeps.run(sweep, files=files)
        assert again.sweep.proposed == whole.sweep.proposed
        np.testing.assert_array_equal(again.numbers("ctr"), whole.numbers("ctr"))
        path.write_bytes(stored)
