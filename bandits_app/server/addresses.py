"""Addresses of views: each leads to its page, with the fields and the anchor of the address."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

# The page of each view, and its name there.
VIEWS = {
    "which": ("", "which"),
    "diagnostics": ("arena", "diagnostics"),
    "shock_lab": ("labs", "change"),
    "guard_rails": ("labs", "guards"),
    "new_items": ("labs", "new_items"),
    "artwork": ("labs", "artwork"),
    "cost": ("labs", "cost"),
    "visit": ("labs", "visit"),
    "production": ("labs", "production"),
    "what_if": ("data", "what_if"),
    "lessons": ("learn", "lessons"),
    "glossary": ("learn", "glossary"),
}


async def _lead(request: Request) -> RedirectResponse:
    """Lead a browser on, which keeps the anchor.

    The answer is relative, as a proxy may have removed a prefix.
    """
    page, view = VIEWS[request.url.path.rpartition("/")[2]]
    return RedirectResponse(f"./{page}?{request.url.query}&view={view}".replace("?&", "?"))


routes = [
    Route(f"{prefix}/{address}", _lead) for address in VIEWS for prefix in ("", "/{prefix:path}")
]
