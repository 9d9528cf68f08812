"""Serve the bundle of Plotly from the installed package."""

from __future__ import annotations

from importlib import metadata, resources
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route

_BUNDLE = Path(str(resources.files("plotly") / "package_data" / "plotly.min.js"))
_PATH = "vendor/plotly.min.js"

SOURCE = f"{_PATH}?v={metadata.version('plotly')}"
"""Its address below the app's root; another version has another address, so browsers may keep it."""


async def _serve(request: Request) -> FileResponse:  # noqa: ARG001
    return FileResponse(_BUNDLE, headers={"Cache-Control": "public, max-age=31536000, immutable"})


# Streamlit puts `server.baseUrlPath` before its own routes only, and some proxies remove it: any prefix matches.
route = Route(f"/{{prefix:path}}{_PATH}", _serve)
