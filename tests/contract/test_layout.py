"""The layout of the package: imports follow the order of packages.

Private names stay in their package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import bandits

SOURCE = Path(bandits.__file__).parent
ROOT = SOURCE.parent
FILES = sorted(SOURCE.rglob("*.py"))
APP_FILES = sorted((ROOT / "bandits_app").rglob("*.py"))
ORDER = (
    "base",
    "tables",
    "models",
    "simulators",
    "agents",
    "experiments",
    "contract",
    "results",
    "storage",
    "runtime",
    "policy",
    "gym",
    "diagnostics",
    "monitoring",
    "offpolicy",
    "serving",
    "width_cost",
    "sweeps",
    "lessons",
    "advice",
    "cli",
)
APART = {
    ("simulators", "agents"),
    ("agents", "simulators"),
    ("width_cost", "diagnostics"),
    ("width_cost", "monitoring"),
    ("monitoring", "diagnostics"),
    ("offpolicy", "diagnostics"),
    ("offpolicy", "monitoring"),
    ("width_cost", "offpolicy"),
}

APP_ORDER = (
    *("widgets", "glossary", "server", "session", "run_view"),
    *("sweep", "runs", "data", "arena", "labs", "home", "learn", "shell"),
)
# Folders of pages may import nothing of each other, but for these.
DECLARED = {
    ("runs", "sweep"),
    ("data", "runs"),
    ("arena", "data"),
}


class Import(NamedTuple):
    """One imported name: its dotted path from the root, and the line."""

    path: str
    line: int


def package_of(file: Path) -> str:
    """The package of a file below bandits/, or folder below bandits_app/.

    The name of a file at its top.
    """
    return file.relative_to(ROOT).parts[1].removesuffix(".py")


@cache
def imports(file: Path) -> tuple[Import, ...]:
    """Every name that a file imports, at its top or inside a function."""
    return tuple(_imports(file))


def _imports(file: Path) -> Iterator[Import]:
    package = [*file.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = [*start, *(node.module or "").split(".")] if node.module else start
            yield from (Import(".".join([*base, name.name]), node.lineno) for name in node.names)


def test_imports_follow_the_order_of_packages() -> None:
    assert [wrong for file in FILES for wrong in out_of_order(file)] == []


def out_of_order(file: Path) -> Iterator[str]:
    """Describe the imports of a file that its package may not have."""
    package = package_of(file)
    for path, line in imports(file):
        top = path.split(".")
        if top[0] in ("streamlit", "bandits_app", "pages", "tests", "benchmarks"):
            yield f"{file}:{line} imports {path}"
        if package not in ORDER or top[0] != "bandits" or top[1] in (package, "__version__"):
            continue
        if top[1] not in ORDER:
            yield f"{file}:{line} imports {path}, which is above all packages"
        elif ORDER.index(top[1]) >= ORDER.index(package):
            yield f"{file}:{line} imports {path} upwards"
        elif (package, top[1]) in APART:
            yield f"{file}:{line}: {package} may not import {top[1]}"


def test_imports_follow_the_order_of_folders_of_the_app() -> None:
    assert [wrong for file in APP_FILES for wrong in out_of_order_in_the_app(file)] == []


def out_of_order_in_the_app(file: Path) -> Iterator[str]:
    """Describe the imports of a file that its folder may not have."""
    folder = package_of(file)
    floor = APP_ORDER.index("run_view")
    for path, line in imports(file):
        top = path.split(".")
        if top[0] in ("app", "pages", "tests", "benchmarks"):
            yield f"{file}:{line} imports {path}"
        if top[0] != "bandits_app" or top[1] == folder:
            continue
        if APP_ORDER.index(top[1]) >= APP_ORDER.index(folder):
            yield f"{file}:{line} imports {path} upwards"
        elif APP_ORDER.index(top[1]) > floor and (folder, top[1]) not in DECLARED:
            yield f"{file}:{line}: {folder} may not import {top[1]}"


def test_every_folder_of_the_app_has_its_place() -> None:
    assert {package_of(file) for file in APP_FILES} == {*APP_ORDER, "__init__"}


def test_private_names_stay_in_their_package() -> None:
    wrong = []
    for file in (*FILES, *APP_FILES):
        for path, line in imports(file):
            parts = path.split(".")
            if (
                parts[0] in ("bandits", "bandits_app")
                and len(parts) > 1
                and parts[:2] != [*file.relative_to(ROOT).parts[:1], package_of(file)]
            ):
                private = any(part.startswith("_") and not part.startswith("__") for part in parts)
                wrong += [f"{file}:{line} imports the private name {path}"] if private else []
    assert wrong == []


def test_every_file_is_in_a_package() -> None:
    folders = {folder.name for folder in SOURCE.iterdir() if any(folder.rglob("*.py"))}
    assert folders == set(ORDER)
    assert {file.name for file in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_a_lane_is_constructed_in_one_place() -> None:
    files = [*FILES, *sorted((SOURCE.parent / "bandits_app").rglob("*.py"))]
    calls = {file.name: re.findall(r"\bLane\(", file.read_text(encoding="utf-8")) for file in files}
    assert {name: len(found) for name, found in calls.items() if found} == {"lane.py": 1}


@pytest.mark.parametrize("files", [FILES, APP_FILES], ids=["bandits", "bandits_app"])
def test_there_are_no_cycles_between_modules(files: list[Path]) -> None:
    modules = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in files}
    modules = {name.removesuffix(".__init__"): file for name, file in modules.items()}
    arrows: dict[str, set[str]] = {}
    for name, file in modules.items():
        imported = {
            path if path in modules else path.rpartition(".")[0] for path, _ in imports(file)
        }
        arrows[name] = {
            other
            for other in imported
            if other in modules and other != name and not name.startswith(f"{other}.")
        }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"a cycle: {' -> '.join((*path[path.index(name) :], name))}"
        if name not in done:
            for other in sorted(arrows[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in sorted(arrows):
        visit(name, ())


def test_make_stress_runs_what_it_repeats_more_often() -> None:
    makefile = (ROOT / "Makefile").read_text()
    files = [
        p for p in (ROOT / "tests").rglob("test_*.py") if re.search(r"\boften\(", p.read_text())
    ]
    assert len(files) > 20
    names = {path.relative_to(ROOT).as_posix() for path in files}
    assert {name for name in names if name not in makefile} == set()
