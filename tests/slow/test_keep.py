"""``run --keep`` beside the app: equal files, and disks that are full or cannot be written."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import run
from bandits.base.files import unpack
from bandits.cli import main as cli
from bandits.runtime.pool import Pool
from bandits.storage import reserve
from bandits.storage.run_store import Store
from tests.cli.test_keep import file_of
from tests.storage.test_unwritable import UNPRIVILEGED, command
from tests.support import experiment, same, wait_for

AGENTS = ("linucb", "lints", {"kind": "static_mlp", "interactions": 1000, "epochs": 1}, "random")
# Nothing can be written to a file, as on a full disk, while a result is stored.
FULL_STORE = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from bandits.cli.main import main
from bandits.storage.run_store import Store
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
put = Store.put
def put_on_a_full_disk(*arguments):
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        put(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
Store.put = put_on_a_full_disk
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a home folder that does not exist yet."""
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def stored_arrays(folder: Path) -> dict[str, Any]:
    """Return the arrays of the only object file, without the times that it took, and its row of the
    index.
    """
    (path,) = (folder / "objects").glob("*/*")
    arrays = unpack(path.read_bytes())
    about = json.loads(arrays.pop("about").tobytes())
    assert about.pop("created") > 0
    assert about.pop("seconds") > 0
    return {"about": about, **{k: v for k, v in arrays.items() if not k.endswith("seconds")}}


def equal(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert a.keys() == b.keys()
    for name, value in a.items():
        if isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (b[name].dtype, b[name].shape), name
        np.testing.assert_array_equal(value, b[name], err_msg=name)


def without_times(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if not name.endswith("seconds")}


def test_the_files_equal_those_of_the_app(folder: Path, tmp_path: Path) -> None:
    """The app also extends the run from its checkpoint, to the same bits."""
    e = experiment(*AGENTS)
    assert cli.main(["run", file_of(tmp_path, *AGENTS), "--keep"]) == 0
    app, own = Store(tmp_path / "app"), Store(folder)
    with closing(Pool(1, app)) as pool:
        job = pool.submit(e)
        wait_for(lambda: not job.active, "the run of the app")
        assert job.status == "finished", job.error
    rows = [
        [r._replace(created=0, seconds=0, bytes=0) for r in store.runs()] for store in (own, app)
    ]
    assert rows[0] == rows[1]
    assert [r.id for r in rows[0]] == [e.hash]
    equal(stored_arrays(folder), stored_arrays(tmp_path / "app"))
    equal(
        without_times(own.checkpoint_arrays(e.hash)), without_times(app.checkpoint_arrays(e.hash))
    )
    assert own.checkpoints() == app.checkpoints() == []
    assert not (folder / "owners").exists()
    with closing(Pool(1, own)) as pool:
        known = pool.get(e.hash)
        assert known is not None
        longer = pool.extend(known, 600)
        wait_for(lambda: not longer.active, "the extended run")
        assert longer.status == "finished", longer.error
    for label, history in run(longer.experiment).histories.items():
        same(longer.histories[label], history)


def test_read_only_and_full_disks_are_stated_in_one_sentence(folder: Path, tmp_path: Path) -> None:
    run_id, out = experiment().hash[:12], tmp_path / "out"
    arguments = ("run", file_of(tmp_path), "--keep")
    Store()
    assert (folder / "reserve").stat().st_size == reserve.BYTES
    full = command(FULL_STORE, folder, *arguments, "--out", str(out))
    assert full.returncode == 1
    assert full.stdout.startswith("LinUCB")
    assert full.stderr == f"error: run {run_id} could not be stored: File too large\n"
    assert (out / "curves.parquet").is_file()
    assert Store().runs() == []
    assert list((folder / "staged").iterdir()) == []
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        refused = command(UNPRIVILEGED, folder, *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith("error: the stored runs can be read but not changed: ")
        assert refused.stderr.count("\n") == 1
        written = command(UNPRIVILEGED, folder, *arguments, "--out", str(tmp_path / "second"))
        assert (written.returncode, written.stdout) == (1, full.stdout)
        assert written.stderr.startswith(
            f"error: run {run_id} could not be stored: the stored runs can be read but "
        )
        assert written.stderr.count("\n") == 1
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
    names = {path.name for path in out.iterdir()}
    assert names == {path.name for path in (tmp_path / "second").iterdir()}
    assert (out / "summary.json").read_bytes() == (
        tmp_path / "second" / "summary.json"
    ).read_bytes()
