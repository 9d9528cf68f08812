"""A home with everything in it: flipped bits and exchanged files are noticed or harmless, and
change no number.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

from bandits import sweeps
from bandits.base.errors import UserError
from bandits.base.files import cached_arrays
from bandits.simulators.datasets import uploads
from bandits.storage.eviction import remove_damaged_caches
from bandits.storage.run_store import CorruptFileError, EvictedError, Store
from bandits.sweeps.storage.block_files import BlockFiles, remove_damaged
from bandits.sweeps.storage.catalogue import Catalogue
from tests.storage import crash_work
from tests.storage.test_owners import exchange
from tests.storage.test_run_store import finished, flip
from tests.support import experiment, often
from tests.sweeps.test_sweep import small

SWEEPS = small(), small(seed=4), crash_work.searched()
View = dict[str, object]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with runs, texts, checkpoints, sweeps, proposals, caches and data sets."""
    home = tmp_path / "whole"
    monkeypatch.setenv("BANDITS_HOME", str(home))
    crash_work.fill(home)
    store, catalogue = Store(home), Catalogue(home / "sweeps")
    for seed in (5, 6):
        store.keep_checkpoint(
            experiment(seed=seed).hash, experiment(seed=seed), f"state {seed}".encode()
        )
    for sweep in SWEEPS:
        sweeps.run(sweep, files=BlockFiles(sweep, home / "sweeps"))
        catalogue.annotate(sweep.hash, notes=f"sweep {sweep.experiment.seed} {sweep.search}")
    catalogue.entries()
    for n in (1, 2):
        cached_arrays("weights", f"network {n}", lambda n=n: {"w": np.full(50, n)})
        crash_work.prepare("upload", str(home))()
    return home


def look(home: Path) -> tuple[View, list[str]]:
    """Return all that a home shows, and all that it states about damage."""
    store, found = Store(home), View()
    stated = list(store.repairs) + ([store.notice] if store.notice else [])
    for run in store.runs():
        try:
            result = store.get(run.id)
            found[run.id] = run, None if result is None else result.summary()["agents"]
        except EvictedError:
            found[run.id] = run, None
        except CorruptFileError as error:
            stated.append(str(error))
    stated += store.check()
    for run_id, _ in store.checkpoints():
        found["checkpoint " + run_id] = store.checkpoint_files.state(run_id)
    for data in (
        "crash-" + path.stem.rpartition("-")[2] for path in (home / "data").glob("*.parquet")
    ):
        try:
            found[data] = uploads.load(data).to_csv()
        except UserError as error:
            stated.append(str(error))
    stated += remove_damaged(home / "sweeps") + remove_damaged_caches()
    for entry in Catalogue(home / "sweeps").entries():
        found["entry " + entry.sweep.hash] = entry.progress, entry.best, entry.notes
    for sweep in SWEEPS:
        again = sweeps.run(sweep, files=BlockFiles(sweep, home / "sweeps"))
        found["sweep " + sweep.hash] = again.numbers("ctr").tolist(), again.sweep.proposed
    for n in (1, 2):
        arrays = cached_arrays("weights", f"network {n}", lambda n=n: {"w": np.full(50, n)})
        found[f"network {n}"] = arrays["w"].tolist()
    return found, stated


def content_files(home: Path) -> list[Path]:
    files = [path for path in sorted(home.rglob("*")) if path.is_file() and path.name != "reserve"]
    return [path for path in files if path.stat().st_size]


def unlike(found: View, expected: View) -> list[str]:
    """List what is shown otherwise than it was.

    What is missing, or unfinished without its result, does not count.
    """
    return [
        name
        for name, value in expected.items()
        if name in found and found[name] != value and "entry" not in name
    ]


@pytest.mark.slow
def test_flipped_bits_change_no_number(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, stated = look(home)
    assert stated == []
    rng, noticed, missing, times = np.random.default_rng(11), 0, 0, often(12, 1000)
    for n in range(times):
        copy = shutil.copytree(home, tmp_path / "copy", ignore=shutil.ignore_patterns("reserve"))
        monkeypatch.setenv("BANDITS_HOME", str(copy))
        paths = content_files(copy)
        path = paths[int(rng.integers(len(paths)))]
        flip(path, rng)
        found, stated = look(copy)
        assert unlike(found, expected) == [], (n, path)
        gone = set(expected) - set(found)
        assert not gone or stated, (n, path, gone)
        noticed, missing = noticed + bool(stated), missing + bool(gone)
        shutil.rmtree(copy)
    print(
        f"{times} flips: {noticed} stated, {times - noticed} harmless, {missing} with something to "
        "compute again"
    )
    assert noticed > times // 4


@pytest.mark.slow
def test_exchanged_files_are_noticed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = look(home)
    relative = [path.relative_to(home) for path in content_files(home)]
    kinds: dict[str, list[Path]] = {}
    for path in relative:
        kind = path.suffix if path.parts[0] == "sweeps" else path.parts[0]
        kinds.setdefault(kind, []).append(path)
    pairs = [pair for paths in kinds.values() for pair in itertools.combinations(paths, 2)]
    pairs = [(a, b) for a, b in pairs if (home / a).read_bytes() != (home / b).read_bytes()]
    rng = np.random.default_rng(12)
    chosen = [pairs[i] for i in rng.permutation(len(pairs))[: often(10, 200)].tolist()]
    for n, (a, b) in enumerate(chosen):
        copy = shutil.copytree(
            home, tmp_path / f"copy {n}", ignore=shutil.ignore_patterns("reserve")
        )
        monkeypatch.setenv("BANDITS_HOME", str(copy))
        exchange(copy / a, copy / b)
        found, stated = look(copy)
        assert unlike(found, expected) == [], (a, b)
        assert stated, (a, b)
        shutil.rmtree(copy)
    print(f"{len(chosen)} of {len(pairs)} pairs of {len(kinds)} kinds, all noticed")
    assert finished(1).experiment.hash in expected
