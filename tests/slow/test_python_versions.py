"""Each Python version that the metadata states compiles all sources without a warning.

`make versions` runs the tests of the core with each of them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

COMPILE = """
import pathlib, sys
for name in sys.stdin.read().split():
    compile(pathlib.Path(name).read_text("utf-8"), name, "exec")
"""


def interpreters() -> dict[str, str]:
    """Return those of the other stated versions that are on this machine, by version."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stated = re.findall(r"Python :: (3\.\d+)", " ".join(metadata["classifiers"]))
    assert metadata["requires-python"] == f">={stated[0]},<3.{int(stated[-1][2:]) + 1}"
    found, own = {}, f"3.{sys.version_info.minor}"
    assert own in stated
    for version in stated:
        installed = (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")
        path = next(map(str, installed), None) or shutil.which(f"python{version}")
        # pyenv puts scripts on the path that stand for a version which is not active
        if path is not None and subprocess.run([path, "-V"], capture_output=True).returncode:
            path = None
        if path is not None and version != own:
            found[version] = path
    return found


def test_each_version_compiles_the_sources() -> None:
    files = [
        str(file)
        for folder in ("bandits", "bandits_app", "pages")
        for file in (ROOT / folder).rglob("*.py")
    ]
    for python in interpreters().values():
        done = subprocess.run(
            [python, "-W", "error", "-c", COMPILE],
            input="\n".join([*files, str(ROOT / "app.py")]),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
