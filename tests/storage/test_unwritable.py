"""Full, read-only and missing disks: what is stored can be listed and read, and space can
be freed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bandits import sweeps
from bandits.storage import reserve
from bandits.storage.run_store import Store
from bandits.storage.stored_run import LAST_TIME
from bandits.sweeps.storage.block_files import BlockFiles
from tests.storage.test_damage import annotated
from tests.storage.test_run_store import finished, put
from tests.support import experiment
from tests.sweeps.test_sweep import small

ROOT = Path(__file__).parents[2]
NOTICE = "The stored runs can be read but not changed: "

# No byte can be written to a file, as on a full disk, until the reserve is deleted.
FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from bandits.cli.main import main
from bandits.storage import reserve
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
release = reserve.release
def released(folder):
    if (folder / "reserve").exists():
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    release(folder)
reserve.release = released
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
sys.exit(main(sys.argv[1:]))
"""
# As root, permissions do not hold: the process gives up the capabilities that override them.
UNPRIVILEGED = """
import ctypes, os, sys
if os.geteuid() == 0:
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, nothing) == 0
from bandits.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def command(program: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "BANDITS_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with two runs, one of them with a checkpoint, and a sweep."""
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    store = annotated(tmp_path / "home", 1, 2)
    e = finished(1).experiment
    store.keep_checkpoint(e.hash, e, b"x" * 5000)
    sweeps.run(small(), files=BlockFiles(small(), tmp_path / "home" / "sweeps"))
    return tmp_path / "home"


@pytest.mark.slow
def test_a_full_disk_is_listed_checked_and_freed(home: Path) -> None:
    listed = command(FULL, home, "runs")
    assert (listed.returncode, len(listed.stdout.splitlines())) == (0, 2)
    assert listed.stderr.startswith(NOTICE)
    assert "run 1" in listed.stdout
    checked = command(FULL, home, "store", "check")
    assert (checked.returncode, checked.stdout) == (
        0,
        "No damage was found. Stored runs: 2, unfinished: 0.\n",
    )
    shown = command(FULL, home, "show", finished(1).experiment.hash)
    assert (shown.returncode, "LinUCB" in shown.stdout) == (0, True)
    freed = command(FULL, home, "store", "evict", "--budget", "0")
    assert (freed.returncode, freed.stderr) == (0, "")
    assert freed.stdout.count("MB freed") == 3
    assert (home / "reserve").stat().st_size == reserve.BYTES
    assert [run.evicted for run in Store(home).runs()] == [True, True]


@pytest.mark.slow
def test_damage_on_a_full_disk_is_stated(home: Path) -> None:
    path = next((home / "objects").glob("*/*"))
    path.write_bytes(path.read_bytes()[:-1])
    checked = command(FULL, home, "store", "check")
    assert checked.returncode == 1
    assert checked.stdout.splitlines()[0].endswith(" is damaged")
    assert path.exists()


@pytest.fixture
def locked(home: Path) -> Iterator[Path]:
    """Return a home in which nothing can be written."""
    for path in [home, *home.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield home
    for path in [home, *home.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_read(locked: Path) -> None:
    listed = command(UNPRIVILEGED, locked, "runs")
    assert (listed.returncode, len(listed.stdout.splitlines())) == (0, 2), listed.stderr
    assert listed.stderr.startswith(NOTICE)
    assert len(listed.stderr.splitlines()) == 1
    shown = command(UNPRIVILEGED, locked, "show", finished(1).experiment.hash)
    assert (shown.returncode, "LinUCB" in shown.stdout) == (0, True)
    assert command(UNPRIVILEGED, locked, "store", "check").returncode == 0
    swept = command(UNPRIVILEGED, locked, "store", "evict", "--budget", "0")
    assert swept.returncode == 2
    assert len(swept.stderr.splitlines()) == 2
    assert not (locked / "index.sqlite-shm").exists()


def test_a_copy_of_the_index_follows_other_processes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    reader, writer = Store(home), Store(home)
    monkeypatch.setattr(reader._index._index, "use", refuse)
    expected = writer.runs()
    assert reader.runs() == expected
    assert reader.notice == NOTICE + "Read-only file system."
    put(writer, finished(3))
    writer.rename(finished(3).experiment.hash, "three")
    assert [run.title for run in reader.runs()] == ["three", "run 2", "run 1"]
    writer.delete(finished(1).experiment.hash)
    assert [run.title for run in reader.runs()] == ["three", "run 2"]
    with pytest.raises(OSError, match="Read-only"):
        reader.rename(finished(2).experiment.hash, "two")
    assert not reader.claim() or reader.checkpoints() is not None
    monkeypatch.undo()
    assert len(reader.runs()) == 2
    assert reader.notice == ""


def test_a_home_that_was_emptied_is_used_again(home: Path) -> None:
    store, e = Store(home), experiment(seed=5)
    assert store.claim()
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert store.runs() == []
    assert store.checkpoints() == []
    assert store.claim()
    assert (home / "server.lock").exists()
    store.keep_checkpoint(e.hash, e, b"state")
    assert store.checkpoint_files.state(e.hash) == b"state"
    run = put(store, finished(1))
    store.rename(run, "again")
    store.evict(run)
    assert [listed.title for listed in store.runs()] == ["again"]
    assert store.check() == []
    assert Store(home).runs() == store.runs()


@pytest.mark.slow
@pytest.mark.parametrize("when", [1e11, 1e15, 1e300, -5.0])
def test_a_run_of_a_wrong_clock_is_listed(
    when: float, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bandits.cli.main import main

    store = Store(home)
    monkeypatch.setattr("bandits.storage.run_store.time.time", lambda: when)
    run = put(store, finished(3))
    monkeypatch.undo()
    monkeypatch.setenv("BANDITS_HOME", str(home))
    store.rename(run, "of a wrong clock")
    assert [listed.created for listed in store.runs() if listed.id == run] == [
        min(max(when, 0.0), LAST_TIME)
    ]
    assert main(["runs"]) == 0
    assert main(["runs", "--json"]) == 0
    assert capsys.readouterr().out.count("of a wrong clock") == 2
