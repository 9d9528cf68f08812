"""Addresses of views lead to their pages, which have their headings."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.applications import Starlette
from starlette.types import Message

from bandits.runtime.pool import Pool
from bandits_app.server.addresses import VIEWS, routes
from tests.pages.support import open_page

# written out: links in use must not follow a change of the table
ADDRESSES = {
    "which": ("./?view=which", "Which should I use?"),
    "diagnostics": ("./arena?view=diagnostics", "Diagnostics"),
    "shock_lab": ("./labs?view=change", "Shock lab"),
    "guard_rails": ("./labs?view=guards", "Guard rails"),
    "new_items": ("./labs?view=new_items", "New items"),
    "artwork": ("./labs?view=artwork", "Artwork"),
    "visit": ("./labs?view=visit", "One visit"),
    "cost": ("./labs?view=cost", "Cost of confidence"),
    "production": ("./labs?view=production", "Production"),
    "what_if": ("./data?view=what_if", "What if?"),
    "lessons": ("./learn?view=lessons", "Lessons"),
    "glossary": ("./learn?view=glossary", "Glossary"),
}


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
        *((f"/{name}", "", target) for name, (target, _) in ADDRESSES.items()),
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


def test_every_address_is_promised() -> None:
    assert set(VIEWS) == set(ADDRESSES)


@pytest.mark.parametrize(("target", "heading"), ADDRESSES.values())
def test_a_view_has_its_heading(pool: Pool, target: str, heading: str) -> None:
    page, _, view = target.removeprefix("./").partition("?view=")
    at = open_page(f"{page or 'home'}/{view}")
    assert not at.exception
    assert at.title[0].value == heading
