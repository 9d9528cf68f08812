"""Addresses of views lead to their pages."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.applications import Starlette
from starlette.types import Message

from bandits_app.server.addresses import VIEWS, routes
from tests.pages.support import ROOT


def location(path: str, query: str = "") -> str:
    """Return where the server leads a browser that asks for an address."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [],
    }
    scope |= {"scheme": "http", "server": ("127.0.0.1", 8501), "root_path": ""}
    # a browser test of this process may have left an event loop in this one
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, Starlette(routes=routes)(scope, receive, send)).result()
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}["location"]


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        *((f"/{name}", "", f"./{page}?view={view}") for name, (page, view) in VIEWS.items()),
        (
            "/behind/a/proxy/guard_rails",
            "seed=93&agents=linucb",
            "./labs?seed=93&agents=linucb&view=guards",
        ),
    ],
)
def test_an_address_of_a_view_leads_to_its_page_and_keeps_its_fields(
    path: str, query: str, expected: str
) -> None:
    assert location(path, query) == expected


def test_every_view_is_on_a_page() -> None:
    assert all((ROOT / "pages" / f"{page or 'home'}.py").is_file() for page, _ in VIEWS.values())
