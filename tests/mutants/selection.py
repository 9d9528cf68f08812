"""Select the quick tests that can notice a fault in a file, by static imports."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

# folders without quick tests of the package, or whose tests would read every file
LEFT_OUT = ("slow", "browser", "benchmarks", "mutants")


def quick_tests(path: str, root: Path) -> list[str]:
    """List test files: first those that import the module, then the others of the folder of its
    package.
    """
    parts = Path(path).with_suffix("").parts
    module = ".".join(part for part in parts if part != "__init__")
    folder = root / "tests" / ("pages" if parts[0] == "bandits_app" else parts[1])
    files = [
        file
        for file in sorted((root / "tests").rglob("test_*.py"))
        if file.relative_to(root / "tests").parts[0] not in LEFT_OUT
    ]
    # a package may pass on the names of its modules
    homes = {module, module.rpartition(".")[0]} - {"bandits", "bandits_app"}
    importing = [file for file in files if homes & _imports(file)]
    of_package = [file for file in files if folder in file.parents]
    return [str(file.relative_to(root)) for file in dict.fromkeys([*importing, *of_package])]


@cache
def _imports(file: Path) -> frozenset[str]:
    """Return the modules that a file imports, also as a name of their package."""
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return frozenset(found)
