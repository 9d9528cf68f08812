"""What MkDocs does with each page of the site: docstrings have reStructuredText's footnotes."""

from __future__ import annotations

import re
from typing import Any


def on_page_content(html: str, **_: Any) -> str:
    """Write ``[1]_`` and ``.. [1]`` as [1]."""
    return re.sub(r"\.\. (\[\d+\])", r"<br>\1", re.sub(r"(\[\d+\])_", r"\1", html))
