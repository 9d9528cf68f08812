"""The package as it is installed from its wheel: the app and exported scripts, from any folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from bandits import run
from bandits.results.export import script
from tests.browser.conftest import ROOT, App
from tests.support import copy_sources, experiment

expect.set_options(timeout=240_000)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel, and the other packages of this one."""
    folder = tmp_path_factory.mktemp("installed")
    source, wheels = folder / "source", folder / "wheels"
    source.mkdir()
    copy_sources(source)
    offline = ["--no-deps", "--no-index", "--quiet"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", *offline, "--no-build-isolation", "-w", str(wheels), str(source)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = wheels.glob("*.whl")
    shutil.rmtree(source)
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", *offline, str(wheel)], check=True)
    (site,) = (folder / "venv" / "lib").glob("python3*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    keep_compiled(site)
    return folder / "venv" / "bin"


def keep_compiled(site: Path) -> None:
    """Keep the kernels that set-up has compiled: numba compiles a file of another time again."""
    for compiled in (ROOT / "bandits").rglob("*.nb[ic]"):
        target = site / compiled.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(compiled, target)
        source = compiled.parent.parent / f"{compiled.name.split('.')[0]}.py"
        if source.is_file():
            shutil.copystat(source, site / source.relative_to(ROOT))


def test_the_app_starts_from_any_folder(installed: Path, tmp_path: Path, browser: Browser) -> None:
    app = App(tmp_path, command=[str(installed / "bandits"), "app"])
    try:
        app.ready()
        page = browser.new_page()
        page.goto(app.address)
        expect(page.get_by_role("heading", name="Bandit Playground")).to_be_visible()
        # the first run has begun
        expect(page.get_by_text("LinUCB").first).to_be_visible()
        page.goto(f"{app.address}/learn?view=glossary")
        expect(page.get_by_role("heading", name="Glossary")).to_be_visible()
        page.close()
        assert not app.failures()
    finally:
        app.close()


def test_an_exported_script_runs_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    # a data set that the package contains
    data = {"kind": "classification", "data": "magic"}
    e = experiment("linucb", "random", simulator=data, steps=300)
    (folder / "run.py").write_text(script(e), encoding="utf-8")
    done = subprocess.run(
        [str(installed / "python"), "run.py"],
        cwd=folder,
        env={**os.environ, "BANDITS_HOME": str(tmp_path / "home")},
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


@pytest.mark.parametrize(
    ("module", "agents", "simulator", "sentence"),
    [
        ("torch", "neural_greedy", "petshop", "neural agents need PyTorch"),
        ("faiss", "linucb", "ranking", "two-stage retrieval needs faiss"),
    ],
)
def test_a_missing_extra_is_named(
    installed: Path, tmp_path: Path, module: str, agents: str, simulator: str, sentence: str
) -> None:
    options = {"retrieval": "nearest"} if simulator == "ranking" else {}
    world, agent = {"kind": simulator, **options}, {"kind": agents}
    if simulator == "ranking":
        agent["sharing"] = "shared"
    code = (
        "from bandits import Experiment, UserError, run\n"
        "alone = Experiment(agents=[{'kind': 'linucb'}, {'kind': 'ucb1'}], steps=200, "
        "replications=2)\n"
        "print(len(run(alone, progress=False, workers=0).ctr))\n"
        f"needs = Experiment(simulator={world!r}, agents=[{agent!r}], steps=20, replications=2)\n"
        "try:\n    run(needs, progress=False, workers=0)\n"
        "except UserError as error:\n    print(error)\n"
    )
    (tmp_path / f"{module}.py").write_text("raise ImportError('not here')", encoding="utf-8")
    environment = {**os.environ, "BANDITS_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [str(installed / "python"), "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    two, refused = done.stdout.splitlines()
    assert two == "2"
    assert refused.startswith(f"{sentence}, which is not installed: pip install ")
