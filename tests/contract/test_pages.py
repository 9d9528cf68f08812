"""The layout of pages/: short scripts without mathematics, routed by pages/main.py."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", sorted((ROOT / "pages").glob("*.py")), ids=lambda p: p.name)
def test_pages_are_short_and_contain_no_mathematics(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert not imported & {
        "numpy",
        "pandas",
        "scipy",
        "sklearn",
        "torch",
        "numba",
        "math",
        "plotly",
    }
    if page.name != "main.py":
        assert f'st.Page("{page.name}"' in (ROOT / "pages" / "main.py").read_text(encoding="utf-8")


def test_the_package_does_not_import_streamlit_or_the_app() -> None:
    for path in (ROOT / "bandits").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += (
                [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            )
            assert not {n.split(".")[0] for n in names} & {"streamlit", "bandits_app", "pages"}, (
                path
            )
