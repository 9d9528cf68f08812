"""The exported script, with the package installed, in a folder that is otherwise empty."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bandits import run
from bandits.results.export import script
from tests.support import copy_sources, experiment


def test_the_script_runs_in_an_empty_folder_with_the_package_installed(tmp_path: Path) -> None:
    source, site, folder = tmp_path / "source", tmp_path / "site", tmp_path / "empty"
    source.mkdir()
    copy_sources(source)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    done = subprocess.run(
        [*pip, "--target", str(site), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    folder.mkdir()
    # a data set that the package contains
    data = {"kind": "classification", "data": "magic"}
    e = experiment("linucb", "random", simulator=data, steps=300)
    (folder / "run.py").write_text(script(e), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(site), "BANDITS_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split(" {")[0] for line in done.stdout.splitlines()] == list(e.labels)
    run(e).save(tmp_path / "direct")
    for name in ("summary.json", "experiment.json", "curves.parquet"):
        assert (folder / "results" / name).read_bytes() == (tmp_path / "direct" / name).read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["results", "run.py"]
