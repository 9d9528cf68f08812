"""The example notebook: valid, small, and its stored outputs are what its code prints today."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_the_notebook_reproduces_its_stored_outputs() -> None:
    command = [sys.executable, "-m", "docs.make_notebook", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_notebook_is_valid_and_small() -> None:
    assert NOTEBOOK.stat().st_size < 300_000
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (stored["nbformat"], stored["metadata"]["kernelspec"]["language"]) == (4, "python")
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    assert len({cell["id"] for cell in stored["cells"]}) == len(stored["cells"])
