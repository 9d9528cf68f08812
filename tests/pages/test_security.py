"""Hosts, origins and frames: what the server refuses before Streamlit sees a request."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from starlette.types import Message, Receive, Scope, Send
from streamlit import config, net_util

from bandits.base.errors import UserError
from bandits_app.server.security import (
    CONSOLE_HEADER,
    CONSOLE_VARIABLE,
    Guard,
    console_link,
    console_token,
    frame_ancestors,
    is_known_host,
)
from bandits_app.session.owner import owner

HOME = "127.0.0.1:8501"
COOKIE = "bandits-console-8501"


@pytest.fixture(autouse=True)
def options(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The options of the server, as a test sets them.

    A look-up of the external address fails the test.
    """
    found: dict[str, Any] = {
        "server.allowedHosts": [],
        "server.corsAllowedOrigins": [],
        "server.enableCORS": True,
        "server.port": 8501,
        "server.baseUrlPath": "",
    }
    monkeypatch.setattr(config, "get_option", lambda name: found[name])
    monkeypatch.setattr(config, "is_manually_set", lambda name: name in found)
    monkeypatch.setattr(
        net_util, "get_external_ip", lambda: pytest.fail("the external address was looked up")
    )
    return found


def ask(
    kind: str = "http",
    client: str = "127.0.0.1",
    path: str = "/",
    query: str = "",
    **headers: str,
) -> tuple[list[Message], dict[str, str] | None]:
    """Send a request through the guard: its answer, and the headers that reached the app, None if
    it was refused.
    """
    reached: list[dict[str, str]] = []
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append({name.decode(): value.decode() for name, value in scope["headers"]})
        if kind == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"page"})

    async def receive() -> Message:
        return {"type": f"{kind}.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": kind,
        "headers": named,
        "client": (client, 1),
        "path": path,
        "query_string": query.encode(),
        "method": "GET",
    }
    # a browser test of this process may have left an event loop in this one
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, Guard(app)(scope, receive, send)).result()
    return sent, reached[0] if reached else None


def at_console(client: str = "127.0.0.1", **headers: str) -> bool:
    _, reached = ask("websocket", client, **headers)
    assert reached is not None
    return reached.get(CONSOLE_HEADER) == "1"


def test_no_answer_may_be_shown_in_a_frame() -> None:
    for host in (HOME, "evil.example"):  # refusals too
        sent, _ = ask(host=host)
        headers = dict(sent[0]["headers"])
        assert headers[b"content-security-policy"] == b"frame-ancestors 'none'"
        assert headers[b"x-frame-options"] == b"DENY"


@pytest.mark.parametrize(
    "host", [HOME, "localhost:1", "[::1]:8501", "192.168.1.7", socket.gethostname(), "a.localhost"]
)
def test_this_machine_is_known_by_its_names(host: str) -> None:
    assert is_known_host(host)
    assert ask(host=host)[1] is not None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "evil@localhost",
        "localhost/x",
        "localhost:x",
        "[::1",
    ],
)
def test_a_name_that_somebody_points_here_is_refused(host: str | None) -> None:
    assert not is_known_host(host)
    headers = {} if host is None else {"host": host}
    sent, reached = ask(**headers)
    assert (reached, sent[0]["status"]) == (None, 403)
    sent, reached = ask("websocket", **headers)
    assert reached is None
    assert sent[0]["type"] == "websocket.close"


def test_a_public_name_is_stated_in_the_options(options: dict[str, Any]) -> None:
    options["browser.serverAddress"] = "Bandits.example.org"
    assert is_known_host("bandits.example.org")
    assert is_known_host("localhost")
    # then these alone
    options["server.allowedHosts"] = ["*.school.example", "other.example"]
    assert [
        is_known_host(h)
        for h in ("a.school.example:80", "OTHER.example.", "school.example", "localhost")
    ] == [
        True,
        True,
        False,
        False,
    ]
    options["server.allowedHosts"] = ["*"]
    assert is_known_host("anything.example")


