"""Documents are correct: examples run as written; links, commands and files exist."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bandits import read, sweeps
from bandits.agents import REGISTRY as AGENTS
from bandits.lessons import lessons
from bandits.simulators import REGISTRY as SIMULATORS
from docs import make_site

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "tests/*.md", "bandits/**/*.md")
    for path in ROOT.glob(pattern)
)


def blocks(document: str, language: str) -> list[str]:
    """Return the code blocks of one language, in order."""
    return re.findall(
        rf"```{language}\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL
    )


def python(
    folder: Path, *arguments: str, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the project and apply the examples of CONTRIBUTING.md."""
    folder = tmp_path_factory.mktemp("extended")
    # with compiled caches, so that nothing is compiled again
    shutil.copytree(ROOT / "bandits", folder / "bandits")
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


def test_the_new_agent_and_simulator_run_from_the_command_line(extended: Path) -> None:
    experiment = {
        "simulator": {"kind": "headlines"},
        "agents": [
            {"kind": "explore_first", "explore": 200},
            {"kind": "random"},
            {"kind": "linucb"},
        ],
        "steps": 1000,
        "replications": 4,
    }
    done = python(extended, "-m", "bandits", "run", "-", text=json.dumps(experiment))
    assert done.returncode == 0, done.stderr
    rates = {
        line.split("  ")[0]: float(line.split("ctr ")[1].split()[0])
        for line in done.stdout.splitlines()
    }
    assert rates["Explore first"] > rates["Random"]


def test_the_new_agent_and_simulator_pass_the_contract(extended: Path) -> None:
    new = "explore_first or (headlines and linucb) or (test_simulators and headlines)"
    done = python(extended, "-m", "pytest", "tests/contract", "-m", "not slow", "-k", new)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_plug_in_passes_the_contract_and_runs(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(blocks("CONTRIBUTING.md", "python")[4], encoding="utf-8")
    (tmp_path / "bandits").symlink_to(ROOT / "bandits")
    done = python(tmp_path, "-m", "bandits", "check", "my_agent.py")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert re.fullmatch(r"all \d+ checks passed\n", done.stdout)
    experiment = {
        "agents": [{"kind": "boltzmann", "temperature": 0.05}, {"kind": "random"}],
        "steps": 1000,
    }
    for plugins, status in (("my_agent.py", 0), ("", 2)):
        done = python(
            tmp_path,
            "-m",
            "bandits",
            "run",
            "-",
            text=json.dumps(experiment),
            BANDITS_PLUGINS=plugins,
        )
        assert done.returncode == status, done.stderr
    (points,) = blocks("CONTRIBUTING.md", "toml")
    assert tomllib.loads(points)["project"]["entry-points"]["bandits.agents"] == {
        "boltzmann": "my_package.my_agent:Boltzmann"
    }


def test_the_examples_are_short() -> None:
    agent, _, simulator, _, plugin = (
        len(code.splitlines()) for code in blocks("CONTRIBUTING.md", "python")
    )
    assert agent < 60
    assert plugin < 60
    assert simulator < 45


@pytest.mark.quick
def test_every_line_of_python_in_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Examples and the calls of the table, in order; on a tenth of the steps."""
    script, imports = (text.replace("5_000", "500") for text in blocks("README.md", "python"))
    assert len(script.strip().splitlines()) <= 10
    names: dict[str, object] = {}
    exec(script, names)
    assert len(capsys.readouterr().out.splitlines()) == 4
    exec(imports, names)
    section = (ROOT / "README.md").read_text(encoding="utf-8").split(imports)[1].split("\n## ")[0]
    calls = [
        call
        for row in re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
        for call in re.findall("`(.*?)`", row)
    ]
    assert len(calls) > 10
    for call in calls:
        exec(f"answer = {call.replace('3_000', '300')}", names)
        answer = names["answer"]
        assert (next(answer) if isinstance(answer, Iterator) else answer) is not None, call


def test_the_json_files_of_the_command_line_are_valid() -> None:
    experiment, sweep = blocks("docs/cli.md", "json")
    assert read(experiment).simulator.kind == "petshop"
    assert len(sweeps.read(sweep).axes) == 1


def test_documents_name_every_kind_requirement_and_package() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for kind in (*AGENTS, *SIMULATORS):
        assert f"`{kind}`" in readme, (
            "regenerate the tables: python -m bandits.cli.catalogue --write README.md"
        )
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").split():
        assert line.split("==")[0] in architecture
    for package in (ROOT / "bandits").glob("*/__init__.py"):
        assert f"| `bandits/{package.parent.name}` |" in architecture, package.parent.name
    assert len(architecture.split()) < 2000


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_between_documents_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for link, heading in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
        target = (ROOT / document).parent / link if link else ROOT / document
        assert target.exists(), f"{document} links to {link}, which does not exist"
        assert not heading or heading in anchors(target), (
            f"{document} links to {link}#{heading}, which does not exist"
        )


def anchors(document: Path) -> set[str]:
    """Return the addresses inside a Markdown file: headings and named anchors."""
    text = document.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    named = re.findall(r'<a id="(.*?)">', text)
    return {
        *named,
        *(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings),
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_modules_in_the_commands_of_documents_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for module in set(re.findall(r"python -m ((?:bandits|benchmarks|tests)[\w.]*\w)", text)):
        path = ROOT / module.replace(".", "/")
        exists = path.with_suffix(".py").exists() or (path / "__main__.py").exists()
        assert exists, f"{document} names the command python -m {module}, which does not exist"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_documents_name_exist(document: str) -> None:
    """Paths in backquotes below a folder of this repository, except those that CONTRIBUTING tells
    to create.
    """
    folders = "|".join(("bandits", "benchmarks", "docs", "pages", "tests", "bandits_app"))
    text = (ROOT / document).read_text(encoding="utf-8")
    for path in set(re.findall(rf"`((?:{folders})/[\w./-]*)`", text)):
        invented = document == "CONTRIBUTING.md" and f"\n`{path}`:\n" in text
        assert invented or (ROOT / path).exists(), f"{document} names {path}, which does not exist"


def test_the_site_has_a_page_for_each_lesson_agent_and_package() -> None:
    documents = make_site.linked("README.md")
    assert {*make_site.GUIDE, "docs/decisions/runs.md"} <= set(documents)
    made = dict(make_site.pages())
    assert len([name for name in made if name.startswith("lessons/")]) == len(lessons())
    assert all(f"{{#{kind}}}" in made["reference/agents.md"] for kind in AGENTS)
    assert all(f"reference/{name}.md" in made for name in make_site.PACKAGES)
    assert "::: bandits.policy.policy.Policy" in made["reference/policy.md"]
    assert not [name for name, text in made.items() if "{{" in text]


def test_the_changelog_is_short() -> None:
    """One page for a version; an entry has at most three lines."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings
    assert len(text.splitlines()) <= 65 * len(headings)
    for heading in headings:
        assert re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading), heading
    for entry in re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE):
        assert entry.count("\n") < 3, entry
