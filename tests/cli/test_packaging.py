"""The package's metadata: one version, ranges that hold the locked versions, types, the console
script.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bandits
from bandits.cli import main as cli

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked(file: str) -> dict[str, str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def test_every_locked_version_is_within_the_range_of_the_package() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    for file, texts in (
        (
            "requirements.txt",
            [*PROJECT["project"]["dependencies"], *extras["app"], *extras["serve"]],
        ),
        ("requirements-cluster.txt", extras["cluster"]),
        ("requirements-optuna.txt", extras["optuna"]),
        ("requirements-dev.txt", [*extras["gym"], *extras["redis"]]),
    ):
        versions = locked(file)
        ranges = {Requirement(text).name: Requirement(text).specifier for text in texts}
        # tests need other packages too
        assert set(ranges) <= set(versions) if "dev" in file else set(ranges) == set(versions)
        for name, specifier in ranges.items():
            assert specifier.contains(versions[name]), (
                f"{name} {versions[name]} is not in {specifier}"
            )


def test_the_container_installs_the_same_versions_by_hash() -> None:
    # one requirement, and each of its archives, a line
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    assert all(hashes for _, *hashes in lines)
    assert all(each.startswith("--hash=sha256:") for _, *hashes in lines for each in hashes)
    versions = dict(requirement.split("==") for requirement, *_ in lines)
    expected = {
        canonicalize_name(name): version for name, version in locked("requirements.txt").items()
    }
    # its CPU build comes from an index of its own
    del expected["torch"]
    assert {name: versions.get(name) for name in expected} == expected


def test_the_version_is_stated_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "bandits.__version__"}
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"{bandits.__version__}\n"


def test_types_are_declared_and_the_console_script_exists() -> None:
    assert (ROOT / "bandits" / "py.typed").is_file()
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"]["bandits"]
    module, name = PROJECT["project"]["scripts"]["bandits"].split(":")
    assert getattr(import_module(module), name) is cli.main


def test_the_app_is_started_from_a_checkout_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: started.append(command))
    monkeypatch.chdir(tmp_path)
    cli.main(["app", "--port", "8600"])
    assert started == [
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", "8600"]
    ]
    assert Path.cwd() == ROOT
    monkeypatch.setattr(
        cli, "__file__", str(tmp_path / "site-packages" / "bandits" / "cli" / "main.py")
    )
    assert cli.main(["app"]) == 2
    monkeypatch.setattr(cli.sysconfig, "get_path", lambda _: str(tmp_path / "prefix"))
    assert "error: the app is not installed here: " in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_runs_as_a_module_and_as_a_script(tmp_path: Path) -> None:
    script = tmp_path / "bandits"
    script.write_text(
        "import sys\nfrom bandits.cli.main import main\nsys.exit(main())\n", encoding="utf-8"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for command, name in (([str(script)], "bandits"), (["-m", "bandits"], "python -m bandits")):
        done = subprocess.run(
            [sys.executable, *command, "--help"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(f"usage: {name} ")