def test_a_page_of_another_site_is_refused_without_a_look_up(options: dict[str, Any]) -> None:
    foreign = [
        "http://evil.example",
        "null",
        "http://127.0.0.1:9000",
        "https://evil.example:8501",
        "http://[::1",
    ]
    for origin in foreign:
        assert ask("websocket", host=HOME, origin=origin)[1] is None
        assert ask(host=HOME, origin=origin)[1] is None
    assert ask("websocket", host=HOME, origin=f"http://{HOME}")[1] is not None
    options["server.corsAllowedOrigins"] = ["https://friend.example"]
    options["browser.serverAddress"] = "bandits.example.org"
    for origin in ("https://friend.example", "https://bandits.example.org"):
        assert ask("websocket", host=HOME, origin=origin)[1] is not None
    options["server.enableCORS"] = False
    assert ask("websocket", host=HOME, origin="http://evil.example")[1] is not None


def test_figures_of_the_server_are_for_its_console() -> None:
    for path in ("/_stcore/metrics", "/bandits/_stcore/metrics"):
        assert ask(host=HOME, origin=f"http://{HOME}", path=path)[1] is None
        assert ask(host=HOME, path=path, cookie=f"{COOKIE}={console_token()}")[1] is not None


def test_named_sites_may_show_the_app_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITS_FRAME_ANCESTORS", "https://course.example.org, *.example.com:8080")
    frame_ancestors.cache_clear()
    try:
        headers = dict(ask(host=HOME)[0][0]["headers"])
        allowed = b"frame-ancestors https://course.example.org *.example.com:8080"
        assert headers[b"content-security-policy"] == allowed
        assert b"x-frame-options" not in headers
        for bad in ("https://a.example/path", "*", "x;script-src *", "http://ä.example"):
            monkeypatch.setenv("BANDITS_FRAME_ANCESTORS", bad)
            frame_ancestors.cache_clear()
            with pytest.raises(UserError, match="is no site; write, for example, https://course"):
                frame_ancestors()
    finally:
        frame_ancestors.cache_clear()


def test_further_names_of_the_server_are_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_known_host("space.example.org")
    monkeypatch.setenv("BANDITS_HOSTS", "space.example.org other.example.org")
    assert is_known_host("space.example.org:443")
    assert is_known_host("OTHER.example.org")
    assert not is_known_host("evil.example.org")


@pytest.mark.parametrize("cookie", ["2||aa|1", "2|||", "2|aa||1", "2|aa|aabb|1", "2|x|y|1"])
def test_a_cookie_that_holds_no_token_makes_no_common_owner(
    cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for _ in range(2):
        context = SimpleNamespace(cookies={"_streamlit_xsrf": cookie})
        monkeypatch.setattr(st, "context", context)
        monkeypatch.setattr(st, "session_state", {})
        found.append(owner())
    assert found[0] != found[1]


def test_no_address_is_the_console(options: dict[str, Any]) -> None:
    here = {"host": HOME, "origin": f"http://{HOME}"}
    # through a tunnel every visitor has the address of this machine
    assert not at_console(**here)
    for value in ("", "x" * 32, console_token()[:-1]):
        assert not at_console(**here, cookie=f"{COOKIE}={value}")
    assert not at_console(**here, cookie=f"bandits-console-8502={console_token()}")
    assert at_console(**here, cookie=f"a=b; {COOKIE}={console_token()}")
    assert at_console("192.0.2.7", **here, cookie=f"{COOKIE}={console_token()}")
    # stated by the visitor
    assert not at_console(**here, **{CONSOLE_HEADER: "1"})
    assert not at_console(**here, **{CONSOLE_HEADER.title(): "1"})
    options["server.baseUrlPath"] = "bandits"
    assert console_link() == f"http://127.0.0.1:8501/bandits/?console={console_token()}"


def test_the_link_of_the_console_becomes_a_cookie() -> None:
    sent, reached = ask(host=HOME, query=f"console={console_token()}")
    headers = dict(sent[0]["headers"])
    assert (reached, sent[0]["status"], headers[b"location"]) == (None, 303, b"./")
    cookie = headers[b"set-cookie"].decode()
    assert cookie.startswith(f"{COOKIE}={console_token()};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    sent, reached = ask(host=HOME, query="console=guessed")
    assert reached is not None
    assert b"set-cookie" not in dict(sent[0]["headers"])


@pytest.mark.parametrize("token", ["short", "with spaces in between", "ä" * 20])
def test_a_token_that_can_be_guessed_is_refused(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONSOLE_VARIABLE, token)
    console_token.cache_clear()
    try:
        with pytest.raises(UserError, match="at least 16 letters, digits, - or _"):
            console_token()
    finally:
        console_token.cache_clear()
