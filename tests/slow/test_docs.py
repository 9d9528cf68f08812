"""The documents keep their word: examples are followed to the letter."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bandits import read
from bandits.agents import REGISTRY as AGENTS
from bandits.simulators import REGISTRY as SIMULATORS

ROOT = Path(__file__).parents[2]


def blocks(document: str, language: str) -> list[str]:
    """Code blocks of one language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL)


def python(folder: Path, *arguments: str, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which CONTRIBUTING.md has been followed."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "bandits", folder / "bandits")  # with what is compiled: nothing is compiled again
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = re.findall(r"^`(bandits/[\w/]+\.py)`:$", guide, re.MULTILINE)
    code = blocks("CONTRIBUTING.md", "python")
    assert len(files) == 2
    assert len(code) == 5
    for path, body, line in zip(files, code[:4:2], code[1:4:2], strict=True):
        (folder / path).write_text(body, encoding="utf-8")
        init = folder / Path(*Path(path).parts[:2]) / "__init__.py"
        text = init.read_text(encoding="utf-8")
        init.write_text(text.replace("    __name__,\n", f"    __name__,\n{line}"), encoding="utf-8")
    return folder


def test_the_new_agent_and_world_run_from_the_command_line(extended: Path) -> None:
    experiment = {
        "simulator": {"kind": "headlines"},
        "agents": [{"kind": "explore_first", "explore": 200}, {"kind": "random"}, {"kind": "linucb"}],
        "steps": 1000,
        "replications": 4,
    }
    done = python(extended, "-m", "bandits", "run", "-", text=json.dumps(experiment))
    assert done.returncode == 0, done.stderr
    rates = {line.split("  ")[0]: float(line.split("ctr ")[1].split()[0]) for line in done.stdout.splitlines()}
    assert rates["Explore first"] > rates["Random"]


def test_the_new_agent_and_world_pass_the_contract(extended: Path) -> None:
    new = "explore_first or (headlines and linucb) or (test_simulators and headlines)"
    done = python(extended, "-m", "pytest", "tests/contract", "-k", new, "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_plug_in_passes_the_contract_and_runs(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(blocks("CONTRIBUTING.md", "python")[4], encoding="utf-8")
    (tmp_path / "bandits").symlink_to(ROOT / "bandits")
    done = python(tmp_path, "-m", "bandits", "check", "my_agent.py")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert re.fullmatch(r"all \d+ checks passed\n", done.stdout)
    experiment = {"agents": [{"kind": "softmax", "temperature": 0.05}, {"kind": "random"}], "steps": 1000}
    for plugins, status in (("my_agent.py", 0), ("", 2)):
        done = python(tmp_path, "-m", "bandits", "run", "-", text=json.dumps(experiment), BANDITS_PLUGINS=plugins)
        assert done.returncode == status, done.stderr
    (points,) = blocks("CONTRIBUTING.md", "toml")
    assert tomllib.loads(points)["project"]["entry-points"]["bandits.agents"] == {
        "softmax": "my_package.my_agent:Softmax"
    }


def test_readme_python_and_json_run(tmp_path: Path) -> None:
    (script,) = blocks("README.md", "python")
    assert len(script.strip().splitlines()) <= 10
    (tmp_path / "script.py").write_text(script.replace("5_000", "500"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4
    (text,) = blocks("README.md", "json")
    assert read(text).simulator.kind == "petshop"


def test_documents_name_every_kind_dependency_and_file() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for kind in (*AGENTS, *SIMULATORS):
        assert f"`{kind}`" in readme
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").split():
        assert line.split("==")[0] in architecture
    for path in (ROOT / "bandits").rglob("*.py"):
        assert path.stem.startswith("__") or path.stem in architecture, path.name
    for document in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for link in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / document).read_text(encoding="utf-8")):
            assert (ROOT / link).exists(), f"{document} links to {link}, which is not there"
