"""The app as the tests of its pages open it: through app.py, in this process."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]

# every visit would read through all installed packages, for longer than a page takes; once will do
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def open_page(page: str = "home", address: Mapping[str, str] | None = None, **state: object) -> AppTest:
    """A new visitor on a page, by a link that says ``address``, in a session that knows ``state``."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).switch_page(f"pages/{page}.py")
    for name, text in (address or {}).items():
        at.query_params[name] = text
    for name, value in state.items():
        at.session_state[name] = value
    return at.run()
